package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/troupe-broker/troupe/bench/peer"
)

// trio is three brokers that are one cluster. Any of them can be killed and started again, at the same address and on the same data.
type trio struct {
	nodes []*node // ids 1, 2, 3
	// joins is what a fourth broker needs to become an observer; nil: this kind of cluster has none here.
	joins func(ctx context.Context) (*node, error)
}

// node is one broker of a trio.
type node struct {
	*peer.Process // of its present life
	id            int
	addr          string
	start         func(ctx context.Context) (*peer.Process, error)
}

// trioSettings are the same for both targets. A dead broker is noticed after three seconds of silence, where Kafka's default would let each check wait for nine.
func trioSettings() settings {
	s := settings{
		"offsets.topic.replication.factor": "3", "offsets.topic.num.partitions": "3",
		"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500",
	}
	maps.Copy(s, groupSettings)
	return s
}

// startTrio starts three brokers of a kind with empty directories and returns when all serve.
func startTrio(ctx context.Context, e *environment, name, binary string) (*trio, error) {
	var t *trio
	var err error
	dir := filepath.Join(e.run, "trio")
	if name == "kafka" {
		t, err = kafkaTrio(ctx, e, dir)
	} else {
		t, err = troupeTrio(binary, dir)
	}
	if err != nil {
		return nil, err
	}
	started := make(chan error, len(t.nodes))
	for _, n := range t.nodes {
		go func() { started <- n.begin(ctx) }() // each waits for the others
	}
	for range t.nodes {
		err = errors.Join(err, <-started)
	}
	if err != nil {
		return nil, errors.Join(err, t.kill())
	}
	return t, nil
}

func kafkaTrio(ctx context.Context, e *environment, dir string) (*trio, error) {
	c, err := peer.NewKafkaCluster(ctx, peer.ClusterOptions{Dir: dir, Settings: trioSettings(), Profile: peer.Small, CacheDir: e.cache})
	if err != nil {
		return nil, err
	}
	t := &trio{}
	for _, n := range c.Nodes {
		t.nodes = append(t.nodes, &node{id: int(n.ID), addr: n.Addr, start: func(ctx context.Context) (*peer.Process, error) {
			err := n.Start(ctx)
			return n.Process, err
		}})
	}
	return t, nil
}

// troupeTrio describes three brokers that found a cluster together, and a fourth that may join it.
func troupeTrio(binary, dir string) (*trio, error) {
	const founders = 3
	ports, err := peer.FreePorts(founders + 1)
	if err != nil {
		return nil, err
	}
	peers := make([]string, len(ports))
	for i, port := range ports {
		peers[i] = fmt.Sprintf("127.0.0.1:%d", port)
	}
	describe := func(id int, more ...string) (*node, error) {
		home := filepath.Join(dir, fmt.Sprint("broker-", id))
		if err := os.MkdirAll(home, 0o755); err != nil {
			return nil, err
		}
		options := append([]string{fmt.Sprint("broker.id=", id), "peer.listen=" + peers[id-1], "join=" + strings.Join(peers[:founders], ",")}, more...)
		for key, value := range trioSettings() {
			options = append(options, key+"="+value)
		}
		b, err := peer.NewTroupe(binary, filepath.Join(home, "data"), filepath.Join(home, "troupe.log"), options...)
		if err != nil {
			return nil, err
		}
		n := &node{id: id, addr: b.Addr}
		n.start = func(ctx context.Context) (*peer.Process, error) {
			p, err := peer.Start(b.Command)
			if err != nil {
				return nil, err
			}
			if err := peer.AwaitReady(ctx, p, b.Addr, 30*time.Second); err != nil {
				return nil, errors.Join(fmt.Errorf("broker %d does not serve: %w\nlast lines of its log:\n%s", id, err, peer.Tail(b.Command.Output, 30)), p.Kill())
			}
			return p, nil
		}
		return n, nil
	}
	t := &trio{joins: func(ctx context.Context) (*node, error) {
		n, err := describe(founders + 1)
		if err != nil {
			return nil, err
		}
		return n, n.begin(ctx)
	}}
	for id := 1; id <= founders; id++ {
		n, err := describe(id, fmt.Sprint("bootstrap.expect=", founders))
		if err != nil {
			return nil, err
		}
		t.nodes = append(t.nodes, n)
	}
	return t, nil
}

// begin starts a broker that does not run and returns when it serves.
func (n *node) begin(ctx context.Context) (err error) {
	n.Process, err = n.start(ctx)
	return err
}

// addrs is what clients are given to find the cluster.
func (t *trio) addrs() string {
	var all []string
	for _, n := range t.nodes {
		all = append(all, n.addr)
	}
	return strings.Join(all, ",")
}

// node is the broker of an id.
func (t *trio) node(id int) *node { return t.nodes[id-1] }

// kill ends all brokers at once.
func (t *trio) kill() error {
	var errs []error
	for _, n := range t.nodes {
		if n.Process != nil {
			errs = append(errs, n.Kill())
		}
	}
	return errors.Join(errs...)
}
