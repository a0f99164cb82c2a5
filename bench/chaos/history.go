package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/troupe-broker/troupe/bench/chaos/check"
)

// clock counts microseconds since a run began, by the clock that all processes of the machine share.
type clock struct {
	began time.Time
	epoch int64 // CLOCK_MONOTONIC at began, ns
}

func newClock() (clock, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return clock{}, fmt.Errorf("read the monotonic clock: %w", err)
	}
	return clock{time.Now(), ts.Nano()}, nil
}

func (c clock) now() int64 { return time.Since(c.began).Microseconds() }

// recorder writes the history of the workers of this process.
type recorder struct {
	clock

	mu   sync.Mutex
	file *os.File
	out  *bufio.Writer
	json *json.Encoder
	err  error
}

func newRecorder(c clock, dir string) (*recorder, error) {
	f, err := os.Create(filepath.Join(dir, "harness.jsonl"))
	if err != nil {
		return nil, err
	}
	out := bufio.NewWriterSize(f, 1<<16)
	return &recorder{clock: c, file: f, out: out, json: json.NewEncoder(out)}, nil
}

// write adds an event. What went wrong is told by close.
func (r *recorder) write(e check.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.json.Encode(e); r.err == nil {
		r.err = err
	}
}

// fatal tells of what no client and no broker should come to.
func (r *recorder) fatal(worker, tp, text string) {
	now := r.now()
	r.write(check.Event{Kind: check.Fatal, Worker: worker, TP: tp, T0: now, T1: now, Text: text})
}

func (r *recorder) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.err, r.out.Flush(), r.file.Close())
}
