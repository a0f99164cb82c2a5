package group

import (
	"github.com/troupe-broker/troupe/group/classic"
	"github.com/troupe-broker/troupe/group/consumer"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/offsets"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// group is what a shard has of one group: its offsets, and the machine of its type. Without a machine it is an offsets-only group. Only while a log is
// read can it have two: the entries of one type may come before the tombstones of the other.
type group struct {
	name     string
	offsets  *offsets.Group
	classic  *classic.Group
	consumer *consumer.Group
	weight   int // what the shard's weight has of it
}

// ensure finds a group or makes it.
func (s *Shard) ensure(name string) *group {
	g := s.groups[name]
	if g == nil {
		g = &group{name: name, offsets: offsets.New(name)}
		s.groups[name] = g
	}
	return g
}

// forget drops what has nothing any more: the machine, and then the group. The log does not know of them either.
func (s *Shard) forget(g *group) {
	if g.classic != nil && g.classic.Vacant() {
		g.classic = nil
	}
	if g.consumer != nil && g.consumer.Blank() {
		g.consumer = nil
	}
	s.weigh(g)
	if g.classic == nil && g.consumer == nil && g.offsets.Len() == 0 {
		delete(s.groups, g.name)
	}
}

// apply takes over an entry that was read.
func (g *group) apply(e records.Entry) {
	switch e := e.(type) {
	case *records.OffsetCommit:
		g.offsets.Apply(e)
	case *records.GroupMetadata:
		if g.classic == nil {
			g.classic = classic.New(g.name)
		}
		g.classic.Apply(e.Value)
	case *records.ConsumerGroup, *records.ConsumerMember, *records.Target, *records.TargetMember, *records.Current, *records.Regex:
		if g.consumer == nil {
			g.consumer = consumer.New(g.name)
		}
		g.consumer.Apply(e)
	case *records.PartitionMetadata: // a tombstone of the past: nothing of it is known
	}
}

// entries lists the hard state.
func (g *group) entries(visit func(records.Entry)) {
	g.offsets.Each(func(e *records.OffsetCommit) { visit(e) })
	if g.classic != nil && g.classic.Entry() != nil {
		visit(&records.GroupMetadata{Group: g.name, Value: g.classic.Entry()})
	}
	if g.consumer != nil {
		for _, e := range g.consumer.Entries() {
			visit(e)
		}
	}
}

// The words of ListGroups.
const (
	typeClassic  = "Classic"
	typeConsumer = "Consumer"
)

// kind is the group's type.
func (g *group) kind() string {
	if g.consumer != nil {
		return typeConsumer
	}
	return typeClassic
}

// state is the group's state in Kafka's words.
func (g *group) state() string {
	switch {
	case g.consumer != nil:
		return g.consumer.State()
	case g.classic != nil:
		return g.classic.State().String()
	}
	return classic.Empty.String()
}

// protocolType is what the members are; "" for an offsets-only group.
func (g *group) protocolType() string {
	switch {
	case g.consumer != nil:
		return classic.ConsumerProtocol
	case g.classic != nil:
		return g.classic.ProtocolType()
	}
	return ""
}

// size is how many members the group has.
func (g *group) size() int {
	switch {
	case g.consumer != nil:
		return g.consumer.Len()
	case g.classic != nil:
		return g.classic.Len()
	}
	return 0
}

// empty tells whether the group has no members and none is joining.
func (g *group) empty() bool {
	switch {
	case g.consumer != nil:
		return g.consumer.Empty()
	case g.classic != nil:
		return g.classic.State() == classic.Empty
	}
	return true
}

// subscribed tells whether members read a topic, or may: of a classic group of consumers whose subscriptions cannot be read, nobody knows.
func (g *group) subscribed(topic string) bool {
	switch {
	case g.consumer != nil:
		return g.consumer.Subscribed(topic)
	case g.classic != nil:
		return g.classic.Subscribed(topic)
	}
	return false
}

// aging says how the group's commits age now.
func (s *Shard) aging(g *group) offsets.Aging {
	a := offsets.Aging{Gone: s.gone, GoneAfter: s.cfg.OffsetsCheckInterval}
	switch {
	case g.consumer != nil:
		a.Subscribed = g.consumer.Subscribed
		return a
	case g.classic == nil:
		return a
	}
	switch g.classic.Expiry() {
	case classic.ExpireAll:
		a.Since = g.classic.EmptySince()
		a.Idle = a.Since != ident.NoTimestamp
	case classic.ExpireUnsubscribed:
		a.Subscribed = g.classic.Subscribed
	case classic.ExpireNever:
		a.Never = true
	case classic.ExpireSimple: // from the commit on
	}
	return a
}

// gone tells whether a topic does not exist.
func (s *Shard) gone(id ident.TopicID) bool {
	_, ok := s.topics.ByID(id)
	return !ok
}

// removeMachine ends the group's type: its entries get tombstones, and what is parked is answered with code. The offsets stay.
func (g *group) removeMachine(code wire.ErrorCode, out *coord.Out) {
	if g.classic != nil {
		known := g.classic.Entry() != nil
		g.classic.Drop(code, out)
		if known {
			out.Propose(&records.GroupMetadata{Group: g.name})
		}
		g.classic = nil
	}
	if g.consumer != nil {
		g.consumer.Delete(out)
		g.consumer = nil
	}
}
