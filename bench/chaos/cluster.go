package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/troupe-broker/troupe/actors/relay"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/bench/chaos/check"
	"github.com/troupe-broker/troupe/wire/record"
)

// Cluster is brokers that found a cluster together, broker i+1 at index i, and the network between them and their clients.
type Cluster struct {
	Brokers []*Broker
	Addrs   []string // of clients
	Net     *relay.Net
	dir     string
}

// NewCluster describes brokers below dir; they are not started. settings are KEY=VALUE for -X, of each. Its network is closed by Kill.
func NewCluster(binary, dir string, size int, settings ...string) (*Cluster, error) {
	const each = 5
	free, err := relay.Free(each * size)
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir}
	ports, join := make([]relay.Ports, size), []string{}
	for i := range size {
		p := free[each*i:]
		ports[i] = relay.Ports{ClientFront: p[0], ClientBack: p[1]}
		if size > 1 {
			ports[i].PeerFront, ports[i].PeerBack = p[2], p[3]
			join = append(join, p[2].String())
		}
	}
	c.Net = relay.New(runtime.NewRealClock(), ports)
	for i, p := range ports {
		own := append(slices.Clone(settings), "advertised.listeners="+p.ClientFront.String())
		if size > 1 {
			own = append(own, fmt.Sprint("broker.id=", i+1), "peer.listen="+p.PeerBack.String(), "peer.advertise="+p.PeerFront.String(),
				"join="+strings.Join(join, ","), fmt.Sprint("bootstrap.expect=", size))
		}
		if err := os.MkdirAll(c.home(i), 0o755); err != nil {
			return nil, err
		}
		b := newBroker(binary, c.home(i), p.ClientBack, free[each*i+4], own...)
		b.number, b.net = i+1, c.Net
		c.Brokers = append(c.Brokers, b)
		c.Addrs = append(c.Addrs, p.ClientFront.String())
	}
	return c, nil
}

func (c *Cluster) home(i int) string { return filepath.Join(c.dir, fmt.Sprint("broker-", i+1)) }

// Start starts all of them: each answers only when the cluster is founded.
func (c *Cluster) Start(ctx context.Context) error {
	return c.all(func(b *Broker) error { return b.Start(ctx) })
}

// upgrade restarts all but the last one with another binary, in order and one after another. The levels that the cluster was founded at stay.
func (c *Cluster) upgrade(ctx context.Context, binary string) error {
	for i, b := range c.Brokers[:len(c.Brokers)-1] {
		if err := b.Stop(ctx); err != nil {
			return fmt.Errorf("upgrade broker %d: %w", i+1, err)
		}
		b.command.Path = binary
		if err := b.Start(ctx); err != nil {
			return fmt.Errorf("upgrade broker %d: %w", i+1, err)
		}
	}
	return nil
}

// Stop ends all of them in order, at the same time.
func (c *Cluster) Stop(ctx context.Context) error {
	return c.all(func(b *Broker) error { return b.Stop(ctx) })
}

func (c *Cluster) all(do func(*Broker) error) error {
	results := make(chan error, len(c.Brokers))
	for _, b := range c.Brokers {
		go func() { results <- do(b) }()
	}
	var err error
	for range c.Brokers {
		err = errors.Join(err, <-results)
	}
	return err
}

// Kill ends all that run with SIGKILL, and the network.
func (c *Cluster) Kill() error {
	defer c.Net.Close()
	var err error
	for _, b := range c.Brokers {
		if b.process != nil {
			err = errors.Join(err, b.Kill())
		}
	}
	return err
}

// awaitInSync waits until every partition of the topics has a leader and all its replicas in the ISR.
func awaitInSync(ctx context.Context, client *kgo.Client, topics []string, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	behind := "nobody answered"
	for {
		if m, err := askMetadata(ctx, client, topics); err == nil {
			behind = ""
			for p, s := range m {
				if len(s.isr) < len(s.replicas) || s.leader < 1 {
					behind += fmt.Sprintf(" %v: %v", p, s)
				}
			}
			if behind == "" {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("after %v, not all replicas are in sync: %s", patience, behind)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// writeDisks adds to the history what each broker has on its disk; the brokers have to be down. What is torn is left out: it was told that it was not mended.
func (c *Cluster) writeDisks(rec *recorder, places []place, torn func(broker int, p place) bool) {
	for i := range c.Brokers {
		for _, p := range places {
			if torn(i, p) {
				continue
			}
			batches, err := readBatches(filepath.Join(c.Brokers[i].Data, p.String()))
			if err != nil {
				rec.fatal(fmt.Sprint("broker-", i+1), p.String(), err.Error())
				continue
			}
			now := rec.now()
			rec.write(check.Event{Kind: check.Replica, Worker: fmt.Sprint("broker-", i+1), TP: p.String(), T0: now, T1: now, Batches: batches})
		}
	}
}

// readBatches reads the batches of a log, segment after segment, up to the space that is reserved. A partition without files has none.
func readBatches(dir string) ([]check.Batch, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var all []check.Batch
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		for len(b) > 0 {
			v, rest, err := record.Split(b)
			if err != nil {
				break
			}
			if err := v.VerifyCRC(); err != nil {
				return nil, fmt.Errorf("%s, %d bytes before its end: %w", f, len(b), err)
			}
			all = append(all, check.Batch{
				Base: int64(v.BaseOffset()), Last: int64(v.LastOffset()), Epoch: int32(v.LeaderEpoch()), Producer: int64(v.ProducerID()), Term: int16(v.ProducerEpoch()),
				Sequence: int32(v.BaseSequence()), Bytes: v.Size(), CRC: v.CRC(),
			})
			b = rest
		}
	}
	return all, nil
}
