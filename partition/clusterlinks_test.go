package partition_test

import (
	"fmt"

	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire/ident"
)

// conn is a connection that one broker has made to another: in order, until it breaks;
// then either side hears of it some time later, but before anything of the next one.
type conn struct {
	from, to  ident.BrokerID
	control   bool
	open      bool
	told      [2]bool // that it broke
	fromEpoch ident.BrokerEpoch
	toEpoch   ident.BrokerEpoch
	forth     []any // asks, withdrawals, reports, watermarks
	back      []any // answers
	old       []any // delivered, to be said again out of turn
}

// send puts something on the connection to a broker, if there is one.
func (c *cluster) send(x *node, to ident.BrokerID, control bool, what any) {
	for _, k := range c.conns {
		if k.open && k.from == x.id && k.to == to && k.control == control {
			k.forth = append(k.forth, what)
			return
		}
	}
}

// connect makes the connections that are missing, one at a time.
func (c *cluster) connect() {
	for range 2 {
		a, b := c.nodes[c.rand.IntN(len(c.nodes))], c.nodes[c.rand.IntN(len(c.nodes))]
		control := c.chance(50)
		if a == b || !a.up || !b.up {
			continue
		}
		missing := true
		for _, k := range c.conns {
			if k.from == a.id && k.to == b.id && k.control == control {
				missing = missing && !k.open
				c.tellBroken(k)
			}
		}
		if !missing {
			continue
		}
		kept := c.conns[:0]
		for _, k := range c.conns {
			if k.open || !k.told[0] || !k.told[1] {
				kept = append(kept, k)
			}
		}
		k := &conn{from: a.id, to: b.id, control: control, open: true, fromEpoch: a.brokerEpoch, toEpoch: b.brokerEpoch}
		c.conns = append(kept, k)
		c.say("connect %d->%d control=%v", a.id, b.id, control)
		a.step(&partition.Connected{Broker: b.id, Control: control})
	}
}

// tellBroken tells both ends of a broken data connection.
func (c *cluster) tellBroken(k *conn) {
	if k.open {
		return
	}
	for i, end := range []ident.BrokerID{k.from, k.to} {
		other, epoch := k.to, k.toEpoch
		mine := k.fromEpoch
		if i == 1 {
			other, epoch, mine = k.from, k.fromEpoch, k.toEpoch
		}
		if x := c.node(end); !k.told[i] && !k.control && x.up && x.brokerEpoch == mine {
			x.step(&partition.Disconnected{Broker: other, BrokerEpoch: epoch, Own: i == 0})
		}
		k.told[i] = true
	}
}

// breakConn breaks a connection; who is at its ends may hear of it at once.
func (c *cluster) breakConn() {
	if len(c.conns) == 0 {
		return
	}
	k := c.conns[c.rand.IntN(len(c.conns))]
	k.open = false
	if c.chance(50) {
		c.tellBroken(k)
	}
}

// deliver takes the next message from some connection.
func (c *cluster) deliver() {
	if len(c.conns) == 0 {
		return
	}
	first := c.rand.IntN(len(c.conns))
	for i := range c.conns {
		if k := c.conns[(first+i)%len(c.conns)]; k.open && len(k.forth)+len(k.back) > 0 {
			c.deliverOn(k)
			return
		}
	}
}

func (c *cluster) deliverOn(k *conn) {
	if len(k.forth) > 0 && (len(k.back) == 0 || c.chance(50)) {
		what := k.forth[0]
		k.forth = k.forth[1:]
		k.old = append(k.old, what)
		c.arrive(k, what)
		return
	}
	if len(k.back) > 0 {
		what := k.back[0]
		k.back = k.back[1:]
		k.old = append(k.old, what)
		c.arrive(k, what)
	}
}

// replay says something again that was said before on the same connection: no machine
// may mind.
func (c *cluster) replay() {
	if len(c.conns) == 0 {
		return
	}
	k := c.conns[c.rand.IntN(len(c.conns))]
	if !k.open || len(k.old) == 0 {
		return
	}
	c.arrive(k, k.old[c.rand.IntN(len(k.old))])
}

// arrive hands a message over.
func (c *cluster) arrive(k *conn, what any) {
	to := c.node(k.to)
	switch what := what.(type) {
	case partition.Inquiry:
		c.requests++
		to.asks[c.requests] = &peerAsk{on: k, Inquiry: what}
		if what.LeaderEpoch > to.m.LeaderEpoch() {
			c.seen["early ask"]++
		}
		to.step(&partition.Ask{Request: c.requests, Broker: k.from, BrokerEpoch: k.fromEpoch, Inquiry: what})
	case partition.Withdrawal:
		to.step(&partition.Withdraw{Broker: k.from, BrokerEpoch: k.fromEpoch, Withdrawal: what})
	case partition.Report:
		if what.LeaderEpoch > to.m.LeaderEpoch() {
			c.seen["early progress"]++
		}
		to.step(&partition.Progress{Broker: k.from, BrokerEpoch: k.fromEpoch, Report: what})
	case partition.WatermarkLetter:
		if what.BrokerEpoch == to.brokerEpoch {
			to.step(&what.Says)
		}
	case *payload:
		x := c.node(k.from)
		x.answer, x.contents = &what.Answered, what.contents
		x.step(&what.Answered)
	default:
		panic(fmt.Sprintf("a %T arrived", what))
	}
}
