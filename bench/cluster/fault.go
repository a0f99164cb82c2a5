package main

import (
	"context"
	"time"

	"github.com/troupe-broker/troupe/bench/peer"
)

// fault is one way to lose a broker, and to get it back.
type fault struct {
	name, text string
	// ofLeader, ofController: what the broker that is lost is. What it is not is another one.
	ofLeader, ofController bool
	// strike loses the broker, heal brings it back.
	strike, heal func(context.Context, *trio, *peer.Node) error
	// cut says that the brokers live in namespaces of their own; gossip that nothing but gossip can tell.
	cut, gossip bool
	// p50 and p99 are what is wanted; 0: nothing.
	p50, p99 time.Duration
}

const (
	killed = "killed"
	paused = "paused"
	cut    = "cut off"
)

var faults = []fault{
	{name: "leader", text: killed + ": a leader that is not the controller", ofLeader: true, strike: kill, heal: start, p50: 300 * time.Millisecond, p99: time.Second},
	{name: "controller", text: killed + ": the controller, which follows", ofController: true, strike: kill, heal: start, p50: time.Second, p99: 2 * time.Second},
	{name: "both", text: killed + ": the controller, which leads", ofLeader: true, ofController: true, strike: kill, heal: start, p50: time.Second, p99: 2 * time.Second},
	{name: "pause", text: paused + ": a leader that is not the controller", ofLeader: true, strike: pause, heal: resume, p99: 3500 * time.Millisecond},
	{name: "pause-both", text: paused + ": the controller, which leads", ofLeader: true, ofController: true, strike: pause, heal: resume, p99: 3500 * time.Millisecond},
	{name: "cut", text: cut + ": a leader that is not the controller", ofLeader: true, strike: cutOff, heal: mend, cut: true, p99: 3500 * time.Millisecond},
	{name: "cut-both", text: cut + ": the controller, which leads", ofLeader: true, ofController: true, strike: cutOff, heal: mend, cut: true, p99: 3500 * time.Millisecond},
	{name: "gossip", text: paused + ", gossip alone: a leader that is not the controller", ofLeader: true, strike: pause, heal: resume, gossip: true, p99: 2500 * time.Millisecond},
}

func faultNames() []string {
	names := make([]string, len(faults))
	for i, f := range faults {
		names[i] = f.name
	}
	return names
}

// world is what a cluster is started for; faults of one world share it.
type world struct{ cut, gossip bool }

func (f fault) world() world { return world{f.cut, f.gossip} }

// cast names the brokers of a trial: who is to lead, and who is lost.
func (f fault) cast(controller int32, nodes []*peer.Node, trial int) (leader, victim int32) {
	var others []int32
	for _, n := range nodes {
		if n.ID != controller {
			others = append(others, n.ID)
		}
	}
	leader, victim = others[trial%len(others)], controller
	if f.ofLeader && f.ofController {
		leader = controller
	}
	if f.ofLeader {
		victim = leader
	}
	return leader, victim
}

func kill(_ context.Context, _ *trio, n *peer.Node) error     { return n.Kill() }
func start(ctx context.Context, _ *trio, n *peer.Node) error  { return n.Start(ctx) }
func pause(_ context.Context, _ *trio, n *peer.Node) error    { return n.Pause() }
func resume(_ context.Context, _ *trio, n *peer.Node) error   { return n.Resume() }
func cutOff(ctx context.Context, t *trio, n *peer.Node) error { return t.network.Cut(ctx, n.Host) }
func mend(ctx context.Context, t *trio, n *peer.Node) error   { return t.network.Mend(ctx, n.Host) }
