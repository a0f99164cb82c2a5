package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/troupe-broker/troupe/bench/peer"
	"github.com/troupe-broker/troupe/wire/record"
)

// Cluster is three brokers that found a cluster together.
type Cluster struct {
	Brokers []*Broker
	Addrs   string // of clients, separated by commas
	dir     string
}

// NewCluster describes three brokers below dir; they are not started. settings are KEY=VALUE for -X, of each.
func NewCluster(binary, dir string, settings ...string) (*Cluster, error) {
	const size = 3
	ports, err := peer.FreePorts(size)
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir}
	var join, addrs []string
	for _, p := range ports {
		join = append(join, fmt.Sprintf("127.0.0.1:%d", p))
	}
	for i := range size {
		own := []string{
			fmt.Sprint("broker.id=", i+1), "peer.listen=" + join[i], "join=" + strings.Join(join, ","), fmt.Sprint("bootstrap.expect=", size),
		}
		sub := c.home(i)
		if err := os.MkdirAll(sub, 0o755); err != nil {
			return nil, err
		}
		b, err := NewBroker(binary, sub, append(own, settings...)...)
		if err != nil {
			return nil, err
		}
		c.Brokers = append(c.Brokers, b)
		addrs = append(addrs, b.Addr)
	}
	c.Addrs = strings.Join(addrs, ",")
	return c, nil
}

func (c *Cluster) home(i int) string { return filepath.Join(c.dir, fmt.Sprint("broker-", i+1)) }

// Start starts all of them: each answers only when the cluster is founded.
func (c *Cluster) Start(ctx context.Context) error {
	results := make(chan error, len(c.Brokers))
	for _, b := range c.Brokers {
		go func() { results <- b.Start(ctx) }()
	}
	var err error
	for range c.Brokers {
		err = errors.Join(err, <-results)
	}
	return err
}

// Pause stops a broker's process without ending it: to the others it is silent, and itself it believes that no time has passed.
func (b *Broker) Pause() error { return syscall.Kill(b.PID(), syscall.SIGSTOP) }

// Resume lets it go on.
func (b *Broker) Resume() error { return syscall.Kill(b.PID(), syscall.SIGCONT) }

// Kill ends all that run with SIGKILL.
func (c *Cluster) Kill() error {
	var err error
	for _, b := range c.Brokers {
		if b.process != nil {
			err = errors.Join(err, b.Kill())
		}
	}
	return err
}

// Leader is the index of the broker that leads a partition; -1: none does.
func Leader(ctx context.Context, admin *kadm.Client, p Place) (int, error) {
	m, err := admin.Metadata(ctx, p.Topic)
	if err != nil {
		return -1, err
	}
	d, ok := m.Topics[p.Topic].Partitions[p.Partition]
	if !ok || d.Leader < 1 {
		return -1, nil
	}
	return int(d.Leader - 1), nil
}

// AwaitInSync waits until every replica of the topics is in the ISR.
func AwaitInSync(ctx context.Context, admin *kadm.Client, replicas int, topics ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	behind := ""
	for {
		m, err := admin.Metadata(ctx, topics...)
		if err != nil && ctx.Err() != nil {
			return fmt.Errorf("not all replicas are in sync: %s: %w", behind, err)
		}
		behind = ""
		for _, topic := range topics {
			for _, p := range m.Topics[topic].Partitions {
				if len(p.ISR) < replicas || p.Leader < 1 {
					behind += fmt.Sprintf(" %s-%d: leader %d, ISR %v", topic, p.Partition, p.Leader, p.ISR)
				}
			}
		}
		if err == nil && behind == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not all replicas are in sync:%s", behind)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// ReadSoon reads as Read does, and tries again while leaders are being replaced.
func ReadSoon(ctx context.Context, addrs string, topics []string, writers map[string]*Writer) (History, error) {
	const patience = 30 * time.Second
	for began := time.Now(); ; {
		h, err := Read(ctx, addrs, topics, writers)
		if err == nil || ctx.Err() != nil || time.Since(began) > patience {
			return h, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Differ compares what the brokers have on disk of a partition, batch by batch; the brokers have to be down. Segments may begin elsewhere.
func (c *Cluster) Differ(p Place) error {
	var first []byte
	for i := range c.Brokers {
		all, err := batches(filepath.Join(c.home(i), "data", fmt.Sprintf("%s-%d", p.Topic, p.Partition)))
		if err != nil {
			return err
		}
		if i == 0 {
			first = all
			continue
		}
		if !bytes.Equal(first, all) {
			at := 0
			for at < min(len(first), len(all)) && first[at] == all[at] {
				at++
			}
			return fmt.Errorf("%v: broker %d has %d bytes of batches, broker 1 has %d; they differ from byte %d on", p, i+1, len(all), len(first), at)
		}
	}
	return nil
}

// batches reads the batches of a log, segment after segment.
func batches(dir string) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no segments", dir)
	}
	slices.Sort(files)
	var all []byte
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		for len(b) > 0 {
			v, rest, err := record.Split(b)
			if err != nil {
				break // space that was reserved
			}
			all, b = append(all, v...), rest
		}
	}
	return all, nil
}
