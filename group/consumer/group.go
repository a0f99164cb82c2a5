package consumer

import (
	"slices"
	"strings"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Group is one consumer group. The zero value is not usable; see [New].
type Group struct {
	id string

	// Hard state, written by Apply only. Values are never changed, only replaced.
	head    *records.GroupEpoch          // nil: the group does not exist
	target  *records.TargetEpoch         // nil: none was made
	members map[string]*member           // by member id; also those of which a load has seen a part only
	regexes map[string]*records.Resolved // by pattern

	// What follows from it, kept by Apply.
	ids       []string              // of the members that have a subscription, ascending
	statics   map[string]string     // instance -> member id
	holders   map[partition]*member // who holds a partition, assigned or pending revocation; in the middle of a load it may be wrong
	unsettled int                   // members that are not stable at the target epoch; those that have left for a while do not count
	classics  int                   // members that speak the classic protocol
	said      int                   // bytes of the subscriptions, and of what the patterns match
	tally     tally                 // what they want

	// Soft state.
	refreshed ident.Millis // when the patterns were last resolved
	under     resolution   // what is still to be done of it
	assigning bool         // TimerAssign is set
	awaited   int32        // the group epoch for which it was set
	resolving bool         // TimerRegex is set
}

// partition names a partition.
type partition struct {
	topic ident.TopicID
	index int32
}

// member is one member: three entries and its deadlines.
type member struct {
	id string

	sub     *records.Subscription      // nil: not a member (yet)
	current *records.CurrentAssignment // nil: it has nothing yet
	target  *records.Partitions        // nil: no target was made for it

	settled  bool          // counted as settled by the group
	recheck  bool          // its assignment may have topics that it no longer subscribes to
	untold   bool          // its assignment has changed, and it has not reported the new one yet: the answer may be lost, so that it is told again
	watched  bool          // its session timer is set
	deadline ident.Instant // when its session ends
	due      ident.Instant // when the timer goes off; it follows the deadline then
}

// New makes a group that does not exist: it has no epoch until somebody joins or entries are applied.
func New(id string) *Group {
	return &Group{
		id: id, members: make(map[string]*member), regexes: make(map[string]*records.Resolved), statics: make(map[string]string),
		holders: make(map[partition]*member), tally: newTally(),
	}
}

// ID is the group's name.
func (g *Group) ID() string { return g.id }

// Exists tells whether the group has an epoch in its log.
func (g *Group) Exists() bool { return g.head != nil }

// Blank tells whether nothing at all is known of the group, so that it can be forgotten.
func (g *Group) Blank() bool {
	return g.head == nil && g.target == nil && len(g.members) == 0 && len(g.regexes) == 0
}

// Empty tells whether the group has no members.
func (g *Group) Empty() bool { return len(g.ids) == 0 }

// Len is how many members the group has.
func (g *Group) Len() int { return len(g.ids) }

// Has tells whether the group has the member.
func (g *Group) Has(id string) bool { return g.find(id) != nil }

// Members lists the ids of the members, ascending. The slice is the group's.
func (g *Group) Members() []string { return g.ids }

// Epoch is the group epoch.
func (g *Group) Epoch() int32 {
	if g.head == nil {
		return 0
	}
	return g.head.Epoch
}

func (g *Group) hash() int64 {
	if g.head == nil {
		return 0
	}
	return g.head.MetadataHash
}

// State is the group's state in Kafka's words (ConsumerGroup.ConsumerGroupState): Empty, Assigning, Reconciling or Stable.
func (g *Group) State() string {
	switch {
	case len(g.ids) == 0:
		return "Empty"
	case g.Epoch() > g.targetEpoch():
		return "Assigning"
	}
	for _, id := range g.ids {
		if !g.members[id].reached(g.targetEpoch()) {
			return "Reconciling"
		}
	}
	return "Stable"
}

// wants tells whether a subscription covers the topic.
func (g *Group) wants(sub *records.Subscription, topic string) bool {
	if _, ok := slices.BinarySearch(sub.Topics, topic); ok {
		return true
	}
	if sub.Regex == nil {
		return false
	}
	resolved := g.regexes[*sub.Regex]
	if resolved == nil {
		return false
	}
	_, ok := slices.BinarySearch(resolved.Topics, topic)
	return ok
}

func (g *Group) find(id string) *member {
	if m := g.members[id]; m != nil && m.sub != nil {
		return m
	}
	return nil
}

func (g *Group) static(instance string) *member {
	id, ok := g.statics[instance]
	if !ok {
		return nil
	}
	return g.find(id)
}

func (g *Group) targetEpoch() int32 {
	if g.target == nil {
		return 0
	}
	return g.target.Epoch
}

// busy tells whether members are on their way to a newer assignment, and should be heard of soon.
func (g *Group) busy() bool { return g.unsettled > 0 || g.Epoch() > g.targetEpoch() }

func (g *Group) key(kind coord.TimerKind, member string) coord.TimerKey {
	return coord.TimerKey{Kind: kind, Group: g.id, Member: member}
}

// leftForAWhile is the member epoch of a static member that is to come back; leaving that of one that is not.
const (
	leaving       int32 = -1
	leftForAWhile int32 = -2
)

func (m *member) epoch() int32 {
	if m == nil || m.current == nil {
		return 0
	}
	return m.current.MemberEpoch
}

func (m *member) state() records.MemberState {
	if m == nil || m.current == nil {
		return records.MemberStable
	}
	return m.current.State
}

func (m *member) assigned() []records.TopicPartitions {
	if m == nil || m.current == nil {
		return nil
	}
	return m.current.Assigned
}

func (m *member) revoking() []records.TopicPartitions {
	if m == nil || m.current == nil {
		return nil
	}
	return m.current.Revoking
}

func (m *member) shall() []records.TopicPartitions {
	if m.target == nil {
		return nil
	}
	return m.target.Topics
}

// holds is what the member may read: what it has, and what it has not given up yet.
func (m *member) holds() []records.TopicPartitions {
	return pack(merge(claims(m.assigned(), m.epoch()), claims(m.revoking(), m.epoch())))
}

// reached tells whether the member has what the target of the epoch gives it.
func (m *member) reached(epoch int32) bool {
	return m.state() == records.MemberStable && m.epoch() == epoch
}

func (m *member) classic() bool { return m.sub.Classic != nil }

// sameText compares what may be absent.
func sameText(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// keep copies what a command points at.
func keep(s *string) *string {
	if s == nil {
		return nil
	}
	return optional(*s)
}

// optional is nil for the empty string.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// insert adds a word to a sorted list, remove takes it out.
func insert(list []string, word string) []string {
	i, ok := slices.BinarySearch(list, word)
	if ok {
		return list
	}
	return slices.Insert(list, i, word)
}

func remove(list []string, word string) []string {
	i, ok := slices.BinarySearch(list, word)
	if !ok {
		return list
	}
	return slices.Delete(list, i, i+1)
}

// sorted is a sorted copy without doubles; the strings are shared.
func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.SortFunc(list, strings.Compare)
	return slices.Compact(list)
}
