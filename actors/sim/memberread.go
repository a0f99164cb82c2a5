package sim

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// What members do with their partitions: commit where they are, ask where the group is, find the beginning, read.

// commit commits where the member is, of the partitions in which that has changed, or of all that it reads. It does not wait for the answer. Each commit has a
// mark of its own, by which it is known again.
func (m *member) commit(all bool) {
	if m.end == nil || m.epoch < 1 {
		return
	}
	req := kmsg.NewPtrOffsetCommitRequest()
	line := m.line(req)
	if line == nil {
		return
	}
	req.Group, req.Generation, req.MemberID, req.InstanceID = m.ghost.name, m.epoch, m.id, m.instance()
	var asked []*committing
	for _, p := range m.parts {
		if !p.reader.begun || !all && p.sure == p.reader.next {
			continue
		}
		m.marks++
		l := m.ghost.place(p.topic.partition(p.number))
		k := &committing{part: p, place: l, offset: p.reader.next, fenced: l.fenced(p.hold)}
		k.write = l.begin(fmt.Sprintf("%s/%d", m.name, m.marks), int64(p.reader.next), int32(m.marks%5)-1)
		asked = append(asked, k)
		t := kmsg.NewOffsetCommitRequestTopic()
		t.Topic, t.TopicID = p.topic.name, p.topic.id
		rp := kmsg.NewOffsetCommitRequestTopicPartition()
		rp.Partition, rp.Offset, rp.LeaderEpoch, rp.Metadata = p.number, int64(p.reader.next), k.write.epoch, new(k.write.mark)
		t.Partitions = append(t.Partitions, rp)
		req.Topics = append(req.Topics, t)
	}
	if len(asked) == 0 {
		return
	}
	lives, epoch := m.lives, m.epoch
	line.ask(req, func(resp kmsg.Response, err error) {
		if err == nil {
			m.committed(resp.(*kmsg.OffsetCommitResponse), asked, lives == m.lives && epoch == m.epoch)
		}
	})
}

// committing is a commit of one partition that is under way.
type committing struct {
	part   *part
	place  *place
	write  *write
	offset ident.Offset
	fenced bool // it must be refused
}

// Codes that refuse a commit for good: nothing of it is stored, not even later.
var refusals = []wire.ErrorCode{
	wire.UnknownMemberID, wire.IllegalGeneration, wire.FencedInstanceID, wire.RebalanceInProgress, wire.StaleMemberEpoch, wire.GroupIDNotFound,
	wire.UnknownTopicOrPartition, wire.UnknownTopicID,
}

// committed takes in the answer, which has the order of the request. present tells that the member is in the same epoch as then.
func (m *member) committed(resp *kmsg.OffsetCommitResponse, asked []*committing, present bool) {
	if len(resp.Topics) != len(asked) {
		m.run.fail("answers are to what was asked", "%s committed %d partitions and got %d results", m.name, len(asked), len(resp.Topics))
		return
	}
	for i, k := range asked {
		code := resp.Topics[i].Partitions[0].ErrorCode
		c := wire.ErrorCode(code)
		if c == wire.NoError {
			m.run.counted("group offset committed")
			if k.fenced && k.place.judged() {
				m.run.fail("stale commits are refused", "%s of group %s committed %d for %s-%d, which another member was told to read before", m.name, m.ghost.name, k.offset, k.part.topic.name, k.part.number)
				return
			}
			k.write.done, k.part.sure = m.now(), k.offset
			continue
		}
		m.run.allow(m.name, "OffsetCommit", code, slices.Concat(elsewhere, refusals)...)
		k.write.never = slices.Contains(refusals, c)
		if k.fenced {
			m.run.counted("stale commit refused")
		}
		m.run.tell("%s: its commit %s of %s-%d is answered %v", m.name, k.write.mark, k.part.topic.name, k.part.number, c)
	}
	if code := resp.Topics[0].Partitions[0].ErrorCode; present && code != 0 {
		switch wire.ErrorCode(code) {
		case wire.UnknownTopicOrPartition, wire.UnknownTopicID:
			m.looked = false
		case wire.RebalanceInProgress: // the next heartbeat says so, too
		default:
			m.heard("OffsetCommit", code, refusals...)
		}
	}
}

// fetchOffsets asks where the group is in the partitions that the member does not know it of.
func (m *member) fetchOffsets() {
	req := kmsg.NewPtrOffsetFetchRequest()
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group, g.MemberEpoch, req.RequireStable = m.ghost.name, -1, chance(m.rand, 50)
	if m.modern && chance(m.rand, 70) {
		g.MemberID, g.MemberEpoch = new(m.id), m.epoch
	}
	var asked []*part
	for _, p := range m.parts {
		if p.reader.stale() {
			p.reader, p.asked = newReader(m.run, p.topic, p.number), false
		}
		if p.asked {
			continue
		}
		asked = append(asked, p)
		t := kmsg.NewOffsetFetchRequestGroupTopic()
		t.Topic, t.TopicID, t.Partitions = p.topic.name, p.topic.id, []int32{p.number}
		g.Topics = append(g.Topics, t)
	}
	req.Groups = append(req.Groups, g)
	sent, epoch := m.now(), m.epoch
	m.request(req, func(resp kmsg.Response) {
		r := resp.(*kmsg.OffsetFetchResponse).Groups[0]
		if r.ErrorCode != 0 {
			if m.epoch == epoch {
				m.heard("OffsetFetch", r.ErrorCode, wire.UnknownMemberID, wire.StaleMemberEpoch, wire.IllegalGeneration, wire.GroupIDNotFound)
			}
			return
		}
		if len(r.Topics) != len(asked) {
			m.run.fail("answers are to what was asked", "%s asked for %d offsets and got %d", m.name, len(asked), len(r.Topics))
			return
		}
		for i, p := range asked {
			o := &r.Topics[i].Partitions[0]
			if o.ErrorCode != 0 {
				m.run.allow(m.name, "OffsetFetch", o.ErrorCode, append(elsewhere, wire.UnknownTopicID, wire.UnknownTopicOrPartition)...)
				m.looked = false
				continue
			}
			m.ghost.place(p.topic.partition(p.number)).fetched(m.name, sent, o.Offset, o.LeaderEpoch, textOf(o.Metadata))
			p.asked = true
			if o.Offset >= 0 {
				p.sure = ident.Offset(o.Offset)
				p.reader.begin(p.sure)
			}
		}
	})
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// locate asks where the logs begin: the group has committed nothing there, or what is not there any more.
func (m *member) locate() {
	req := kmsg.NewPtrListOffsetsRequest()
	var asked []*part
	wanted := m.from(func(p *part) bool { return !p.reader.begun })
	for _, p := range m.parts {
		if !wanted(p) {
			continue
		}
		asked = append(asked, p)
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic = p.topic.name
		rp := kmsg.NewListOffsetsRequestTopicPartition()
		rp.Partition, rp.Timestamp, rp.CurrentLeaderEpoch = p.number, -2, -1
		t.Partitions = append(t.Partitions, rp)
		req.Topics = append(req.Topics, t)
	}
	m.request(req, func(resp kmsg.Response) {
		topics := resp.(*kmsg.ListOffsetsResponse).Topics
		if len(topics) != len(asked) {
			m.run.fail("answers are to what was asked", "%s asked for %d log starts and got %d", m.name, len(asked), len(topics))
			return
		}
		for i, p := range asked {
			o := &topics[i].Partitions[0]
			if o.ErrorCode != 0 {
				m.run.allow(m.name, "ListOffsets", o.ErrorCode, unread...)
				m.looked = false
				continue
			}
			p.reader.begin(ident.Offset(o.Offset))
		}
	})
}

// Codes of partitions that cannot be read now.
var unread = []wire.ErrorCode{
	wire.UnknownTopicOrPartition, wire.UnknownTopicID, wire.NotLeaderOrFollower, wire.KafkaStorageError, wire.LeaderNotAvailable, wire.RequestTimedOut,
	wire.InconsistentTopicID, wire.OffsetNotAvailable,
}

func (m *member) fetch() {
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = 20, 1, 1<<20, -1
	var readers []*reader
	wanted := m.from(func(p *part) bool { return p.reader.begun })
	for _, p := range m.parts {
		d := p.reader
		if !wanted(p) {
			continue
		}
		readers = append(readers, d)
		t := kmsg.NewFetchRequestTopic()
		t.Topic, t.TopicID = p.topic.name, p.topic.id
		rp := kmsg.NewFetchRequestTopicPartition()
		rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes, rp.CurrentLeaderEpoch = p.number, int64(d.next), one(m.rand, int32(300), 1<<20), -1
		t.Partitions = append(t.Partitions, rp)
		req.Topics = append(req.Topics, t)
	}
	if len(readers) == 0 {
		return
	}
	sent := m.now()
	m.request(req, func(resp kmsg.Response) {
		r := resp.(*kmsg.FetchResponse)
		if r.ErrorCode != 0 {
			m.run.allow(m.name, "Fetch", r.ErrorCode, wire.UnknownTopicID, wire.InconsistentTopicID)
			m.looked = false
			return
		}
		for i := range r.Topics {
			for j := range r.Topics[i].Partitions {
				p := &r.Topics[i].Partitions[j]
				d := find(readers, r.Topics[i].Topic, ident.TopicID(r.Topics[i].TopicID), p.Partition)
				if d == nil {
					m.run.fail("answers are to what was asked", "%s got records of %s-%d, which it does not read", m.name, r.Topics[i].Topic, p.Partition)
					return
				}
				m.got(d, p, sent)
			}
		}
	})
}

// got takes in what an answer says of one partition.
func (m *member) got(d *reader, p *kmsg.FetchResponseTopicPartition, sent ident.Instant) {
	switch code := wire.ErrorCode(p.ErrorCode); {
	case m.run.violation != nil || d.stale():
	case code == wire.OffsetOutOfRange:
		if i := slices.IndexFunc(m.parts, func(p *part) bool { return p.reader == d }); d.mayBeOutOfRange(m.name) && i >= 0 {
			m.parts[i].reader = newReader(m.run, d.topic, d.partition)
		}
	case code != wire.NoError:
		m.run.allow(m.name, "Fetch", p.ErrorCode, unread...)
		m.looked = false
	default:
		// Else it may be the answer of a broker that has not heard of the new topic of a name.
		if !m.run.ghost.reborn(d.topic.name) || m.run.ensemble.committed(d, ident.Offset(p.HighWatermark)) {
			m.run.ghost.watermarks(d.topic, d.partition, sent, ident.Offset(p.HighWatermark), ident.Offset(p.LogStartOffset))
		}
		before := d.next
		d.take(p.RecordBatches, ident.Offset(p.HighWatermark))
		if d.next > before {
			m.run.counted("member reads")
		}
	}
}
