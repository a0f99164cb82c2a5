package broker

import (
	"strconv"

	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// coordinate asks a coordinator for a session. answer is called once, on the turn of the session.
type coordinate struct {
	shared  *shared
	session *runtime.Ref
	command coord.Command // nil when it has been stepped: whoever waits for others does not keep what it brought
	held    int           // bytes of it for which nobody else answers
	answer  func(coord.Answer)
}

// Bytes implements runtime.Message.
func (c *coordinate) Bytes() int { return c.held }

// Reject implements runtime.Rejecter.
func (c *coordinate) Reject(err error) { c.tell(&coord.ErrorReply{Code: coordinatorRefusal(err)}) }

// asks implements inquiry.
func (c *coordinate) asks() coord.Command { return c.command }

// stepped implements inquiry.
func (c *coordinate) stepped() { c.command = nil }

// answered implements inquiry.
func (c *coordinate) answered(_ *runtime.Turn, a coord.Answer) { c.tell(a) }

func (c *coordinate) tell(a coord.Answer) {
	resume(c.session, func() { c.answer(c.shared.leaving(a)) })
}

// leaving looks at the lease when an answer of a coordinator leaves: without one another broker may coordinate the group by now, and what this one knows of it
// may be stale. The client asks there again. Committed offsets have to be certain: where a group has none, its consumers begin elsewhere. While they are not, the
// client asks here again, until a heartbeat tells who coordinates: librdkafka (rdkafka_request.c of 2.16) looks for another coordinator when it is told
// NOT_COORDINATOR, and never asks that one for the offsets, so that its consumer stands still.
func (s *shared) leaving(a coord.Answer) coord.Answer {
	if !s.leasedNow() {
		return refusedNotCoordinator
	}
	if _, offsets := a.(*coord.FetchOffsetsReply); offsets && !s.certain() {
		return refusedLoading
	}
	return a
}

// coordinatorRefusal is the code for an inquiry that a coordinator did not take.
func coordinatorRefusal(err error) wire.ErrorCode {
	if refusalOf(err) == wire.RequestTimedOut {
		return wire.CoordinatorLoadInProgress // too much at once: try again, here
	}
	return wire.CoordinatorNotAvailable
}

// coordinator finds the coordinator of a group, or says why there is none here.
func (s *shared) coordinator(group string) (*runtime.Ref, wire.ErrorCode) {
	e := s.topics.Load().byName[cluster.OffsetsTopic]
	if e == nil {
		return nil, wire.CoordinatorNotAvailable
	}
	rep := e.replicas[records.PartitionOf(group, int32(len(e.replicas)))]
	if rep == nil || rep.coordinator == nil {
		return nil, wire.NotCoordinator
	}
	if !s.leasedNow() {
		return nil, wire.NotCoordinator
	}
	return rep.coordinator, wire.NoError
}

// Coordinator implements handler.Ports.
func (p *ports) Coordinator(group string, command coord.Command, answer func(coord.Answer)) {
	m := &coordinate{shared: p.session.shared, session: p.session.self, command: command, held: coord.HeldBytes(command), answer: answer}
	if ref, code := p.session.shared.coordinator(group); code == wire.NoError {
		_ = p.turn.Send(ref, m) // Reject answers
		return
	} else if code == wire.NotCoordinator {
		m.tell(refusedNotCoordinator)
		return
	}
	p.OffsetsTopic(func(_ *cluster.Image, code wire.ErrorCode) {
		ref, missing := p.session.shared.coordinator(group)
		if code == wire.NoError && missing == wire.NoError {
			_ = p.turn.Send(ref, m) // Reject answers
			return
		}
		m.answer(&coord.ErrorReply{Code: wire.CoordinatorNotAvailable})
	})
}

// Coordinators implements handler.Ports.
func (p *ports) Coordinators(command coord.Command, answer func([]coord.Answer)) {
	shared, self := p.session.shared, p.session.self
	refs := shared.topics.Load().coordinators()
	if len(refs) == 0 {
		resume(self, func() { answer(nil) })
		return
	}
	answers, missing := make([]coord.Answer, len(refs)), len(refs)
	for i, ref := range refs {
		_ = p.turn.Send(ref, &coordinate{shared: shared, session: self, command: command, answer: func(a coord.Answer) { // Reject answers
			answers[i] = a
			if missing--; missing == 0 {
				answer(answers)
			}
		}})
	}
}

// OffsetsTopic implements handler.Ports.
func (p *ports) OffsetsTopic(answer func(*cluster.Image, wire.ErrorCode)) {
	shared, self := p.session.shared, p.session.self
	image := shared.image.Load()
	if _, ok := image.Topic(cluster.OffsetsTopic); ok {
		resume(self, func() { answer(image, wire.NoError) })
		return
	}
	if !expectedLive(image) {
		resume(self, func() { answer(image, wire.CoordinatorNotAvailable) })
		return
	}
	mono, _ := p.turn.Now()
	c := shared.newOffsetsTopic()
	c.Deadline = mono + commandMs*millisecond
	p.Controller(c, &c.Ask, func(cluster.Reply) {
		// Whether this request made it or another one a moment ago: what counts is that it is there.
		image := shared.image.Load()
		if _, ok := image.Topic(cluster.OffsetsTopic); !ok {
			answer(image, wire.CoordinatorNotAvailable)
			return
		}
		answer(image, wire.NoError)
	})
}

// expectedLive tells whether as many brokers are live as have founded the cluster: the replicas of an internal topic that is made before are few.
func expectedLive(image *cluster.Image) bool {
	live := 0
	for b := range image.Brokers() {
		if !b.Fenced {
			live++
		}
	}
	return live >= len(image.Voters())
}

// segmentBytesMin is the least segment.bytes that a topic may have; offsets.topic.segment.bytes may be less.
const segmentBytesMin = 1 << 20

// newOffsetsTopic is the command that makes the topic of the coordinators.
func (s *shared) newOffsetsTopic() *cluster.CreateTopics {
	v := s.settings.Load().Groups
	var id ident.TopicID
	for id.IsZero() {
		s.random.fill(id[:])
	}
	return &cluster.CreateTopics{
		Entropy: uint64(s.random.uint32()),
		Topics: []cluster.NewTopic{{
			Name: cluster.OffsetsTopic, ID: id, Partitions: v.Partitions, ReplicationFactor: v.ReplicationFactor, Internal: true,
			Configs: []cluster.ConfigValue{
				{Name: "cleanup.policy", Value: new("compact")},
				{Name: "compression.type", Value: new("producer")},
				{Name: "segment.bytes", Value: new(strconv.Itoa(int(max(v.SegmentBytes, segmentBytesMin))))},
			},
		}},
	}
}

// HighWatermark implements handler.Ports.
func (p *ports) HighWatermark(place handler.Place) (start, high ident.Offset) {
	topic := p.session.shared.topics.Load().place(place.Topic, place.ID)
	if topic == nil {
		return ident.NoOffset, ident.NoOffset
	}
	rep, _ := topic.replica(place.Partition)
	if rep == nil || !rep.stats.leading.Load() {
		return ident.NoOffset, ident.NoOffset
	}
	return ident.Offset(rep.stats.start.Load()), ident.Offset(rep.stats.high.Load())
}
