package group_test

import (
	"errors"
	"flag"
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

var (
	fromFlag  = flag.Uint64("from", 0, "the first seed of TestRandomShards")
	seedsFlag = flag.Uint64("seeds", 100, "how many seeds TestRandomShards plays")
)

// TestRandomShards plays random groups of all kinds against a shard: members come, go, die, commit in generations that are over; topics are deleted and
// made again; time passes; groups change their protocol; the shard is loaded anew. A naive model follows what was answered:
//
//   - the live state is the fold of the log, whatever a legal compaction has removed (invariant 32),
//   - no partition is held by two members, no epoch falls and none is above its group's (invariants 33 and 34),
//   - a commit is accepted only in the present generation or epoch (invariant 35),
//   - a fetch returns the latest accepted commit, and only what KIP-211 lets expire is gone (invariant 36),
//   - every request is answered once, and after a long silence nothing is left.
//
// Two runs of a seed are equal. -args -from=N -seeds=1 plays one seed again.
func TestRandomShards(t *testing.T) {
	seeds := *seedsFlag
	if testing.Short() {
		seeds = min(seeds, 20)
	}
	var reached [actions]int
	for seed := *fromFlag; seed < *fromFlag+seeds; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			first := play(t, seed, &reached)
			if seed%10 == 0 && play(t, seed, &reached) != first {
				t.Fatalf("seed %d: two runs differ", seed)
			}
		})
	}
	for a, n := range reached {
		if n == 0 && seeds >= 100 && !t.Failed() {
			t.Errorf("no run reached %q: the test does not test it", actionNames[a])
		}
	}
}

// model is a world with its clients and with what is known of it.
type model struct {
	*world
	t       *testing.T
	seed    uint64
	rng     *rand.Rand
	lives   map[string]int // of topics, the present ones
	clients []*client
	pending map[ident.RequestID]func(coord.Answer)
	ids     int
	commits map[place]*records.Offset // the latest accepted
	epochs  map[string]int32          // of groups, or generations, as the log has them; nil: not followed
	reached *[actions]int
	trace   []string // the last commands
	sum     hash.Hash64
}

type place struct {
	group, topic string
	partition    int32
}

// The things that every run of the test has to reach.
const (
	acceptedCommit = iota
	staleCommit
	expiredOffset
	deletedGroup
	upgraded
	downgraded
	emptyConverted
	topicGone
	reloaded
	orphaned
	jumpSeen
	actions
)

var actionNames = [actions]string{
	"accepted commit", "stale commit", "expired offset", "deleted group", "upgrade", "downgrade", "empty group converted", "topic gone", "reload", "orphan", "jump",
}

func play(t *testing.T, seed uint64, reached *[actions]int) uint64 {
	t.Helper()
	config := coord.DefaultConfig()
	config.OffsetsRetention = 3 * 3_600_000
	if seed%2 == 1 { // as short as a rebalance
		config.OffsetsRetention, config.OffsetsCheckInterval = 30_000, 5_000
	}
	sum := fnv.New64()
	m := &model{
		world: newWorld(config), t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 7)), lives: map[string]int{}, sum: sum,
		pending: map[ident.RequestID]func(coord.Answer){}, commits: map[place]*records.Offset{}, epochs: map[string]int32{}, reached: reached,
	}
	for _, name := range []string{"a", "b", "c"} {
		m.lives[name] = 1
	}
	m.retopic(nil)
	for i := range 10 {
		m.clients = append(m.clients, newClient(i))
	}
	for range 400 {
		m.turn()
		if m.rng.IntN(8) == 0 {
			m.replay()
		}
	}
	m.silence()
	return sum.Sum64()
}

func (m *model) failf(format string, args ...any) {
	m.t.Helper()
	for _, line := range m.trace[max(0, len(m.trace)-40):] {
		m.t.Log(line)
	}
	m.t.Fatalf("seed %d: "+format, append([]any{m.seed}, args...)...)
}

// tell writes down what happened: for a failure, and for the comparison of two runs.
func (m *model) tell(what string) {
	m.trace = append(m.trace, what)
	_, _ = m.sum.Write([]byte(what)) // a hash never fails
}

// turn does something.
func (m *model) turn() {
	switch m.rng.IntN(40) {
	case 0:
		m.reload()
	case 1:
		m.deleteTopic()
	case 2:
		m.retopic([]string{"a", "b", "c"})
	case 3:
		m.configure()
	case 4:
		m.deleteGroup()
	case 5:
		m.deleteOffsets()
	case 6, 7:
		m.pass(m.rng.Int64N(90_000))
	case 8:
		m.pass(m.rng.Int64N(m.config.OffsetsRetention * 2 / 3))
	case 9, 10, 11, 12:
		m.pass(m.rng.Int64N(3_000))
	case 13, 14:
		m.fetch(pick(m.rng, groupNames))
	case 15:
		m.simpleCommit()
	default:
		pick(m.rng, m.clients).act(m)
	}
}

var groupNames = []string{"", "g", "h", "long-name"}

func pick[T any](rng *rand.Rand, from []T) T { return from[rng.IntN(len(from))] }

// send steps a command; answer is called now or later, with its answer.
func (m *model) send(c coord.Command, answer func(coord.Answer)) {
	m.trace = append(m.trace, fmt.Sprintf("%d %T %+v", m.asked+1, c, c))
	if answer != nil {
		m.pending[m.asked+1] = answer
	}
	m.step(c)
	for _, r := range m.out.Replies {
		if r.After != m.out.Proposed() {
			m.failf("bug 152: answer %d waits for %d entries of %d", r.Request, r.After, m.out.Proposed())
		}
	}
	m.take(m.out.Entries, m.out.Replies, m.out.Notes)
}

// take follows what a step asked for.
func (m *model) take(entries []records.Entry, replies []coord.Reply, notes []coord.Note) {
	for _, e := range entries {
		m.tell("    " + show(e))
	}
	m.rise(entries)
	m.conversions(entries, notes)
	for _, n := range notes {
		m.tell("    note " + showNote(n))
		if n.Kind == coord.NoteJump {
			m.reached[jumpSeen]++
		}
	}
	for _, r := range replies {
		m.tell(fmt.Sprintf("    reply %d after %d: %s", r.Request, r.After, showAnswer(r.Answer)))
		answer, ok := m.pending[r.Request]
		if !ok {
			m.failf("request %d is answered though nobody waits", r.Request)
		}
		delete(m.pending, r.Request)
		answer(r.Answer)
	}
}

// pass lets time go by; what expires is checked against the rule.
func (m *model) pass(ms int64) {
	m.trace = append(m.trace, fmt.Sprintf("wait %d ms", ms))
	end := m.now.Mono + ident.Instant(ms*millisecond)
	for {
		due, ok := m.shard.Next()
		if !ok || due > end {
			m.set(end)
			return
		}
		m.set(max(due, m.now.Mono))
		states := m.states()
		m.out.Reset()
		m.shard.Tick(m.now, &m.out)
		for _, e := range m.out.Entries {
			if o, ok := e.(*records.OffsetCommit); ok {
				m.expired(o, states[o.Group])
			}
		}
		m.log = append(m.log, m.out.Entries...)
		m.take(m.out.Entries, m.out.Replies, m.out.Notes)
		if again, ok := m.shard.Next(); ok && again <= m.now.Mono {
			m.failf("a timer is due at %d after the tick of %d", again, m.now.Mono)
		}
	}
}

// states lists the groups. It is asked through a bundle of its own.
func (m *model) states() map[string]coord.ListedGroup {
	var out coord.Out
	m.shard.Step(m.now, 1, &coord.List{}, &out)
	states := map[string]coord.ListedGroup{}
	for _, g := range out.Replies[0].Answer.(*coord.ListReply).Groups {
		states[g.Group] = g
	}
	return states
}

// expired checks that an offset may be gone. The log says when the group became empty.
func (m *model) expired(e *records.OffsetCommit, before coord.ListedGroup) {
	at := place{e.Group, e.Topic, e.Partition}
	o := m.commits[at]
	if e.Value != nil || o == nil {
		m.failf("a timer wrote %s", show(e))
	}
	if o.ExpireTime >= 0 && m.now.Wall >= o.ExpireTime && before.State != "PreparingRebalance" {
		m.reached[expiredOffset]++
		delete(m.commits, at)
		return
	}
	if gone := !o.TopicID.IsZero() && topicID(e.Topic, m.lives[e.Topic]) != o.TopicID; gone && m.now.Wall-o.CommitTime >= ident.Millis(m.config.OffsetsCheckInterval) {
		m.reached[orphaned]++ // deleted while the shard was loaded
		delete(m.commits, at)
		return
	}
	since := o.CommitTime
	if before.Type == "Classic" && before.ProtocolType != "" {
		if before.State != "Empty" && before.State != "Stable" {
			m.failf("invariant 36: %s in state %s", show(e), before.State)
		}
		if last, ok := m.last(e.Group).(*records.GroupMetadata); before.State == "Empty" && ok && last.Value != nil {
			since = last.Value.StateTime
		}
	}
	if m.reads(e.Group, e.Topic, before) {
		m.failf("invariant 36: %s, and members read the topic", show(e))
	}
	if o.ExpireTime >= 0 || m.now.Wall-since < ident.Millis(m.config.OffsetsRetention) {
		m.failf("invariant 36: %s after %d ms", show(e), m.now.Wall-since)
	}
	m.reached[expiredOffset]++
	delete(m.commits, at)
}

// last is the last entry of a classic group in the log; nil: none.
func (m *model) last(group string) records.Entry {
	for _, e := range slices.Backward(m.log) {
		if e.Type() == records.TypeGroupMetadata && e.GroupID() == group {
			return e
		}
	}
	return nil
}

// replay folds the log, compacted by chance, and compares; sometimes by way of the bytes.
func (m *model) replay() {
	log := compact(m.rng, m.log)
	if m.rng.IntN(4) == 0 {
		for i, e := range log {
			var value []byte
			if !e.Tombstone() {
				value = e.AppendValue(nil)
			}
			again, err := records.Decode(e.AppendKey(nil), value)
			var unknown *records.UnknownTypeError
			if errors.As(err, &unknown) && e.Type() == records.TypePartitionMetadata {
				continue
			}
			if err != nil {
				m.failf("%s: %v", show(e), err)
			}
			log[i] = again
		}
	}
	live := m.shard.Entries()
	if diff := difference(live, m.fold(log).Entries()); diff != "" {
		m.failf("invariant 32: the live state is not the fold of the log: %s", diff)
	}
	kept, owners, types := map[place]ident.Offset{}, map[string]string{}, map[string]records.Type{}
	for _, e := range live {
		if e.Type() == records.TypeGroupMetadata || e.Type() == records.TypeConsumerGroup {
			if before, ok := types[e.GroupID()]; ok {
				m.failf("group %q has entries of type %d and %d", e.GroupID(), before, e.Type())
			}
			types[e.GroupID()] = e.Type()
		}
		if c, ok := e.(*records.Current); ok {
			m.owns(owners, c)
			if epoch := m.epochs[c.Group]; m.epochs != nil && c.Value.MemberEpoch > epoch {
				m.failf("invariant 34: %s, the group epoch is %d", show(c), epoch)
			}
		}
		if c, ok := e.(*records.OffsetCommit); ok {
			kept[place{c.Group, c.Topic, c.Partition}] = c.Value.Offset
		}
	}
	for at, o := range m.commits {
		if offset, ok := kept[at]; !ok || offset != o.Offset {
			m.failf("invariant 36: the commit %v = %d is gone, there is %d", at, o.Offset, offset)
		}
	}
	if len(kept) != len(m.commits) {
		m.failf("invariant 36: %d commits are kept of %d", len(kept), len(m.commits))
	}
}

// owns notes what a member of a consumer group holds, and fails when somebody else does, too (invariant 33).
func (m *model) owns(owners map[string]string, c *records.Current) {
	for _, t := range slices.Concat(c.Value.Assigned, c.Value.Revoking) {
		for _, p := range t.Partitions {
			name := fmt.Sprintf("%q %x-%d", c.Group, t.Topic, p)
			if other, ok := owners[name]; ok {
				m.failf("invariant 33: %s is held by %s and by %s", name, other, c.Member)
			}
			owners[name] = c.Member
		}
	}
}

// compact removes what a compaction may: entries that a later one of the same key in the compacted part replaces, any of them; and a tombstone at the end
// of its key when nothing of the key is left before it.
func compact(rng *rand.Rand, log []records.Entry) []records.Entry {
	cut := rng.IntN(len(log) + 1)
	eager := rng.IntN(2) == 0
	places := map[string][]int{}
	for i, e := range log[:cut] {
		key := string(e.AppendKey(nil))
		places[key] = append(places[key], i)
	}
	gone := map[int]bool{}
	for i, e := range log[:cut] {
		all := places[string(e.AppendKey(nil))]
		last := all[len(all)-1]
		if i != last {
			gone[i] = eager || rng.IntN(2) == 0
			continue
		}
		left := slices.ContainsFunc(all[:len(all)-1], func(j int) bool { return !gone[j] })
		gone[i] = e.Tombstone() && !left && rng.IntN(2) == 0
	}
	var kept []records.Entry
	for i, e := range log {
		if !gone[i] {
			kept = append(kept, e)
		}
	}
	return kept
}

// silence waits until every session and every offset has ended: nothing may be left, and nobody may still wait for an answer.
func (m *model) silence() {
	m.config.OffsetsCheckInterval = coord.DefaultConfig().OffsetsCheckInterval
	m.send(&coord.Configure{Config: m.config}, nil)
	for range 8 {
		m.pass(3 * 3_600_000)
	}
	m.replay()
	if left := m.shard.Entries(); len(left) > 0 {
		m.failf("left over: %s", show(left[0]))
	}
	if groups := m.states(); len(groups) > 0 {
		m.failf("left over: %v", groups)
	}
	for id := range m.pending {
		m.failf("request %d was never answered", id)
	}
	m.out.Timers.Cancel(coord.TimerKey{Kind: coord.TimerExpire})
	if n := m.out.Timers.Len(); n > 0 {
		key, _ := m.out.Timers.Pop(1 << 62)
		m.failf("%d timers are left, the first is %+v", n, key)
	}
}

func (m *model) reload() {
	m.reached[reloaded]++
	m.trace = append(m.trace, "reload")
	clear(m.pending)
	log := compact(m.rng, m.log)
	if m.rng.IntN(4) == 0 { // what happens meanwhile is not told
		m.lives[pick(m.rng, []string{"a", "b", "c"})] = 0
		m.topics = m.view()
	}
	m.shard, m.out = m.fold(log), coord.Out{}
	m.shard.Loaded(m.now, &m.out)
	m.log = append(log, m.out.Entries...)
	m.take(m.out.Entries, m.out.Replies, m.out.Notes)
}

// fetch compares all commits of a group with the model.
func (m *model) fetch(name string) {
	c := &coord.FetchOffsets{Version: 8, Group: name, MemberEpoch: -1, Client: coord.Client{ID: "reader", Host: "/h"}}
	for _, topic := range []string{"a", "b", "c"} {
		t := coord.FetchTopic{Name: topic}
		for p := range int32(3) {
			t.Partitions = append(t.Partitions, coord.FetchPartition{Partition: p, LogStart: -1, HighWatermark: -1})
		}
		c.Topics = append(c.Topics, t)
	}
	m.send(c, func(a coord.Answer) {
		reply := a.(*coord.FetchOffsetsReply)
		if reply.Code != wire.NoError {
			m.failf("the fetch is refused: %v", reply.Code)
		}
		for _, t := range reply.Topics {
			for _, p := range t.Partitions {
				want := coord.FetchedOffset{Partition: p.Partition, Offset: ident.NoOffset, LeaderEpoch: ident.NoLeaderEpoch}
				if o := m.commits[place{name, t.Name, p.Partition}]; o != nil && (m.lives[t.Name] == 0 || o.TopicID.IsZero() || o.TopicID == topicID(t.Name, m.lives[t.Name])) {
					want.Offset, want.LeaderEpoch, want.Metadata = o.Offset, o.LeaderEpoch, o.Metadata
				}
				if p != want {
					m.failf("invariant 36: fetched %q %s: %+v, want %+v", name, t.Name, p, want)
				}
			}
		}
	})
}
