package broker

import (
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire"
)

// isrActor takes to the controller what the replicas here have to say: what leaders propose (Kafka's AlterPartitionManager), and what recovery has found. Of
// each one command is under way at a time, with all that has come since the last one left. Proposals are not kept: a leader proposes again until it replays a
// record that ends its proposal. What recovery has found is told until it is heard.
type isrActor struct {
	shared *shared
	log    zerolog.Logger
	wishes []*wishISR // newest of each replica, in the order in which they came
	asked  bool

	verdicts []*verdict // that the controller has not heard; newest of each replica
	telling  int        // of them are on their way
	paused   bool
	retry    *runtime.Timer
}

// isrCounters count changes of ISRs that were proposed here.
type isrCounters struct {
	shrinks atomic.Int64
	expands atomic.Int64
	refused atomic.Int64
}

// isrWishesMax is how many proposals one command takes.
const isrWishesMax = 1024

// isrPatienceMs is how long the controller may take over a command: not for ever, since the next one waits for it.
const isrPatienceMs = 3000

// isrPause is the pause before the controller is told again what it has not heard.
const isrPause = 200 * time.Millisecond

// Messages of the isr actor.
type (
	// wishISR is a leader's proposal.
	wishISR struct {
		replica  *replica
		proposal partition.Proposal
	}
	// isrAnswered is the controller's answer.
	isrAnswered struct{ reply cluster.Reply }
	// verdictsHeard is its answer to what recovery has found.
	verdictsHeard struct{ reply cluster.Reply }
)

// Bytes implements runtime.Message.
func (*wishISR) Bytes() int     { return 0 }
func (*isrAnswered) Bytes() int { return 0 }

// Bytes implements runtime.Message.
func (*verdictsHeard) Bytes() int { return 0 }

// Started implements runtime.Starter.
func (a *isrActor) Started(t *runtime.Turn) { a.retry = t.NewTimer(signalTick) }

// Turn implements runtime.Behaviour.
func (a *isrActor) Turn(t *runtime.Turn, batch []runtime.Message) {
	for _, m := range batch {
		switch m := m.(type) {
		case *wishISR:
			a.note(m)
		case *isrAnswered:
			a.asked = false
			a.answered(m.reply)
		case *verdict:
			a.keep(m)
		case *verdictsHeard:
			a.heard(m.reply)
		case signal:
			a.paused = false
		default:
			panic("broker: the actor of the ISRs got a message that it does not know")
		}
	}
	if !a.asked && len(a.wishes) > 0 {
		a.ask(t)
	}
	if a.telling == 0 && !a.paused && len(a.verdicts) > 0 {
		a.tell(t)
	}
}

// keep keeps a verdict until the controller has heard it.
func (a *isrActor) keep(v *verdict) {
	for i := a.telling; i < len(a.verdicts); i++ {
		if a.verdicts[i].replica == v.replica {
			a.verdicts[i] = v
			return
		}
	}
	a.verdicts = append(a.verdicts, v)
}

// tell tells the controller what recovery has found.
func (a *isrActor) tell(t *runtime.Turn) {
	self := a.shared.identity.Broker
	b, ok := a.shared.image.Load().Broker(self)
	if !ok || b.Incarnation != a.shared.identity.Incarnation {
		a.paused = true // the image that says so is about to be published
		a.retry.Reset(isrPause)
		return
	}
	a.telling = min(len(a.verdicts), isrWishesMax)
	mono, _ := t.Now()
	c := &cluster.Verified{Broker: self, Epoch: b.Epoch}
	c.Deadline = mono + isrPatienceMs*millisecond
	for _, v := range a.verdicts[:a.telling] {
		c.Replicas = append(c.Replicas, v.Verdict)
	}
	me := t.Self()
	_ = t.Send(a.shared.controller, &proposal{command: c, ask: &c.Ask, answer: func(r cluster.Reply) { // Reject answers
		_ = me.Post(&verdictsHeard{reply: r}) // one that has stopped tells no more
	}})
}

// heard forgets what the controller has heard; what it has not is told again, after a pause.
func (a *isrActor) heard(r cluster.Reply) {
	n := a.telling
	a.telling = 0
	if r.Err == nil {
		a.verdicts = append([]*verdict(nil), a.verdicts[n:]...)
		return
	}
	a.log.Debug().Err(r.Err).Msg("the controller did not hear how replicas came out of their recovery; it is told again")
	a.paused = true
	a.retry.Reset(isrPause)
}

// note keeps a proposal until the next command leaves. A newer one of the replica takes its place.
func (a *isrActor) note(w *wishISR) {
	for i, old := range a.wishes {
		if old.replica == w.replica {
			a.wishes[i] = w
			return
		}
	}
	a.wishes = append(a.wishes, w)
}

// ask sends what has come.
func (a *isrActor) ask(t *runtime.Turn) {
	self := a.shared.identity.Broker
	b, ok := a.shared.image.Load().Broker(self)
	if !ok || b.Incarnation != a.shared.identity.Incarnation {
		a.wishes = nil // nobody counts what an unregistered run says
		return
	}
	n := min(len(a.wishes), isrWishesMax)
	mono, _ := t.Now()
	c := &cluster.ChangeISR{Broker: self, Epoch: b.Epoch, Partitions: make([]cluster.ISRChange, n)}
	c.Deadline = mono + isrPatienceMs*millisecond
	for i, w := range a.wishes[:n] {
		change := cluster.ISRChange{
			Topic: w.replica.id, Partition: w.replica.tp.Partition, LeaderEpoch: w.proposal.LeaderEpoch, PartitionEpoch: w.proposal.PartitionEpoch,
			ISR: make([]cluster.Member, len(w.proposal.ISR)),
		}
		for j, m := range w.proposal.ISR {
			change.ISR[j] = cluster.Member{Broker: m.Broker, Epoch: m.BrokerEpoch, Directory: m.Directory}
		}
		c.Partitions[i] = change
	}
	a.wishes = append([]*wishISR(nil), a.wishes[n:]...)
	a.asked = true
	me := t.Self()
	_ = t.Send(a.shared.controller, &proposal{command: c, ask: &c.Ask, answer: func(r cluster.Reply) { // Reject answers
		_ = me.Post(&isrAnswered{reply: r}) // one that has stopped asks no more
	}})
}

// answered tells what the controller refused. The leaders go by the records they replay.
func (a *isrActor) answered(r cluster.Reply) {
	if r.Err != nil {
		a.log.Debug().Err(r.Err).Msg("the controller did not take a change of ISRs; it is proposed again")
		return
	}
	body, ok := r.Body.(*cluster.ChangeISRReply)
	if !ok {
		return
	}
	for i := range body.Partitions {
		p := &body.Partitions[i]
		if p.Err == nil {
			continue
		}
		if p.Err.Code != wire.InvalidUpdateVersion && p.Err.Code != wire.FencedLeaderEpoch { // records of those changes are on their way here
			a.shared.metrics.isr.refused.Add(1)
		}
		a.log.Debug().Str("topic", p.Topic.String()).Int32("partition", p.Partition).Err(p.Err).Msg("the controller refused a change of an ISR")
	}
}
