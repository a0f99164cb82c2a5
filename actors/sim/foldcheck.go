package sim

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/troupe-broker/troupe/actors/broker"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/group"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// checkGroups looks at the coordinators that had a turn: their machines are sound, and, after each load and at random moments, what they have is the fold of
// their log as it is on the disk, whatever the compactor has made of that.
func (h *host) checkGroups() error {
	for _, s := range h.inspection.Coordinated() {
		if !s.Serving {
			h.unserved, h.reloads[s.TopicPartition] = h.run.world.Now(), true
			continue
		}
		if chance(h.folds, 20) {
			if err := s.Check(); err != nil {
				return err
			}
		}
		if random := chance(h.folds, 4); !s.Settled || !h.reloads[s.TopicPartition] && !random {
			continue
		}
		delete(h.reloads, s.TopicPartition)
		if err := h.fold(&s); err != nil {
			return fmt.Errorf("the groups of %s: %w", s.TopicPartition, err)
		}
	}
	return nil
}

// fold loads the log of a coordinator into another shard, and compares.
func (h *host) fold(s *broker.CoordinatorState) error {
	high := ident.NoOffset
	for _, p := range h.inspection.Partitions() {
		if p.TopicPartition == s.TopicPartition && p.Serving {
			high = p.Offsets.HighWatermark
		}
	}
	if high == ident.NoOffset {
		return nil
	}
	h.run.counted("fold compared")
	shard := group.New(coord.DefaultConfig(), noTopics{})
	epochs := make(map[string]int32)
	err := h.eachRecord(path.Join(dataDir, s.String()), high, func(r *record.Record) error {
		e, err := records.Decode(r.Key, r.Value)
		if err != nil {
			return fmt.Errorf("offset %d: %w", r.Offset, err)
		}
		if err := rises(epochs, e); err != nil {
			return fmt.Errorf("offset %d: %w", r.Offset, err)
		}
		shard.Apply(e)
		return nil
	})
	if err != nil {
		return err
	}
	live, folded := s.Entries(), shard.Entries()
	for i := range max(len(live), len(folded)) {
		switch {
		case i >= len(live):
			return fmt.Errorf("live they have nothing of %T %+v, which the log has", folded[i], folded[i])
		case i >= len(folded):
			return fmt.Errorf("the log has nothing of %T %+v, which they have live", live[i], live[i])
		case !bytes.Equal(live[i].AppendKey(nil), folded[i].AppendKey(nil)) || !bytes.Equal(live[i].AppendValue(nil), folded[i].AppendValue(nil)):
			return fmt.Errorf("live they have %T %+v, the log has %+v", live[i], live[i], folded[i])
		}
	}
	return nil
}

// rises verifies that the epoch of a group, or its generation, does not fall, unless the group ended between.
func rises(epochs map[string]int32, e records.Entry) error {
	epoch := int32(-1)
	if g, ok := e.(*records.GroupMetadata); ok && g.Value != nil {
		epoch = g.Value.Generation
	}
	if g, ok := e.(*records.ConsumerGroup); ok && g.Value != nil {
		epoch = g.Value.Epoch
	}
	if e.Type() != records.TypeGroupMetadata && e.Type() != records.TypeConsumerGroup {
		return nil
	}
	key := string(e.AppendKey(nil))
	if before, known := epochs[key]; known && epoch >= 0 && epoch < before {
		return fmt.Errorf("group %s has epoch %d after %d", e.GroupID(), epoch, before)
	}
	if epochs[key] = epoch; epoch < 0 {
		delete(epochs, key)
	}
	return nil
}

// eachRecord reads the records of a log below its high watermark, from the files, without the broker.
func (h *host) eachRecord(dir string, high ident.Offset, visit func(*record.Record) error) error {
	c := &checker{disk: h.disk.Cache()}
	names, err := c.disk.List(dir)
	if err != nil {
		return err
	}
	var it record.Iterator
	defer it.Close()
	for _, n := range names {
		digits, ok := strings.CutSuffix(n.Name, ".log")
		if !ok {
			continue
		}
		if base, err := strconv.ParseInt(digits, 10, 64); err != nil || ident.Offset(base) >= high {
			continue
		}
		b, err := c.read(path.Join(dir, n.Name))
		if err != nil {
			return err
		}
		for len(b) > 0 {
			v, rest, err := record.Split(b)
			if err != nil || v.BaseOffset() >= high {
				break // what follows may be in the making
			}
			b = rest
			if err := errors.Join(v.VerifyCRC(), it.Reset(v, record.Bound{})); err != nil {
				return fmt.Errorf("%s at %d: %w", n.Name, v.BaseOffset(), err)
			}
			for it.Next() {
				if err := visit(it.Record()); err != nil {
					return err
				}
			}
			if err := it.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// noTopics are the topics of a shard that only loads.
type noTopics struct{}

// ByName implements coord.Topics.
func (noTopics) ByName(string) (coord.Topic, bool) { return coord.Topic{}, false }

// ByID implements coord.Topics.
func (noTopics) ByID(ident.TopicID) (coord.Topic, bool) { return coord.Topic{}, false }

// Each implements coord.Topics.
func (noTopics) Each(func(coord.Topic) bool) {}

// keyedTopic is the compacted topic of the clients that write keys.
const keyedTopic = "k0"

// apart tells that a topic is not one of those whose every batch the ghost knows: that of the offsets, which the broker writes, and the compacted one.
func apart(name string) bool { return name == cluster.OffsetsTopic || name == keyedTopic }
