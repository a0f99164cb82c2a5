package consumer_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/group/consumer"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
)

const millisecond = 1_000_000

// world is one group with its log, its topics and its clock.
type world struct {
	g      *consumer.Group
	config coord.Config
	topics topicView
	now    coord.Now
	out    coord.Out
	log    []records.Entry
}

func newWorld(config coord.Config) *world {
	w := &world{g: consumer.New("g"), config: config, now: coord.Now{Mono: 1000 * millisecond, Wall: 1_000_000}}
	w.out.Timers = coord.NewTimers()
	return w
}

// begin starts a step, end takes its entries to the log.
func (w *world) begin() { w.out.Reset() }
func (w *world) end()   { w.log = append(w.log, w.out.Entries...) }

func (w *world) heartbeat(c *coord.ConsumerHeartbeat) *coord.ConsumerHeartbeatReply {
	w.begin()
	w.g.Heartbeat(w.now, &w.config, w.topics, 1, c, &w.out)
	w.end()
	return w.out.Replies[len(w.out.Replies)-1].Answer.(*coord.ConsumerHeartbeatReply)
}

// wait passes time, and runs timers when they are due; with each the visit is called.
func (w *world) wait(ms int64, visit func()) {
	end := w.now.Mono + ident.Instant(ms)*millisecond
	for {
		due, ok := w.out.Timers.Next()
		if !ok || due > end {
			w.set(end)
			return
		}
		w.set(max(due, w.now.Mono))
		key, _ := w.out.Timers.Pop(w.now.Mono)
		w.begin()
		w.g.Timer(w.now, &w.config, w.topics, key, &w.out)
		w.end()
		visit()
	}
}

func (w *world) set(mono ident.Instant) {
	w.now.Wall += ident.Millis(mono/millisecond - w.now.Mono/millisecond)
	w.now.Mono = mono
}

// reload loses everything but the log, and loads a group from what a compaction leaves of it.
func (w *world) reload(log []records.Entry) {
	w.g = fold(log)
	w.begin()
	w.out.Timers = coord.NewTimers()
	if !w.g.Blank() {
		w.g.Loaded(w.now, &w.config, w.topics, &w.out)
	}
	w.end()
}

func fold(log []records.Entry) *consumer.Group {
	g := consumer.New("g")
	for _, e := range log {
		g.Apply(e)
	}
	return g
}

// compact removes what a compaction may: of each key any entries but the last, and a last tombstone when nothing is left before it. chance 1 keeps as
// little as it can.
func compact(log []records.Entry, r *rand.Rand, chance float64) []records.Entry {
	last := map[string]int{}
	for i, e := range log {
		last[keyOf(e)] = i
	}
	before := map[string]bool{}
	var kept []records.Entry
	for i, e := range log {
		key := keyOf(e)
		switch {
		case last[key] != i && r.Float64() < chance:
			continue
		case last[key] == i && e.Tombstone() && !before[key] && r.Float64() < chance:
			continue
		}
		before[key] = true
		kept = append(kept, e)
	}
	return kept
}

func keyOf(e records.Entry) string { return string(e.AppendKey(nil)) }

// check compares the live state with folds of the log, compacted in several ways, and verifies the invariants of both.
func (w *world) check(t *testing.T, r *rand.Rand) {
	t.Helper()
	if err := w.g.Check(); err != nil {
		t.Fatal(err)
	}
	want := showAll(w.g.Entries())
	for _, chance := range []float64{0, 0.5, 1} {
		g := fold(compact(w.log, r, chance))
		if got := showAll(g.Entries()); got != want {
			t.Fatalf("invariant 32: the live state is not the fold of the log\nlive\n%sfold\n%s", want, got)
		}
		if g.Blank() {
			continue
		}
		out := coord.Out{Timers: coord.NewTimers()}
		g.Loaded(w.now, &w.config, w.topics, &out)
		if err := g.Check(); err != nil {
			t.Fatalf("invariant 32: after a load: %v", err)
		}
		if !slices.Equal(g.Members(), w.g.Members()) {
			t.Fatalf("invariant 32: a load of a sound log fences members: %v of %v are left", g.Members(), w.g.Members())
		}
		if !strings.Contains(want, "regex") && g.Epoch() != w.g.Epoch() {
			t.Fatalf("invariant 32: a load of a sound log moves the group epoch from %d to %d", w.g.Epoch(), g.Epoch())
		}
	}
	entries := w.g.Entries()
	for i := 1; i < len(entries); i++ {
		if keyOf(entries[i-1]) >= keyOf(entries[i]) {
			t.Fatalf("keys do not ascend at %s", show(entries[i]))
		}
	}
	for _, id := range w.g.Members() {
		if _, ok := w.out.Timers.Due(coord.TimerKey{Kind: coord.TimerSession, Group: "g", Member: id}); !ok {
			t.Fatalf("member %s has no session timer", id)
		}
	}
}

// topicView is a cluster's topics for a test, by name.
type topicView []coord.Topic

func (v topicView) ByName(name string) (coord.Topic, bool) {
	i, ok := slices.BinarySearchFunc(v, name, func(t coord.Topic, name string) int { return cmp.Compare(t.Name, name) })
	if !ok {
		return coord.Topic{}, false
	}
	return v[i], true
}

func (v topicView) ByID(id ident.TopicID) (coord.Topic, bool) {
	i := slices.IndexFunc(v, func(t coord.Topic) bool { return t.ID == id })
	if i < 0 {
		return coord.Topic{}, false
	}
	return v[i], true
}

func (v topicView) Each(visit func(coord.Topic) bool) {
	for _, t := range v {
		if !visit(t) {
			return
		}
	}
}

// topicID makes an id that tells its topic and its life.
func topicID(name string, life int) (id ident.TopicID) {
	copy(id[:15], name)
	id[15] = byte(life)
	return id
}

// showAll draws entries, one a line.
func showAll(entries []records.Entry) string {
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintln(&b, show(e))
	}
	return b.String()
}

func show(e records.Entry) string {
	switch e := e.(type) {
	case *records.ConsumerGroup:
		if e.Value == nil {
			return "group gone"
		}
		return fmt.Sprintf("group epoch=%d", e.Value.Epoch) // the hash depends on nothing a reader could check
	case *records.ConsumerMember:
		if e.Value == nil {
			return fmt.Sprintf("member %s gone", e.Member)
		}
		return fmt.Sprintf("member %s %s", e.Member, showSubscription(e.Value))
	case *records.Target:
		if e.Value == nil {
			return "target gone"
		}
		return fmt.Sprintf("target epoch=%d at=%d", e.Value.Epoch, e.Value.At)
	case *records.TargetMember:
		if e.Value == nil {
			return fmt.Sprintf("target %s gone", e.Member)
		}
		return fmt.Sprintf("target %s %s", e.Member, showPartitions(e.Value.Topics))
	case *records.Current:
		if e.Value == nil {
			return fmt.Sprintf("current %s gone", e.Member)
		}
		s := fmt.Sprintf("current %s epoch=%d previous=%d %s %s", e.Member, e.Value.MemberEpoch, e.Value.PreviousEpoch, stateName(e.Value.State), showPartitions(e.Value.Assigned))
		if len(e.Value.Revoking) > 0 {
			s += " revoking " + showPartitions(e.Value.Revoking)
		}
		return s
	case *records.Regex:
		if e.Value == nil {
			return fmt.Sprintf("regex %s gone", e.Pattern)
		}
		return fmt.Sprintf("regex %s %v", e.Pattern, e.Value.Topics)
	case *records.GroupMetadata, *records.OffsetCommit, *records.PartitionMetadata:
	}
	return fmt.Sprintf("%T", e)
}

func stateName(s records.MemberState) string {
	switch s {
	case records.MemberStable:
		return "stable"
	case records.MemberUnrevoked:
		return "unrevoked"
	case records.MemberUnreleased:
		return "unreleased"
	default:
	}
	return fmt.Sprintf("state-%d", s)
}

func showSubscription(s *records.Subscription) string {
	line := fmt.Sprintf("%v", s.Topics)
	for _, p := range []struct {
		name  string
		value *string
	}{{"regex", s.Regex}, {"instance", s.Instance}, {"rack", s.Rack}, {"assignor", s.Assignor}} {
		if p.value != nil {
			line += " " + p.name + "=" + *p.value
		}
	}
	if s.Classic != nil {
		line += " classic"
		for _, p := range s.Classic.Protocols {
			line += " " + p.Name
		}
	}
	return line
}

// showPartitions draws partitions with the epochs they were assigned in, if these are known: t1[0@2 1@2].
func showPartitions(list []records.TopicPartitions) string {
	if len(list) == 0 {
		return "nothing"
	}
	var parts []string
	for _, t := range list {
		var numbers []string
		for i, p := range t.Partitions {
			s := fmt.Sprint(p)
			if i < len(t.Epochs) {
				s += fmt.Sprintf("@%d", t.Epochs[i])
			}
			numbers = append(numbers, s)
		}
		parts = append(parts, fmt.Sprintf("%s[%s]", nameOf(t.Topic), strings.Join(numbers, " ")))
	}
	return strings.Join(parts, " ")
}

func nameOf(id ident.TopicID) string { return strings.TrimRight(string(id[:15]), "\x00") }

func showTold(list []coord.TopicPartitions) string {
	var plain []records.TopicPartitions
	for _, t := range list {
		plain = append(plain, records.TopicPartitions{Topic: t.Topic, Partitions: t.Partitions})
	}
	return showPartitions(plain)
}
