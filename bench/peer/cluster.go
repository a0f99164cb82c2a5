package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// ClusterOptions say what a cluster of three brokers is made of.
type ClusterOptions struct {
	// Dir receives data and logs, and is left alone.
	Dir string
	// Hosts are where the three live; nil: at addresses of the loopback interface.
	Hosts []Host
	// Settings are for each broker: -X of Troupe, lines of server.properties of Kafka.
	Settings map[string]string
	// Profile and CacheDir are Kafka's; Profile defaults to Stock.
	Profile  Profile
	CacheDir string
}

// Cluster is three brokers that can be killed and started again, one by one, at the same addresses and on the same data.
type Cluster struct {
	Nodes []*Node
}

// Node is one broker of a Cluster.
type Node struct {
	*Process // of the present life; nil before the first
	ID       int32
	// Addr is where clients connect.
	Addr string
	// Host is where it lives.
	Host Host

	command Command
}

// nodeStartMax bounds the time from exec to the first answer.
const nodeStartMax = 3 * time.Minute

// hostsOr are the hosts that the options name, or three addresses of the loopback interface. They are no connection's own address there, so that no port of
// a broker that is down is taken meanwhile by a client.
func (o ClusterOptions) hostsOr() []Host {
	if o.Hosts != nil {
		return o.Hosts
	}
	hosts := make([]Host, clusterSize)
	for i := range hosts {
		hosts[i].IP = net.IPv4(127, 0, 0, byte(11+i))
	}
	return hosts
}

const clusterSize = 3

// ports are n that are free at a host: in a namespace of its own all are.
func (h Host) ports(n int) ([]int, error) {
	if h.Namespace == "" {
		return freePorts(h.IP, n)
	}
	const first = 9092
	ports := make([]int, n)
	for i := range ports {
		ports[i] = first + i
	}
	return ports, nil
}

func (h Host) at(port int) string { return net.JoinHostPort(h.IP.String(), fmt.Sprint(port)) }

// Start starts all brokers and returns when each answers.
func (c *Cluster) Start(ctx context.Context) error {
	errs := make([]error, len(c.Nodes))
	var starting sync.WaitGroup
	for i, n := range c.Nodes {
		starting.Go(func() { errs[i] = n.Start(ctx) })
	}
	starting.Wait()
	return errors.Join(errs...)
}

// Kill ends all brokers that run, with SIGKILL.
func (c *Cluster) Kill() error {
	var errs []error
	for _, n := range c.Nodes {
		if n.Process != nil {
			errs = append(errs, n.Kill())
		}
	}
	return errors.Join(errs...)
}

// Addrs are where clients connect, by broker id.
func (c *Cluster) Addrs() map[int32]string {
	addrs := make(map[int32]string)
	for _, n := range c.Nodes {
		addrs[n.ID] = n.Addr
	}
	return addrs
}

// Node finds a broker by its id; nil: there is none.
func (c *Cluster) Node(id int32) *Node {
	for _, n := range c.Nodes {
		if n.ID == id {
			return n
		}
	}
	return nil
}

// Usage is what all brokers of the cluster have used in their present lives.
func (c *Cluster) Usage() (Usage, error) {
	var sum Usage
	for _, n := range c.Nodes {
		u, err := n.Usage()
		if err != nil {
			return Usage{}, err
		}
		sum.User += u.User
		sum.System += u.System
		sum.RssAnonBytes += u.RssAnonBytes
		sum.RssFileBytes += u.RssFileBytes
		sum.Threads += u.Threads
	}
	return sum, nil
}

// Start starts the broker and returns when it answers. It must not be running.
func (n *Node) Start(ctx context.Context) error {
	p, err := Start(n.command)
	if err != nil {
		return err
	}
	n.Process = p
	if err := AwaitReady(ctx, p, n.Addr, nodeStartMax); err != nil {
		return errors.Join(fmt.Errorf("broker %d does not serve: %w\nlast lines of %s:\n%s", n.ID, err, n.Output(), Tail(n.Output(), 30)), p.Kill())
	}
	return nil
}

// Output is the file with what it printed, in all its lives.
func (n *Node) Output() string { return n.command.Output }

// Pause stops the process without ending it: to the others it is silent, and itself it believes that no time has passed.
func (n *Node) Pause() error { return n.Signal(syscall.SIGSTOP) }

// Resume lets it go on.
func (n *Node) Resume() error { return n.Signal(syscall.SIGCONT) }
