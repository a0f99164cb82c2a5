package consumer

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
)

// Apply takes one entry of this group into the state: live the very one that is proposed, at a load the one that was read. It tolerates everything that a
// compaction leaves: tombstones of the unknown (KAFKA-17306), an assignment before its subscription, a partition that is given before the entry that
// releases it has come (KAFKA-19862). Entries of other kinds change nothing.
func (g *Group) Apply(e records.Entry) {
	switch e := e.(type) {
	case *records.ConsumerGroup:
		g.head = e.Value
	case *records.Target:
		g.target = e.Value
		g.recount()
	case *records.ConsumerMember:
		g.applySubscription(e)
	case *records.Current:
		g.applyCurrent(e)
	case *records.TargetMember:
		m := g.part(e.Member)
		m.target = e.Value
		g.tidy(m)
	case *records.Regex:
		if old := g.regexes[e.Pattern]; old != nil {
			g.said -= regexSize(e.Pattern, old)
			delete(g.regexes, e.Pattern)
		}
		if e.Value != nil {
			g.said += regexSize(e.Pattern, e.Value)
			g.regexes[e.Pattern] = e.Value
		}
	case *records.OffsetCommit, *records.GroupMetadata, *records.PartitionMetadata:
	}
}

func (g *Group) applySubscription(e *records.ConsumerMember) {
	m := g.part(e.Member)
	if m.sub != nil {
		g.forget(m)
	}
	m.sub = e.Value
	if m.sub != nil {
		g.remember(m)
	}
	g.tidy(m)
}

func (g *Group) applyCurrent(e *records.Current) {
	m := g.part(e.Member)
	if m.sub != nil {
		g.release(m)
	}
	m.current = e.Value
	if m.sub != nil {
		g.hold(m)
		g.settle(m)
	}
	g.tidy(m)
}

// part finds what is known of a member. One of which nothing is left is forgotten by tidy.
func (g *Group) part(id string) *member {
	m := g.members[id]
	if m == nil {
		m = &member{id: id, settled: true}
		g.members[id] = m
	}
	return m
}

func (g *Group) tidy(m *member) {
	if m.sub == nil && m.current == nil && m.target == nil {
		delete(g.members, m.id)
	}
}

func (g *Group) forget(m *member) {
	g.said -= sizeOf(m.id, m.sub)
	g.tally.add(m.sub, -1)
	g.ids = remove(g.ids, m.id)
	if m.sub.Instance != nil && g.statics[*m.sub.Instance] == m.id {
		delete(g.statics, *m.sub.Instance)
	}
	if m.classic() {
		g.classics--
	}
	if !m.settled {
		g.unsettled--
		m.settled = true
	}
	g.release(m)
}

func (g *Group) remember(m *member) {
	g.said += sizeOf(m.id, m.sub)
	g.tally.add(m.sub, 1)
	g.ids = insert(g.ids, m.id)
	if m.sub.Instance != nil {
		g.statics[*m.sub.Instance] = m.id
	}
	if m.classic() {
		g.classics++
	}
	g.settle(m)
	g.hold(m)
}

// hold enters what a member has into the index, release takes it out.
func (g *Group) hold(m *member) { g.each(m, func(p partition) { g.holders[p] = m }) }

func (g *Group) release(m *member) {
	g.each(m, func(p partition) {
		if g.holders[p] == m {
			delete(g.holders, p)
		}
	})
}

// settle counts the member as settled or not. Nobody waits for a static member that has left for a while.
func (g *Group) settle(m *member) {
	settled := m.epoch() == leftForAWhile || m.reached(g.targetEpoch())
	if settled == m.settled {
		return
	}
	m.settled = settled
	if settled {
		g.unsettled--
	} else {
		g.unsettled++
	}
}

func (g *Group) recount() {
	for _, id := range g.ids {
		g.settle(g.members[id])
	}
}

// each visits what the member holds.
func (g *Group) each(m *member, visit func(partition)) {
	for _, list := range [2][]records.TopicPartitions{m.assigned(), m.revoking()} {
		for i := range list {
			for _, index := range list[i].Partitions {
				visit(partition{list[i].Topic, index})
			}
		}
	}
}

// propose applies an entry and asks for it to be written.
func (g *Group) propose(e records.Entry, out *coord.Out) {
	g.Apply(e)
	out.Propose(e)
}

// Entries are the hard state as entries: types ascending, of a type the shorter names first, then by their bytes, as the keys compare.
func (g *Group) Entries() []records.Entry {
	var entries []records.Entry
	if g.head != nil {
		entries = append(entries, &records.ConsumerGroup{Group: g.id, Value: g.head})
	}
	ids := slices.SortedFunc(maps.Keys(g.members), byKey)
	for _, id := range ids {
		if m := g.members[id]; m.sub != nil {
			entries = append(entries, &records.ConsumerMember{Group: g.id, Member: id, Value: m.sub})
		}
	}
	if g.target != nil {
		entries = append(entries, &records.Target{Group: g.id, Value: g.target})
	}
	for _, id := range ids {
		if m := g.members[id]; m.target != nil {
			entries = append(entries, &records.TargetMember{Group: g.id, Member: id, Value: m.target})
		}
	}
	for _, id := range ids {
		if m := g.members[id]; m.current != nil {
			entries = append(entries, &records.Current{Group: g.id, Member: id, Value: m.current})
		}
	}
	for _, pattern := range slices.SortedFunc(maps.Keys(g.regexes), byKey) {
		entries = append(entries, &records.Regex{Group: g.id, Pattern: pattern, Value: g.regexes[pattern]})
	}
	return entries
}

// byKey orders strings as keys are: their length stands in front of them.
func byKey(a, b string) int {
	if c := cmp.Compare(len(a), len(b)); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}

// Delete removes the group with all that is known of it: a tombstone for each of its keys, the group's own last. The offsets are not its own.
func (g *Group) Delete(out *coord.Out) {
	for _, id := range slices.Sorted(maps.Keys(g.members)) {
		g.drop(g.members[id], out)
	}
	for _, pattern := range slices.Sorted(maps.Keys(g.regexes)) {
		g.propose(&records.Regex{Group: g.id, Pattern: pattern}, out)
	}
	if g.target != nil {
		g.propose(&records.Target{Group: g.id}, out)
	}
	if g.head != nil {
		g.propose(&records.ConsumerGroup{Group: g.id}, out)
	}
	g.cancel(coord.TimerAssign, out)
	g.cancel(coord.TimerRegex, out)
	g.assigning, g.resolving, g.under = false, false, resolution{}
}

// drop writes the tombstones of a member and stops its timers.
func (g *Group) drop(m *member, out *coord.Out) {
	id, sub, current, target := m.id, m.sub != nil, m.current != nil, m.target != nil
	if current {
		g.propose(&records.Current{Group: g.id, Member: id}, out)
	}
	if target {
		g.propose(&records.TargetMember{Group: g.id, Member: id}, out)
	}
	if sub {
		g.propose(&records.ConsumerMember{Group: g.id, Member: id}, out)
	}
	g.forgetTimers(id, out)
}
