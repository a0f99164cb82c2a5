package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := interruptible(context.Background())
	out := bufio.NewWriter(os.Stdout)
	code := run(ctx, os.Args[1:], &session{
		in:       os.Stdin,
		out:      out,
		err:      os.Stderr,
		env:      os.LookupEnv,
		environ:  os.Environ,
		terminal: isTerminal(os.Stderr),
		asks:     isTerminal(os.Stdin),
		flush:    out.Flush,
	})
	stop()
	os.Exit(code)
}

// interruptible returns a context that the first SIGINT or SIGTERM ends; the second one ends the process at once. stop
// gives the signals back to the system.
func interruptible(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	over, done := make(chan struct{}), make(chan struct{})
	go func() { // stop waits for it
		defer close(done)
		for n := 1; ; n++ {
			select {
			case <-over:
				return
			case <-signals:
				if n > 1 {
					os.Exit(exitInterrupted)
				}
				cancel()
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(over)
		<-done
		cancel()
	}
}

// session is what a command has of the outside: streams, environment, and the form of its output.
type session struct {
	in       io.Reader
	out      io.Writer
	err      io.Writer
	env      func(name string) (string, bool)
	environ  func() []string
	terminal bool         // err is a terminal: progress may be drawn
	asks     bool         // in is a terminal: a question can be answered
	flush    func() error // empties out's buffer

	format    string // -o
	bootstrap string // --bootstrap
	progress  bool   // --progress
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, s *session) int {
	root := newRoot(s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if flushErr := s.flush(); err == nil && flushErr != nil && !errors.Is(flushErr, syscall.EPIPE) {
		err = wrapStdout(flushErr)
	}
	if err == nil {
		return exitDone
	}
	f := asFailure(err)
	f.report(s.err, s.format)
	return f.Exit
}

// isTerminal tells whether a stream is a character device that is not the null device.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
