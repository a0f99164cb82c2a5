package peer

import "github.com/troupe-broker/troupe/wire/ident"

// elementMin is the least an element of a list takes: its array, and its topic id.
const elementMin = 1 + 2 + 16

// beginList appends what stands before the n elements of a list that a broker of this
// epoch sends.
func beginList(dst []byte, c Code, epoch ident.BrokerEpoch, n int) []byte {
	return appendArray(appendInt(begin(dst, c, 2), int64(epoch)), n)
}

// beginElements reads the same. The list gets its length, in the memory that it has if
// that is enough; its elements are to be read, and then left with outer.
func beginElements[T any](r *reader, epoch *ident.BrokerEpoch, list *[]T) (outer int) {
	*epoch = ident.BrokerEpoch(r.int64())
	n, outer := r.list()
	if cap(*list) < n {
		*list = make([]T, n)
	}
	*list = (*list)[:n]
	return outer
}

// Progress says how far a follower is in partitions whose asks are unanswered.
type Progress struct {
	Epoch ident.BrokerEpoch // of who sends it
	List  []Position
}

// Position is how far a follower is in one partition.
type Position struct {
	Topic       ident.TopicID
	Partition   int32
	LeaderEpoch ident.LeaderEpoch
	Generation  ident.Generation
	End         ident.Offset // behind what is appended
	Flushed     ident.Offset // behind what is synced
	Start       ident.Offset // of the log
}

// Code implements Message.
func (*Progress) Code() Code { return CodeProgress }

// AppendTo implements Message.
func (m *Progress) AppendTo(dst []byte) []byte {
	at := len(dst)
	dst = beginList(dst, CodeProgress, m.Epoch, len(m.List))
	for i := range m.List {
		p := &m.List[i]
		dst = appendPlace(appendArray(dst, 7), p.Topic, p.Partition, p.LeaderEpoch, p.Generation)
		dst = appendInt(dst, int64(p.End))
		dst = appendInt(dst, int64(p.Flushed))
		dst = appendInt(dst, int64(p.Start))
	}
	return end(dst, at, 0)
}

// appendPlace appends what every element begins with.
func appendPlace(dst []byte, topic ident.TopicID, partition int32, epoch ident.LeaderEpoch, generation ident.Generation) []byte {
	dst = appendID(dst, topic)
	dst = appendInt(dst, int64(partition))
	dst = appendInt(dst, int64(epoch))
	return appendUint(dst, uint64(generation))
}

// Decode implements Message.
func (m *Progress) Decode(b Body) error {
	r := b.r
	outer := beginElements(&r, &m.Epoch, &m.List)
	for i := range m.List {
		inner := r.enter()
		m.List[i] = Position{
			Topic: r.mustID(), Partition: r.int32(), LeaderEpoch: ident.LeaderEpoch(r.int32()), Generation: ident.Generation(r.uint64()),
			End: ident.Offset(r.int64()), Flushed: ident.Offset(r.int64()), Start: ident.Offset(r.int64()),
		}
		r.leave(inner)
	}
	r.leave(outer)
	return b.done(&r)
}

// Watermarks says how far records are committed in partitions whose asks the leader
// has not answered.
type Watermarks struct {
	Epoch ident.BrokerEpoch // of who sends it
	List  []Watermark
}

// Watermark is how far one partition is committed.
type Watermark struct {
	Topic       ident.TopicID
	Partition   int32
	LeaderEpoch ident.LeaderEpoch
	Generation  ident.Generation // of the follower's log, from its ask
	High        ident.Offset     // watermark
	Start       ident.Offset     // of the leader's log
}

// Code implements Message.
func (*Watermarks) Code() Code { return CodeWatermarks }

// AppendTo implements Message.
func (m *Watermarks) AppendTo(dst []byte) []byte {
	at := len(dst)
	dst = beginList(dst, CodeWatermarks, m.Epoch, len(m.List))
	for i := range m.List {
		w := &m.List[i]
		dst = appendPlace(appendArray(dst, 6), w.Topic, w.Partition, w.LeaderEpoch, w.Generation)
		dst = appendInt(dst, int64(w.High))
		dst = appendInt(dst, int64(w.Start))
	}
	return end(dst, at, 0)
}

// Decode implements Message.
func (m *Watermarks) Decode(b Body) error {
	r := b.r
	outer := beginElements(&r, &m.Epoch, &m.List)
	for i := range m.List {
		inner := r.enter()
		m.List[i] = Watermark{
			Topic: r.mustID(), Partition: r.int32(), LeaderEpoch: ident.LeaderEpoch(r.int32()), Generation: ident.Generation(r.uint64()),
			High: ident.Offset(r.int64()), Start: ident.Offset(r.int64()),
		}
		r.leave(inner)
	}
	r.leave(outer)
	return b.done(&r)
}
