package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/troupe-broker/troupe/actors/relay"
	"github.com/troupe-broker/troupe/bench/peer"
)

// Build compiles the binary into dir, or takes the one that TROUPE_TEST_BINARY names. It compiles as `go test` does, so that
// both share the build cache; what is shipped differs by -trimpath and the resolver of host names.
func Build(ctx context.Context, dir string) (binary string, err error) {
	if given, ok := os.LookupEnv("TROUPE_TEST_BINARY"); ok {
		return filepath.Abs(given)
	}
	return build(ctx, filepath.Join(dir, "troupe"), "cmd/troupe")
}

// BuildProving compiles the test build of bench/chaos/proving in the same way, or takes the one that TROUPE_TEST_PROVING names.
func BuildProving(ctx context.Context, dir string) (binary string, err error) {
	if given, ok := os.LookupEnv("TROUPE_TEST_PROVING"); ok {
		return filepath.Abs(given)
	}
	return build(ctx, filepath.Join(dir, "proving"), "bench/chaos/proving")
}

func build(ctx context.Context, binary, folder string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", binary, "github.com/troupe-broker/troupe/"+folder)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", folder, err, out)
	}
	return binary, nil
}

// Broker is one broker that can be killed and started again, at the same addresses and on the same data directory.
type Broker struct {
	Addr    string // where it listens for clients
	Monitor string // of its metrics
	Data    string // its data directory
	Log     string // file with what it printed, of all its lives

	number  int
	net     *relay.Net // nil: nothing lies between it and others
	clock   string     // file that says how wrong its clock is; of a test build
	platter string     // what of its data is durable; of a test build
	small   bool       // its data directory is a small disk of its own
	command peer.Command
	process *peer.Process
}

// NewBroker describes a broker below dir; it is not started. settings are KEY=VALUE for -X.
func NewBroker(binary, dir string, settings ...string) (*Broker, error) {
	ports, err := relay.Free(2)
	if err != nil {
		return nil, err
	}
	return newBroker(binary, dir, ports[0], ports[1], settings...), nil
}

func newBroker(binary, dir string, listen, monitor netip.AddrPort, settings ...string) *Broker {
	b := &Broker{Addr: listen.String(), Monitor: monitor.String(), Data: filepath.Join(dir, "data"), Log: filepath.Join(dir, "broker.log")}
	args := []string{"serve", "--listen", b.Addr, "--data-dir", b.Data, "-X", "metrics.listen=" + b.Monitor}
	for _, s := range settings {
		args = append(args, "-X", s)
	}
	b.command = peer.Command{Path: binary, Args: args, Output: b.Log}
	return b
}

// Launch starts the process, which says nothing of whether it serves yet.
func (b *Broker) Launch() error {
	process, err := peer.Start(b.command)
	if err != nil {
		return err
	}
	b.process = process
	if b.net == nil {
		return nil
	}
	return b.net.Up(b.number, process.PID())
}

// Await waits until the launched process answers.
func (b *Broker) Await(ctx context.Context) error {
	const patience = 30 * time.Second
	if err := peer.AwaitReady(ctx, b.process, b.Addr, patience); err != nil {
		return fmt.Errorf("%w; its log ends with:\n%s", err, peer.Tail(b.Log, 40))
	}
	return nil
}

// Start starts the process and waits until it answers; one that does not is killed.
func (b *Broker) Start(ctx context.Context) error {
	if err := b.Launch(); err != nil {
		return err
	}
	if err := b.Await(ctx); err != nil {
		return errors.Join(err, b.Kill())
	}
	return nil
}

// Kill ends the process with SIGKILL.
func (b *Broker) Kill() error {
	err := b.process.Kill()
	b.gone()
	return err
}

// gone has connects refused, as where nobody listens.
func (b *Broker) gone() {
	if b.net != nil {
		b.net.Down(b.number)
	}
}

// Pause stops the process without ending it: to the others it is silent, and itself it believes that no time has passed.
func (b *Broker) Pause() error { return b.process.Signal(syscall.SIGSTOP) }

// Resume lets it go on.
func (b *Broker) Resume() error { return b.process.Signal(syscall.SIGCONT) }

// Stop ends the process with SIGTERM and wants exit code 0.
func (b *Broker) Stop(ctx context.Context) error {
	err := b.process.Stop(ctx)
	b.gone()
	if err != nil {
		return err
	}
	if code := b.process.ExitCode(); code != 0 {
		return fmt.Errorf("the broker exited with %d; its log ends with:\n%s", code, peer.Tail(b.Log, 8))
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
