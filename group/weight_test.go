package group_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/group"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// scales is a shard whose members may make it keep 64 KiB.
type scales struct {
	shard *group.Shard
	out   coord.Out
	now   coord.Now
	last  ident.RequestID
}

func newScales() *scales {
	cfg := coord.DefaultConfig()
	cfg.MembersBytesMax = 64 << 10
	return &scales{shard: group.New(cfg, nothing{}), now: coord.Now{Mono: 1, Wall: 1_000_000}}
}

// ask gives the code of the answer; NoError when the request waits.
func (s *scales) ask(c coord.Command) wire.ErrorCode {
	s.last++
	s.out.Reset()
	s.shard.Step(s.now, s.last, c, &s.out)
	for _, r := range s.out.Replies {
		if r.Request != s.last {
			continue
		}
		if a, ok := r.Answer.(*coord.JoinReply); ok {
			return a.Code
		}
		if a, ok := r.Answer.(*coord.ConsumerHeartbeatReply); ok {
			return a.Code
		}
		if a, ok := r.Answer.(*coord.SyncReply); ok {
			return a.Code
		}
		if a, ok := r.Answer.(*coord.LeaveReply); ok {
			return a.Members[0].Code
		}
		return r.Answer.(*coord.CommitReply).Topics[0].Partitions[0].Code
	}
	return wire.NoError
}

func (s *scales) join(group, member string, fresh int, metadata int) wire.ErrorCode {
	return s.ask(&coord.Join{
		Group: group, Member: member, NewMember: fmt.Sprintf("m-%d", fresh), ProtocolType: "consumer", SessionTimeout: 60_000, RebalanceTimeout: 60_000,
		Protocols: []coord.Protocol{{Name: "range", Metadata: make([]byte, metadata)}}, RequireKnownMember: metadata == 0,
	})
}

func (s *scales) want(member string, epoch int32, topics ...string) wire.ErrorCode {
	return s.ask(&coord.ConsumerHeartbeat{Group: "c", Member: member, MemberEpoch: epoch, RebalanceTimeout: 60_000, Topics: topics, Owned: []coord.TopicPartitions{}})
}

// TestWhatMembersMakeAShardKeepIsBounded fills a shard by members of both protocols, then by pending ones: the next is refused, those that are there go on,
// and who leaves makes room.
func TestWhatMembersMakeAShardKeepIsBounded(t *testing.T) {
	full := wire.GroupMaxSizeReached

	s := newScales()
	n := 0
	for ; n < 100 && s.join(fmt.Sprintf("g-%d", n%3), "", n, 4000) == wire.NoError; n++ {
	}
	if n < 10 || n > 16 {
		t.Errorf("%d members of 4000 bytes found room", n)
	}
	if code := s.join("g-0", "", 1000, 4000); code != full {
		t.Errorf("one more: %v", code)
	}
	if code := s.want("m", 0, strings.Repeat("t", 4000)); code != full {
		t.Errorf("one of the newer protocol: %v", code)
	}
	if code := s.join("g-0", "m-0", 0, 4000); code != wire.NoError {
		t.Errorf("one that is there, again: %v", code)
	}
	if code := s.join("g-0", "m-0", 0, 8000); code != full {
		t.Errorf("one that is there, with more to say: %v", code)
	}
	if code := s.ask(&coord.Commit{Group: "other", Generation: -1, Retention: -1, Topics: []coord.CommitTopic{{
		Name: "a", Partitions: []coord.CommitPartition{{Offset: 1}},
	}}}); code != wire.NoError {
		t.Errorf("a commit: %v", code)
	}
	if code := s.ask(&coord.Leave{Group: "g-0", Members: []coord.LeavingMember{{Member: "m-0"}}}); code != wire.NoError {
		t.Errorf("leave: %v", code)
	}
	if code := s.join("g-1", "", 2000, 4000); code != wire.NoError {
		t.Errorf("in the place of one that left: %v", code)
	}

	s = newScales()
	for n = 0; n < 100 && s.want(fmt.Sprintf("m-%d", n), 0, strings.Repeat("t", 4000)) == wire.NoError; n++ {
	}
	if n < 10 || n > 16 {
		t.Errorf("%d members of the newer protocol found room", n)
	}
	if code := s.join("g", "", 1000, 4000); code != full {
		t.Errorf("one of the classic protocol: %v", code)
	}
	if code := s.want("m-0", 0, strings.Repeat("t", 4000)); code != wire.NoError {
		t.Errorf("one that is there joins again: %v", code)
	}
	if code := s.want("m-0", -1); code != wire.NoError {
		t.Errorf("leave: %v", code)
	}
	if code := s.want("next", 0, strings.Repeat("t", 4000)); code != wire.NoError {
		t.Errorf("in the place of one that left: %v", code)
	}

	s = newScales()
	for n = 0; n < 1000 && s.join(fmt.Sprintf("g-%d", n), "", n, 0) == wire.MemberIDRequired; n++ {
	}
	if n < 60 || n > 130 {
		t.Errorf("%d groups of a pending member found room", n)
	}
	s.now.Mono += 61_000_000_000
	s.shard.Tick(s.now, &s.out)
	if code := s.join("g-0", "", 1000, 0); code != wire.MemberIDRequired {
		t.Errorf("when they have been forgotten: %v", code)
	}
}

// TestWhatALeaderDecidesIsWeighed: what a leader gives others is a client's to choose, too.
func TestWhatALeaderDecidesIsWeighed(t *testing.T) {
	s := newScales()
	s.join("g", "", 1, 10)
	s.now.Mono += 10_000_000_000
	s.shard.Tick(s.now, &s.out) // the first wait is over
	sync := func(size int) wire.ErrorCode {
		return s.ask(&coord.Sync{Group: "g", Member: "m-1", Generation: 1, Assignments: []coord.MemberAssignment{
			{Member: "m-1", Assignment: make([]byte, size)}, {Member: "nobody", Assignment: make([]byte, 1<<20)},
		}})
	}
	if code := sync(70_000); code != wire.GroupMaxSizeReached {
		t.Errorf("more than all may have: %v", code)
	}
	if code := sync(50_000); code != wire.NoError {
		t.Errorf("what is left: %v", code)
	}
	if code := s.join("h", "", 2, 20_000); code != wire.GroupMaxSizeReached {
		t.Errorf("another group, when that has been given: %v", code)
	}
	if code := s.ask(&coord.Leave{Group: "g", Members: []coord.LeavingMember{{Member: "m-1"}}}); code != wire.NoError {
		t.Errorf("leave: %v", code)
	}
	if code := s.join("h", "", 2, 20_000); code != wire.NoError {
		t.Errorf("when it has gone: %v", code)
	}
}

// TestWhoMembersAreIsWeighed fills a shard by each of the words that a client may choose, up to 32 KiB each.
func TestWhoMembersAreIsWeighed(t *testing.T) {
	long := func(i int) string { return fmt.Sprintf("%s-%d", strings.Repeat("x", 8000), i) }
	classic := func(set func(c *coord.Join, i int)) func(i int) coord.Command {
		return func(i int) coord.Command {
			c := &coord.Join{
				Group: "g", NewMember: fmt.Sprintf("m-%d", i), ProtocolType: "consumer", SessionTimeout: 60_000, RebalanceTimeout: 60_000,
				Protocols: []coord.Protocol{{Name: "range"}},
			}
			set(c, i)
			return c
		}
	}
	newer := func(set func(c *coord.ConsumerHeartbeat, i int)) func(i int) coord.Command {
		return func(i int) coord.Command {
			c := &coord.ConsumerHeartbeat{Group: "c", Member: fmt.Sprintf("m-%d", i), RebalanceTimeout: 60_000, Topics: []string{}, Owned: []coord.TopicPartitions{}}
			set(c, i)
			return c
		}
	}
	for name, ask := range map[string]func(i int) coord.Command{
		"classic, member id": classic(func(c *coord.Join, i int) { c.NewMember = long(i) }),
		"classic, pending":   classic(func(c *coord.Join, i int) { c.NewMember, c.RequireKnownMember = long(i), true }),
		"classic, instance":  classic(func(c *coord.Join, i int) { c.Instance = long(i) }),
		"classic, client id": classic(func(c *coord.Join, i int) { c.Client.ID = long(i) }),
		"member id":          newer(func(c *coord.ConsumerHeartbeat, i int) { c.Member = long(i) }),
		"instance":           newer(func(c *coord.ConsumerHeartbeat, i int) { c.Instance = new(long(i)) }),
		"rack":               newer(func(c *coord.ConsumerHeartbeat, i int) { c.Rack = new(long(i)) }),
		"client id":          newer(func(c *coord.ConsumerHeartbeat, i int) { c.Client.ID = long(i) }),
	} {
		s := newScales()
		n := 0
		for ; n < 100; n++ {
			if code := s.ask(ask(n)); code == wire.GroupMaxSizeReached {
				break
			}
		}
		if n < 3 || n > 8 {
			t.Errorf("%s: %d members of 8000 bytes found room", name, n)
		}
	}
}

// TestWhatPatternsMatchIsWeighed: a pattern of a few bytes may match every topic.
func TestWhatPatternsMatchIsWeighed(t *testing.T) {
	s := newScales()
	topics := &crowd{}
	for i := range 100 {
		topics.all = append(topics.all, coord.Topic{Name: fmt.Sprintf("%s-%03d", strings.Repeat("t", 100), i), ID: ident.TopicID{byte(i), 1}, Partitions: 1})
	}
	s.ask(&coord.TopicsChanged{Topics: topics})
	n := 0
	for ; n < 100; n++ {
		if code := s.ask(&coord.ConsumerHeartbeat{
			Group: "c", Member: fmt.Sprintf("m-%d", n), RebalanceTimeout: 60_000, Regex: new(fmt.Sprintf(".*|%d", n)), Owned: []coord.TopicPartitions{},
		}); code == wire.GroupMaxSizeReached {
			break
		}
	}
	if n < 2 || n > 6 {
		t.Errorf("%d patterns that match 10 KB of names each found room", n)
	}
}

// TestWhatMakesARecordTooLargeIsRefusedAndLeavesNothing: max.message.bytes of the offsets topic bounds what one request may make the log take.
func TestWhatMakesARecordTooLargeIsRefusedAndLeavesNothing(t *testing.T) {
	s := newScales()
	cfg := coord.DefaultConfig()
	cfg.RecordBytesMax = 2000
	s.ask(&coord.Configure{Config: cfg})
	big := strings.Repeat("x", 1900)
	refused := func(what string, c coord.Command) {
		t.Helper()
		before := len(s.shard.Entries())
		if code := s.ask(c); code != wire.UnknownServerError {
			t.Errorf("%s: %v, want UNKNOWN_SERVER_ERROR", what, code)
		}
		if n := len(s.shard.Entries()); n != before || len(s.out.Entries) > 0 {
			t.Errorf("%s: %d entries are left, %d are proposed; there were %d", what, n, len(s.out.Entries), before)
		}
	}
	commit := func(metadata string) coord.Command {
		return &coord.Commit{Group: "new", Generation: -1, Retention: -1, Topics: []coord.CommitTopic{
			{Name: "a", Partitions: []coord.CommitPartition{{Offset: 1}, {Partition: 1, Offset: 1, Metadata: metadata}}},
		}}
	}
	refused("a commit", commit(big))
	if code := s.ask(commit(big[:1000])); code != wire.NoError {
		t.Errorf("a smaller commit: %v", code)
	}
	refused("a member of the newer protocol", &coord.ConsumerHeartbeat{Group: "c", Member: "m", RebalanceTimeout: 60_000, Topics: []string{big}, Owned: []coord.TopicPartitions{}})
	if code := s.want("m", 0, big[:1000]); code != wire.NoError {
		t.Errorf("one that wants less: %v", code)
	}
	refused("one that wants more", &coord.ConsumerHeartbeat{Group: "c", Member: "m", MemberEpoch: 1, RebalanceTimeout: -1, Topics: []string{big}})
	subscription := append([]byte{0, 1, 0, 0, 0, 1, 0, 1, 'a', 0, 0, 0x7, 0x6c}, make([]byte, 1900+4)...)
	refused("a classic one beside it", &coord.Join{
		Group: "c", NewMember: "old", ProtocolType: "consumer", SessionTimeout: 60_000, RebalanceTimeout: 60_000, Protocols: []coord.Protocol{{Name: "range", Metadata: subscription}},
	})
	s.join("g", "", 1, 10)
	s.now.Mono += 10_000_000_000
	s.out.Reset()
	s.shard.Tick(s.now, &s.out)
	sync := func(size int) coord.Command {
		return &coord.Sync{Group: "g", Member: "m-1", Generation: 1, Assignments: []coord.MemberAssignment{{Member: "m-1", Assignment: make([]byte, size)}}}
	}
	refused("a leader's decision", sync(1900))
	if code := s.ask(sync(1000)); code != wire.NoError {
		t.Errorf("a smaller one: %v", code)
	}
}

// TestManyGroupsWithPatternsShareTheWorkOfAStep: when topics change, all groups with patterns look at them anew. What does not fit into one step is done by and by.
func TestManyGroupsWithPatternsShareTheWorkOfAStep(t *testing.T) {
	s := newScales()
	s.ask(&coord.Configure{Config: coord.DefaultConfig()})
	const groups = 30
	for i := range groups {
		if code := s.ask(&coord.ConsumerHeartbeat{
			Group: fmt.Sprintf("c-%d", i), Member: "m", RebalanceTimeout: 60_000, Regex: new("((a?){30}){20}a*-.*"), Owned: []coord.TopicPartitions{},
		}); code != wire.NoError {
			t.Fatal(code)
		}
	}
	s.now.Mono += 20_000_000_000
	s.now.Wall += 20_000
	topics := &crowd{all: []coord.Topic{{Name: strings.Repeat("a", 100) + "-1", ID: ident.TopicID{1}, Partitions: 1}}}
	resolved := map[string]bool{}
	note := func() (most int) {
		for _, e := range s.out.Entries {
			if r, ok := e.(*records.Regex); ok && len(r.Value.Topics) == 1 {
				resolved[r.Group] = true
				most++
			}
		}
		return most
	}
	s.ask(&coord.TopicsChanged{Topics: topics})
	most := note()
	for range 2 * groups {
		s.now.Mono += 1_000_000
		s.now.Wall++
		s.out.Reset()
		s.shard.Tick(s.now, &s.out)
		most = max(most, note())
	}
	if len(resolved) != groups || most > 3 {
		t.Errorf("the patterns of %d groups of %d are resolved, of up to %d in one step", len(resolved), groups, most)
	}
}

// crowd is a cluster of topics, by name.
type crowd struct{ all []coord.Topic }

func (c *crowd) ByName(name string) (coord.Topic, bool) {
	i := slices.IndexFunc(c.all, func(t coord.Topic) bool { return t.Name == name })
	if i < 0 {
		return coord.Topic{}, false
	}
	return c.all[i], true
}

func (c *crowd) ByID(id ident.TopicID) (coord.Topic, bool) {
	i := slices.IndexFunc(c.all, func(t coord.Topic) bool { return t.ID == id })
	if i < 0 {
		return coord.Topic{}, false
	}
	return c.all[i], true
}

func (c *crowd) Each(visit func(coord.Topic) bool) {
	for _, t := range c.all {
		if !visit(t) {
			return
		}
	}
}

// nothing is a cluster without topics.
type nothing struct{}

func (nothing) ByName(string) (coord.Topic, bool)      { return coord.Topic{}, false }
func (nothing) ByID(ident.TopicID) (coord.Topic, bool) { return coord.Topic{}, false }
func (nothing) Each(func(coord.Topic) bool)            {}
