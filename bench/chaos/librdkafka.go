package main

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/troupe-broker/troupe/bench/peer"
)

//go:embed drivers/librdkafka.py
var librdkafkaDriver []byte

//go:embed drivers/requirements.txt
var librdkafkaPins []byte

// errMissing is wrapped when the machine lacks what a client needs.
var errMissing = errors.New("not on this machine")

// librdkafka starts workers that use that library, through Python.
type librdkafka struct {
	python string // of a virtual environment that has it
}

// newLibrdkafka installs the pinned library below the user's cache, once.
func newLibrdkafka(ctx context.Context) (*librdkafka, error) {
	system, err := exec.LookPath("python3")
	if err != nil {
		return nil, fmt.Errorf("librdkafka needs python3, which is %w", errMissing)
	}
	if err := command(ctx, "", system, "-c", "import venv, ensurepip"); err != nil {
		return nil, fmt.Errorf("librdkafka needs Python's venv and ensurepip, which are %w", errMissing)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(librdkafkaPins)
	dir := filepath.Join(cache, "troupe", "librdkafka-"+hex.EncodeToString(sum[:6]))
	l := &librdkafka{filepath.Join(dir, "venv", "bin", "python")}
	mark := filepath.Join(dir, ".complete")
	if _, err := os.Stat(mark); err == nil {
		return l, nil
	}
	pins := filepath.Join(dir, "requirements.txt")
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755), os.WriteFile(pins, librdkafkaPins, 0o644)); err != nil {
		return nil, err
	}
	if err := command(ctx, dir, system, "-m", "venv", "venv"); err != nil {
		return nil, err
	}
	if err := command(ctx, dir, l.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--requirement", pins); err != nil {
		return nil, err
	}
	return l, os.WriteFile(mark, nil, 0o644)
}

// command runs a program to its end; what it printed goes into the error.
func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// produce is load.produce by librdkafka, in a process of its own.
func (l *librdkafka) produce(ctx context.Context, rec *recorder, home, name string, load load, topics []string) error {
	return l.work(ctx, rec, home, name, "produce", "--bootstrap", strings.Join(load.addrs, ","), "--topics", strings.Join(topics, ","),
		"--partitions", fmt.Sprint(len(load.places)/len(topics)), "--rate", fmt.Sprint(load.rate), "--size", fmt.Sprint(load.size))
}

// consume is team.consume by librdkafka.
func (l *librdkafka) consume(ctx context.Context, rec *recorder, home, name string, g team) error {
	return l.work(ctx, rec, home, name, "member", "--bootstrap", strings.Join(g.addrs, ","), "--topics", strings.Join(g.topics, ","), "--group", g.group, "--protocol", g.protocol)
}

// work runs the driver until ctx ends, and then until it has brought its work to an end. It writes a history of its own beside the recorder's.
func (l *librdkafka) work(ctx context.Context, rec *recorder, home, name, role string, args ...string) error {
	const patience = 150 * time.Second
	driver := filepath.Join(home, name+".py") // its own: another worker may be reading at this moment
	if err := os.WriteFile(driver, librdkafkaDriver, 0o644); err != nil {
		return err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	log := filepath.Join(home, name+".log")
	args = append([]string{driver, role, "--name", name, "--history", filepath.Join(home, "history", name+".jsonl"), "--epoch", fmt.Sprint(rec.epoch)}, args...)
	process, err := peer.Start(peer.Command{Path: l.python, Args: args, Output: log, Stdin: in})
	if err := errors.Join(err, in.Close()); err != nil {
		return errors.Join(err, out.Close())
	}
	select {
	case <-ctx.Done():
	case <-process.Exited():
	}
	closed := out.Close() // its work ends with its input
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-process.Exited():
	case <-late.C:
		rec.fatal(name, "", fmt.Sprintf("it did not end within %v", patience))
		return errors.Join(closed, process.Kill())
	}
	if code := process.ExitCode(); code != 0 {
		rec.fatal(name, "", fmt.Sprintf("it ended with code %d; its log ends with: %s", code, peer.Tail(log, 8)))
	}
	return closed
}
