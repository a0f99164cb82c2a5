package group

import (
	"github.com/troupe-broker/troupe/group/classic"
	"github.com/troupe-broker/troupe/group/consumer"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
)

// adopt takes the members of a classic group into a consumer group; false: they cannot come, or the migration policy (group.consumer.migration.policy)
// does not let them. Members that are just joining come too, without partitions.
func (s *Shard) adopt(now coord.Now, g *group, fresh *consumer.Group, out *coord.Out) bool {
	if !s.cfg.MigrationUp || g.classic.ProtocolType() != classic.ConsumerProtocol || g.classic.Len() > int(s.cfg.ConsumerSizeMax) {
		return false
	}
	members := g.classic.Members()
	protocols := make(map[string][]coord.Protocol, len(members))
	for _, m := range members {
		protocols[m.ID] = m.Protocols
	}
	known := func(member string) []coord.Protocol { return protocols[member] }
	return fresh.Adopt(now, &s.cfg, s.topics, generationOf(g.classic, members), known, out) == nil
}

// generationOf is what a classic group would write down of its members as they are.
func generationOf(g *classic.Group, members []classic.Member) *records.Generation {
	gen := &records.Generation{ProtocolType: g.ProtocolType(), Generation: g.Generation(), StateTime: -1}
	if protocol := g.Protocol(); protocol != "" {
		gen.Protocol = &protocol
	}
	for _, m := range members {
		c := records.ClassicMember{
			Member: m.ID, ClientID: m.Client.ID, ClientHost: m.Client.Host, RebalanceTimeout: m.RebalanceTimeout, SessionTimeout: m.SessionTimeout,
			Subscription: metadataOf(m.Protocols, g.Protocol()), Assignment: m.Assignment,
		}
		if m.Instance != "" {
			c.Instance = &m.Instance
		}
		gen.Members = append(gen.Members, c)
	}
	return gen
}

// metadataOf is what a member says with a protocol, or with the one it likes best if it has not that.
func metadataOf(protocols []coord.Protocol, name string) []byte {
	for _, p := range protocols {
		if p.Name == name {
			return p.Metadata
		}
	}
	if len(protocols) == 0 {
		return nil
	}
	return protocols[0].Metadata
}

// settle ends a step of a consumer group: one that has only members of the classic protocol left becomes a classic group, if the policy lets it, and what
// has nothing any more is forgotten.
func (s *Shard) settle(now coord.Now, g *group, out *coord.Out) {
	if g.consumer != nil && g.consumer.Downgradable(&s.cfg) {
		protocols := make(map[string][]coord.Protocol, g.consumer.Len())
		for _, id := range g.consumer.Members() {
			protocols[id] = g.consumer.Protocols(id)
		}
		gen := g.consumer.Downgrade(now, s.topics, out)
		g.consumer = nil
		g.classic = classic.New(g.name)
		g.classic.Apply(gen)
		for id, list := range protocols {
			g.classic.Support(id, list)
		}
		out.Propose(&records.GroupMetadata{Group: g.name, Value: gen})
		out.Note(coord.Note{Kind: coord.NoteConverted, Group: g.name, Text: typeClassic})
		g.classic.Loaded(now, &s.cfg, out) // it rebalances
	}
	s.forget(g)
}
