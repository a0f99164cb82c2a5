package group_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/group"
	"github.com/troupe-broker/troupe/group/coord"
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

// nothing is a cluster without topics.
type nothing struct{}

func (nothing) ByName(string) (coord.Topic, bool)      { return coord.Topic{}, false }
func (nothing) ByID(ident.TopicID) (coord.Topic, bool) { return coord.Topic{}, false }
func (nothing) Each(func(coord.Topic) bool)            {}
