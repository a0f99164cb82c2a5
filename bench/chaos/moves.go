package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// reassign moves the replicas of all partitions again and again: one is dropped, the order is another, all are back, or what is under way is taken back. A
// partition has at least two replicas at any time, or one if there is one broker more. What comes of it in the end is put right by settle.
func reassign(ctx context.Context, n *nemesis, h *hit) (string, error) {
	random := rand.New(rand.NewPCG(uint64(h.other), 7))
	taken, refused := 0, map[string]int{}
	began := time.Now()
	for turn := 0; turn == 0 || time.Since(began) < h.hold; turn++ {
		changes := map[place][]int32{}
		for _, p := range n.places {
			switch random.IntN(4) {
			case 0:
				changes[p] = nil // what is under way is taken back
			case 1:
				changes[p] = n.anyOrder(random)
			default:
				all := n.anyOrder(random)
				changes[p] = all[:max(len(all)-1, 2)]
			}
		}
		ok, why := n.move(ctx, changes)
		taken += ok
		for text, count := range why {
			refused[text] += count
		}
		if err := n.pass(ctx, 200*time.Millisecond+h.gap/2); err != nil {
			return "", err
		}
	}
	n.moved.Store(true)
	what := []string{fmt.Sprintf("%d moves were taken in %s", taken, ms(time.Since(began)))}
	for _, text := range slices.Sorted(maps.Keys(refused)) {
		what = append(what, fmt.Sprintf("%d not: %s", refused[text], text))
	}
	return strings.Join(what, ", "), nil
}

func (n *nemesis) anyOrder(random *rand.Rand) []int32 {
	var all []int32
	for _, b := range n.ring() {
		all = append(all, int32(b))
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// move asks for new replicas; nil takes back what is under way. It counts what was taken, and why others were not.
func (n *nemesis) move(ctx context.Context, changes map[place][]int32) (taken int, refused map[string]int) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	req.TimeoutMillis = 3000
	topics := map[string]*kmsg.AlterPartitionAssignmentsRequestTopic{}
	for p, replicas := range changes {
		if topics[p.topic] == nil {
			t := kmsg.NewAlterPartitionAssignmentsRequestTopic()
			t.Topic = p.topic
			topics[p.topic] = &t
		}
		part := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
		part.Partition, part.Replicas = p.partition, replicas
		topics[p.topic].Partitions = append(topics[p.topic].Partitions, part)
	}
	for _, t := range topics {
		req.Topics = append(req.Topics, *t)
	}
	refused = map[string]int{}
	resp, err := req.RequestWith(ctx, n.watcher.client)
	if err = errors.Join(err, codeOf(resp)); err != nil {
		refused[err.Error()] = len(changes)
		return 0, refused
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			switch err := kerr.ErrorForCode(p.ErrorCode); {
			case err == nil:
				taken++
			case errors.Is(err, kerr.NoReassignmentInProgress): // there was nothing to take back
			default:
				refused[err.Error()]++
			}
		}
	}
	return taken, refused
}

func codeOf(resp *kmsg.AlterPartitionAssignmentsResponse) error {
	if resp == nil {
		return nil
	}
	return kerr.ErrorForCode(resp.ErrorCode)
}

// settle gives every partition all brokers as replicas again, and waits until nothing moves. It asks first whether something moves, and then who has what: a replica
// that is to go is in the list of those that are there until its move ends, which may be between the two. Whoever answers may be behind, so it looks twice.
func (n *nemesis) settle(ctx context.Context) error {
	const patience = 30 * time.Second
	want := n.anyOrder(rand.New(rand.NewPCG(0, 7)))
	slices.Sort(want)
	last, calm := "nobody answered", 0
	for began := time.Now(); time.Since(began) < patience; {
		still, changes := n.still(ctx), map[place][]int32{}
		partitions, err := askMetadata(ctx, n.watcher.client, n.watcher.topics)
		if err == nil {
			for _, p := range n.places {
				if now := slices.Sorted(slices.Values(partitions[p].replicas)); !slices.Equal(now, want) {
					changes[p] = want
					last = fmt.Sprintf("%v has replicas %v", p, now)
				}
			}
		}
		if err != nil || !still || len(changes) > 0 {
			calm = 0
		} else if calm++; calm == 2 {
			return nil
		}
		if len(changes) > 0 {
			n.move(ctx, changes)
		}
		if err := n.pass(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("after %v replicas are still being moved: %s", patience, last)
}

// still tells whether no reassignment is under way.
func (n *nemesis) still(ctx context.Context) bool {
	listed, err := kadm.NewClient(n.watcher.client).ListPartitionReassignments(ctx, nil)
	return err == nil && len(listed) == 0
}
