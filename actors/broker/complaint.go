package broker

import (
	"time"

	"github.com/troupe-broker/troupe/wire/ident"
)

// complaint is about one thing that may go wrong for long. It is said when it begins, when the reason changes, and then at growing intervals.
type complaint struct {
	said  map[string]saying // by reason; nil: all is well
	since ident.Instant     // when it was first
}

// saying is when a reason was told last, and how long it is not told again.
type saying struct {
	at    ident.Instant
	pause time.Duration
}

const (
	// complainFirst and complainLast bound the pause before the same is said again; it doubles each time.
	complainFirst = 10 * time.Second
	complainLast  = 10 * time.Minute
	// complaintsMax bounds the reasons that are told apart: a text may have a port in it that is another one each time.
	complaintsMax = 8
)

// due tells whether a reason is to be told now.
func (c *complaint) due(now ident.Instant, reason string) bool {
	if c.said == nil {
		c.said, c.since = make(map[string]saying), now
	}
	s, known := c.said[reason]
	if !known && len(c.said) >= complaintsMax {
		reason = "another"
		s, known = c.said[reason]
	}
	switch {
	case !known:
		s.pause = complainFirst
	case time.Duration(now-s.at) < s.pause:
		return false
	default:
		s.pause = min(2*s.pause, complainLast)
	}
	s.at = now
	c.said[reason] = s
	return true
}

// lasts tells whether it has not been over for a while.
func (c *complaint) lasts(now ident.Instant) bool {
	return c.said != nil && time.Duration(now-c.since) >= complainFirst
}

// over ends it: all is well.
func (c *complaint) over() { c.said = nil }
