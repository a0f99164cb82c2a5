package classic

import (
	"slices"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

// CheckCommit tells whether a commit may be made, and counts as a heartbeat of its member outside CompletingRebalance. A negative generation without a
// member is a simple consumer, or an operator: an empty group takes their commits.
func (g *Group) CheckCommit(now coord.Now, _ *coord.Config, c *coord.Commit, out *coord.Out) wire.ErrorCode {
	if g.state == Dead {
		return wire.CoordinatorNotAvailable
	}
	if g.state == Empty && c.Generation < 0 {
		return wire.NoError
	}
	if c.Generation < 0 && c.Member == "" && c.Instance == "" {
		return wire.UnknownMemberID
	}
	m, code := g.find(c.Member, c.Instance)
	switch {
	case code != wire.NoError:
		return code
	case c.Generation != g.generation:
		return wire.IllegalGeneration
	case g.state == CompletingRebalance:
		return wire.RebalanceInProgress
	}
	g.alive(now, m, out)
	return wire.NoError
}

// CheckFetch tells whether offsets may be read. A classic group is open: only a dead one is unknown.
func (g *Group) CheckFetch(coord.Now, *coord.Config, *coord.FetchOffsets, *coord.Out) wire.ErrorCode {
	if g.state == Dead {
		return wire.GroupIDNotFound
	}
	return wire.NoError
}

// CheckDelete tells whether the group may be deleted: only an empty one.
func (g *Group) CheckDelete() wire.ErrorCode {
	switch g.state {
	case Empty:
		return wire.NoError
	case Dead:
		return wire.GroupIDNotFound
	case PreparingRebalance, CompletingRebalance, Stable:
	}
	return wire.NonEmptyGroup
}

// CheckDeleteOffsets tells whether offsets may be deleted. Those of consumers may, but for the topics that they are Subscribed to.
func (g *Group) CheckDeleteOffsets() wire.ErrorCode {
	if code := g.CheckDelete(); code != wire.NonEmptyGroup || g.protocolType != ConsumerProtocol {
		return code
	}
	return wire.NoError
}

// Expiry says which committed offsets of a group may expire (KIP-211).
type Expiry int8

// The rules.
const (
	// ExpireNever: the group has members, and is rebalancing or nobody knows their topics.
	ExpireNever Expiry = iota
	// ExpireAll: all offsets, and time counts from EmptySince; where that is unknown, from each commit.
	ExpireAll
	// ExpireUnsubscribed: those of topics that nobody is Subscribed to, and time counts from each commit.
	ExpireUnsubscribed
	// ExpireSimple: the group never had members: time counts from each commit.
	ExpireSimple
)

// Expiry says by which rule offsets expire now.
func (g *Group) Expiry() Expiry {
	switch {
	case g.protocolType == "":
		return ExpireSimple
	case g.state == Empty:
		return ExpireAll
	case g.state == Stable && g.topicsKnown:
		return ExpireUnsubscribed
	}
	return ExpireNever
}

// Member is what is known of one member, for a conversion.
type Member struct {
	ID, Instance                     string // Instance "": a dynamic member
	Client                           coord.Client
	RebalanceTimeout, SessionTimeout int32            // ms
	Protocols                        []coord.Protocol // in order of preference; after a load the chosen one only
	Assignment                       []byte           // of the last generation that was synced; empty: none
}

// Members lists the members in the order they came, those of a rebalance that is under way too. What they point at must not be changed.
func (g *Group) Members() []Member {
	all := make([]Member, len(g.members))
	for i, m := range g.members {
		all[i] = Member{
			ID: m.id, Instance: m.instance, Client: m.client, RebalanceTimeout: m.rebalanceTimeout, SessionTimeout: m.sessionTimeout,
			Protocols: slices.Clone(m.protocols), Assignment: m.assignment,
		}
	}
	return all
}

// Protocol is the protocol that was chosen for the current generation; "": none.
func (g *Group) Protocol() string { return g.protocol }

// Describe answers DescribeGroups. Protocol and metadata are shown of a stable group only.
func (g *Group) Describe() *coord.DescribeReply {
	a := &coord.DescribeReply{Group: g.id, State: g.state.String(), ProtocolType: g.protocolType, Members: make([]coord.DescribedMember, len(g.members))}
	if g.state == Stable {
		a.Protocol = g.protocol
	}
	for i, m := range g.members {
		a.Members[i] = coord.DescribedMember{Member: m.id, Instance: m.instance, Client: m.client, Assignment: m.assignment}
		if g.state == Stable {
			a.Members[i].Metadata = m.metadata(g.protocol)
		}
	}
	return a
}
