package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/troupe-broker/troupe/bench/peer"
	"github.com/troupe-broker/troupe/bench/program"
)

type bench struct {
	options
	dir    string
	binary string // of Troupe
	raw    *rawLog
	trios  int // that were started
	topics int // that were made
}

func main() {
	program.Main("cluster", parseOptions, func(ctx context.Context, o options) error { return (&bench{options: o}).run(ctx) })
}

func (b *bench) run(ctx context.Context) (err error) {
	if b.dir = b.workDir; b.dir == "" {
		if b.dir, err = os.MkdirTemp("", "troupe-cluster-"); err != nil {
			return err
		}
		defer func() {
			if err == nil { // else the logs in it say why
				err = os.RemoveAll(b.dir)
			} else {
				err = fmt.Errorf("%w\n(logs: %s)", err, b.dir)
			}
		}()
	}
	out := filepath.Join(b.out, "cluster-"+time.Now().UTC().Format("20060102-150405"))
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(out, "samples.jsonl"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	b.raw = &rawLog{w: file}
	if slices.Contains(b.targets, nameTroupe) {
		if b.binary, err = peer.BuildTroupe(ctx, b.troupe, b.dir); err != nil {
			return err
		}
	}
	// What was measured before an error is worth its tables.
	return errors.Join(b.measure(ctx), b.report(filepath.Join(out, "summary.txt")))
}

func (b *bench) measure(ctx context.Context) error {
	for _, row := range b.rows {
		if row == rowLatency {
			if err := b.latency(ctx); err != nil {
				return err
			}
			continue
		}
		for _, name := range b.targets {
			if err := b.of(row)(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// of is how a row is measured that one target has for itself.
func (b *bench) of(row string) func(context.Context, string) error {
	switch row {
	case rowIdle:
		return b.idle
	case rowMany:
		return b.many
	}
	return b.failover
}

func (b *bench) report(path string) error {
	var text strings.Builder
	fmt.Fprintf(&text, "Three brokers as one\ngo run ./bench/cluster %s\n\n", strings.Join(os.Args[1:], " "))
	for _, f := range append(peer.Facts(), [2]string{"Apache Kafka", peer.KafkaVersion + ", stock, broker and controller at once"}) {
		fmt.Fprintf(&text, "%s: %s\n", f[0], f[1])
	}
	if err := b.raw.summary(&text); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		return err
	}
	_, err := io.WriteString(os.Stdout, "\n"+text.String()+"\nwritten: "+filepath.Dir(path)+"\n")
	return err
}
