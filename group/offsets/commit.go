package offsets

import (
	"math"
	"unicode/utf16"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Commit stores offsets, and answers for each partition. The caller has decided that the member may commit. A jump that the commit proves is stored with
// it, and carried on by later ones for cfg.JumpsRememberedMillis.
func (g *Group) Commit(now coord.Now, cfg *coord.Config, c *coord.Commit, jumps *Jumps, out *coord.Out) *coord.CommitReply {
	reply := &coord.CommitReply{Topics: make([]coord.CommitTopicReply, len(c.Topics))}
	expire := expiry(now.Wall, c.Retention)
	stored := int64(0)
	for i := range c.Topics {
		t := &c.Topics[i]
		codes := make([]coord.PartitionCode, len(t.Partitions))
		for j := range t.Partitions {
			p := &t.Partitions[j]
			code := wire.ErrorCode(p.Code)
			if code == wire.NoError && tooLong(p.Metadata, cfg.OffsetMetadataMax) {
				code = wire.OffsetMetadataTooLarge
			}
			codes[j] = coord.PartitionCode{Partition: p.Partition, Code: code}
			if code != wire.NoError {
				continue
			}
			known := g.topic(t.Name)
			e := newEntry(g.name, known.name, p.Partition)
			*e.Value = records.Offset{
				Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: p.Metadata, CommitTime: now.Wall, ExpireTime: expire, TopicID: t.ID,
			}
			jump := g.jump(now, cfg, c, known.commits[p.Partition], e, jumps, out)
			if expire == ident.NoTimestamp {
				e.Value.Jump = jump
			} else { // there is no room for these in the version of the record that has an end: a shard that loads it must not know less than this one
				e.Value.LeaderEpoch, e.Value.TopicID = ident.NoLeaderEpoch, ident.TopicID{}
			}
			g.put(known, e)
			out.Propose(e)
			stored++
		}
		reply.Topics[i] = coord.CommitTopicReply{Name: t.Name, ID: t.ID, Partitions: codes}
	}
	if stored > 0 {
		out.Note(coord.Note{Kind: coord.NoteCommitted, Group: g.name, Member: c.Member, Count: stored})
	}
	return reply
}

// expiry is the end that a commit has of its own; -1: none. One beyond the end of time is at it.
func expiry(now ident.Millis, retention int64) ident.Millis {
	if retention < 0 {
		return ident.NoTimestamp
	}
	return now + ident.Millis(min(retention, math.MaxInt64-int64(now)))
}

// jump is what the commit e tells of a jump: one that it proves, or the last one before it, while that is remembered.
func (g *Group) jump(now coord.Now, cfg *coord.Config, c *coord.Commit, before, e *records.OffsetCommit, jumps *Jumps, out *coord.Out) *records.Jump {
	if proven := jumps.committed(c.Client, e); proven != nil {
		note(c.Member, e, proven, out)
		return proven
	}
	if before != nil && usable(before.Value, e.Value.TopicID) {
		return Remembered(now, cfg, before.Value.Jump)
	}
	return nil
}

// newEntry makes an entry and its value in one piece of memory.
func newEntry(group, topic string, partition int32) *records.OffsetCommit {
	both := new(struct {
		entry records.OffsetCommit
		value records.Offset
	})
	both.entry = records.OffsetCommit{Group: group, Topic: topic, Partition: partition, Value: &both.value}
	return &both.entry
}

// tooLong compares as Kafka does, which counts a text in units of UTF-16.
func tooLong(metadata string, limit int32) bool {
	if len(metadata) <= int(limit) { // a unit takes at least one byte
		return false
	}
	units := 0
	for _, r := range metadata {
		units += max(1, utf16.RuneLen(r))
	}
	return units > int(limit)
}

// remove proposes the tombstone of a commit.
func (g *Group) remove(topic string, partition int32, out *coord.Out) {
	e := &records.OffsetCommit{Group: g.name, Topic: topic, Partition: partition}
	g.Apply(e)
	out.Propose(e)
}
