package offsets_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/offsets"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

const hour = 3_600_000

var app = coord.Client{ID: "app", Host: "/10.0.0.1"}

// bench is the offsets of one group with what they need.
type bench struct {
	t     *testing.T
	group *offsets.Group
	jumps *offsets.Jumps
	cfg   coord.Config
	now   coord.Now
	out   coord.Out
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return &bench{t: t, group: offsets.New("g"), jumps: offsets.NewJumps(), cfg: coord.DefaultConfig(), now: coord.Now{Wall: 100 * hour}}
}

// commit stores offset 1 of partitions of a topic.
func (b *bench) commit(topic string, partitions ...int32) {
	c := &coord.Commit{Group: "g", Client: app, Retention: -1, Topics: []coord.CommitTopic{{Name: topic}}}
	for _, p := range partitions {
		c.Topics[0].Partitions = append(c.Topics[0].Partitions, coord.CommitPartition{Partition: p, Offset: 1})
	}
	b.group.Commit(b.now, &b.cfg, c, b.jumps, &b.out)
}

// store loads an entry.
func (b *bench) store(topic string, at, expires ident.Millis) {
	b.group.Apply(&records.OffsetCommit{Group: "g", Topic: topic, Value: &records.Offset{Offset: 1, CommitTime: at, ExpireTime: expires}})
}

func TestAgingFollowsKafka(t *testing.T) {
	const now = 100 * hour
	reads := func(topic string) bool { return topic == "read" }
	for _, c := range []struct {
		name    string
		aging   offsets.Aging
		topic   string
		at, own ident.Millis // of the commit; its own end
		gone    bool
	}{
		{name: "young", at: now - 7*hour + 1, own: -1},
		{name: "old", at: now - 7*hour, own: -1, gone: true},
		{name: "the group rebalances", aging: offsets.Aging{Never: true}, at: 0, own: -1},
		{name: "the group rebalances, the commit has an end", aging: offsets.Aging{Never: true}, at: 0, own: 1},
		{name: "its topic is read", aging: offsets.Aging{Subscribed: reads}, topic: "read", at: 0, own: -1},
		{name: "its topic is read, it has an end", aging: offsets.Aging{Subscribed: reads}, topic: "read", at: 0, own: 1},
		{name: "its topic is not read", aging: offsets.Aging{Subscribed: reads}, at: now - 7*hour, own: -1, gone: true},
		{name: "old, but the group was busy until now", aging: offsets.Aging{Idle: true, Since: now - 1}, at: 0, own: -1},
		{name: "young, but the group is idle for long", aging: offsets.Aging{Idle: true, Since: now - 7*hour}, at: now - 1, own: -1, gone: true},
		{name: "its own end has come", at: now - 1, own: now, gone: true},
		{name: "its own end is to come, however old it is", aging: offsets.Aging{Idle: true, Since: 0}, at: 0, own: now + 1},
		{name: "its own end lies at the beginning of time", at: now, own: 0, gone: true}, // only -1 means none
	} {
		b := newBench(t)
		if c.topic == "" {
			c.topic = "other"
		}
		b.store(c.topic, c.at, c.own)
		_, _, done := b.group.Expire(b.now, 7*hour, c.aging, "", 100, &b.out)
		if gone := b.group.Len() == 0; gone != c.gone || !done {
			t.Errorf("%s: gone is %v, want %v", c.name, gone, c.gone)
		}
		if tombstones := len(b.out.Entries); c.gone != (tombstones == 1) {
			t.Errorf("%s: %d tombstones", c.name, tombstones)
		}
	}
}

// TestCommitsOfGoneTopicsGo removes what was committed for a topic that was deleted while nobody told.
func TestCommitsOfGoneTopicsGo(t *testing.T) {
	lost, kept := ident.TopicID{1}, ident.TopicID{2}
	aging := offsets.Aging{Never: true, Gone: func(id ident.TopicID) bool { return id == lost }, GoneAfter: hour}
	b := newBench(t)
	for i, c := range []struct {
		id ident.TopicID
		at ident.Millis
	}{{lost, 99 * hour}, {lost, 99*hour + 1}, {kept, 0}, {ident.TopicID{}, 0}} {
		b.group.Apply(&records.OffsetCommit{Group: "g", Topic: "a", Partition: int32(i), Value: &records.Offset{Offset: 1, CommitTime: c.at, ExpireTime: -1, TopicID: c.id}})
	}
	b.group.Expire(b.now, hour, aging, "", 100, &b.out)
	for p := range int32(4) {
		if gone := b.group.Get("a", p) == nil; gone != (p == 0) {
			t.Errorf("the commit of partition %d is gone: %v", p, gone)
		}
	}
}

// TestExpiryGoesInPortions looks at no more than it may, and finds its place again though topics have gone.
func TestExpiryGoesInPortions(t *testing.T) {
	b := newBench(t)
	b.now.Wall = 0
	for i := range 20 {
		b.commit(fmt.Sprintf("t%02d", i), 0, 1, 2, 3)
	}
	b.now.Wall = 100 * hour
	after, portions := "", 0
	for done := false; !done; portions++ {
		b.out.Reset()
		var seen int
		after, seen, done = b.group.Expire(b.now, hour, offsets.Aging{}, after, 10, &b.out)
		if seen > 13 || len(b.out.Entries) != seen {
			t.Fatalf("portion %d: %d partitions seen, %d tombstones", portions, seen, len(b.out.Entries))
		}
	}
	if b.group.Len() != 0 || portions != 7 {
		t.Errorf("%d commits are left after %d portions", b.group.Len(), portions)
	}
}

func TestMetadataIsMeasuredAsKafkaDoes(t *testing.T) {
	for _, c := range []struct {
		text string
		want wire.ErrorCode
	}{
		{strings.Repeat("x", 10), wire.NoError},
		{strings.Repeat("x", 11), wire.OffsetMetadataTooLarge},
		{strings.Repeat("ä", 10), wire.NoError},                   // 20 bytes
		{strings.Repeat("𝄞", 5), wire.NoError},                    // two units each
		{strings.Repeat("𝄞", 6), wire.OffsetMetadataTooLarge},     // 24 bytes
		{strings.Repeat("\xff", 11), wire.OffsetMetadataTooLarge}, // no UTF-8: one unit a byte
	} {
		b := newBench(t)
		b.cfg.OffsetMetadataMax = 10
		reply := b.group.Commit(b.now, &b.cfg, &coord.Commit{Retention: -1, Topics: []coord.CommitTopic{{
			Name: "a", Partitions: []coord.CommitPartition{{Metadata: c.text}},
		}}}, b.jumps, &b.out)
		if got := reply.Topics[0].Partitions[0].Code; got != c.want {
			t.Errorf("%q: %v, want %v", c.text, got, c.want)
		}
	}
}

// TestTheMemoryOfJumpsIsBounded asks for more than is remembered: the oldest are forgotten, the newest still count.
func TestTheMemoryOfJumpsIsBounded(t *testing.T) {
	for _, c := range []struct {
		name  string
		asks  int32
		topic string
		most  int
	}{
		{"many", 10_000, "a", 4096},
		{"large names", 1_000, strings.Repeat("a", 8192), 128},
	} {
		b := newBench(t)
		f := &coord.FetchOffsets{Group: "g", Client: app, Topics: []coord.FetchTopic{{Name: c.topic}}}
		for p := range c.asks {
			f.Topics[0].Partitions = append(f.Topics[0].Partitions, coord.FetchPartition{Partition: p, LogStart: 5, HighWatermark: 9})
		}
		b.group.Fetch(b.now, f, none{}, b.jumps)
		if n := b.jumps.Len(); n > c.most || n < c.most/2 {
			t.Errorf("%s: %d are remembered, want about %d", c.name, n, c.most)
		}
		for _, p := range []int32{0, c.asks - 1} {
			b.jumps.Jumped(&coord.Jumped{Client: app, Topic: c.topic, Partition: p, Target: 9})
			b.group.Commit(b.now, &b.cfg, &coord.Commit{Group: "g", Client: app, Retention: -1, Topics: []coord.CommitTopic{{
				Name: c.topic, Partitions: []coord.CommitPartition{{Partition: p, Offset: 20}},
			}}}, b.jumps, &b.out)
			if told := b.group.Get(c.topic, p).Jump != nil; told != (p > 0) {
				t.Errorf("%s: the jump of partition %d is told: %v", c.name, p, told)
			}
		}
		// Asking again and again for the same costs nothing more.
		before := b.jumps.Len()
		f.Topics[0].Partitions = f.Topics[0].Partitions[c.asks-10 : c.asks-2]
		for range 100 {
			b.group.Fetch(b.now, f, none{}, b.jumps)
		}
		if n := b.jumps.Len(); n != before {
			t.Errorf("%s: %d are remembered after asking again, before it %d", c.name, n, before)
		}
	}
}

// TestAJumpBelongsToOneGroup asks for two groups with one client: each question is answered for the one that was told last and has no answer yet.
func TestAJumpBelongsToOneGroup(t *testing.T) {
	b, other := newBench(t), offsets.New("other")
	ask := func(g *offsets.Group, name string) {
		g.Fetch(b.now, &coord.FetchOffsets{Group: name, Client: app, Topics: []coord.FetchTopic{{
			Name: "a", Partitions: []coord.FetchPartition{{LogStart: 1, HighWatermark: 100}},
		}}}, none{}, b.jumps)
	}
	commit := func(g *offsets.Group) *records.Jump {
		g.Commit(b.now, &b.cfg, &coord.Commit{Client: app, Retention: -1, Topics: []coord.CommitTopic{{
			Name: "a", Partitions: []coord.CommitPartition{{Offset: 200}},
		}}}, b.jumps, &b.out)
		return g.Get("a", 0).Jump
	}
	ask(b.group, "g")
	b.jumps.Jumped(&coord.Jumped{Client: app, Topic: "a", Target: 10})
	ask(other, "other")
	b.jumps.Jumped(&coord.Jumped{Client: app, Topic: "a", Target: 20})
	if j := commit(b.group); j == nil || j.To != 10 || j.Skipped() != 9 {
		t.Errorf("the first group's jump is %+v", j)
	}
	if j := commit(other); j == nil || j.To != 20 {
		t.Errorf("the second group's jump is %+v", j)
	}
	if b.jumps.Len() != 0 {
		t.Errorf("%d are still remembered", b.jumps.Len())
	}
	var counted int64
	for _, n := range b.out.Notes {
		if n.Kind == coord.NoteJump {
			counted += n.Count
		}
	}
	if counted != 9+19 {
		t.Errorf("%d records were noted as skipped", counted)
	}
}

// none is a cluster without topics.
type none struct{}

func (none) ByName(string) (coord.Topic, bool)      { return coord.Topic{}, false }
func (none) ByID(ident.TopicID) (coord.Topic, bool) { return coord.Topic{}, false }
func (none) Each(func(coord.Topic) bool)            {}
