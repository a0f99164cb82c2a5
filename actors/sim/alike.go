package sim

import (
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// newest is the last record of a key in a log; a tombstone is as good as nothing.
type newest struct {
	offset ident.Offset
	value  string
	gone   bool
}

// alike holds the replicas of compacted partitions against each other, when all of them have all of it: whatever the compactor of each has made of the log, of
// each key the same record is the newest in all of them, or it is deleted in all of them.
func (r *run) alike() {
	if r.violation != nil {
		return
	}
	for _, g := range r.ensemble.all() {
		t, known := r.ensemble.image.TopicByID(g.id)
		if !apart(g.topic) || !known || int(g.partition) >= len(t.Partitions) || !r.tombstonesLast(g.topic) {
			continue
		}
		replicas := t.Partitions[g.partition].Replicas
		first, ok := r.newestOf(g, replicas[0])
		for _, b := range replicas[1:] {
			other, read := r.newestOf(g, b)
			if !ok || !read {
				return
			}
			r.counted("compacted replicas compared")
			if key, ok := differ(first, other); !ok {
				r.fail("compacted replicas have the same newest record of each key", "%s, key %q: broker %d has %+v, broker %d %+v", g, key, replicas[0], first[key], b, other[key])
				return
			}
		}
	}
}

// newestOf reads what a replica has on its disk.
func (r *run) newestOf(g *ghostLog, b ident.BrokerID) (map[string]newest, bool) {
	h := r.called(b)
	all := make(map[string]newest)
	err := h.eachRecord(path.Join(dataDir, g.String()), g.mirrors[h].high, func(rec *record.Record) error {
		all[string(rec.Key)] = newest{rec.Offset, string(rec.Value), rec.Value == nil}
		return nil
	})
	if err != nil {
		r.fail("the machines are sound", "%s: the log of %s: %v", h, g, err)
	}
	return all, err == nil
}

// differ finds a key of which two logs do not have the same; of several the one that comes first, so that a seed says the same each time.
func differ(one, other map[string]newest) (key string, ok bool) {
	ok = true
	look := func(a, b map[string]newest) {
		for k, x := range a {
			if y, has := b[k]; (x.gone && has && !y.gone || !x.gone && x != y) && (ok || k < key) {
				key, ok = k, false
			}
		}
	}
	look(one, other)
	look(other, one)
	return key, ok
}

// tombstonesLast tells that a tombstone outlasts whatever keeps a replica from hearing of it: after that, each may keep what others have deleted
// (docs/bare-metal.md).
func (r *run) tombstonesLast(topic string) bool {
	stay := 24 * time.Hour
	read := func(text string, set bool) {
		if ms, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); set && err == nil {
			stay = time.Duration(ms) * time.Millisecond
		}
	}
	read(r.plan.Settings.Get(tombstonesStay))
	for _, t := range r.plan.Topics {
		if t.Name == topic && topic != cluster.OffsetsTopic {
			read(t.Configs.Get("delete.retention.ms"))
		}
	}
	passed := time.Duration(r.world.Now())
	for _, f := range r.plan.Faults {
		if f.Kind == WallJump {
			passed += f.Jump.Abs()
		}
	}
	return passed < stay
}
