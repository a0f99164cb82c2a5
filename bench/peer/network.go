package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
)

// Host is where a broker lives: an address, in a network namespace of its own or (empty) in that of this process.
type Host struct {
	IP        net.IP
	Namespace string

	port string // of the bridge, to this host
}

// Network is three hosts behind a bridge, each a network namespace, so that one can be cut off from everybody, this process included, as if its switch
// dropped what it sends and what is sent to it. Making one takes root and the ip and bridge programs.
type Network struct {
	Hosts  []Host
	bridge string
}

// namespaces is where the ip program keeps those that have names.
const namespaces = "/run/netns"

// NewNetwork makes the hosts. Their names have the pid of this process in them, their addresses are 10.213.0.1 and so on.
func NewNetwork(ctx context.Context) (*Network, error) {
	const subnet = "10.213.0."
	pid := os.Getpid()
	n := &Network{bridge: fmt.Sprintf("tb%d", pid)}
	err := run(ctx, "ip link add "+n.bridge+" type bridge", "ip link set "+n.bridge+" up", "ip addr add "+subnet+"254/24 dev "+n.bridge)
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	for i := 1; i <= clusterSize; i++ {
		h := Host{IP: net.ParseIP(fmt.Sprint(subnet, i)), Namespace: fmt.Sprintf("tb%d-%d", pid, i), port: fmt.Sprintf("tb%dv%d", pid, i)}
		n.Hosts = append(n.Hosts, h)
		err := run(ctx, "ip netns add "+h.Namespace, "ip link add "+h.port+" type veth peer name eth0 netns "+h.Namespace,
			"ip link set "+h.port+" master "+n.bridge+" up", fmt.Sprintf("ip -n %s addr add %v/24 dev eth0", h.Namespace, h.IP),
			"ip -n "+h.Namespace+" link set eth0 up", "ip -n "+h.Namespace+" link set lo up")
		if err != nil {
			return nil, errors.Join(err, n.Close())
		}
	}
	return n, nil
}

// Cut drops everything that goes to a host and comes from it; its link stays up, and connections stay open.
func (n *Network) Cut(ctx context.Context, h Host) error {
	return run(ctx, "bridge link set dev "+h.port+" state 0")
}

// Mend ends a Cut.
func (n *Network) Mend(ctx context.Context, h Host) error {
	return run(ctx, "bridge link set dev "+h.port+" state 3")
}

// Close removes the hosts. Their processes have ended.
func (n *Network) Close() error {
	ctx := context.Background()
	var errs []error
	for _, h := range n.Hosts {
		errs = append(errs, run(ctx, "ip netns del "+h.Namespace))
	}
	return errors.Join(append(errs, run(ctx, "ip link del "+n.bridge))...)
}

// run runs command lines, one after the other, whose words hold no spaces.
func run(ctx context.Context, lines ...string) error {
	for _, line := range lines {
		words := strings.Fields(line)
		if out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", line, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}
