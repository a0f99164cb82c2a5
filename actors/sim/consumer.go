package sim

import (
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// consumer reads every partition from its start, and begins anew with each connection: what was read once has to be
// there again. It waits for records with long polls, with a fetch session or without.
type consumer struct {
	*client
	topics    []*ghostTopic
	readers   []*reader
	looking   bool // for metadata
	looked    bool // topics is what there is
	fetching  bool
	session   int32
	epoch     int32
	asked     map[*reader]ident.Offset // what the session believes
	finishing bool
	behind    map[*ghostPartition]ident.Offset // what is to be reached before the end; nil: not known yet
	patient   bool                             // reads everything, one poll after the other: the last reader of a run
	ends      *rand.Rand                       // of moments to ask where partitions end; nil: there is one broker, of which nothing could be new
}

func newConsumer(c *client) *consumer {
	s := &consumer{client: c}
	if c.run.ensemble != nil {
		s.ends = c.run.world.Rand("client/" + c.name + "/ends")
	}
	return s
}

func (s *consumer) begin() {}

func (s *consumer) connected() {
	s.fetching, s.looking = false, false
	s.readers, s.behind = nil, nil
	s.forget()
	s.look()
	connection := s.connection
	var again func()
	again = func() {
		if s.end == nil || s.connection != connection {
			return
		}
		s.act()
		s.after(s.pause(), again)
	}
	s.after(s.pause(), again)
}

func (s *consumer) lost() {}

func (s *consumer) finish() {
	s.finishing, s.behind = true, nil
	s.plan.Pause = min(s.plan.Pause, 20*time.Millisecond) // it has to come to an end, a record at a time if need be
}

func (s *consumer) done() bool {
	if s.plan.Near {
		return true // what it reads comes when it comes; others see whether all of it is there
	}
	if s.behind == nil {
		return false
	}
	for g, end := range s.behind {
		if d := find(s.readers, g.topic.name, g.topic.id, g.number); g.topic.stable() && (d == nil && s.to.id == 0 || d != nil && (!d.begun || d.next < end)) {
			return false
		}
	}
	return true
}

// forget ends the fetch session, on this side.
func (s *consumer) forget() { s.session, s.epoch, s.asked = 0, 0, make(map[*reader]ident.Offset) }

func (s *consumer) act() {
	switch {
	case s.looking || s.fetching:
	case !s.looked || chance(s.rand, 2), s.to.id > 0 && s.finishing && s.behind != nil && s.done() && chance(s.rand, 20):
		s.look()
	case s.plan.Near:
		s.near()
	case s.unbegun():
		s.locate(-2)
	case s.finishing && s.behind == nil && len(s.readers) == 0:
		s.behind = make(map[*ghostPartition]ident.Offset) // there is nothing to read
	case s.finishing && s.behind == nil:
		s.locate(-1)
	case !s.patient && !s.finishing && chance(s.rand, 1):
		s.readers = nil // read everything again
		s.forget()
		s.look()
	case s.ends != nil && !s.finishing && len(s.readers) > 0 && chance(s.ends, 10):
		s.locate(-1)
	case len(s.readers) > 0:
		s.fetch()
	}
}

// look asks for metadata.
func (s *consumer) look() {
	s.looking = true
	sent := s.now()
	s.ask(kmsg.NewPtrMetadataRequest(), func(resp kmsg.Response, err error) {
		s.looking = false
		if err != nil {
			return
		}
		s.looked = true
		s.topics = s.run.topicsOf(resp.(*kmsg.MetadataResponse), sent)
		leaders := leadersOf(resp.(*kmsg.MetadataResponse))
		var readers []*reader
		for _, t := range s.topics {
			for n := range t.partitions {
				if s.to.id == 0 || s.plan.Near || leaders.of(t, int32(n)) == s.to.id { // one of several brokers has a reader of its own
					readers = append(readers, s.readerOf(t, int32(n)))
				}
			}
		}
		for _, d := range readers {
			if _, known := s.behind[d.topic.partition(d.partition)]; s.to.id > 0 && !known {
				s.behind = nil // it has come to this leader since
			}
		}
		s.readers = readers
	})
}

func (s *consumer) readerOf(t *ghostTopic, n int32) *reader {
	for _, d := range s.readers {
		if d.topic == t && d.partition == n && !d.stale() {
			return d
		}
	}
	return newReader(s.run, t, n)
}

func (s *consumer) unbegun() bool {
	for _, d := range s.readers {
		if !d.begun {
			return true
		}
	}
	return false
}

// locate asks where partitions begin (-2), or end (-1).
func (s *consumer) locate(timestamp int64) {
	req := kmsg.NewPtrListOffsetsRequest()
	var asked []*reader
	for _, d := range s.readers {
		if timestamp == -2 && d.begun {
			continue
		}
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic = d.topic.name
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp, p.CurrentLeaderEpoch = d.partition, timestamp, -1
		t.Partitions = append(t.Partitions, p)
		req.Topics = append(req.Topics, t)
		asked = append(asked, d)
	}
	s.looking = true
	sent := s.now()
	s.ask(req, func(resp kmsg.Response, err error) {
		s.looking = false
		if err != nil {
			return
		}
		s.located(resp.(*kmsg.ListOffsetsResponse), asked, timestamp, sent)
	})
}

func (s *consumer) located(resp *kmsg.ListOffsetsResponse, asked []*reader, timestamp int64, sent ident.Instant) {
	found := make(map[*reader]ident.Offset)
	for i := range resp.Topics {
		for _, p := range resp.Topics[i].Partitions {
			d := find(asked, resp.Topics[i].Topic, ident.TopicID{}, p.Partition)
			if d == nil {
				s.run.fail("answers are to what was asked", "%s asked for offsets, and not of %s-%d", s.name, resp.Topics[i].Topic, p.Partition)
				return
			}
			if code := wire.ErrorCode(p.ErrorCode); code != wire.NoError {
				s.run.allow(s.name, "ListOffsets", p.ErrorCode, wire.UnknownTopicOrPartition, wire.NotLeaderOrFollower, wire.KafkaStorageError, wire.LeaderNotAvailable, wire.RequestTimedOut, wire.OffsetNotAvailable)
				s.looked = false
				continue
			}
			found[d] = ident.Offset(p.Offset)
			if d.topic.stable() && timestamp == -1 {
				s.run.ensemble.told(s.to, d, sent, ident.Offset(p.Offset), true)
				s.run.ghost.watermarks(d.topic, d.partition, sent, ident.Offset(p.Offset), -1)
			}
		}
	}
	if s.run.violation != nil {
		return
	}
	if timestamp == -2 {
		for d, o := range found {
			d.begin(o)
		}
		return
	}
	if len(found) != len(s.readers) || !s.finishing {
		return
	}
	s.behind = make(map[*ghostPartition]ident.Offset)
	for d, o := range found {
		s.behind[d.topic.partition(d.partition)] = o
	}
}

// find picks a reader by the name or the id of its topic.
func find(readers []*reader, name string, id ident.TopicID, partition int32) *reader {
	for _, d := range readers {
		if d.partition == partition && (name != "" && d.topic.name == name && (id == ident.TopicID{} || d.topic.id == id) || name == "" && d.topic.id == id) {
			return d
		}
	}
	return nil
}

// fetch asks for records of all partitions.
func (s *consumer) fetch() {
	req := kmsg.NewPtrFetchRequest()
	version := s.versions[req.Key()]
	req.MaxWaitMillis = int32(s.rand.IntN(400))
	req.MinBytes = one(s.rand, int32(0), 1, 1, 500, 20_000)
	req.MaxBytes = one(s.rand, int32(1), 2000, 1<<20)
	req.Rack = s.rack()
	req.IsolationLevel = int8(s.rand.IntN(2))
	most := one(s.rand, int32(1), 300, 1<<20)
	if s.patient {
		req.MaxWaitMillis, req.MinBytes, req.MaxBytes, most = 0, 0, 8<<20, 8<<20
	}
	sessions := s.plan.Sessions && version >= 7
	req.SessionID, req.SessionEpoch = 0, -1
	if sessions {
		req.SessionID, req.SessionEpoch = s.session, s.epoch
	}
	for _, d := range s.readers {
		if before, known := s.asked[d]; sessions && s.epoch > 0 && known && before == d.next {
			continue
		}
		t := kmsg.NewFetchRequestTopic()
		t.Topic, t.TopicID = d.topic.name, d.topic.id
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch = d.partition, int64(d.next), most, -1
		t.Partitions = append(t.Partitions, p)
		req.Topics = append(req.Topics, t)
		s.asked[d] = d.next
	}
	if sessions && s.epoch > 0 {
		s.forgetGone(req, version)
	}
	readers := s.readers
	s.fetching = true
	sent := s.now()
	s.ask(req, func(resp kmsg.Response, err error) {
		s.fetching = false
		if err != nil {
			s.forget()
			return
		}
		s.fetched(resp.(*kmsg.FetchResponse), readers, sessions, sent)
	})
}

// topicIDsFrom is the first version of Fetch that names topics by their ids.
const topicIDsFrom = 13

// forgetGone takes partitions out of the session that are read no more.
func (s *consumer) forgetGone(req *kmsg.FetchRequest, version int16) {
	for _, d := range s.run.readersInOrder(s.asked) {
		if find(s.readers, "", d.topic.id, d.partition) != nil {
			continue
		}
		if version < topicIDsFrom && find(s.readers, d.topic.name, ident.TopicID{}, d.partition) != nil {
			delete(s.asked, d) // a new topic of that name has taken its place, and would be forgotten
			continue
		}
		t := kmsg.NewFetchRequestForgottenTopic()
		t.Topic, t.TopicID, t.Partitions = d.topic.name, d.topic.id, []int32{d.partition}
		req.ForgottenTopics = append(req.ForgottenTopics, t)
		delete(s.asked, d)
	}
}

func (s *consumer) fetched(resp *kmsg.FetchResponse, readers []*reader, sessions bool, sent ident.Instant) {
	code := wire.ErrorCode(resp.ErrorCode)
	s.run.counted("fetch " + code.String())
	if code != wire.NoError {
		s.run.allow(s.name, "Fetch", resp.ErrorCode, wire.FetchSessionIDNotFound, wire.InvalidFetchSessionEpoch, wire.FetchSessionTopicIDError, wire.UnknownTopicID, wire.InconsistentTopicID)
		s.forget()
		s.looked = false
		return
	}
	if sessions {
		s.session = resp.SessionID
		if s.epoch++; s.session == 0 {
			s.forget() // the broker has no room for a session
		}
	}
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			p := &resp.Topics[i].Partitions[j]
			d := find(readers, resp.Topics[i].Topic, ident.TopicID(resp.Topics[i].TopicID), p.Partition)
			if d == nil {
				s.run.fail("answers are to what was asked", "%s got records of %s %s-%d, which it does not read", s.name, resp.Topics[i].Topic, ident.TopicID(resp.Topics[i].TopicID), p.Partition)
				return
			}
			s.part(d, p, sent)
			if s.run.violation != nil {
				return
			}
		}
	}
}

// part takes in what an answer says of one partition.
func (s *consumer) part(d *reader, p *kmsg.FetchResponseTopicPartition, sent ident.Instant) {
	code := wire.ErrorCode(p.ErrorCode)
	if code != wire.NoError {
		s.run.counted("fetch partition " + code.String())
	}
	switch {
	case d.stale():
		// What was read may be gone.
		s.readers, s.looked = nil, false
		s.forget()
	case code == wire.OffsetOutOfRange && s.plan.Near:
		s.nearer(d)
	case code == wire.OffsetOutOfRange:
		s.outOfRange(d)
	case code != wire.NoError:
		s.run.allow(s.name, "Fetch", p.ErrorCode, wire.UnknownTopicOrPartition, wire.UnknownTopicID, wire.NotLeaderOrFollower, wire.KafkaStorageError, wire.LeaderNotAvailable, wire.RequestTimedOut, wire.InconsistentTopicID, wire.OffsetNotAvailable)
		s.looked = false
		s.forget() // whatever the session believes
	default:
		s.run.ensemble.told(s.to, d, sent, ident.Offset(p.HighWatermark), false)
		s.run.ghost.watermarks(d.topic, d.partition, sent, ident.Offset(p.HighWatermark), ident.Offset(p.LogStartOffset))
		if p.LastStableOffset > p.HighWatermark {
			s.run.fail("offsets in order", "%s-%d: last stable offset %d, high watermark %d", d.topic.name, d.partition, p.LastStableOffset, p.HighWatermark)
			return
		}
		d.take(p.RecordBatches, ident.Offset(p.HighWatermark))
	}
}

// outOfRange is right only when what is to be read next was deleted.
func (s *consumer) outOfRange(d *reader) {
	if !d.mayBeOutOfRange(s.name) {
		return
	}
	s.readers = nil
	s.looked = false
	s.forget()
}

// catchUp is how long the last reader of a run may take.
const catchUp = 5 * time.Minute
