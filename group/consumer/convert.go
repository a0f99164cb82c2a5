package consumer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
)

// errCustom is why a group whose assignor sends data of its own cannot be taken over: nobody would send it any more.
var errCustom = errors.New("an assignor sends user data with its assignments")

// adopted is a classic member on its way.
type adopted struct {
	sub      *records.Subscription
	assigned []records.TopicPartitions
}

func adopt(topics coord.Topics, gen *records.Generation, protocols func(string) []coord.Protocol) ([]adopted, error) {
	if gen.ProtocolType != protocolType && len(gen.Members) > 0 {
		return nil, fmt.Errorf("the group's protocol type is %q", gen.ProtocolType)
	}
	list := make([]adopted, len(gen.Members))
	seen := make(map[partition]bool)
	for i := range gen.Members {
		c := &gen.Members[i]
		wants, err := parseSubscription(c.Subscription)
		if err != nil {
			return nil, fmt.Errorf("subscription of %s: %w", c.Member, err)
		}
		has, userData, err := parseAssignment(c.Assignment)
		switch {
		case err != nil:
			return nil, fmt.Errorf("assignment of %s: %w", c.Member, err)
		case len(userData) > 0:
			return nil, errCustom
		}
		flat := since(owned(byID(topics, has)), gen.Generation)
		for _, p := range flat {
			if seen[p.partition] {
				return nil, fmt.Errorf("partition %d of a topic of %s is assigned twice", p.index, c.Member)
			}
			seen[p.partition] = true
		}
		list[i] = adopted{assigned: pack(flat), sub: &records.Subscription{
			Instance: c.Instance, Rack: wants.rack, ClientID: c.ClientID, ClientHost: c.ClientHost, Topics: wants.topics,
			RebalanceTimeout: c.RebalanceTimeout, Classic: &records.Classic{SessionTimeout: c.SessionTimeout},
		}}
		classic := list[i].sub.Classic
		if protocols != nil {
			for _, p := range protocols(c.Member) {
				classic.Protocols = append(classic.Protocols, records.Protocol(p))
			}
		}
		if len(classic.Protocols) == 0 {
			classic.Protocols = []records.Protocol{{Name: text(gen.Protocol), Metadata: c.Subscription}}
		}
	}
	return list, nil
}

// Adopt makes a classic generation a consumer group, when a member of the new protocol joins (GroupMetadataManager.convertToConsumerGroup). The group must
// be blank. Each member keeps what it has, and learns by its next heartbeat that it has to rejoin. protocols tells what a member supports beside the
// protocol of the generation; it may be nil. The entries are those of the new group; the tombstone of the old one is the caller's, and goes before.
// With an error nothing has changed: the protocol type is not "consumer", a message of that protocol is malformed, the assignor sends data of its own, or a
// partition was given to two members.
func (g *Group) Adopt(now coord.Now, cfg *coord.Config, topics coord.Topics, gen *records.Generation, protocols func(member string) []coord.Protocol, out *coord.Out) error {
	list, err := adopt(topics, gen, protocols)
	if err != nil || len(list) == 0 {
		return err
	}
	epoch := max(1, gen.Generation)
	for i := range list {
		g.propose(&records.ConsumerMember{Group: g.id, Member: gen.Members[i].Member, Value: list[i].sub}, out)
	}
	g.propose(&records.ConsumerGroup{Group: g.id, Value: &records.GroupEpoch{Epoch: epoch, MetadataHash: g.metadataHash(topics)}}, out)
	for i := range list {
		shall := make([]records.TopicPartitions, len(list[i].assigned))
		for j, t := range list[i].assigned {
			shall[j] = records.TopicPartitions{Topic: t.Topic, Partitions: t.Partitions}
		}
		g.propose(&records.TargetMember{Group: g.id, Member: gen.Members[i].Member, Value: &records.Partitions{Topics: shall}}, out)
	}
	g.propose(&records.Target{Group: g.id, Value: &records.TargetEpoch{Epoch: epoch}}, out)
	for i := range list {
		g.propose(&records.Current{Group: g.id, Member: gen.Members[i].Member, Value: &records.CurrentAssignment{
			MemberEpoch: epoch, PreviousEpoch: epoch, Assigned: list[i].assigned,
		}}, out)
		g.watch(now, cfg, g.members[gen.Members[i].Member], out)
	}
	return nil
}

// Downgradable tells whether the group is to become a classic one: the last member of the new protocol has gone, and classic ones are left.
func (g *Group) Downgradable(cfg *coord.Config) bool {
	return len(g.ids) > 0 && g.classics == len(g.ids) && cfg.MigrationDown && len(g.ids) <= int(cfg.ClassicSizeMax)
}

// Downgrade makes the group a classic generation (GroupMetadataManager.convertToClassicGroup): each member has what it reads. Kafka writes down what its target
// gives it, which another member may read still: a group that becomes one of the new protocol again, before all have joined, would give it away. The group's own
// tombstones are proposed and it is blank; the generation is the caller's to propose. It has no leader: none of its members has heard that it leads, and would
// look after the topics, so that the classic group begins with a rebalance.
func (g *Group) Downgrade(now coord.Now, topics coord.Topics, out *coord.Out) *records.Generation {
	protocol := g.commonProtocol()
	gen := &records.Generation{ProtocolType: protocolType, Generation: g.Epoch(), Protocol: &protocol, StateTime: now.Wall}
	for _, id := range g.ids {
		m := g.members[id]
		metadata := metadataOf(m, protocol)
		wants, err := parseSubscription(metadata)
		if err != nil {
			wants.version = 0
		}
		gen.Members = append(gen.Members, records.ClassicMember{
			Member: id, Instance: m.sub.Instance, ClientID: m.sub.ClientID, ClientHost: m.sub.ClientHost,
			RebalanceTimeout: m.sub.RebalanceTimeout, SessionTimeout: m.sub.Classic.SessionTimeout,
			Subscription: metadata, Assignment: appendAssignment(nil, wants.version, topics, m.holds()),
		})
	}
	g.Delete(out)
	return gen
}

// Protocols lists what a classic member supports, in its order; nil for others. A downgrade takes it along, or the group would know one protocol of each
// member until it joins again, and refuse newcomers that share another one with all.
func (g *Group) Protocols(id string) []coord.Protocol {
	m := g.find(id)
	if m == nil || !m.classic() {
		return nil
	}
	list := make([]coord.Protocol, len(m.sub.Classic.Protocols))
	for i, p := range m.sub.Classic.Protocols {
		list[i] = coord.Protocol(p)
	}
	return list
}

// commonProtocol is the one that most classic members prefer of those that all support; at a tie the first by name.
func (g *Group) commonProtocol() string {
	votes := make(map[string]int)
	var names []string
	for _, id := range g.ids {
		for _, p := range g.members[id].sub.Classic.Protocols {
			if g.speaks([]coord.Protocol{{Name: p.Name}}) {
				votes[p.Name]++
				names = insert(names, p.Name)
				break
			}
		}
	}
	best := ""
	for _, name := range names {
		if best == "" || votes[name] > votes[best] {
			best = name
		}
	}
	return best
}

func metadataOf(m *member, protocol string) []byte {
	i := slices.IndexFunc(m.sub.Classic.Protocols, func(p records.Protocol) bool { return p.Name == protocol })
	if i < 0 {
		return nil
	}
	return m.sub.Classic.Protocols[i].Metadata
}
