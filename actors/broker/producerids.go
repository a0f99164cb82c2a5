package broker

import (
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// producerIDsActor hands out producer ids. It takes them from the controller in blocks, so that an id costs no commit; what is left of a block when the
// broker stops is never given to anybody.
type producerIDsActor struct {
	shared  *shared
	next    ident.ProducerID
	left    int32
	waiting []*wantProducerID // for the next block, bounded by the mailbox's bound on sessions that ask
	asked   bool
}

// Messages of the actor.
type (
	// wantProducerID asks for one id. answer may only enqueue.
	wantProducerID struct {
		answer func(ident.ProducerID, wire.ErrorCode)
	}
	// gotBlock is the controller's answer.
	gotBlock struct{ reply cluster.Reply }
)

// Bytes implements runtime.Message.
func (*wantProducerID) Bytes() int { return 0 }
func (*gotBlock) Bytes() int       { return 0 }

// Reject implements runtime.Rejecter.
func (w *wantProducerID) Reject(error) { w.answer(ident.NoProducerID, wire.CoordinatorLoadInProgress) }

// Turn implements runtime.Behaviour.
func (p *producerIDsActor) Turn(t *runtime.Turn, batch []runtime.Message) {
	for _, m := range batch {
		switch m := m.(type) {
		case *wantProducerID:
			if len(p.waiting) >= waitersMax {
				m.Reject(runtime.ErrFull)
				continue
			}
			p.waiting = append(p.waiting, m)
		case *gotBlock:
			p.asked = false
			p.got(m.reply)
		default:
			panic("broker: the producer id actor got a message that it does not know")
		}
	}
	p.give()
	if len(p.waiting) > 0 && !p.asked {
		p.ask(t)
	}
}

// give hands out what there is.
func (p *producerIDsActor) give() {
	n := 0
	for ; n < len(p.waiting) && p.left > 0; n++ {
		p.waiting[n].answer(p.next, wire.NoError)
		p.next++
		p.left--
	}
	p.waiting = append(p.waiting[:0], p.waiting[n:]...)
}

func (p *producerIDsActor) ask(t *runtime.Turn) {
	image := p.shared.image.Load()
	self, ok := image.Broker(p.shared.identity.Broker)
	if !ok {
		p.refuse() // the broker is not registered yet
		return
	}
	p.asked = true
	mono, _ := t.Now()
	c := &cluster.AllocateProducerIDs{Broker: self.ID, Epoch: self.Epoch}
	c.Deadline = mono + commandMs*millisecond
	me := t.Self()
	_ = t.Send(p.shared.controller, &proposal{command: c, ask: &c.Ask, answer: func(r cluster.Reply) { _ = me.Post(&gotBlock{reply: r}) }}) // Reject answers
}

func (p *producerIDsActor) got(r cluster.Reply) {
	block, ok := r.Body.(*cluster.AllocateProducerIDsReply)
	if !ok {
		p.refuse()
		return
	}
	p.next, p.left = block.First, block.Count
}

// refuse answers everybody who waits with an error that clients try again after.
func (p *producerIDsActor) refuse() {
	for _, w := range p.waiting {
		w.answer(ident.NoProducerID, wire.CoordinatorLoadInProgress)
	}
	p.waiting = nil
}

// Stopping implements runtime.Stopper.
func (p *producerIDsActor) Stopping(*runtime.Turn) { p.refuse() }

// Stopped implements runtime.Stopper.
func (p *producerIDsActor) Stopped(*runtime.Turn) {}
