package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// metric reads one number of the broker's metrics.
func metric(t *testing.T, b *Broker, name string) float64 {
	t.Helper()
	n, err := metricOf(t.Context(), b, name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// committed asks for the offsets of a group, for as long as its coordinator loads.
func committed(t *testing.T, admin *kadm.Client, group, topic string) map[int32]int64 {
	t.Helper()
	told := map[int32]int64{}
	var last error
	if !eventually(20*time.Second, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		offsets, err := admin.FetchOffsets(ctx, group)
		if last = errors.Join(err, offsets.Error()); last != nil {
			return false
		}
		offsets.Each(func(o kadm.OffsetResponse) {
			if o.Topic == topic {
				told[o.Partition] = o.At
			}
		})
		return true
	}) {
		t.Fatalf("the offsets of %s: %v", group, last)
	}
	return told
}

func TestKilledBrokerKeepsWhatGroupsCommitted(t *testing.T) {
	loops := fromEnv(t, "TROUPE_TEST_GROUP_LOOPS", 4)
	seed := uint64(time.Now().UnixNano())
	if n := fromEnv(t, "TROUPE_TEST_SEED", 1); n > 1 {
		seed = uint64(n)
	}
	random := rand.New(rand.NewPCG(seed, 1))
	t.Logf("%d loops, TROUPE_TEST_SEED=%d", loops, seed)

	b := startBroker(t, "offsets.topic.num.partitions=4", "offsets.topic.segment.bytes=16384", "log.cleaner.backoff.ms=50", "log.cleaner.min.cleanable.ratio=0.01",
		"group.initial.rebalance.delay.ms=100")
	const topic, partitions = "committed", 4
	admin := kadm.NewClient(newClient(t, b.Addr))
	if _, err := admin.CreateTopic(t.Context(), partitions, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	all := []int32{0, 1, 2, 3}
	ledgers := []*Ledger{
		{Group: "classic", Topic: topic, Protocol: Classic, Pause: 2 * time.Millisecond},
		{Group: "consumer", Topic: topic, Protocol: Consumer, Pause: 2 * time.Millisecond},
		{Group: "simple", Topic: topic, Protocol: Simple, Pause: time.Millisecond},
	}
	committing, stop := context.WithCancel(t.Context())
	defer stop()
	var running sync.WaitGroup
	results := make(chan error, 2*len(ledgers))
	for _, l := range ledgers {
		members := 2
		if l.Protocol == Simple {
			members = 1 // two would overtake each other
		}
		for i := range members {
			running.Go(func() { results <- l.Commit(committing, b.Addr, fmt.Sprintf("%s-%d", l.Group, i), all) })
		}
	}

	told := make([]map[int32]int64, len(ledgers))
	shelf := &groupShelf{admin: admin, topic: topic}
	var slowest time.Duration
	var cleaned float64
	for loop := range loops {
		progress := make([]map[int32]int64, len(ledgers))
		for i, l := range ledgers {
			progress[i] = l.Acked()
		}
		began := time.Now()
		for i, l := range ledgers { // the groups have come back, and all partitions have an owner
			if !eventually(20*time.Second, func() bool { return ahead(l.Acked(), progress[i], partitions) }) {
				t.Fatalf("loop %d: the group %s does not commit: %v, then %v", loop, l.Group, progress[i], l.Acked())
			}
		}
		slowest = max(slowest, time.Since(began))
		shelf.change(t, loop)
		time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
		if loop == loops-1 && cleaned == 0 { // a slow broker has not come to it yet
			eventually(20*time.Second, func() bool { return metric(t, b, "troupe_cleaner_runs_total") > 0 })
		}
		cleaned += metric(t, b, "troupe_cleaner_runs_total")
		acked := make([]map[int32]int64, len(ledgers))
		for i, l := range ledgers {
			acked[i] = l.Acked()
		}
		if err := b.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := b.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, l := range ledgers {
			now := committed(t, admin, l.Group, topic)
			if err := l.Check(acked[i], now, told[i], l.Sent()); err != nil {
				t.Fatalf("loop %d:\n%v", loop, err)
			}
			told[i] = now
		}
		shelf.check(t, loop)
	}

	stop()
	running.Wait()
	for range cap(results) - 1 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if err := b.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for i, l := range ledgers {
		if err := l.Check(l.Acked(), committed(t, admin, l.Group, topic), told[i], l.Sent()); err != nil {
			t.Error(err)
		}
		for _, n := range l.Acked() {
			total += n
		}
	}
	if cleaned == 0 {
		t.Error("no log was compacted: the kills met nothing of it")
	}
	if total < int64(200*loops) {
		t.Errorf("only about %d commits in %d loops: the kills hit idle groups", total, loops)
	}
	t.Logf("%d kills, about %d commits, %.0f compactions, slowest return of a group %v", loops, total, cleaned, slowest.Round(time.Millisecond))
}

// ahead tells whether something was acknowledged for every partition since before.
func ahead(acked, before map[int32]int64, partitions int) bool {
	for p := range int32(partitions) {
		if acked[p] <= before[p] {
			return false
		}
	}
	return true
}

// groupShelf makes groups before each kill and deletes some of them, or an offset of theirs.
type groupShelf struct {
	admin *kadm.Client
	topic string
	gone  []string
	bare  []string // offset 1 was deleted, 0 stays
}

func (s *groupShelf) change(t *testing.T, loop int) {
	t.Helper()
	offsets := kadm.Offsets{}
	offsets.AddOffset(s.topic, 0, 7, -1)
	offsets.AddOffset(s.topic, 1, 7, -1)
	gone, bare := fmt.Sprintf("gone-%d", loop), fmt.Sprintf("bare-%d", loop)
	for _, group := range []string{gone, bare} {
		var last error
		if !eventually(10*time.Second, func() bool { last = s.admin.CommitAllOffsets(t.Context(), group, offsets); return last == nil }) {
			t.Fatalf("loop %d: commit of %s: %v", loop, group, last)
		}
	}
	deleted, err := s.admin.DeleteGroup(t.Context(), gone)
	if err = errors.Join(err, deleted.Err); err != nil {
		t.Fatalf("loop %d: delete %s: %v", loop, gone, err)
	}
	set := kadm.TopicsSet{}
	set.Add(s.topic, 1)
	answers, err := s.admin.DeleteOffsets(t.Context(), bare, set)
	if err = errors.Join(err, answers.Error()); err != nil {
		t.Fatalf("loop %d: delete an offset of %s: %v", loop, bare, err)
	}
	s.gone, s.bare = append(s.gone, gone), append(s.bare, bare)
}

func (s *groupShelf) check(t *testing.T, loop int) {
	t.Helper()
	groups, err := s.admin.ListGroups(t.Context())
	for errors.Is(err, kerr.CoordinatorLoadInProgress) {
		groups, err = s.admin.ListGroups(t.Context())
	}
	if err != nil {
		t.Fatalf("loop %d: list groups: %v", loop, err)
	}
	for _, group := range s.gone {
		if _, back := groups[group]; back {
			t.Errorf("loop %d: group %s was deleted and is back", loop, group)
		}
		if told := committed(t, s.admin, group, s.topic); len(told) != 0 {
			t.Errorf("loop %d: group %s was deleted, and has %v", loop, group, told)
		}
	}
	for _, group := range s.bare {
		if told := committed(t, s.admin, group, s.topic); len(told) != 1 || told[0] != 7 {
			t.Errorf("loop %d: group %s has %v, want offset 7 of partition 0 alone", loop, group, told)
		}
	}
}
