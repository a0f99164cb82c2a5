package broker

import (
	"errors"
	"slices"
	"sync"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// A partition as a leader: followers ask by their data links, and are answered with regions of the log, which the link sends as it sends them to clients. An
// ask that has reached the log end waits in the machine, without a timer.

// askRequest marks the ids of what followers ask: those of sessions are smaller, those of coordinators larger.
const askRequest = ident.RequestID(1) << 62

// followerAsk is a follower's ask on its way to the partition, and there until it is answered.
type followerAsk struct {
	replica *replica
	link    *linkInfo // that the answer goes by
	command partition.Ask
	head    peer.Answer
	from    ident.Offset // where to read
	upTo    ident.Offset
}

var followerAsks = sync.Pool{New: func() any { return new(followerAsk) }}

// Bytes is 0: a follower has one ask out, and what it repeats takes the place of what it asked before.
func (*followerAsk) Bytes() int { return 0 }

// Reject implements runtime.Rejecter: the partition has stopped, or has too much to do. The follower asks again after a pause.
func (a *followerAsk) Reject(err error) {
	a.head.Result = refusalOf(err)
	to := a.link.ref
	_ = to.Post(a.answer(store.Region{})) // a link that has ended has nobody to answer
}

func (a *followerAsk) refuse(t *runtime.Turn, code wire.ErrorCode) {
	a.head.Result = code
	a.send(t, store.Region{})
}

// answer makes the message for the link, and is done with the ask.
func (a *followerAsk) answer(region store.Region) *linkAnswer {
	m := linkAnswers.Get().(*linkAnswer)
	m.head, m.region = a.head, region
	a.recycle()
	return m
}

// send answers the follower. The region's reference goes with it.
func (a *followerAsk) send(t *runtime.Turn, region store.Region) {
	to := a.link.ref
	_ = t.Send(to, a.answer(region)) // Reject releases it
}

func (a *followerAsk) recycle() {
	*a = followerAsk{}
	followerAsks.Put(a)
}

// asked steps a follower's ask.
func (p *partitionActor) asked(t *runtime.Turn, a *followerAsk) {
	switch {
	case a.link.voided.Load():
		a.recycle() // another run of the follower asks now
		return
	case p.machine == nil:
		a.refuse(t, p.refusal)
		return
	}
	p.meet(t, a.link)
	p.asks++
	a.command.Request = askRequest | p.asks
	p.ask(t, a, a.command.Request, &a.command)
}

// meet notes the link by which a follower asks. That the one before has ended is stepped first, even where the news of it is still on its way.
func (p *partitionActor) meet(t *runtime.Turn, l *linkInfo) {
	i := slices.IndexFunc(p.followers, func(old *linkInfo) bool { return old.peer.Broker == l.peer.Broker })
	switch {
	case i < 0:
		p.followers = append(p.followers, l)
	case p.followers[i] != l:
		old := p.followers[i]
		p.followers[i] = l
		p.step(t, &partition.Disconnected{Broker: old.peer.Broker, BrokerEpoch: old.peer.Epoch})
	}
}

// part takes in that a data link has ended. One that a later link of the follower has replaced means nothing any more.
func (p *partitionActor) part(t *runtime.Turn, l *linkInfo) {
	if i := slices.Index(p.followers, l); i >= 0 {
		p.followers = slices.Delete(p.followers, i, i+1)
		p.step(t, &partition.Disconnected{Broker: l.peer.Broker, BrokerEpoch: l.peer.Epoch})
	}
}

// linked takes in news of a link.
func (p *partitionActor) linked(t *runtime.Turn, m *linkChanged) {
	l := m.link
	switch {
	case m.open:
		p.step(t, &partition.Connected{Broker: l.peer.Broker, Control: l.purpose == peer.Control})
	case l.dialled:
		p.step(t, &partition.Disconnected{Broker: l.peer.Broker, BrokerEpoch: l.peer.Epoch, Own: true})
	default:
		p.part(t, l)
	}
}

// replyAsk answers a follower with what the machine allows.
func (p *partitionActor) replyAsk(t *runtime.Turn, a *followerAsk, r *partition.Reply) {
	if r.Silent {
		a.recycle()
		return
	}
	f, h := &r.Fetch, &a.head
	h.Result, h.High, h.Start = r.Code, f.HighWatermark, f.LogStart
	if f.Diverging {
		h.DivergingEpoch, h.DivergingEnd = f.DivergingEpoch, f.DivergingEnd
	}
	if r.Code != wire.NoError || f.Diverging || f.From >= f.UpTo {
		a.send(t, store.Region{})
		return
	}
	if p.slows(a) {
		a.refuse(t, wire.ThrottlingQuotaExceeded)
		return
	}
	a.from, a.upTo = f.From, f.UpTo
	p.readForFollower(t, a)
}

// readForFollower finds the records for a follower, with the log on loan when the way to them is not in memory.
func (p *partitionActor) readForFollower(t *runtime.Turn, a *followerAsk) {
	if p.lent {
		p.wait(&asksAgain{a})
		return
	}
	region, err := p.file.ReadNow(a.from, a.upTo, p.answerBytes(a), true)
	if errors.Is(err, store.ErrWouldWait) {
		p.lent = true
		_ = p.shared.pool.give(t, &lookUp{file: p.file, most: p.answerBytes(a), back: found{asked: a, replica: p.replica}}) // Reject says so
		return
	}
	p.tookForFollower(t, a, region, err)
}

// answerBytes is how much a follower gets at most: a larger first batch is given whole.
func (p *partitionActor) answerBytes(a *followerAsk) int {
	return min(int(a.command.BytesMax), p.shared.links.answerBytesMax)
}

// tookForFollower sends what a read has found. Records that are not in memory are read into it before the link sends them.
func (p *partitionActor) tookForFollower(t *runtime.Turn, a *followerAsk, region store.Region, err error) {
	if err != nil {
		a.refuse(t, p.readRefusal(t, err))
		return
	}
	p.replica.stats.repliedBytes.Add(int64(region.Len()))
	p.gave(a, region.Len())
	a.send(t, region)
}

// asksAgain is an answer to a follower that met a log on loan.
type asksAgain struct{ ask *followerAsk }

// Bytes implements runtime.Message.
func (*asksAgain) Bytes() int { return 0 }

// Reject implements runtime.Rejecter.
func (m *asksAgain) Reject(err error) { m.ask.Reject(err) }

func (p *partitionActor) readForFollowerAgain(t *runtime.Turn, a *followerAsk) {
	if p.machine == nil {
		a.refuse(t, p.refusal)
		return
	}
	p.readForFollower(t, a)
	p.carryOut(t) // the log may have failed
}

// mark tells a follower how far this leader is.
func (p *partitionActor) mark(t *runtime.Turn, w *partition.WatermarkLetter) {
	if p.shared.links == nil {
		return
	}
	p.shared.links.send(t, w.Broker, peer.Control, newLinkEntry(peer.Watermark{
		Topic: p.replica.id, Partition: p.replica.tp.Partition, LeaderEpoch: w.Says.LeaderEpoch,
		Generation: w.Says.Generation, High: w.Says.HighWatermark, Start: w.Says.LogStart,
	}))
}
