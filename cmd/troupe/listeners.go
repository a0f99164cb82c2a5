package main

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/troupe-broker/troupe/actors/broker"
	"github.com/troupe-broker/troupe/cluster/config"
)

// advertiseHint is the command to type when a listener is on every interface and no address is advertised for it.
func advertiseHint(static config.Set) string {
	text, _ := static.Get("listeners")
	for word := range strings.SplitSeq(text, ",") {
		_, hostPort, named := strings.Cut(word, "://")
		if !named {
			hostPort = word
		}
		host, port, err := net.SplitHostPort(hostPort)
		if err == nil && wildcard(host) {
			return fmt.Sprintf("troupe serve --listen %s --advertise %s", hostPort, net.JoinHostPort(ownHost(), port))
		}
	}
	return ""
}

// openDoors lists listeners that others than this machine reach. Clients are not authenticated, which a person should know.
func openDoors(listeners []config.Listener) []string {
	var open []string
	for _, l := range listeners {
		if !loopback(l.Host) {
			open = append(open, address(l.Host, l.Port))
		}
	}
	return open
}

func wildcard(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// ownHost is the address of this machine that others most likely reach: the first of an interface that is up and not a
// loopback, else the host's name.
func ownHost() string {
	addresses, err := net.InterfaceAddrs()
	if err == nil {
		for _, a := range addresses {
			if network, ok := a.(*net.IPNet); ok && network.IP.IsGlobalUnicast() && network.IP.To4() != nil {
				return network.IP.String()
			}
		}
	}
	if name, err := os.Hostname(); err == nil && name != "" {
		return name
	}
	return "HOST"
}

func address(host string, port uint16) string {
	return net.JoinHostPort(host, fmt.Sprint(port))
}

// openListeners opens the listeners for clients, by name. The broker takes them when it starts; close closes what was not taken.
func openListeners(listeners []config.Listener) (clientDoors, error) {
	doors := clientDoors{}
	for _, l := range listeners {
		t, err := broker.ListenTCP(l)
		if err != nil {
			doors.close()
			return nil, err
		}
		doors[l.Name] = t
	}
	return doors, nil
}

// clientDoors are open listeners that nobody accepts at yet.
type clientDoors map[string]*net.TCPListener

// take gives one away, for broker.World.
func (d clientDoors) take(l config.Listener) (*net.TCPListener, error) {
	t, ok := d[l.Name]
	if !ok {
		return nil, fmt.Errorf("listener %s is not open", l.Name)
	}
	delete(d, l.Name)
	return t, nil
}

func (d clientDoors) close() {
	for _, t := range d {
		_ = t.Close() // nobody has connected
	}
}
