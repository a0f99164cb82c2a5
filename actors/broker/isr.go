package broker

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire"
)

// isrActor takes to the controller what the replicas here have to say: what leaders propose (Kafka's AlterPartitionManager), what recovery has found, and that
// a replica is out of service or damaged. Of each one command is under way at a time, with all that has come since the last one left. Proposals are not kept: a
// leader proposes again until it replays a record that ends its proposal. What recovery has found, and the marks, are told until they are heard.
type isrActor struct {
	shared *shared
	log    zerolog.Logger
	wishes wishes
	asked  bool

	verdicts untold[*verdict]
	marks    untold[*replicaMark]
	told     uint64 // commands with marks
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
	// marksHeard is its answer to marks.
	marksHeard struct{ reply cluster.Reply }
)

// Bytes implements runtime.Message.
func (*wishISR) Bytes() int     { return 0 }
func (*isrAnswered) Bytes() int { return 0 }

// Bytes implements runtime.Message.
func (*verdictsHeard) Bytes() int { return 0 }
func (*marksHeard) Bytes() int    { return 0 }

// Started implements runtime.Starter.
func (a *isrActor) Started(t *runtime.Turn) { a.retry = t.NewTimer(signalTick) }

// Turn implements runtime.Behaviour.
func (a *isrActor) Turn(t *runtime.Turn, batch []runtime.Message) {
	for _, m := range batch {
		switch m := m.(type) {
		case *wishISR:
			a.wishes.keep(m)
		case *isrAnswered:
			a.asked = false
			a.answered(m.reply)
		case *verdict:
			a.verdicts.keep(m)
		case *verdictsHeard:
			if m.reply.Err == nil {
				a.absolve(t)
			}
			a.heard(m.reply, a.verdicts.heard)
		case *replicaMark:
			a.marks.keep(m)
		case *marksHeard:
			a.heard(m.reply, a.marks.heard)
		case signal:
			a.paused = false
		default:
			panic("broker: the actor of the ISRs got a message that it does not know")
		}
	}
	if !a.asked && len(a.wishes.list) > 0 {
		a.ask(t)
	}
	if !a.paused && (a.marks.due() || a.verdicts.due()) {
		a.tell(t)
	}
}

// absolve lets the replicas go on that have waited for what is heard now.
func (a *isrActor) absolve(t *runtime.Turn) {
	for _, v := range a.verdicts.list[:a.verdicts.telling] {
		if v.confess {
			_ = t.Send(v.replica.ref, &confessed{}) // one that has stopped waits no more
		}
	}
}

// confesses tells whether there is anything that takes back what the registration said. Marks wait for that: a replica that is in service again may be elected.
func (a *isrActor) confesses() bool {
	return slices.ContainsFunc(a.verdicts.list, func(v *verdict) bool { return v.confess })
}

// untold is what the controller has not heard: the newest of each replica.
type untold[M interface{ of() *replica }] struct {
	list    []M
	telling int              // the first of them are on their way
	at      map[*replica]int // where the others are in the list
}

// keep keeps something until the controller has heard it.
func (u *untold[M]) keep(m M) {
	if i, waits := u.at[m.of()]; waits {
		u.list[i] = m
		return
	}
	if u.at == nil {
		u.at = make(map[*replica]int)
	}
	u.at[m.of()] = len(u.list)
	u.list = append(u.list, m)
}

// due tells whether there is something to tell and nothing on its way.
func (u *untold[M]) due() bool { return u.telling == 0 && len(u.list) > 0 }

// take returns what the next command tells.
func (u *untold[M]) take() []M {
	u.telling = min(len(u.list), isrWishesMax)
	for _, m := range u.list[:u.telling] {
		delete(u.at, m.of())
	}
	return u.list[:u.telling]
}

// heard forgets what was on its way, if the controller has heard it; else what has become old news meanwhile.
func (u *untold[M]) heard(ok bool) {
	sent, rest := u.list[:u.telling], u.list[u.telling:]
	list := make([]M, 0, len(u.list))
	for _, m := range sent {
		if _, newer := u.at[m.of()]; !ok && !newer {
			list = append(list, m)
		}
	}
	u.list, u.telling = append(list, rest...), 0
	for i, m := range u.list {
		u.at[m.of()] = i
	}
}

// tell tells the controller what it has not heard.
func (a *isrActor) tell(t *runtime.Turn) {
	self := a.shared.identity.Broker
	b, ok := a.shared.image.Load().Broker(self)
	if !ok || b.Incarnation != a.shared.identity.Incarnation {
		a.paused = true // the image that says so is about to be published
		a.retry.Reset(isrPause)
		return
	}
	mono, _ := t.Now()
	me := t.Self()
	if a.marks.due() && !a.confesses() {
		a.told++
		c := &cluster.MarkReplicas{Broker: self, Epoch: b.Epoch, Number: a.told}
		c.Deadline = mono + isrPatienceMs*millisecond
		for _, m := range a.marks.take() {
			c.Replicas = append(c.Replicas, m.ReplicaMark)
		}
		_ = t.Send(a.shared.controller, &proposal{command: c, ask: &c.Ask, answer: func(r cluster.Reply) { // Reject answers
			_ = me.Post(&marksHeard{reply: r}) // one that has stopped tells no more
		}})
	}
	if !a.verdicts.due() {
		return
	}
	c := &cluster.Verified{Broker: self, Epoch: b.Epoch}
	c.Deadline = mono + isrPatienceMs*millisecond
	for _, v := range a.verdicts.take() {
		c.Replicas = append(c.Replicas, v.Verdict)
	}
	_ = t.Send(a.shared.controller, &proposal{command: c, ask: &c.Ask, answer: func(r cluster.Reply) { // Reject answers
		_ = me.Post(&verdictsHeard{reply: r}) // one that has stopped tells no more
	}})
}

// heard forgets what the controller has heard; what it has not is told again, after a pause.
func (a *isrActor) heard(r cluster.Reply, forget func(bool)) {
	forget(r.Err == nil)
	if r.Err == nil {
		return
	}
	a.log.Debug().Err(r.Err).Msg("the controller did not hear what has become of replicas here; it is told again")
	a.paused = true
	a.retry.Reset(isrPause)
}

// wishes are proposals that wait for the next command: the newest of each replica, in the order in which they came. The wish to resign is another than that for
// an ISR.
type wishes struct {
	list []*wishISR
	at   map[wishKey]int // where they are: a broker that dies has thousands of leaders propose, and again while a command is under way
}

type wishKey struct {
	replica *replica
	resign  bool
}

func (w *wishISR) key() wishKey { return wishKey{w.replica, w.proposal.Resign} }

// keep keeps a proposal, in the place of an older one.
func (w *wishes) keep(m *wishISR) {
	if i, waits := w.at[m.key()]; waits {
		w.list[i] = m
		return
	}
	if w.at == nil {
		w.at = make(map[wishKey]int)
	}
	w.at[m.key()] = len(w.list)
	w.list = append(w.list, m)
}

// take returns what one command proposes, which names each partition once.
func (w *wishes) take() (now []*wishISR) {
	var later wishes
	named := make(map[*replica]bool, min(len(w.list), isrWishesMax)) // read by key only
	for _, m := range w.list {
		if len(now) == isrWishesMax || named[m.replica] {
			later.keep(m)
			continue
		}
		named[m.replica] = true
		now = append(now, m)
	}
	*w = later
	return now
}

// ask sends what has come.
func (a *isrActor) ask(t *runtime.Turn) {
	self := a.shared.identity.Broker
	b, ok := a.shared.image.Load().Broker(self)
	if !ok || b.Incarnation != a.shared.identity.Incarnation {
		a.wishes = wishes{} // nobody counts what an unregistered run says
		return
	}
	mono, _ := t.Now()
	c := &cluster.ChangeISR{Broker: self, Epoch: b.Epoch}
	c.Deadline = mono + isrPatienceMs*millisecond
	for _, w := range a.wishes.take() {
		change := cluster.ISRChange{
			Topic: w.replica.id, Partition: w.replica.tp.Partition, LeaderEpoch: w.proposal.LeaderEpoch, PartitionEpoch: w.proposal.PartitionEpoch,
			ISR: make([]cluster.Member, len(w.proposal.ISR)), Resign: w.proposal.Resign,
		}
		for j, m := range w.proposal.ISR {
			change.ISR[j] = cluster.Member{Broker: m.Broker, Epoch: m.BrokerEpoch, Directory: m.Directory}
		}
		c.Partitions = append(c.Partitions, change)
	}
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
