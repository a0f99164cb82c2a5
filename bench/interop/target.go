package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/troupe-broker/troupe/bench/peer"
)

// target is the broker under test.
type target struct {
	*peer.Process
	name    string // "troupe" or "kafka"
	version string
	addr    string
	// data is the directory that holds the partitions' directories.
	data string
	log  string
	// again is how to start it once more; Kafka is started once.
	again peer.Command
}

// isKafka says whether the checks run against the oracle.
func (t *target) isKafka() bool { return t.name == "kafka" }

// segment is the path of a partition's first segment, without its ending.
func (t *target) segment(topic string, partition int, base int64) string {
	return filepath.Join(t.data, fmt.Sprintf("%s-%d", topic, partition), fmt.Sprintf("%020d", base))
}

// settings are broker configuration by Kafka's names, the same for both targets.
type settings map[string]string

// startTarget starts a broker with an empty directory on a free port of the loopback interface.
func startTarget(ctx context.Context, e *environment, name, label string, s settings) (*target, error) {
	dir := filepath.Join(e.run, label)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	switch name {
	case "kafka":
		k, err := peer.StartKafka(ctx, peer.Options{Profile: peer.Small, Properties: s, Dir: dir, CacheDir: e.cache})
		if err != nil {
			return nil, err
		}
		return &target{Process: k.Process, name: name, version: peer.KafkaVersion, addr: k.Addr, data: k.DataDir, log: k.LogFile}, nil
	case "troupe":
		return startTroupe(ctx, e, dir, s)
	default:
		return nil, fmt.Errorf("no target %q: troupe or kafka", name)
	}
}

func startTroupe(ctx context.Context, e *environment, dir string, s settings) (*target, error) {
	binary := filepath.Join(e.cache, "troupe")
	if err := command(ctx, e.root, "go", "build", "-o", binary, "./cmd/troupe"); err != nil {
		return nil, err
	}
	revision, err := exec.CommandContext(ctx, "git", "-C", e.root, "describe", "--always", "--dirty").Output()
	if err != nil {
		revision = []byte("of unknown revision: " + err.Error()) // built from a copy without its history
	}
	t := &target{name: "troupe", version: strings.TrimSpace(string(revision)), data: filepath.Join(dir, "data"), log: filepath.Join(dir, "troupe.log")}
	options := make([]string, 0, len(s))
	for key, value := range s {
		options = append(options, key+"="+value)
	}
	broker, err := peer.NewTroupe(binary, t.data, t.log, options...)
	if err != nil {
		return nil, err
	}
	t.addr, t.again = broker.Addr, broker.Command
	t.again.Dir = dir
	return t, t.startAgain(ctx)
}

// startAgain starts the process, at first or after it was stopped or killed: same address, same directory.
func (t *target) startAgain(ctx context.Context) (err error) {
	if t.Process, err = peer.Start(t.again); err != nil {
		return err
	}
	if err := peer.AwaitReady(ctx, t.Process, t.addr, 20*time.Second); err != nil {
		return errors.Join(fmt.Errorf("the broker does not serve: %w\nlast lines of %s:\n%s", err, t.log, peer.Tail(t.log, 30)), t.Kill())
	}
	return nil
}
