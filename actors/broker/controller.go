package broker

import (
	"maps"
	"slices"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// controllerActor is this broker's seat at the metadata quorum. A broker without a cluster founds one or finds one (founding.go); then it is a voter, the shell
// of cluster.Controller, in this file, or an observer (observer.go). Whatever it is, it takes commands for the controller and sees that they get there
// (forward.go), keeps links to the brokers it hears of (acquaintances.go), and gives the controller away before the broker stops (handover.go).
//
//	founding ── all have promised ──> voter
//	    └────── a cluster is in sight ──> observer
//
// A voter whose vote is taken away becomes an observer, and an observer that gets one a voter (reseat.go).
type controllerActor struct {
	seat
	shared  *shared
	log     zerolog.Logger
	writer  *runtime.Ref
	options cluster.Options // of a voter
	tickMs  int64
	address string // of the peer port, as others are told it; empty: there is none
	out     cluster.Out
	watched cluster.ObserverOut
	timer   *runtime.Timer

	requests ident.RequestID
	open     map[ident.RequestID]*proposal // the machine's to answer
	journeys journeys

	opened  bool            // of a founding: it may begin
	looked  bool            // every address of --join was tried once
	durable cluster.Durable // of a founding
	saving  uint64          // id of the save that keeps a promise
	waits   waiting         // of a founding
	known   acquaintances

	writers   letterWriters
	reseating *cluster.Reseat // nil: the machine stays

	starved complaint // of an observer: no voter gives it metadata
	refused int       // answers of voters that were none
	handing handingOver

	inspection *Inspection // nil: nobody looks
}

// seat is the machine that follows, or makes, the metadata log. One of them is there.
type seat struct {
	founding *cluster.Founding
	voter    *cluster.Controller
	observer *cluster.Observer
}

// Started implements runtime.Starter. A signalOpen begins.
func (c *controllerActor) Started(t *runtime.Turn) {
	c.open = make(map[ident.RequestID]*proposal)
	c.journeys.away = make(map[*proposal]struct{})
	c.known.start(c.shared)
	c.timer = t.NewTimer(signalTick)
}

// begin gives the machine its first turn.
func (c *controllerActor) begin(t *runtime.Turn) {
	c.timer.Reset(millis(c.tickMs))
	switch {
	case c.founding != nil:
		c.opened = true
		c.beginFounding(t)
	case c.voter != nil:
		c.step(t, &cluster.Start{})
	default:
		c.observe(t, &cluster.Start{})
	}
}

// Turn implements runtime.Behaviour.
func (c *controllerActor) Turn(t *runtime.Turn, batch []runtime.Message) {
	c.inspection.turnController()
	for _, m := range batch {
		switch m := m.(type) {
		case *proposal:
			c.propose(t, m)
		case *saved:
			c.saved(t, m)
		case *remoteCommand:
			c.serve(t, m)
		case *returned:
			c.returned(t, m)
		case *letterIn:
			if c.voter != nil && m.to == c.shared.identity.Node {
				c.writers.note(m)
				c.step(t, &cluster.Receive{Data: m.data})
			}
		case *snapshotFate:
			if c.voter != nil {
				c.step(t, &cluster.SnapshotSent{Node: m.node, Failed: m.failed})
			}
		case *linkUp:
			c.met(t, m.link)
		case *linkLost:
			if c.voter != nil {
				c.step(t, &cluster.LinkDown{Broker: m.who.Broker, Epoch: m.who.Epoch, Refused: true})
			}
		case *announced:
			if c.founding != nil {
				c.found(t, &m.Announced)
			}
		case *gossiped:
			c.gossiped(t, m)
		case *lookedAround:
			c.looked = true
			c.beginFounding(t)
		case *joinedCluster:
			c.joined(t, m)
		case *pullReturned:
			c.pullReturned(t, m)
		case *handOver:
			c.beginHandOver(t, m)
		case signal:
			c.signalled(t, m)
		default:
			panic("broker: the controller got a message that it does not know")
		}
	}
	c.lookUp(t)
	c.lookAfterHandOver(t)
}

func (c *controllerActor) signalled(t *runtime.Turn, m signal) {
	if m == signalOpen {
		c.begin(t)
		return
	}
	c.timer.Reset(millis(c.tickMs))
	switch {
	case c.founding != nil:
		c.tellWaits(t)
	case c.voter != nil:
		c.voter.Tick(c.now(t), &c.out)
		c.carryOut(t)
	case c.observer != nil:
		c.observer.Tick(c.now(t), &c.watched)
		c.carryOutWatched(t)
	}
	c.tickJourneys(t)
}

func (c *controllerActor) now(t *runtime.Turn) cluster.Now {
	mono, wall := t.Now()
	return cluster.Now{Mono: mono, Wall: wall}
}

// image is the newest committed one that this broker has.
func (s *seat) image() *cluster.Image {
	switch {
	case s.voter != nil:
		return s.voter.Image()
	case s.observer != nil:
		return s.observer.Image()
	}
	return cluster.NewImage()
}

// leads tells whether the controller is here.
func (s *seat) leads() bool { return s.voter != nil && s.voter.Leading() }

// leader is the broker of the controller, as far as is known here.
func (s *seat) leader() ident.BrokerID {
	switch {
	case s.voter != nil:
		return s.voter.Leader()
	case s.observer != nil:
		return s.observer.Leader()
	}
	return ident.NoBroker
}

func (c *controllerActor) step(t *runtime.Turn, cmd cluster.Command) {
	c.voter.Step(c.now(t), cmd, &c.out)
	c.carryOut(t)
}

func (c *controllerActor) saved(t *runtime.Turn, s *saved) {
	if s.err != nil {
		_ = t.Send(c.shared.root, &metadataLost{reason: s.err}) // Root is gone only when the broker stops
	}
	switch {
	case c.reseating != nil && s.err == nil && s.id == c.reseating.Save:
		c.reseat(t)
	case c.voter != nil && s.err != nil:
		c.step(t, &cluster.PersistFailed{Save: s.id, Reason: s.err.Error()})
	case c.voter != nil:
		c.step(t, &cluster.Persisted{Save: s.id})
	case c.founding != nil && s.err == nil && s.id == c.saving:
		c.found(t, &cluster.Promised{})
	}
}

// persist gives saves to the writer.
func (c *controllerActor) persist(t *runtime.Turn, saves []cluster.Save) {
	if len(saves) == 0 {
		return
	}
	if err := t.Send(c.writer, &save{controller: t.Self(), saves: slices.Clone(saves)}); err != nil {
		c.log.Debug().Err(err).Msg("the metadata log is closed")
	}
}

// commit tells of new images.
func (c *controllerActor) commit(t *runtime.Turn, list []cluster.Committed) {
	for i := range list {
		c.known.learn(list[i].Delta)
		_ = t.Send(c.shared.metadata, &committed{image: list[i].Image, delta: list[i].Delta}) // gone only when the broker stops
	}
	if len(list) > 0 {
		c.releaseHeld(t)
	}
}

// carryOut does what the machine of a voter asks, in the order it states.
func (c *controllerActor) carryOut(t *runtime.Turn) {
	c.persist(t, c.out.Persist)
	lost := c.post(t)
	c.commit(t, c.out.Commit)
	for i := range c.out.Reply {
		r := c.out.Reply[i]
		p := c.open[r.Request]
		delete(c.open, r.Request)
		c.settled(t, p, r)
	}
	for _, n := range c.out.Note {
		c.note(t, n)
	}
	if a := c.out.Ask; a != nil {
		c.pull(t, a)
	}
	if c.out.Reseat != nil {
		c.reseating = c.out.Reseat
	}
	c.out.Reset()
	for _, node := range lost {
		c.step(t, &cluster.Unreachable{Node: node})
	}
}

// post sends letters to the other voters, and returns those to whom there is no way.
func (c *controllerActor) post(t *runtime.Turn) (lost []ident.NodeID) {
	if c.shared.links == nil {
		return nil
	}
	for i := range c.out.Send {
		l := &c.out.Send[i]
		m := &letter{from: c.shared.identity.Node, to: l.To, data: l.Data}
		if l.Snapshot {
			self, node := t.Self(), l.To
			m.sent = func(all bool) { _ = self.Post(&snapshotFate{node: node, failed: !all}) } // who has stopped sends no more
		}
		to, ok := c.brokerOf(l.To)
		if !ok {
			m.done(false)
		} else if !c.shared.links.send(t, to, peer.Control, m) {
			lost = append(lost, l.To)
		}
	}
	return lost
}

// snapshotFate tells what became of a letter with a snapshot.
type snapshotFate struct {
	node   ident.NodeID
	failed bool
}

// Bytes implements runtime.Message.
func (*snapshotFate) Bytes() int { return 0 }

// brokerOf finds the broker that a voter lives in: by the image, or by what it has written, since it may have become a voter while this one was away.
func (c *controllerActor) brokerOf(node ident.NodeID) (ident.BrokerID, bool) {
	for _, v := range c.voter.Image().Voters() {
		if v.Node == node {
			return v.Broker, true
		}
	}
	for _, w := range c.writers {
		if w.from == node {
			return w.broker, true
		}
	}
	return ident.NoBroker, false
}

// letterWriters are the last who wrote, newest first.
type letterWriters []letterIn

// lettersFrom bounds them: more voters than that there are not.
const lettersFrom = 16

func (w *letterWriters) note(m *letterIn) {
	for i := range *w {
		if (*w)[i].from == m.from && (*w)[i].broker == m.broker {
			return
		}
	}
	*w = slices.Insert(*w, 0, letterIn{broker: m.broker, from: m.from})
	if len(*w) > lettersFrom {
		*w = (*w)[:lettersFrom]
	}
}

// note makes log lines and facts of what happened.
func (c *controllerActor) note(t *runtime.Turn, n cluster.Note) {
	switch n.Kind {
	case cluster.NoteElected:
		c.shared.metrics.leading.Store(true)
		c.log.Info().Uint64("epoch", n.Term).Msg("this broker is the controller")
	case cluster.NoteDeposed:
		c.shared.metrics.leading.Store(false)
		c.log.Info().Uint64("epoch", n.Term).Msg("this broker is not the controller any more")
	case cluster.NoteLeaderChanged:
		c.leaderChanged(n)
	case cluster.NoteRegistered, cluster.NoteUnfenced:
		c.log.Debug().Int32("broker", int32(n.Broker)).Uint64("offset", n.Index).Msg("broker registered or unfenced")
	case cluster.NoteFenced:
		c.log.Info().Int32("broker", int32(n.Broker)).Msg("broker fenced")
	case cluster.NoteUnclean, cluster.NotePossibleLoss:
		c.shared.metrics.unclean.Add(1)
		c.log.Error().Str("topic", n.Topic).Int32("partition", n.Partition).Msg(codeUnclean + ": a leader was chosen that may miss records")
	case cluster.NoteDropped:
		if c.observer != nil {
			c.starve(t, n.Broker, n.Text)
			break
		}
		c.log.Warn().Str("reason", n.Text).Msg("a letter or an entry of the metadata log could not be used")
	case cluster.NoteRestored:
		c.log.Info().Uint64("offset", n.Index).Msg("a snapshot has taken the place of the metadata log up to here")
	case cluster.NoteVoters:
		c.noteVoters(n)
	case cluster.NoteSilent:
		c.starve(t, n.Broker, "it does not answer")
	case cluster.NoteFailed:
		c.log.Error().Str("reason", n.Text).Msg(codeMetadataLost + ": the metadata log could not be read or written")
	default: // the others are for transcripts
	}
	c.shared.facts.cluster(t, n)
}

// leaderChanged tells, once for each term, who the controller is.
func (c *controllerActor) leaderChanged(n cluster.Note) {
	broker := n.Broker
	if c.voter != nil {
		broker, _ = c.brokerOf(n.Node)
		if n.Node == 0 {
			broker = ident.NoBroker
		}
	}
	if broker == ident.NoBroker {
		c.log.Info().Uint64("epoch", n.Term).Msg("there is no controller; waiting for an election")
		return
	}
	c.log.Info().Uint64("epoch", n.Term).Int32("peer", int32(broker)).Msg("another broker is the controller")
}

// Stopping implements runtime.Stopper: whoever waits is answered.
func (c *controllerActor) Stopping(*runtime.Turn) {
	for _, id := range slices.Sorted(maps.Keys(c.open)) {
		c.open[id].Reject(runtime.ErrStopped)
	}
	c.open = nil
	if c.handing.done != nil {
		c.handing.done()
	}
	c.journeys.end()
	c.shared.metrics.leading.Store(false)
}

// Stopped implements runtime.Stopper.
func (c *controllerActor) Stopped(*runtime.Turn) {}
