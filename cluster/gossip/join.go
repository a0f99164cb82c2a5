package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-broker/troupe/wire/ident"
)

const (
	contactsMax  = 8  // addresses in one Rejoin; the next goes on from there
	addressesMax = 16 // of one name
)

// Peer is a broker that is registered with the controller.
type Peer struct {
	Broker  ident.BrokerID
	Address string // host:port of its peer port
}

// target is one address that gossip does not show.
type target struct {
	from    string // the seed or the broker as it was given
	address netip.AddrPort
}

// Rejoin contacts the seeds and the registered brokers that gossip does not show, at most eight addresses, and says how many of them answered. A dead one
// costs up to two seconds. Failures are notes, one for each address until it answers.
func (g *Gossip) Rejoin(ctx context.Context, registered []Peer) int {
	g.roster.admitStrangers()
	targets := g.targets(ctx, registered)
	if len(targets) == 0 {
		return 0
	}
	first := g.round % len(targets)
	targets = append(targets[first:], targets[:first]...)
	if len(targets) > contactsMax {
		targets = targets[:contactsMax]
	}
	g.round += len(targets)
	answered := 0
	for _, t := range targets {
		if ctx.Err() != nil {
			break
		}
		if g.shownAt(t.address) {
			answered++ // the exchange with one before it has brought it in
			continue
		}
		if _, err := g.list.Join([]string{t.address.String()}); err != nil {
			g.failed(t.from, t.address.String(), err)
			continue
		}
		g.answers(t.from)
		answered++
	}
	return answered
}

// RejoinAfter says how long the owner is to wait before the next Rejoin.
func (g *Gossip) RejoinAfter() time.Duration {
	if len(g.seeds) > 0 && !g.roster.shows(func(*Member) bool { return true }) {
		return RejoinIntervalAlone
	}
	return RejoinInterval
}

// targets lists whom to contact, each address once.
func (g *Gossip) targets(ctx context.Context, registered []Peer) []target {
	var targets []target
	add := func(from, address string) {
		host, port, err := splitAddress(address)
		if err != nil {
			g.failed(from, address, err)
			return
		}
		found, err := lookup(ctx, g.resolve, host)
		if err != nil {
			g.failed(from, address, err)
			return
		}
		for _, ip := range found {
			t := target{from: from, address: netip.AddrPortFrom(ip, port)}
			same := func(o target) bool { return o.address == t.address }
			switch {
			case g.shownAt(t.address):
				g.answers(from)
			case t.address != g.transport.advertise && !slices.ContainsFunc(targets, same):
				targets = append(targets, t)
			}
		}
	}
	for _, seed := range g.seeds {
		add(seed, seed)
	}
	own := g.Self()
	for _, peer := range registered {
		name := "broker " + peer.Broker.String()
		switch {
		case g.roster.shows(func(m *Member) bool { return m.Broker == peer.Broker }):
			g.answers(name)
		case peer.Broker != own.Broker:
			add(name, peer.Address)
		}
	}
	return targets
}

func (g *Gossip) shownAt(address netip.AddrPort) bool {
	return g.roster.shows(func(m *Member) bool { return m.Address == address })
}

// failed writes a note, once until the target answers.
func (g *Gossip) failed(from, address string, err error) {
	g.failing[from] = struct{}{}
	text := plainly(err)
	if strings.Contains(text, sayingWrongKey) {
		g.roster.note(codeSeal, hostOf(address), fmt.Sprintf("%s at %s answers with gossip that is sealed with a key that this broker does not have", from, address))
		return
	}
	for _, known := range []error{errSealed, errUnsealed, errLabel, errForeign} {
		if strings.Contains(text, known.Error()) { // the library does not wrap
			return // noted when its bytes came
		}
	}
	g.roster.note(CodeUnreachable, from, fmt.Sprintf("gossip cannot reach %s at %s: %s. It tries again, and says so again when it has answered in between", from, address, text))
}

// plainly takes the one error for the one address out of the list that the library makes of it, on a line.
func plainly(err error) string {
	var list interface{ WrappedErrors() []error }
	if errors.As(err, &list) && len(list.WrappedErrors()) == 1 {
		err = list.WrappedErrors()[0]
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

// answers ends the silence about the target: when it fails again, that is worth a note again.
func (g *Gossip) answers(from string) {
	if _, failing := g.failing[from]; failing {
		delete(g.failing, from)
		g.roster.forgive(from)
	}
}

// splitAddress reads host:port, with brackets around an IPv6 address.
func splitAddress(address string) (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("%w: %q is not host:port: %w", ErrAddress, address, err)
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return "", 0, fmt.Errorf("%w: %q has the port %q", ErrAddress, address, text)
	}
	if host == "" {
		return "", 0, fmt.Errorf("%w: %q has no host", ErrAddress, address)
	}
	return host, uint16(n), nil
}

// lookup returns at least one address, sorted. Literals need no resolver; a zone is refused, because it means something on one machine only.
func lookup(ctx context.Context, resolve func(context.Context, string) ([]netip.Addr, error), host string) ([]netip.Addr, error) {
	if address, err := netip.ParseAddr(host); err == nil {
		if address.Zone() != "" {
			return nil, fmt.Errorf("%w: %q has a zone, which other machines do not know", ErrAddress, host)
		}
		return []netip.Addr{address.Unmap()}, nil
	}
	found, err := resolve(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("looking up %q: %w", host, err)
	}
	var addresses []netip.Addr
	for _, address := range found {
		if address.IsValid() && address.Zone() == "" {
			addresses = append(addresses, address.Unmap())
		}
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	addresses = slices.Compact(addresses)
	if len(addresses) == 0 {
		return nil, fmt.Errorf("%w: the name %q has no address", ErrAddress, host)
	}
	return addresses[:min(len(addresses), addressesMax)], nil
}
