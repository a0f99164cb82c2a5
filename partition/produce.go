package partition

import (
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// parkedProduce is an acks=all produce whose batch is in the log and which waits
// for the high watermark to reach upTo.
type parkedProduce struct {
	appendResult
	upTo     ident.Offset
	deadline ident.Instant
}

// produceHeap holds parked produces, the smallest upTo first. New batches come in
// rising order, which costs a push nothing; only repeated batches come out of order.
type produceHeap struct{ waiting []parkedProduce }

func (h *produceHeap) len() int { return len(h.waiting) }

// push adds a produce.
func (h *produceHeap) push(p parkedProduce) {
	h.waiting = append(h.waiting, p)
	h.up(len(h.waiting) - 1)
}

// pop removes and returns the produce with the smallest upTo.
func (h *produceHeap) pop() parkedProduce {
	w := h.waiting
	first, last := w[0], len(w)-1
	w[0] = w[last]
	h.waiting = w[:last]
	h.down(0)
	return first
}

func (h *produceHeap) up(i int) {
	w := h.waiting
	for i > 0 {
		parent := (i - 1) / 2
		if w[parent].upTo <= w[i].upTo {
			return
		}
		w[parent], w[i] = w[i], w[parent]
		i = parent
	}
}

func (h *produceHeap) down(i int) {
	w := h.waiting
	for {
		child := 2*i + 1
		if child >= len(w) {
			return
		}
		if child+1 < len(w) && w[child+1].upTo < w[child].upTo {
			child++
		}
		if w[i].upTo <= w[child].upTo {
			return
		}
		w[i], w[child] = w[child], w[i]
		i = child
	}
}

// park makes a produce wait.
func (m *Machine) park(p parkedProduce, out *Out) {
	m.produces.push(p)
	if p.deadline < m.produceAlarm {
		m.produceAlarm = p.deadline
		out.Arm = append(out.Arm, Alarm{Key: AlarmProduce, At: p.deadline})
	}
}

// acknowledge answers every produce that the high watermark has reached.
func (m *Machine) acknowledge(out *Out) {
	for m.produces.len() > 0 && m.produces.waiting[0].upTo <= m.highWatermark {
		p := m.produces.pop()
		m.replyAppend(out, &p.appendResult, wire.NoError)
	}
}

// failShortOfReplicas answers every waiting produce when the committed ISR is too
// small: the high watermark stands still until it grows, so waiting on would only
// turn a clear answer into a timeout. The batches stay in the log.
func (m *Machine) failShortOfReplicas(out *Out) {
	if m.enoughReplicas() {
		return
	}
	for m.produces.len() > 0 {
		p := m.produces.pop()
		m.replyAppend(out, &p.appendResult, wire.NotEnoughReplicasAfterAppend)
	}
}

// expireProduces answers the produces whose deadline has passed and arms the alarm
// for the next one. It looks at all of them: it runs once per deadline at most,
// while keeping them in a second order would cost every append.
func (m *Machine) expireProduces(now Now, out *Out) {
	m.produceAlarm = never
	kept := m.produces.waiting[:0]
	expired := int32(0)
	for i := range m.produces.waiting {
		p := &m.produces.waiting[i]
		if p.deadline <= now.Mono {
			m.replyAppend(out, &p.appendResult, wire.RequestTimedOut)
			expired++
			continue
		}
		m.produceAlarm = min(m.produceAlarm, p.deadline)
		kept = append(kept, *p)
	}
	m.produces.waiting = kept
	if expired > 0 {
		for i := len(kept)/2 - 1; i >= 0; i-- {
			m.produces.down(i)
		}
		out.note(Note{Kind: NoteTimedOut, Count: expired})
	}
	if m.produceAlarm != never {
		out.Arm = append(out.Arm, Alarm{Key: AlarmProduce, At: m.produceAlarm})
	}
}
