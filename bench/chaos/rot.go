package main

import (
	"context"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire/record"
)

// offsetsTopic is what brokers keep of groups: compacted, and damaged like the others.
const offsetsTopic = "__consumer_offsets"

// mendMax is within which time of a damage everything is to be whole and in sync again, when nothing else happens.
const mendMax = time.Minute

// rot is what was turned on the disk of one broker, and what came of it. It goes on until all of it is whole: then another broker may be hit.
type rot struct {
	mu     sync.Mutex
	victim int
	spots  []*spot // of the trials that are under way
	began  []time.Time
	trials []time.Duration // of those that are over: until everything was whole, and all replicas in sync
	counts map[string]int
	bad    int // answers with damage that the broker had not found yet
}

// add begins a trial.
func (r *rot) add(victim int, spots []*spot, counts map[string]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = map[string]int{}
	}
	for kind, n := range counts {
		r.counts[kind] += n
	}
	r.victim, r.spots, r.began = victim, append(r.spots, spots...), append(r.began, time.Now())
}

// open is what is not whole yet.
func (r *rot) open() (victim int, spots []*spot, trials int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.victim, slices.Clone(r.spots), len(r.began)
}

// mended ends the trials that are under way, if they are as many as were looked at.
func (r *rot) mended(looked int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.began) != looked {
		return
	}
	for _, began := range r.began {
		r.trials = append(r.trials, time.Since(began))
	}
	r.began, r.spots = nil, nil
}

// any tells whether bits were turned at all.
func (r *rot) any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.counts) > 0
}

// rotted is what a report says of damage.
type rotted struct {
	trials []time.Duration // until everything was whole, and all replicas in sync
	open   int             // trials after which that was not so
	counts map[string]int  // files of which a bit was turned, by kind
	bad    int             // answers with damage that the broker had not found yet
}

func (r *rot) sum() rotted {
	r.mu.Lock()
	defer r.mu.Unlock()
	return rotted{slices.Clone(r.trials), len(r.began), maps.Clone(r.counts), r.bad}
}

// add sums up.
func (r *rotted) add(o rotted) {
	if r.counts == nil {
		r.counts = map[string]int{}
	}
	for kind, n := range o.counts {
		r.counts[kind] += n
	}
	r.trials, r.open, r.bad = append(r.trials, o.trials...), r.open+o.open, r.bad+o.bad
}

// text is "" when nothing was turned.
func (r *rotted) text() string {
	if len(r.counts) == 0 {
		return ""
	}
	late, worst := r.open, time.Duration(0)
	for _, d := range r.trials {
		if worst = max(worst, d); d > mendMax {
			late++
		}
	}
	return fmt.Sprintf("bits turned at %d times in %s; all whole and in sync after %.1f s at most, %d times not within %v; %d answers with damage before it was found",
		len(r.trials)+r.open, files(r.counts), worst.Seconds(), late, mendMax, r.bad)
}

// rots tells whether a step turns bits.
func rots(s step) bool { return s.nemesis == bitFlipName || s.nemesis == bitRotName }

// torn tells whether a replica is damaged.
func (r *rot) torn(broker int, p place) bool {
	victim, spots, _ := r.open()
	return broker == victim && slices.ContainsFunc(spots, func(s *spot) bool { return s.place == p })
}

// bitFlip turns bits on one broker while it runs (bit-flip), or while it is down (bit-rot). What is turned lies below what is whole everywhere.
func bitFlip(ctx context.Context, n *nemesis, h *hit) (string, error) {
	if whole, err := n.awaitMended(ctx); err != nil || !whole {
		return "nobody: not all replicas came in sync, and there would be no other copy", err
	}
	below, why := n.wholeBelow(ctx)
	if below == nil {
		return "nobody: " + why, nil
	}
	victim, what := n.role(h)
	if last, _, open := n.rot.open(); open > 0 {
		victim, what = last, fmt.Sprintf("broker %d, as before", last+1)
	}
	live := h.nemesis == bitFlipName
	if !live {
		if err := n.kill(victim); err != nil {
			return "", err
		}
	}
	spots, counts, err := turnBits(n.cluster.Brokers[victim].Data, below, rand.New(rand.NewPCG(uint64(h.other), 6)), live)
	if err != nil {
		return "", err
	}
	n.rot.add(victim, spots, counts)
	if err = n.pass(ctx, h.hold); err == nil && !live {
		err = n.launch(victim)
	}
	return fmt.Sprintf("%s: a bit in each of %s", what, files(counts)), err
}

func files(counts map[string]int) string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%d %s files", counts[kind], kind))
	}
	return strings.Join(all, ", ")
}

// awaitMended waits until all replicas are in sync and nothing is left of earlier damage. What cannot be waited for is hit again at the same broker.
func (n *nemesis) awaitMended(ctx context.Context) (bool, error) {
	for began := time.Now(); time.Since(began) < n.patience; {
		if _, _, open := n.rot.open(); open == 0 {
			break
		}
		if err := n.pass(ctx, 100*time.Millisecond); err != nil {
			return false, err
		}
	}
	return n.awaitWhole(ctx)
}

// wholeBelow asks where the high watermarks are: with all replicas in sync, all have what is below. Where nobody answers, why tells.
func (n *nemesis) wholeBelow(ctx context.Context) (below map[place]int64, why string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	partitions, err := n.lookAtAll(ctx)
	if err != nil {
		return nil, err.Error()
	}
	listed, err := kadm.NewClient(n.watcher.client).ListEndOffsets(ctx, append(slices.Clone(n.watcher.topics), offsetsTopic)...)
	if err != nil {
		return nil, err.Error()
	}
	below = map[place]int64{}
	listed.Each(func(o kadm.ListedOffset) {
		p := place{o.Topic, o.Partition}
		if s := partitions[p]; o.Err == nil && len(s.isr) == len(n.cluster.Brokers) {
			below[p] = o.Offset
		}
	})
	return below, ""
}

// guard looks after what was turned until ctx ends: whether the broker gives out damage that it knows of, and when all is whole.
func (n *nemesis) guard(ctx context.Context) error {
	const pace = 200 * time.Millisecond
	for wait(ctx, pace) {
		victim, spots, open := n.rot.open()
		if open == 0 {
			continue
		}
		partitions, err := n.lookAtAll(ctx)
		if err != nil {
			continue
		}
		n.tryDamaged(ctx, victim, spots, partitions)
		if whole, err := n.allWhole(victim, spots, partitions); err != nil {
			return err
		} else if whole {
			n.rot.mended(open)
		}
	}
	return nil
}

func (n *nemesis) lookAtAll(ctx context.Context) (map[place]partitionState, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return askMetadata(ctx, n.watcher.client, append(slices.Clone(n.watcher.topics), offsetsTopic))
}

// allWhole tells whether every batch is as it was, and every replica in sync.
func (n *nemesis) allWhole(victim int, spots []*spot, partitions map[place]partitionState) (bool, error) {
	for _, s := range spots {
		if whole, err := s.whole(n.cluster.Brokers[victim].Data); err != nil || !whole {
			return false, err
		}
	}
	for _, s := range partitions {
		if len(s.isr) < len(s.replicas) || s.leader < 1 {
			return false, nil
		}
	}
	return true, nil
}

// tryDamaged asks the broker itself for each batch, as a consumer of another rack. From when it has refused one, or had it sound again, it must not give it out
// damaged.
func (n *nemesis) tryDamaged(ctx context.Context, victim int, spots []*spot, partitions map[place]partitionState) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for _, s := range spots {
		req := kmsg.NewPtrFetchRequest()
		req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.Rack, req.SessionEpoch = 0, 0, 1<<20, "nowhere", -1
		t := kmsg.NewFetchRequestTopic()
		t.Topic, t.TopicID = s.topic, partitions[s.place].topic
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.FetchOffset, p.PartitionMaxBytes = s.partition, s.offset, 1
		t.Partitions = append(t.Partitions, p)
		req.Topics = append(req.Topics, t)
		resp, err := n.watcher.client.Broker(victim+1).Request(ctx, req)
		answer, ok := resp.(*kmsg.FetchResponse)
		if err != nil || !ok {
			continue
		}
		for _, t := range answer.Topics {
			for _, p := range t.Partitions {
				n.judge(victim, s, p.ErrorCode, p.RecordBatches)
			}
		}
	}
}

// corruptMessage is the code that refuses what is known to be damaged.
const corruptMessage = 2

// judge holds what a broker has answered for a batch against what it knew.
func (n *nemesis) judge(victim int, s *spot, code int16, batches []byte) {
	switch {
	case code == corruptMessage:
		s.known = true
	case code != 0 || len(batches) == 0:
	case s.sound(batches):
		s.known = true
	case s.known:
		n.rec.fatal(fmt.Sprint("broker-", victim+1), s.String(), "damage that it had found was given out again: "+s.at)
	default:
		n.rot.mu.Lock()
		n.rot.bad++
		n.rot.mu.Unlock()
	}
}

// sound tells whether an answer begins with the batch as it was; of a compacted log, with any batch that checks.
func (s *spot) sound(answer []byte) bool {
	v, _, err := record.Split(answer)
	if err != nil || v.VerifyCRC() != nil {
		return false
	}
	return strings.HasPrefix(s.topic, "__") || int64(v.BaseOffset()) == s.offset && crc32.ChecksumIEEE(v) == s.sum
}

// awaitRepair waits until what was turned is whole again.
func (n *nemesis) awaitRepair(ctx context.Context) error {
	for began := time.Now(); ; {
		victim, spots, open := n.rot.open()
		if open == 0 {
			return nil
		}
		if time.Since(began) > mendMax {
			var left []string
			for _, s := range spots {
				if whole, err := s.whole(n.cluster.Brokers[victim].Data); err != nil || !whole {
					left = append(left, fmt.Sprintf("%v, %s", s.place, s.at))
				}
			}
			return fmt.Errorf("after %v broker %d is not whole, or not in sync: %s", mendMax, victim+1, strings.Join(left, "; "))
		}
		if err := n.pass(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}
