package consumer

import (
	"maps"
	"slices"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
)

// repair makes a group whole again whose log is damaged, so that nobody is given what another member has. After any compaction of a sound log there is
// nothing to do. Who loses by it is fenced and joins anew.
func (g *Group) repair(out *coord.Out) {
	for _, id := range slices.Sorted(maps.Keys(g.members)) {
		m := g.members[id]
		mute := m.sub != nil && m.classic() && len(m.sub.Classic.Protocols) == 0 // nothing it could be answered with
		if m.sub == nil || mute || m.sub.Instance != nil && g.statics[*m.sub.Instance] != id {
			g.drop(m, out)
		}
	}
	for _, id := range slices.Clone(g.ids) {
		if m := g.members[id]; m != nil {
			g.settleClaims(m, out)
		}
	}
	patterns := g.patterns()
	for _, pattern := range slices.Sorted(maps.Keys(g.regexes)) {
		if _, ok := slices.BinarySearch(patterns, pattern); !ok {
			g.propose(&records.Regex{Group: g.id, Pattern: pattern}, out)
		}
	}
	epoch, reached := max(g.Epoch(), g.targetEpoch()), int32(0)
	for _, id := range g.ids {
		reached = max(reached, g.members[id].epoch())
	}
	if reached > g.targetEpoch() { // the target is made anew, at once
		epoch = max(epoch, reached)
		g.propose(&records.Target{Group: g.id, Value: &records.TargetEpoch{Epoch: g.targetEpoch()}}, out)
	}
	if len(g.ids) > 0 {
		epoch = max(epoch, 1)
	}
	if epoch > g.Epoch() {
		g.propose(&records.ConsumerGroup{Group: g.id, Value: &records.GroupEpoch{Epoch: epoch, MetadataHash: g.hash()}}, out)
	}
	if len(g.ids) == 0 && g.targetEpoch() != g.Epoch() {
		g.propose(&records.Target{Group: g.id, Value: &records.TargetEpoch{Epoch: g.Epoch()}}, out)
	}
}

// settleClaims enters what a member holds into the index. Of two that claim a partition the one with the lower epoch is fenced.
func (g *Group) settleClaims(m *member, out *coord.Out) {
	var rivals []*member
	g.each(m, func(p partition) {
		if other := g.holders[p]; other != nil && other != m {
			rivals = append(rivals, other)
		}
	})
	for _, other := range rivals {
		if g.members[other.id] != other {
			continue
		}
		loser := other
		if other.epoch() > m.epoch() {
			loser = m
		}
		out.Note(coord.Note{Kind: coord.NoteMemberFenced, Group: g.id, Member: loser.id, Text: "the log gives one of its partitions to two members"})
		g.drop(loser, out)
		if loser == m {
			return
		}
	}
	g.hold(m)
}

// covered tells whether the targets give each partition of what the group subscribes to once, as every assignor does. Asked when the target is the newest
// and the topics are those it was made for.
func (g *Group) covered(topics coord.Topics) bool {
	given := make(map[partition]bool)
	for _, id := range g.ids {
		for _, c := range claims(g.members[id].shall(), 0) {
			if given[c.partition] {
				return false
			}
			given[c.partition] = true
		}
	}
	want, seen := 0, make(map[ident.TopicID]bool)
	for _, id := range g.ids {
		for _, topic := range g.topicIDs(topics, g.members[id].sub) {
			if t, ok := topics.ByID(topic); ok && !seen[topic] {
				seen[topic] = true
				want += int(t.Partitions)
			}
		}
	}
	return want == len(given)
}
