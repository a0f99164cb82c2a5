package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/troupe-broker/troupe/bench/peer"
)

// Build compiles the binary into dir, or takes the one that TROUPE_TEST_BINARY names. It compiles as `go test` does, so that
// both share the build cache; what is shipped differs by -trimpath and the resolver of host names.
func Build(ctx context.Context, dir string) (binary string, err error) {
	if given, ok := os.LookupEnv("TROUPE_TEST_BINARY"); ok {
		return filepath.Abs(given)
	}
	binary = filepath.Join(dir, "troupe")
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", binary, "github.com/troupe-broker/troupe/cmd/troupe")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the binary: %w\n%s", err, out)
	}
	return binary, nil
}

// Broker is one broker that can be killed and started again, at the same addresses and on the same data directory.
type Broker struct {
	Addr    string // of clients
	Monitor string // of its metrics
	Log     string // file with what it printed, of all its lives

	command peer.Command
	process *peer.Process
}

// NewBroker describes a broker below dir; it is not started. settings are KEY=VALUE for -X.
func NewBroker(binary, dir string, settings ...string) (*Broker, error) {
	t, err := peer.NewTroupe(binary, filepath.Join(dir, "data"), filepath.Join(dir, "broker.log"), settings...)
	if err != nil {
		return nil, err
	}
	return &Broker{Addr: t.Addr, Monitor: t.Monitor, Log: t.Command.Output, command: t.Command}, nil
}

// Start starts the process and waits until it answers.
func (b *Broker) Start(ctx context.Context) error {
	const patience = 30 * time.Second
	process, err := peer.Start(b.command)
	if err != nil {
		return err
	}
	b.process = process
	if err := peer.AwaitReady(ctx, process, b.Addr, patience); err != nil {
		return errors.Join(fmt.Errorf("%w; its log ends with:\n%s", err, peer.Tail(b.Log, 40)), process.Kill())
	}
	return nil
}

// Kill ends the process with SIGKILL.
func (b *Broker) Kill() error { return b.process.Kill() }

// Stop ends the process with SIGTERM and wants exit code 0.
func (b *Broker) Stop(ctx context.Context) error {
	if err := b.process.Stop(ctx); err != nil {
		return err
	}
	if code := b.process.ExitCode(); code != 0 {
		return fmt.Errorf("the broker exited with %d; its log ends with:\n%s", code, peer.Tail(b.Log, 40))
	}
	return nil
}

// Alive returns nil while the process runs.
func (b *Broker) Alive() error {
	if err := b.process.Err(); err != nil {
		return fmt.Errorf("%w; its log ends with:\n%s", err, peer.Tail(b.Log, 60))
	}
	return nil
}

// PID is the process id of the present life.
func (b *Broker) PID() int { return b.process.PID() }
