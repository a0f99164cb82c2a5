package consumer

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-broker/troupe/group/assign"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
)

// The window in which nothing must change before the next target is made early: so long, and longer with each member, in µs.
const (
	quietBase      = 25_000
	quietPerMember = 250
	quietMax       = 250_000
)

// assign makes the target for the present group epoch, or sets the timer for it when the last one is not old enough: it goes off when that is so, or when
// nothing has changed for a short window (ADR 0015).
func (g *Group) assign(now coord.Now, cfg *coord.Config, topics coord.Topics, out *coord.Out) {
	if g.Epoch() <= g.targetEpoch() || len(g.ids) == 0 {
		return
	}
	if wait := g.assignmentWait(now, cfg); wait > 0 {
		g.assignLater(now, wait, out)
		return
	}
	g.makeTarget(now, cfg, topics, out)
}

// assignLater sets the timer for the next target, or moves it when the group has changed once more. wait, in ms, is how long it may take at most.
func (g *Group) assignLater(now coord.Now, wait int64, out *coord.Out) {
	if g.assigning && g.awaited == g.Epoch() {
		return
	}
	g.assigning, g.awaited = true, g.Epoch()
	quiet := ident.Instant(min(quietBase+quietPerMember*len(g.ids), quietMax)) * microsecond
	out.Timers.Set(g.key(coord.TimerAssign, ""), now.Mono+min(quiet, ident.Instant(wait)*millisecond))
}

// makeTarget makes the target for the present group epoch.
func (g *Group) makeTarget(now coord.Now, cfg *coord.Config, topics coord.Topics, out *coord.Out) {
	if g.Epoch() <= g.targetEpoch() || len(g.ids) == 0 {
		return
	}
	if g.assigning {
		g.assigning = false
		g.cancel(coord.TimerAssign, out)
	}
	members := make([]assign.Member, len(g.ids))
	for i, id := range g.ids {
		m := g.members[id]
		members[i] = assign.Member{ID: id, Instance: text(m.sub.Instance), Rack: text(m.sub.Rack), Target: m.shall()}
		if i > 0 && sameTopics(g.members[g.ids[i-1]].sub, m.sub) {
			members[i].Topics = members[i-1].Topics
		} else {
			members[i].Topics = g.topicIDs(topics, m.sub)
		}
	}
	run, ok := assign.Lookup(g.assignor(cfg))
	if !ok {
		run = assign.Uniform
	}
	for i, target := range run(members, topics.ByID) {
		m := g.members[g.ids[i]]
		if m.target == nil || !samePartitions(m.target.Topics, target) {
			g.propose(&records.TargetMember{Group: g.id, Member: m.id, Value: &records.Partitions{Topics: target}}, out)
		}
	}
	g.propose(&records.Target{Group: g.id, Value: &records.TargetEpoch{Epoch: g.Epoch(), At: now.Wall}}, out)
}

// assignmentWait is how long the next target has to wait, in ms. A clock that went back does not make it wait.
func (g *Group) assignmentWait(now coord.Now, cfg *coord.Config) int64 {
	if g.target == nil || g.target.At == 0 || g.target.At > now.Wall {
		return 0
	}
	return int64(g.target.At) + int64(cfg.Of(g.id).AssignmentInterval) - int64(now.Wall)
}

// assignor is the one that most members ask for; of those with as many, the one that is configured first; without any, the default.
func (g *Group) assignor(cfg *coord.Config) string {
	if len(cfg.Assignors) == 0 {
		return "uniform"
	}
	best, most := cfg.Assignors[0], 0
	for _, name := range cfg.Assignors {
		votes := g.tally.assignors[name]
		if votes > most {
			best, most = name, votes
		}
	}
	return best
}

func sameTopics(a, b *records.Subscription) bool {
	return sameText(a.Regex, b.Regex) && slices.Equal(a.Topics, b.Topics)
}

// topicIDs are the topics of a subscription that exist, in the order of their ids.
func (g *Group) topicIDs(topics coord.Topics, sub *records.Subscription) []ident.TopicID {
	var ids []ident.TopicID
	add := func(names []string) {
		for _, name := range names {
			if t, ok := topics.ByName(name); ok {
				ids = append(ids, t.ID)
			}
		}
	}
	add(sub.Topics)
	if sub.Regex != nil {
		if resolved := g.regexes[*sub.Regex]; resolved != nil {
			add(resolved.Topics)
		}
	}
	slices.SortFunc(ids, func(a, b ident.TopicID) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(ids)
}

// metadataHash is a number that changes with what the group subscribes to of the topics that exist: names, ids, partitions, racks. 0: nothing.
func (g *Group) metadataHash(topics coord.Topics) int64 {
	names := slices.Collect(maps.Keys(g.tally.topics))
	for pattern := range g.tally.regexes {
		if resolved := g.regexes[pattern]; resolved != nil {
			names = append(names, resolved.Topics...)
		}
	}
	slices.SortFunc(names, strings.Compare)
	h, none := fnv.New64a(), true
	for _, name := range slices.Compact(names) {
		t, ok := topics.ByName(name)
		if !ok {
			continue
		}
		none = false
		h.Write(binary.BigEndian.AppendUint32([]byte(name+"\x00"), uint32(t.Partitions)))
		h.Write(t.ID[:])
		for _, racks := range t.Racks {
			for _, rack := range racks {
				h.Write([]byte(rack + "\x00"))
			}
			h.Write([]byte{1})
		}
	}
	if none {
		return 0
	}
	return int64(h.Sum64())
}
