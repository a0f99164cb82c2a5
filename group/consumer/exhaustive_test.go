package consumer_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/group/consumer"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// TestExhaustive goes through everything that can happen to two members and two partitions: heartbeats with and without what a member uses, answers that
// are lost, giving up early or late, leaving, leaving for a while, timeouts, and a load before each step. Epochs are compared and never counted with, so
// states that differ only in their size are one, and there is an end to them. In each state the invariants hold and nobody uses what another member has;
// from each, when nothing is lost any more, the group settles; without -whole that is tried from every tenth, and of the states with a static
// member only the nearest are visited.
func TestExhaustive(t *testing.T) {
	for _, static := range []bool{false, true} {
		t.Run(fmt.Sprintf("static=%v", static), func(t *testing.T) {
			states := explore(t, static)
			t.Logf("%d states", states)
			if states < 500 {
				t.Errorf("%d states: most of what can happen does not", states)
			}
		})
	}
}

var whole = flag.Bool("whole", false, "go through all of TestExhaustive, which takes half a minute")

// corner is one state: the group's entries and what its two clients believe.
type corner struct {
	entries []records.Entry
	clients [2]believer
	from    *corner // how it came to be, for a failure
	by      string
}

// believer is a client; sets of partitions are bits.
type believer struct {
	id         string
	epoch      int32
	told, used uint8
	unsure     bool // an answer was lost: the next request says everything
	left       bool // for a while
}

var (
	cornerTopics = topicView{{Name: "t", ID: topicID("t", 1), Partitions: 2}}
	cornerNow    = coord.Now{Mono: 1 << 50, Wall: 1 << 40}
)

func cornerConfig() coord.Config {
	config := coord.DefaultConfig()
	config.Consumer.AssignmentInterval = 0
	return config
}

func explore(t *testing.T, static bool) int {
	t.Helper()
	first := &corner{clients: [2]believer{{id: "a"}, {id: "b"}}}
	seen := map[string]bool{first.key(): true}
	queue := []*corner{first}
	for len(queue) > 0 && (*whole || !static || len(seen) < 2000) {
		at := queue[0]
		queue = queue[1:]
		for i := range at.clients {
			for _, what := range []string{"full", "lost", "bare", "let go", "leave", "away", "forget", "session", "rebalance"} {
				next := at.after(t, i, what, static)
				if next == nil || seen[next.key()] {
					continue
				}
				seen[next.key()] = true
				next.verify(t)
				if *whole || len(seen)%10 == 0 {
					next.settles(t, static)
				}
				queue = append(queue, next)
			}
		}
		if len(seen) > 100_000 {
			t.Fatal("there is no end to the states")
		}
	}
	return len(seen)
}

// after is the state after one thing happened to one client; nil: it cannot happen.
func (c *corner) after(t *testing.T, i int, what string, static bool) *corner {
	t.Helper()
	next := &corner{clients: c.clients, from: c, by: fmt.Sprintf("%s: %s", c.clients[i].id, what)}
	g, config := fold(c.entries), cornerConfig()
	out := coord.Out{Timers: coord.NewTimers()}
	if !g.Blank() {
		g.Loaded(cornerNow, &config, cornerTopics, &out)
	}
	b := &next.clients[i]
	timer := func(kind coord.TimerKind) {
		now := cornerNow
		now.Mono += 1 << 49
		g.Timer(now, &config, cornerTopics, coord.TimerKey{Kind: kind, Group: "g", Member: b.id}, &out)
	}
	request := &coord.ConsumerHeartbeat{Group: "g", Member: b.id, MemberEpoch: b.epoch, RebalanceTimeout: -1}
	if static && i == 0 {
		instance := "i"
		request.Instance = &instance
	}
	switch what {
	case "full", "lost":
		if b.left {
			b.id, b.left = map[string]string{"a": "A", "A": "a"}[b.id], false // the same instance comes back as another member
			request.Member = b.id
		}
		request.RebalanceTimeout, request.Topics, request.Owned = 60_000, []string{"t"}, toOwned(b.used)
	case "bare":
		if b.epoch == 0 || b.unsure {
			return nil
		}
	case "let go":
		if b.used == b.told {
			return nil
		}
		b.used = b.told
		next.entries = c.entries
		return next
	case "leave", "away":
		if b.epoch == 0 || what == "away" && request.Instance == nil {
			return nil
		}
		request.MemberEpoch = -1
		if what == "away" {
			request.MemberEpoch = -2
		}
		*b = believer{id: b.id, left: what == "away"}
	case "forget":
		if b.epoch == 0 {
			return nil
		}
		b.epoch, b.told, b.used, b.unsure = 0, 0, 0, false
		next.entries = c.entries
		return next
	case "session":
		if !g.Has(b.id) {
			return nil
		}
		timer(coord.TimerSession)
		next.entries = g.Entries()
		return next
	case "rebalance":
		if _, ok := out.Timers.Due(coord.TimerKey{Kind: coord.TimerRebalance, Group: "g", Member: b.id}); !ok {
			return nil
		}
		timer(coord.TimerRebalance)
		next.entries = g.Entries()
		return next
	}
	out.Reset()
	g.Heartbeat(cornerNow, &config, cornerTopics, 1, request, &out)
	next.entries = g.Entries()
	switch what {
	case "lost":
		b.unsure = true
	case "full", "bare":
		b.hear(t, next, out.Replies[0].Answer.(*coord.ConsumerHeartbeatReply))
	}
	return next
}

func (b *believer) hear(t *testing.T, c *corner, r *coord.ConsumerHeartbeatReply) {
	t.Helper()
	b.unsure = false
	switch r.Code {
	case wire.NoError:
		b.epoch = r.MemberEpoch
		if !r.Assigned {
			return
		}
		b.told = 0
		for _, topic := range r.Assignment {
			for _, p := range topic.Partitions {
				b.told |= 1 << p
			}
		}
		if b.used&^b.told == 0 {
			b.used = b.told
		}
	case wire.FencedMemberEpoch, wire.UnknownMemberID, wire.GroupIDNotFound, wire.UnreleasedInstanceID:
		b.epoch, b.told, b.used = 0, 0, 0
	default:
		t.Fatalf("answer %v %s\n%s", r.Code, r.Message, c.story())
	}
}

func toOwned(bits uint8) []coord.TopicPartitions {
	list := []coord.TopicPartitions{}
	for p := range int32(2) {
		if bits&(1<<p) != 0 {
			if len(list) == 0 {
				list = append(list, coord.TopicPartitions{Topic: cornerTopics[0].ID})
			}
			list[0].Partitions = append(list[0].Partitions, p)
		}
	}
	return list
}

// holding is what the group believes a member has.
func (c *corner) holding(id string) (bits uint8) {
	for _, e := range c.entries {
		if e, ok := e.(*records.Current); ok && e.Member == id && e.Value != nil {
			for _, list := range [][]records.TopicPartitions{e.Value.Assigned, e.Value.Revoking} {
				for _, topic := range list {
					for _, p := range topic.Partitions {
						bits |= 1 << p
					}
				}
			}
		}
	}
	return bits
}

func (c *corner) verify(t *testing.T) {
	t.Helper()
	g := fold(c.entries) // before a load could repair anything
	if err := g.Check(); err != nil {
		t.Fatalf("%v\n%s", err, c.story())
	}
	for i := range c.clients {
		b := &c.clients[i]
		for _, id := range g.Members() {
			if g.Has(b.id) && b.epoch > 0 && id != b.id && c.holding(id)&b.used != 0 {
				t.Fatalf("%s uses what %s has\n%s", b.id, id, c.story())
			}
		}
	}
}

func (c *corner) load() *consumer.Group {
	g, config := fold(c.entries), cornerConfig()
	if !g.Blank() {
		out := coord.Out{Timers: coord.NewTimers()}
		g.Loaded(cornerNow, &config, cornerTopics, &out)
	}
	return g
}

// settles lets both clients heartbeat and let go in turn until the group is stable and shares out both partitions.
func (c *corner) settles(t *testing.T, static bool) {
	t.Helper()
	at := c
	for range 12 {
		for i := range at.clients {
			for _, what := range []string{"full", "let go"} {
				if next := at.after(t, i, what, static); next != nil {
					at = next
				}
			}
		}
		// A member that nobody speaks for is gone one day.
		for _, id := range at.load().Members() {
			if id != at.clients[0].id && id != at.clients[1].id {
				at = at.expire(id)
			}
		}
		g := at.load()
		a, b := at.clients[0], at.clients[1]
		if g.State() == "Stable" && g.Has(a.id) && g.Has(b.id) && a.used^b.used == 3 && a.used == at.holding(a.id) && b.used == at.holding(b.id) && a.epoch == g.Epoch() && b.epoch == g.Epoch() {
			return
		}
	}
	t.Fatalf("it does not settle\n%s", at.story())
}

func (c *corner) expire(id string) *corner {
	g, config := c.load(), cornerConfig()
	out := coord.Out{Timers: coord.NewTimers()}
	g.Timer(coord.Now{Mono: cornerNow.Mono + 1<<49, Wall: cornerNow.Wall}, &config, cornerTopics, coord.TimerKey{Kind: coord.TimerSession, Group: "g", Member: id}, &out)
	return &corner{entries: g.Entries(), clients: c.clients, from: c, by: id + ": expires"}
}

// story tells how a state came to be.
func (c *corner) story() string {
	var lines []string
	for at := c; at != nil; at = at.from {
		lines = append(lines, fmt.Sprintf("%s  %+v", at.by, at.clients))
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n") + "\n" + showAll(c.entries)
}

// key names a state, with the ranks of epochs in the place of epochs.
func (c *corner) key() string {
	epochs := []int32{0}
	for i := range c.clients {
		epochs = append(epochs, c.clients[i].epoch)
	}
	c.visit(func(e *int32) { epochs = append(epochs, *e) })
	slices.Sort(epochs)
	epochs = slices.Compact(epochs)
	rank := func(e int32) int32 {
		if e <= 0 {
			return e
		}
		i, _ := slices.BinarySearch(epochs, e)
		return int32(i)
	}
	var b strings.Builder
	for _, e := range c.visit(func(e *int32) { *e = rank(*e) }) {
		fmt.Fprintln(&b, show(e))
	}
	for i := range c.clients {
		client := c.clients[i]
		client.epoch = rank(client.epoch)
		fmt.Fprintf(&b, "%+v\n", client)
	}
	return b.String()
}

// visit copies the entries and lets change see every epoch of the copies. The time of the target is of no matter here.
func (c *corner) visit(change func(*int32)) []records.Entry {
	changed := make([]records.Entry, len(c.entries))
	lists := func(lists []records.TopicPartitions) []records.TopicPartitions {
		lists = slices.Clone(lists)
		for i := range lists {
			lists[i].Epochs = slices.Clone(lists[i].Epochs)
			for j := range lists[i].Epochs {
				change(&lists[i].Epochs[j])
			}
		}
		return lists
	}
	for i, e := range c.entries {
		changed[i] = e
		switch e := e.(type) {
		case *records.ConsumerGroup:
			v := *e.Value
			change(&v.Epoch)
			changed[i] = &records.ConsumerGroup{Group: e.Group, Value: &v}
		case *records.Target:
			v := records.TargetEpoch{Epoch: e.Value.Epoch, At: ident.Millis(0)}
			change(&v.Epoch)
			changed[i] = &records.Target{Group: e.Group, Value: &v}
		case *records.Current:
			v := *e.Value
			change(&v.MemberEpoch)
			change(&v.PreviousEpoch)
			v.Assigned, v.Revoking = lists(v.Assigned), lists(v.Revoking)
			changed[i] = &records.Current{Group: e.Group, Member: e.Member, Value: &v}
		case *records.ConsumerMember, *records.TargetMember, *records.Regex, *records.OffsetCommit, *records.GroupMetadata, *records.PartitionMetadata:
		}
	}
	return changed
}
