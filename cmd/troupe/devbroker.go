package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// devBroker is one broker of `troupe dev`: a child process, when it runs.
type devBroker struct {
	id     int
	dir    string
	log    string // file; each run appends to it
	client string // host:port, the same in all runs
	served served // what it said when it was ready last
	cmd    *exec.Cmd
	state  devState
	asked  bool          // its end was asked for
	gone   chan struct{} // closed when the run's goroutine has told of its end
}

// devState is what a broker does, as this process knows.
type devState string

const (
	devDown     devState = "down"
	devStarting devState = "starting"
	devServing  devState = "serving"
	devPaused   devState = "paused"
)

// devEvent is what a run of a broker tells: that it serves, or that it has ended.
type devEvent struct {
	broker *devBroker
	run    *exec.Cmd
	served *served
	err    error // of its end; nil: exit code 0
}

// begin starts a run. Its goroutine tells of it, and is waited for by ended.
func (b *devBroker) begin(binary string, args []string, events chan<- devEvent) error {
	log, err := os.OpenFile(b.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.Background(), binary, args...) // it is ended by end
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:   true, // a Ctrl-C is for this process, which stops them in order
		Pdeathsig: syscall.SIGKILL,
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if closeErr := log.Close(); err == nil && closeErr != nil { // the child has its own
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("start broker %d: %w", b.id, err)
	}
	b.cmd, b.state, b.asked, b.gone = cmd, devStarting, false, make(chan struct{})
	gone := b.gone
	go func() { // ended waits for it
		defer close(gone)
		reader := bufio.NewReader(out)
		if line, err := reader.ReadBytes('\n'); err == nil {
			var s served
			if err := json.Unmarshal(line, &s); err == nil {
				events <- devEvent{broker: b, run: cmd, served: &s}
			}
		}
		_, _ = io.Copy(io.Discard, reader) // until it ends
		events <- devEvent{broker: b, run: cmd, err: cmd.Wait()}
	}()
	return nil
}

// signal sends a signal to the broker's process. One that has ended needs none.
func (b *devBroker) signal(s syscall.Signal) { _ = b.cmd.Process.Signal(s) }

// lastLines returns the last lines of the log, as a person reads them.
func (b *devBroker) lastLines(n int) ([]string, error) {
	data, err := os.ReadFile(b.log)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	lines = lines[max(0, len(lines)-n):]
	for i := range lines {
		lines[i] = plainLine(lines[i])
	}
	return lines, nil
}

// plainLine writes a line of the log, which is JSON, with the time and the words first.
func plainLine(line string) string {
	var fields map[string]any
	if err := json.Unmarshal([]byte(line), &fields); err != nil {
		return line
	}
	var text strings.Builder
	_, _ = fmt.Fprintf(&text, "%v %-5v %v", fields["time"], fields["level"], fields["message"])
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if key != "time" && key != "level" && key != "message" {
			_, _ = fmt.Fprintf(&text, " %s=%v", key, fields[key])
		}
	}
	return text.String()
}

// checkFree tells whether nobody listens at an address yet.
func checkFree(ctx context.Context, address string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", address)
	if err != nil {
		return fail(codeListen, "is another broker running? --port N takes the numbers from N on, --port 0 any that are free", "%w", err)
	}
	return l.Close()
}

// devLog is where a broker's log goes.
func devLog(dir string, id int) string { return filepath.Join(dir, fmt.Sprintf("broker-%d.log", id)) }
