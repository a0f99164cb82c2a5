package broker

import (
	"sync"
	"sync/atomic"

	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire/ident"
)

const (
	// jumpersMax bounds the clients that are remembered; the oldest makes room.
	jumpersMax = 1024
	// jumperAge is how long a client may take from hearing that it has no offset to asking where to go.
	jumperAge = 5 * 60 * 1000 * millisecond
)

// jumpers are clients that a coordinator told of no usable offset a moment ago. Their next ListOffsets says where they go from there (auto.offset.reset),
// and the coordinator is told. It is looked at with each ListOffsets: while it is empty that costs one load.
type jumpers struct {
	count atomic.Int32

	mu     sync.Mutex
	latest map[coord.Client]jumper
	order  []coord.Client // of latest, as they came first
}

// jumper is one client with the coordinators that wait for it.
type jumper struct {
	until        ident.Instant
	coordinators []*runtime.Ref
}

// told remembers a client.
func (j *jumpers) told(c coord.Client, coordinator *runtime.Ref, now ident.Instant) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.latest == nil {
		j.latest = make(map[coord.Client]jumper)
	}
	e, again := j.latest[c]
	e.until = now + jumperAge
	known := false
	for _, r := range e.coordinators {
		known = known || r == coordinator
	}
	if !known {
		e.coordinators = append(append([]*runtime.Ref(nil), e.coordinators...), coordinator)
	}
	j.latest[c] = e
	if !again {
		j.order = append(j.order, c)
	}
	j.forget(now)
	j.count.Store(int32(len(j.latest)))
}

// forget drops what is too old or too much. One that came again keeps its place; what is too old behind it stays a while, and nobody is told of it.
func (j *jumpers) forget(now ident.Instant) {
	n := 0
	for ; n < len(j.order); n++ {
		if j.latest[j.order[n]].until > now && len(j.order)-n <= jumpersMax {
			break
		}
		delete(j.latest, j.order[n])
	}
	if n > 0 {
		j.order = append(j.order[:0], j.order[n:]...)
	}
}

// waiting lists the coordinators that want to hear of a client.
func (j *jumpers) waiting(c coord.Client, now ident.Instant) []*runtime.Ref {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.forget(now)
	j.count.Store(int32(len(j.latest)))
	if e, ok := j.latest[c]; ok && e.until > now {
		return e.coordinators
	}
	return nil
}

// jumpedTo tells a coordinator where a client goes.
type jumpedTo struct{ fact coord.Jumped }

// Bytes implements runtime.Message.
func (*jumpedTo) Bytes() int { return 0 }

// FetchedOffsets implements handler.Ports.
func (p *ports) FetchedOffsets(asked *coord.FetchOffsets, told *coord.FetchOffsetsReply) {
	if asked.All || len(asked.Topics) != len(told.Topics) || !leftWithout(asked, told) {
		return
	}
	ref, _ := p.session.shared.coordinator(asked.Group)
	if ref == nil {
		return
	}
	mono, _ := p.turn.Now()
	p.session.shared.jumpers.told(asked.Client, ref, mono)
}

// leftWithout tells whether some partition that this broker leads has no offset that can be read from.
func leftWithout(asked *coord.FetchOffsets, told *coord.FetchOffsetsReply) bool {
	for i := range asked.Topics {
		if len(asked.Topics[i].Partitions) != len(told.Topics[i].Partitions) {
			return false
		}
		for j := range asked.Topics[i].Partitions {
			if start := asked.Topics[i].Partitions[j].LogStart; start >= 0 && told.Topics[i].Partitions[j].Offset < start {
				return true
			}
		}
	}
	return false
}

// listed passes on where a client goes that some coordinator waits for.
func (p *ports) listed(place handler.Place, timestamp int64, at ident.Offset) {
	j := &p.session.shared.jumpers
	if j.count.Load() == 0 {
		return
	}
	mono, wall := p.turn.Now()
	client := coord.Client{ID: p.session.client.ID, Host: p.session.client.Host()}
	for _, ref := range j.waiting(client, mono) {
		_ = p.turn.Send(ref, &jumpedTo{coord.Jumped{ // a coordinator that has stopped wants to know nothing
			Client: client, Topic: place.Topic, Partition: place.Partition, Timestamp: timestamp, Target: at, At: wall,
		}})
	}
}
