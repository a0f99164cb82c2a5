package actors

import (
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire/ident"
)

// AppendTotals is what was ever appended to a replica by this process.
type AppendTotals struct {
	Topic     string
	ID        ident.TopicID
	Partition int32
	Batches   int64
	Records   int64
	// AppendedBytes is the size of the batches.
	AppendedBytes int64
	End           ident.Offset
}

// factsActor makes Appended out of totals, so that the hot path only counts.
type factsActor struct {
	host  *Host
	visit func(visit func(AppendTotals))
	every time.Duration
	timer *runtime.Timer
	seen  map[replicaKey]*seenTotals
	round uint64
}

type replicaKey struct {
	id        ident.TopicID
	partition int32
}

// seenTotals is what was told of a replica.
type seenTotals struct {
	AppendTotals
	round uint64 // the last in which the replica was there
}

// sumDue is the message of the timer.
type sumDue struct{}

// Bytes implements runtime.Message.
func (*sumDue) Bytes() int { return 0 }

// Started arms the timer.
func (f *factsActor) Started(t *runtime.Turn) {
	f.seen = make(map[replicaKey]*seenTotals)
	f.timer = t.NewTimer(&sumDue{})
	f.timer.Reset(f.every)
}

// Turn tells what was appended since the last one.
func (f *factsActor) Turn(t *runtime.Turn, _ []runtime.Message) {
	f.round++
	f.visit(func(now AppendTotals) { f.sum(t, now) })
	for key, seen := range f.seen {
		if seen.round != f.round {
			delete(f.seen, key) // deleted, or moved away
		}
	}
	f.timer.Reset(f.every)
}

func (f *factsActor) sum(t *runtime.Turn, now AppendTotals) {
	key := replicaKey{now.ID, now.Partition}
	seen := f.seen[key]
	if seen == nil {
		seen = &seenTotals{}
		f.seen[key] = seen
	}
	before := seen.AppendTotals
	seen.AppendTotals, seen.round = now, f.round
	if now.Batches == before.Batches {
		return
	}
	f.host.Tell(t, &Appended{
		Topic: now.Topic, Partition: now.Partition, End: now.End,
		Batches: now.Batches - before.Batches, Records: now.Records - before.Records, AppendedBytes: now.AppendedBytes - before.AppendedBytes,
	})
}
