package group_test

import (
	"fmt"
	"testing"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire/ident"
)

// TestASweepGoesInPortions lets many groups expire at once, some of them large: no tick does all of it, others have their turn between, and in the end
// nothing is left.
func TestASweepGoesInPortions(t *testing.T) {
	config := coord.DefaultConfig()
	w := newWorld(config)
	for i := range 1500 {
		w.simple(fmt.Sprintf("small-%d", i), 1, 1)
	}
	for i := range 3 {
		w.simple(fmt.Sprintf("large-%d", i), 45, 50)
	}
	w.now.Wall += ident.Millis(config.OffsetsRetention)
	w.now.Mono += 600_000 * millisecond
	ticks, began := 0, w.now.Mono
	for len(w.shard.Entries()) > 0 {
		due, ok := w.shard.Next()
		if !ok || ticks == 100 {
			t.Fatalf("%d entries are left after %d ticks", len(w.shard.Entries()), ticks)
		}
		w.set(max(due, w.now.Mono))
		w.out.Reset()
		w.shard.Tick(w.now, &w.out)
		w.log = append(w.log, w.out.Entries...)
		if n := len(w.out.Entries); n > 2050 {
			t.Fatalf("one tick wrote %d tombstones", n)
		}
		// A group that comes and goes does not disturb the sweep.
		w.simple("aaa", 1, 1)
		w.step(&coord.Delete{Group: "aaa"})
		w.step(&coord.Delete{Group: fmt.Sprintf("small-%d", 700+ticks)})
		ticks++
	}
	if ticks < 6 {
		t.Errorf("8250 commits went in %d ticks", ticks)
	}
	if took := w.now.Mono - began; took > 1000*millisecond {
		t.Errorf("one sweep did not do, it took %d ms", took/millisecond)
	}
	w.check(t, w.log)
	if due, _ := w.shard.Next(); due != w.now.Mono+600_000*millisecond {
		t.Errorf("the next sweep is due in %d ms", (due-w.now.Mono)/millisecond)
	}
}

// simple commits for a group without members.
func (w *world) simple(name string, topics, partitions int32) {
	c := &coord.Commit{Group: name, Generation: -1, Retention: -1}
	for i := range topics {
		t := coord.CommitTopic{Name: fmt.Sprintf("topic-%d", i)}
		for p := range partitions {
			t.Partitions = append(t.Partitions, coord.CommitPartition{Partition: p, Offset: 1})
		}
		c.Topics = append(c.Topics, t)
	}
	w.step(c)
}
