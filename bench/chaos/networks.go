package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/troupe-broker/troupe/actors/relay"
)

// ring is the numbers of all brokers on the network.
func (n *nemesis) ring() []int {
	all := n.everybody()
	for i := range all {
		all[i]++
	}
	return all
}

// suffer lets faults of the network last.
func (n *nemesis) suffer(ctx context.Context, hold time.Duration, faults ...*relay.Fault) error {
	n.cluster.Net.Add(faults...)
	defer n.cluster.Net.Remove(faults...)
	return n.pass(ctx, hold)
}

// cutOff is a broker that hears nobody and that nobody hears; sometimes it is the clients', too, who do not.
func (n *nemesis) cutOff(victim int, fromClients bool) (f *relay.Fault, text string) {
	f = &relay.Fault{Kinds: relay.Peers, Ways: relay.Between(victim+1, n.ring()...), Cut: true}
	if fromClients {
		f.Kinds, f.Ways = relay.All, append(f.Ways, relay.Between(victim+1, 0)...)
		return f, "from the others and from clients"
	}
	return f, "from the others"
}

func partition(ctx context.Context, n *nemesis, h *hit) (string, error) {
	victim, what := n.role(h)
	f, from := n.cutOff(victim, h.other/8%2 == 0)
	return fmt.Sprintf("%s, cut off %s for %s", what, from, ms(h.hold)), n.suffer(ctx, h.hold, f)
}

func oneWay(ctx context.Context, n *nemesis, h *hit) (string, error) {
	victim, what := n.role(h)
	f := &relay.Fault{Kinds: relay.Peers, Ways: relay.From(victim+1, n.ring()...), Cut: true}
	if h.other/8%2 == 0 {
		f.Ways = relay.To(victim+1, n.ring()...)
		return what + ", does not hear the others for " + ms(h.hold), n.suffer(ctx, h.hold, f)
	}
	return what + ", is not heard by the others for " + ms(h.hold), n.suffer(ctx, h.hold, f)
}

func (n *nemesis) without(ctx context.Context, h *hit, kinds relay.Kind) (string, error) {
	victim, what := n.role(h)
	return fmt.Sprintf("%s, without %v for %s", what, kinds, ms(h.hold)), n.suffer(ctx, h.hold, &relay.Fault{Kinds: kinds, Ways: relay.Between(victim+1, n.ring()...), Cut: true})
}

func controlOnly(ctx context.Context, n *nemesis, h *hit) (string, error) {
	return n.without(ctx, h, relay.Control)
}

func dataOnly(ctx context.Context, n *nemesis, h *hit) (string, error) {
	return n.without(ctx, h, relay.Data)
}

func gossipOnly(ctx context.Context, n *nemesis, h *hit) (string, error) {
	return n.without(ctx, h, relay.Gossip)
}

// partitionKill kills a leader that nobody could hear any more: what it took since then is its own.
func partitionKill(ctx context.Context, n *nemesis, h *hit) (string, error) {
	f, from := n.cutOff(h.leader, h.other/8%2 == 0)
	n.cluster.Net.Add(f)
	defer n.cluster.Net.Remove(f)
	_, elected, err := n.awaitSuccessor(ctx, h)
	if err != nil {
		return "", err
	}
	what := fmt.Sprintf("broker %d, the leader of %v, cut off %s; killed %s after %s; back after %s", h.leader+1, h.place, from, ms(h.gap), elected, ms(h.hold))
	err = errors.Join(n.pass(ctx, h.gap), n.kill(h.leader))
	n.cluster.Net.Remove(f)
	return what, errors.Join(err, n.pass(ctx, h.hold), n.launch(h.leader))
}

// delay makes everything late, between all.
func delay(ctx context.Context, n *nemesis, h *hit) (string, error) {
	f := &relay.Fault{Kinds: relay.All, Delay: time.Duration(h.other%50) * time.Millisecond, Jitter: time.Duration(1+h.other/64%150) * time.Millisecond}
	for _, b := range n.ring() {
		f.Ways = append(append(f.Ways, relay.Between(b, 0)...), relay.From(b, n.ring()...)...)
	}
	return fmt.Sprintf("everything by %s to %s for %s", ms(f.Delay), ms(f.Delay+f.Jitter), ms(h.hold)), n.suffer(ctx, h.hold, f)
}

func stall(ctx context.Context, n *nemesis, h *hit) (string, error) {
	victim, what := n.role(h)
	return what + ", and its clients hear nothing of each other for " + ms(h.hold),
		n.suffer(ctx, h.hold, &relay.Fault{Kinds: relay.Client, Ways: relay.Between(victim+1, 0), Cut: true})
}

// flows picks a kind of connections of a victim, and who is at their other ends. A broker alone has those of clients.
func (n *nemesis) flows(h *hit) (kind relay.Kind, ends []int) {
	if kind = []relay.Kind{relay.Client, relay.Control, relay.Data, relay.Client}[h.other/8%4]; kind == relay.Client || len(n.cluster.Brokers) == 1 {
		return relay.Client, []int{0}
	}
	return kind, n.ring()
}

func trickle(ctx context.Context, n *nemesis, h *hit) (string, error) {
	victim, what := n.role(h)
	kind, ends := n.flows(h)
	f := &relay.Fault{Kinds: kind, Ways: relay.Between(victim+1, ends...), Rate: 1000 << (h.other / 64 % 5)}
	return fmt.Sprintf("%s, %v at %d bytes/s for %s", what, kind, f.Rate, ms(h.hold)), n.suffer(ctx, h.hold, f)
}

// halfOpen is not healed: whoever holds an end that leads nowhere has to find out.
func halfOpen(ctx context.Context, n *nemesis, h *hit) (string, error) {
	victim, what := n.role(h)
	kind, ends := n.flows(h)
	count := 0
	if h.other/64%2 == 0 {
		count = n.cluster.Net.Forget(kind, victim+1, ends...)
		what += " forgets"
	} else {
		for _, e := range ends {
			count += n.cluster.Net.Forget(kind, e, victim+1)
		}
		what += " is forgotten at the other end of"
	}
	return fmt.Sprintf("%s %d connections (%v)", what, count, kind), n.pass(ctx, h.hold)
}

func resetSome(ctx context.Context, n *nemesis, h *hit) (string, error) {
	victim, what := n.role(h)
	kind, ends := n.flows(h)
	count, times := 0, 1+h.other/64%4
	for range times {
		count += n.cluster.Net.Reset(kind, relay.Between(victim+1, ends...))
		if err := n.pass(ctx, h.hold/4); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%s, %d connections (%v), in %d turns", what, count, kind, times), nil
}

// lostAnswer loses what a broker answers. The connections are reset after a while, and who has asked does not know.
func lostAnswer(ctx context.Context, n *nemesis, h *hit) (string, error) {
	victim, what := n.role(h)
	kind, ends := n.flows(h)
	return fmt.Sprintf("%s, what it says by %v for %s", what, kind, ms(h.hold)), n.suffer(ctx, h.hold, &relay.Fault{Kinds: kind, Ways: relay.From(victim+1, ends...), Drop: true})
}
