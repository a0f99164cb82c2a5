package main

import (
	"fmt"
	"io"
	"time"
)

// progress redraws one line of stderr, at most five times a second.
type progress struct {
	to    io.Writer // nil: nobody looks
	next  time.Time
	began time.Time
	drawn bool
}

func (s *session) newProgress() *progress {
	p := &progress{began: time.Now()}
	if s.terminal || s.progress {
		p.to = s.err
		p.next = p.began.Add(time.Second) // short work needs no progress
	}
	return p
}

// show draws what is done so far.
func (p *progress) show(what fmt.Stringer) {
	if p.to == nil {
		return
	}
	now := time.Now()
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(200 * time.Millisecond)
	p.drawn = true
	_, _ = fmt.Fprintf(p.to, "\r\x1b[K%s in %s", what, now.Sub(p.began).Round(time.Second))
}

// done wipes the line.
func (p *progress) done() {
	if p.drawn {
		_, _ = io.WriteString(p.to, "\r\x1b[K")
	}
}

// plural prints a number with its noun.
func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// byteCount prints a number of bytes for people.
func byteCount(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, suffix := float64(n)/unit, 0
	for value >= unit && suffix < 4 {
		value /= unit
		suffix++
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTP"[suffix])
}
