package sim

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire/ident"
)

// holding is a world with one group and two members that the coordinator knows, and no broker.
type holding struct {
	t    *testing.T
	run  *run
	old  *ghostTopic
	anew *ghostTopic // of the same name; nil: there is none yet
}

func newHolding(t *testing.T) *holding {
	t.Helper()
	r := &run{plan: &Plan{}, world: NewWorld(1), counts: make(map[string]int)}
	r.ghost, r.groups = newGhost(r), newGhostGroups(r)
	h := &holding{t: t, run: r}
	h.wait()
	h.old = r.ghost.topic("t", ident.TopicID{1})
	h.wait()
	return h
}

// wait lets a moment pass.
func (h *holding) wait() {
	if err := h.run.world.RunFor(time.Millisecond); err != nil {
		h.t.Fatal(err)
	}
}

// bear lets the topic be deleted and made anew.
func (h *holding) bear() {
	h.wait()
	h.old.deleteSent = h.run.world.Now()
	h.wait()
	h.anew = h.run.ghost.topic("t", ident.TopicID{2})
	h.wait()
}

// silence lets so much time pass that no member of before is in the group any more.
func (h *holding) silence() {
	if err := h.run.world.RunFor(2 * time.Minute); err != nil {
		h.t.Fatal(err)
	}
}

// member is one that was heard of just now.
func (h *holding) member(name string, modern bool) *member {
	return &member{
		client: &client{run: h.run, name: name, plan: ClientPlan{Session: time.Minute, Rebalance: time.Minute}}, modern: modern, ghost: h.run.groups.group("g"),
		epoch: 1, confirmed: h.run.world.Now(),
	}
}

// told has a member be told of the partition of a topic.
func (h *holding) told(m *member, t *ghostTopic) {
	t.partition(0)
	sent := h.run.world.Now()
	h.wait()
	m.take(t, 0, sent, sent)
	h.wait()
}

// dealt has a classic member be told of partitions of the topic by the answer to a Sync.
func (h *holding) dealt(m *member, partitions ...int32) {
	told := kmsg.NewConsumerMemberAssignment()
	topic := kmsg.NewConsumerMemberAssignmentTopic()
	topic.Topic, topic.Partitions = "t", partitions
	told.Topics = append(told.Topics, topic)
	sent := h.run.world.Now()
	h.wait()
	m.assigned(told.AppendTo(nil), sent)
	h.wait()
}

// synced has a classic member be told of what it reads.
func (h *holding) synced(m *member) {
	h.t.Helper()
	if h.dealt(m, 0); len(m.parts) != 1 {
		h.t.Fatalf("%d partitions are read", len(m.parts))
	}
}

// sees has a member read metadata.
func (h *holding) sees(m *member, t *ghostTopic) {
	t.partition(0)
	m.topics = []*ghostTopic{t}
	sent := h.run.world.Now()
	h.wait()
	m.follow(sent)
	h.wait()
}

// Who reads what another one reads is found, whatever protocols they speak and whether or not the topic is the first one of its name; but a name that was told
// before the topic had it is not a partition of that topic.
func TestTwoThatReadTheSamePartitionAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		play  func(h *holding)
		found bool
	}{
		"two by id": {func(h *holding) {
			h.told(h.member("a", true), h.old)
			h.told(h.member("b", true), h.old)
		}, true},
		"two by id, of a topic that was made anew": {func(h *holding) {
			h.bear()
			h.told(h.member("a", true), h.anew)
			h.told(h.member("b", true), h.anew)
		}, true},
		"by name, then by id": {func(h *holding) {
			h.told(h.member("a", false), h.old)
			h.told(h.member("b", true), h.old)
		}, true},
		"two by name": {func(h *holding) {
			h.told(h.member("a", false), h.old)
			h.told(h.member("b", false), h.old)
		}, true},
		"by a name that was told after the topic was made anew": {func(h *holding) {
			h.bear()
			h.told(h.member("a", false), h.anew)
			h.told(h.member("b", true), h.anew)
		}, true},
		"by a name that was told before, and by the id after": {func(h *holding) {
			a := h.member("a", false)
			h.told(a, h.old)
			h.bear()
			h.sees(a, h.anew)
			h.told(h.member("b", true), h.anew)
		}, false},
		"by the id, while another one follows the name": {func(h *holding) {
			a := h.member("a", false)
			h.told(a, h.old)
			h.bear()
			h.told(h.member("b", true), h.anew)
			h.sees(a, h.anew)
		}, false},
		"by name, while one that the group knows follows the name": {func(h *holding) {
			a := h.member("a", false)
			h.told(a, h.old)
			h.bear()
			h.told(h.member("b", false), h.anew)
			h.sees(a, h.anew)
		}, true},
		"by name, while one that was given up follows the name": {func(h *holding) {
			a := h.member("a", false)
			h.told(a, h.old)
			h.bear()
			h.silence()
			h.told(h.member("b", false), h.anew)
			h.sees(a, h.anew)
		}, false},
		"by name, before one that was given up follows the name, and is told it again": {func(h *holding) {
			a := h.member("a", false)
			h.told(a, h.old)
			h.bear()
			h.silence()
			h.sees(a, h.anew)
			h.told(h.member("b", false), h.anew)
			h.told(a, h.anew)
		}, true},
		"by a name that nobody knew when it was told": {func(h *holding) {
			a, sent := h.member("a", false), h.run.world.Now()
			h.bear()
			a.take(h.anew, 0, sent, sent)
			h.told(h.member("b", true), h.anew)
		}, false},
		"by a name that is told again after the topic was made anew": {func(h *holding) {
			a := h.member("a", false)
			h.told(a, h.old)
			h.bear()
			h.sees(a, h.anew)
			h.synced(a)
			h.told(h.member("b", true), h.anew)
		}, true},
		"one that has given it up": {func(h *holding) {
			a := h.member("a", true)
			h.told(a, h.old)
			a.release(func(*part) bool { return true })
			h.told(h.member("b", true), h.old)
		}, false},
		"one that the coordinator may have given up": {func(h *holding) {
			a := h.member("a", true)
			h.told(a, h.old)
			a.confirmed = 0
			h.told(h.member("b", true), h.old)
		}, false},
	} {
		h := newHolding(t)
		c.play(h)
		if found := h.run.violation != nil; found != c.found {
			t.Errorf("%s: found: %v, %v", name, found, h.run.violation)
		}
	}
}

// A topic may have grown when a member of a classic group is told of it, and the member may know that later, or lose it before.
func TestAMemberReadsWhatItWasToldOnceItHasSeenIt(t *testing.T) {
	for name, c := range map[string]struct {
		then func(h *holding, m *member)
		read int
	}{
		"it sees that the topic has grown":       {func(*holding, *member) {}, 2},
		"it sees that when it is no member":      {func(_ *holding, m *member) { m.forget() }, 0},
		"it was told something else before that": {func(h *holding, m *member) { h.dealt(m, 0) }, 1},
	} {
		h := newHolding(t)
		m := h.member("a", false)
		h.old.partition(0)
		m.topics = []*ghostTopic{h.old}
		if h.dealt(m, 0, 1); len(m.parts) != 1 {
			t.Fatalf("%s: %d partitions are read of a topic that has one", name, len(m.parts))
		}
		c.then(h, m)
		h.old.partition(1)
		if h.sees(m, h.old); len(m.parts) != c.read {
			t.Errorf("%s: %d partitions are read, want %d", name, len(m.parts), c.read)
		}
	}
}
