package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// hit is a step as it comes: whom it meets stands by who leads now. Brokers are indexes.
type hit struct {
	step
	place
	leader, controller int
}

// span is how long a fault is held, as the seed draws it.
type span int8

const (
	brief   span = iota // two seconds at most, or up to eight
	blink               // a second at most
	while               // one to five seconds
	long                // the same, or longer than a session
	session             // longer than a session
)

// need is what a fault wants beside brokers.
type need uint8

const (
	others     need = 1 << iota // other brokers
	testBuild                   // the broker of bench/chaos/proving
	strict                      // topics of which page caches keep nothing alone
	smallDisks                  // the right to mount them; not beside a test build
)

// What a run prepares for.
const (
	diskFullName = "disk-full"
	bitFlipName  = "bit-flip"
	bitRotName   = "bit-rot"
	rollName     = "roll"
)

// fault is one kind of nemesis.
type fault struct {
	name, does string
	lasts      span
	needs      need
	beside     bool // it can come beside another one: it touches nothing but the network, or asks as clients do
	strike     func(ctx context.Context, n *nemesis, h *hit) (what string, err error)
}

// nemeses are all of them, in the order of the command's help.
func nemeses() []fault {
	return []fault{
		{name: "kill-leader", does: "kill -9 of the leader of a partition", strike: killOne},
		{name: "kill-follower", does: "kill -9 of a follower", strike: killOne},
		{name: "kill-controller", does: "kill -9 of the controller", strike: killOne},
		{name: "kill-all", does: "kill -9 of all brokers at once", strike: killAll},
		{name: "kill-two", does: "kill -9 of a leader, then of another broker; both come back in any order", strike: killTwo},
		{name: "kill-twice", does: "kill -9 of a leader, and again while it starts", strike: killTwice},
		{name: "pause", does: "SIGSTOP of a leader, a follower or the controller, for 1 to 15 s", lasts: long, strike: pauseOne},
		{name: "pause-all", does: "SIGSTOP of all brokers at once", lasts: while, strike: pauseAll},
		{name: "pause-kill", does: "SIGSTOP of a leader; another is elected and killed with -9; the first goes on", lasts: while, strike: pauseKill},
		{name: "restart", does: "an orderly stop, and a start", strike: restartOne},
		{name: rollName, does: "an orderly restart of one broker after the other, each when troupe roll says that it is safe", lasts: blink, needs: others, strike: roll},
		{name: "bounce", does: "an orderly restart, or kill -9, of whoever is the controller, three times in a row", needs: others, strike: bounce},
		{name: "churn", does: "a broker is away for longer than its session, is fenced, and comes back", lasts: session, needs: others, strike: churn},
		{name: "reassign", does: "replicas of all partitions are dropped, put in another order, added again, and the moves taken back", lasts: while, needs: others, beside: true, strike: reassign},

		{name: "partition", does: "a broker and the others, sometimes also the clients, hear nothing of each other", lasts: long, needs: others, strike: partition},
		{name: "one-way", does: "a broker is not heard by the others, or does not hear them", lasts: long, needs: others, strike: oneWay},
		{name: "control-only", does: "of what brokers say to one of them only heartbeats, votes and reports are lost, both ways", lasts: long, needs: others, strike: controlOnly},
		{name: "data-only", does: "the same for replication", lasts: long, needs: others, beside: true, strike: dataOnly},
		{name: "gossip-only", does: "the same for gossip, which then takes a living broker for dead", lasts: long, needs: others, beside: true, strike: gossipOnly},
		{name: "partition-kill", does: "a leader is cut off, another is elected, the first is killed with -9 while it is cut off", lasts: while, needs: others, strike: partitionKill},
		{name: "delay", does: "everything is late by up to a fifth of a second, each piece by another time", lasts: while, beside: true, strike: delay},
		{name: "stall", does: "connections of clients to a broker are open and carry nothing", lasts: while, beside: true, strike: stall},
		{name: "trickle", does: "connections of one kind to a broker carry a few kilobytes a second", lasts: while, beside: true, strike: trickle},
		{name: "half-open", does: "one end of connections of one kind hears that they are lost, the other does not", lasts: blink, beside: true, strike: halfOpen},
		{name: "reset", does: "connections of one kind are reset, a few times", lasts: blink, beside: true, strike: resetSome},
		{name: "lost-answer", does: "requests of one kind arrive and are applied, and their answers are lost", lasts: blink, beside: true, strike: lostAnswer},

		{name: diskFullName, does: "somebody else's file takes what is left of a broker's disk, to the last byte or almost", lasts: while, needs: smallDisks, strike: diskFull},
		{name: bitFlipName, does: "a bit in each segment and index of one broker is turned while it runs, also of internal topics", lasts: blink, needs: others, strike: bitFlip},
		{name: bitRotName, does: "a broker is killed, and finds a bit turned in every file of every log and in its checkpoints", lasts: blink, needs: others, strike: bitFlip},
		{name: "empty-disk", does: "a broker is killed and finds an empty disk; once in a run", needs: others, strike: emptyDisk},

		{name: "power-loss", does: "a broker is killed and finds on its disk what was synced, and any of the rest", needs: testBuild, strike: powerLoss},
		{name: "power-loss-all", does: "the same for all brokers at once", needs: testBuild | strict, strike: powerLossAll},
		{name: "pause-power", does: "SIGSTOP of a leader; another is elected and loses its power; the first goes on", lasts: while, needs: testBuild | others, strike: pausePower},
		{name: "clock-jump", does: "the wall clock of a broker jumps by up to twenty hours, or back by fifty minutes", needs: testBuild, strike: clockJump},
		{name: "clock-drift", does: "all clocks of a broker go too fast or too slow by up to 5 %", lasts: long, needs: testBuild, strike: clockDrift},
	}
}

func nemesisNames() []string {
	var names []string
	for _, f := range nemeses() {
		names = append(names, f.name)
	}
	return names
}

// fit finds the chosen faults that these options have a place for, and says why the others have none.
func (o options) fit() (fits, left []string) {
	for _, f := range nemeses() {
		switch {
		case !slices.Contains(o.nemeses, f.name):
		case f.needs&others != 0 && o.brokers == 1:
			left = append(left, f.name+" (it takes several brokers)")
		case f.needs&testBuild != 0 && o.another != "":
			left = append(left, f.name+" (it takes the test build of one commit)")
		case (f.name == bitFlipName || f.name == bitRotName) && o.another != "":
			left = append(left, f.name+" (an older binary may know of no repair)")
		case f.needs&smallDisks != 0 && os.Geteuid() != 0:
			left = append(left, f.name+" (it takes root, to mount a small disk)")
		default:
			fits = append(fits, f.name)
		}
	}
	return fits, left
}

// deal says what a run of a seed may meet, and with which build: some faults want the test build, and then the others come with it. One of them has no place
// beside a topic that page caches keep.
func (o options) deal(seed uint64) (names []string, with need) {
	const every = 3 // one run of so many, when there are faults of both kinds
	var needs need
	plain := 0
	for _, f := range nemeses() {
		if slices.Contains(o.nemeses, f.name) {
			needs |= f.needs
			if f.needs&testBuild == 0 {
				plain++
			}
		}
	}
	if needs&testBuild != 0 && (plain == 0 || seed%every == 0) {
		with = testBuild
		if needs&strict != 0 && (plain == 0 || seed/every%2 == 0) {
			with |= strict
		}
	}
	if with == 0 {
		with = needs & smallDisks
	}
	for _, f := range nemeses() {
		if slices.Contains(o.nemeses, f.name) && f.needs&^others&^with == 0 {
			names = append(names, f.name)
		}
	}
	return names, with
}

// note says what a fault wants.
func (n need) note() string {
	var wants []string
	for _, w := range []struct {
		need
		text string
	}{{others, "several brokers"}, {testBuild, "the test build"}, {strict, "no topic in page caches"}, {smallDisks, "root"}} {
		if n&w.need != 0 {
			wants = append(wants, w.text)
		}
	}
	if len(wants) == 0 {
		return ""
	}
	return " (takes " + strings.Join(wants, ", ") + ")"
}

// words say what is other than usual.
func (n need) words() string {
	switch {
	case n&strict != 0:
		return ", test build, both topics synced"
	case n&testBuild != 0:
		return ", test build"
	case n&smallDisks != 0:
		return ", small disks"
	}
	return ""
}

// wantsProving tells whether any run needs the test build.
func (o options) wantsProving() bool {
	for i := range uint64(o.runs) {
		if _, with := o.deal(o.seed + i); with&testBuild != 0 {
			return true
		}
	}
	return false
}

func ms(d time.Duration) string { return d.Round(time.Millisecond).String() }

// role picks the leader, a follower or the controller, and says what it is.
func (n *nemesis) role(h *hit) (victim int, what string) {
	switch h.other % 4 {
	case 0:
		victim, what = h.controller, "the controller"
	case 1:
		victim, what = n.another(h.leader, h.other), fmt.Sprintf("a follower of %v", h.place)
	default:
		victim, what = h.leader, fmt.Sprintf("the leader of %v", h.place)
	}
	return victim, fmt.Sprintf("broker %d, %s", victim+1, what)
}

func killOne(ctx context.Context, n *nemesis, h *hit) (string, error) {
	victim, what := h.leader, fmt.Sprintf("the leader of %v", h.place)
	switch h.nemesis {
	case "kill-follower":
		victim, what = n.another(h.leader, h.other), fmt.Sprintf("a follower of %v", h.place)
	case "kill-controller":
		victim, what = h.controller, "the controller"
	}
	return fmt.Sprintf("broker %d, %s, for %s", victim+1, what, ms(h.hold)), n.killFor(ctx, h.hold, victim)
}

func killAll(ctx context.Context, n *nemesis, h *hit) (string, error) {
	return "all for " + ms(h.hold), n.killFor(ctx, h.hold, n.everybody()...)
}

func killTwice(ctx context.Context, n *nemesis, h *hit) (string, error) {
	return fmt.Sprintf("broker %d, the leader of %v, for %s, and again %s after its start", h.leader+1, h.place, ms(h.hold), ms(h.gap)),
		errors.Join(n.killFor(ctx, h.hold, h.leader), n.pass(ctx, h.gap), n.killFor(ctx, 0, h.leader))
}

func pauseOne(ctx context.Context, n *nemesis, h *hit) (string, error) {
	victim, what := n.role(h)
	return what + ", for " + ms(h.hold), n.pauseFor(ctx, h.hold, victim)
}

func pauseAll(ctx context.Context, n *nemesis, h *hit) (string, error) {
	return "all for " + ms(h.hold), n.pauseFor(ctx, h.hold, n.everybody()...)
}

func restartOne(ctx context.Context, n *nemesis, h *hit) (string, error) {
	return fmt.Sprintf("broker %d, the leader of %v, for %s", h.leader+1, h.place, ms(h.hold)), n.restart(ctx, h.hold, h.leader)
}

// bounce looks who is the controller each time.
func bounce(ctx context.Context, n *nemesis, h *hit) (what string, err error) {
	for i := range 3 {
		_, now := n.watcher.state()
		victim := n.index(now, h.other)
		if h.other>>i%2 == 0 {
			what += fmt.Sprintf("broker %d restarted, ", victim+1)
			err = n.restart(ctx, 0, victim)
		} else {
			what += fmt.Sprintf("broker %d killed, ", victim+1)
			err = n.killFor(ctx, h.hold/4, victim)
		}
		if err = errors.Join(err, n.pass(ctx, h.gap+time.Second/2)); err != nil {
			return what, err
		}
	}
	return what + "each of them the controller", nil
}

// churn lets a broker be away for longer than its session. It leaves in order or not.
func churn(ctx context.Context, n *nemesis, h *hit) (string, error) {
	victim, what := n.role(h)
	if h.other/8%2 == 0 {
		return what + ", stopped for " + ms(h.hold), n.restart(ctx, h.hold, victim)
	}
	return what + ", killed for " + ms(h.hold), n.killFor(ctx, h.hold, victim)
}
