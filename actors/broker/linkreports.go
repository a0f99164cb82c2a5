package broker

import (
	"sync"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// outgoing is a message for a link to send. One that comes when the link is not open is rejected, if it can be, and lost.
type outgoing interface {
	runtime.Message
	runtime.Rejecter
	say(l *linkActor)
}

// say sends a message.
func (l *linkActor) say(t *runtime.Turn, m outgoing) {
	if l.state != linkOpen {
		m.Reject(errLinkSkips)
		return
	}
	l.now, _ = t.Now()
	m.say(l)
}

// frameSize is about how many bytes a message takes as a frame.
func frameSize(m peer.Message) int {
	const head, element = 128, 80
	switch m := m.(type) {
	case *peer.Letter:
		return head + len(m.Data)
	case *peer.Request:
		return head + len(m.Body)
	case *peer.Response:
		return head + len(m.Text) + len(m.Body)
	case *peer.Announcement:
		return head + len(m.Body)
	case *peer.RangeAnswer:
		return head + len(m.Payload)
	case *peer.Asks:
		return head + element*len(m.List)
	case *peer.Progress:
		return head + element*len(m.List)
	case *peer.Watermarks:
		return head + element*len(m.List)
	case *peer.Withdraw:
		return head + element*len(m.List)
	}
	return head
}

// linkMessage sends a message as it is. It is not changed any more.
type linkMessage struct{ message peer.Message }

// Bytes implements runtime.Message.
func (m *linkMessage) Bytes() int { return frameSize(m.message) }

// Reject implements runtime.Rejecter.
func (*linkMessage) Reject(error) {}

func (m *linkMessage) say(l *linkActor) { l.append(m.message) }

// linkAnswer answers an ask with records, or without. The region's reference is the message's.
type linkAnswer struct {
	head   peer.Answer // without payload
	region store.Region
	warm   bool // known to need no disk
}

var linkAnswers = sync.Pool{New: func() any { return new(linkAnswer) }}

// Bytes is 0: the answers of a link are as many as its asks.
func (*linkAnswer) Bytes() int { return 0 }

// Reject implements runtime.Rejecter.
func (m *linkAnswer) Reject(error) {
	m.region.Release()
	m.recycle()
}

func (m *linkAnswer) recycle() {
	*m = linkAnswer{}
	linkAnswers.Put(m)
}

func (m *linkAnswer) say(l *linkActor) {
	n := m.region.Len()
	l.out.end(m.head.AppendHead(l.out.begin(peer.AnswerHeadMax), n))
	if n > 0 {
		l.out.place(len(l.out.buf), m.region, m.warm)
	} else {
		m.region.Release()
	}
	m.recycle()
}

// linkEntry is one entry of a list that a link sends: an ask, a position, a watermark or a withdrawal. Those of one turn go into one frame.
type linkEntry[E any] struct{ entry E }

type (
	linkAsk      = linkEntry[peer.Ask]
	linkPosition = linkEntry[peer.Position]
	linkMark     = linkEntry[peer.Watermark]
)

// Bytes implements runtime.Message.
func (*linkEntry[E]) Bytes() int { return 128 }

// Reject implements runtime.Rejecter: whoever sent it hears that the link has ended.
func (m *linkEntry[E]) Reject(error) { m.recycle() }

var linkEntries struct{ asks, positions, marks, withdrawn sync.Pool }

// entryPool is where entries of a kind are used again.
func entryPool(entry any) *sync.Pool {
	switch entry.(type) {
	case *linkAsk:
		return &linkEntries.asks
	case *linkPosition:
		return &linkEntries.positions
	case *linkMark:
		return &linkEntries.marks
	}
	return &linkEntries.withdrawn
}

// newLinkEntry makes a message of an entry.
func newLinkEntry[E any](entry E) *linkEntry[E] {
	m, ok := entryPool((*linkEntry[E])(nil)).Get().(*linkEntry[E])
	if !ok {
		m = new(linkEntry[E])
	}
	m.entry = entry
	return m
}

func (m *linkEntry[E]) recycle() { entryPool(m).Put(m) }

func (m *linkEntry[E]) say(l *linkActor) {
	r := &l.reports
	switch e := any(&m.entry).(type) {
	case *peer.Ask:
		if len(r.withdraw.List) > 0 {
			r.flushAsks(l)
		}
		r.asks.List = append(r.asks.List, *e)
	case *peer.Position:
		r.progress.List = append(r.progress.List, *e)
	case *peer.Watermark:
		r.mark(e)
	case *peer.Withdrawn:
		if len(r.asks.List) > 0 {
			r.flushAsks(l)
		}
		r.withdraw.List = append(r.withdraw.List, *e)
	}
	m.recycle()
}

const (
	// marksEvery is how often, at most, watermarks are sent to one peer.
	marksEvery = 5 * time.Millisecond
	// listMax is how many entries one frame has.
	listMax = 8192
)

// linkReports gathers entries. Asks and withdrawals leave in the order in which they came: an ask that is withdrawn must not come after that.
type linkReports struct {
	asks     peer.Asks
	progress peer.Progress
	marks    peer.Watermarks
	withdraw peer.Withdraw

	places map[partitionPlace]int // of marks.List
	timer  *runtime.Timer
	armed  bool
	due    bool          // the timer has gone off
	marked ident.Instant // when watermarks were sent last
}

type partitionPlace struct {
	topic     ident.TopicID
	partition int32
}

func (r *linkReports) start(t *runtime.Turn) {
	r.places = make(map[partitionPlace]int)
	r.timer = t.NewTimer(signalMarks)
}

// mark notes a watermark; an older one of the partition need not be sent.
func (r *linkReports) mark(w *peer.Watermark) {
	place := partitionPlace{w.Topic, w.Partition}
	if i, ok := r.places[place]; ok {
		r.marks.List[i] = *w
		return
	}
	r.places[place] = len(r.marks.List)
	r.marks.List = append(r.marks.List, *w)
}

// flushAsks appends the asks or the withdrawals that were gathered: there are never both.
func (r *linkReports) flushAsks(l *linkActor) {
	r.withdraw.Epoch, r.asks.Epoch = l.me.Epoch, l.me.Epoch
	inFrames(l, &r.withdraw, &r.withdraw.List)
	inFrames(l, &r.asks, &r.asks.List)
}

// flush appends what was gathered.
func (r *linkReports) flush(t *runtime.Turn, l *linkActor) {
	r.flushAsks(l)
	r.progress.Epoch, r.marks.Epoch = l.me.Epoch, l.me.Epoch
	inFrames(l, &r.progress, &r.progress.List)
	if len(r.marks.List) == 0 {
		return
	}
	now, _ := t.Now()
	if wait := marksEvery - time.Duration(now-r.marked); wait > 0 && !r.due && r.marked != 0 {
		if !r.armed {
			r.armed = true
			r.timer.Reset(wait)
		}
		return
	}
	inFrames(l, &r.marks, &r.marks.List)
	clear(r.places)
	r.marked, r.due, r.armed = now, false, false
	r.timer.Stop()
}

// inFrames appends a message as often as its list needs, and empties the list.
func inFrames[E any](l *linkActor, m peer.Message, list *[]E) {
	all := *list
	for rest := all; len(rest) > 0; {
		n := min(listMax, len(rest))
		*list, rest = rest[:n], rest[n:]
		l.append(m)
	}
	*list = all[:0]
}
