package relay

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind is what a connection carries. Several can be joined by |.
type Kind uint8

// The kinds.
const (
	Client  Kind = 1 << iota // of clients
	Control                  // of brokers: heartbeats, votes, reports
	Data                     // of brokers: replication
	Gossip                   // of brokers: streams and packets

	Links = Control | Data
	Peers = Control | Data | Gossip
	All   = Client | Peers
)

// String names the kinds.
func (k Kind) String() string {
	var names []string
	for i, name := range []string{"client", "control", "data", "gossip"} {
		if k&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "+")
}

// Way is a direction: what From sends to To. Brokers are numbered from 1; 0 is all clients.
type Way struct{ From, To int }

// From is the ways from one to others.
func From(one int, others ...int) []Way {
	var ways []Way
	for _, o := range others {
		if o != one {
			ways = append(ways, Way{one, o})
		}
	}
	return ways
}

// To is the ways to one from others.
func To(one int, others ...int) []Way {
	ways := From(one, others...)
	for i, w := range ways {
		ways[i] = Way{w.To, w.From}
	}
	return ways
}

// Between is the ways between one and others, in both directions.
func Between(one int, others ...int) []Way {
	return append(From(one, others...), To(one, others...)...)
}

// Fault is what happens to what is sent on some ways by connections of some kinds. It is not changed once it was given to a Net.
type Fault struct {
	Kinds  Kind
	Ways   []Way
	Cut    bool
	Drop   bool
	Delay  time.Duration
	Jitter time.Duration // up to as much more
	Rate   int           // bytes per second; 0: any
}

func (f *Fault) hits(k Kind, w Way) bool { return f.Kinds&k != 0 && slices.Contains(f.Ways, w) }

// String says what it does, and where.
func (f *Fault) String() string {
	var does []string
	if f.Cut {
		does = append(does, "cut")
	}
	if f.Drop {
		does = append(does, "drop")
	}
	if f.Delay > 0 || f.Jitter > 0 {
		does = append(does, fmt.Sprintf("delay %v to %v", f.Delay, f.Delay+f.Jitter))
	}
	if f.Rate > 0 {
		does = append(does, fmt.Sprintf("%d bytes/s", f.Rate))
	}
	return fmt.Sprintf("%s of %v on %v", strings.Join(does, ", "), f.Kinds, f.Ways)
}

// effect is what all faults together do to one piece.
type effect struct {
	cut   bool
	drop  *Fault
	delay time.Duration
	most  time.Duration // of jitter
	rate  int
}

func effectOf(faults []*Fault, k Kind, w Way) effect {
	var e effect
	for _, f := range faults {
		if !f.hits(k, w) {
			continue
		}
		e.cut = e.cut || f.Cut
		if f.Drop {
			e.drop = f
		}
		e.delay += f.Delay
		e.most += f.Jitter
		if f.Rate > 0 && (e.rate == 0 || f.Rate < e.rate) {
			e.rate = f.Rate
		}
	}
	return e
}
