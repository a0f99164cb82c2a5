package broker

import (
	"maps"
	"slices"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// controllerActor is the shell of cluster.Controller: one voter of the metadata quorum, at the moment the only one.
type controllerActor struct {
	machine  *cluster.Controller
	log      zerolog.Logger
	writer   *runtime.Ref
	metadata *runtime.Ref
	root     *runtime.Ref
	facts    *facts
	tickMs   int64
	out      cluster.Out
	timer    *runtime.Timer
	open     map[ident.RequestID]*proposal
	requests ident.RequestID

	inspection *Inspection // nil: nobody looks
}

// proposal is a command for the controller. answer is called once, by whatever goroutine runs the metadata actor, after the image that holds the outcome
// is published: it may only enqueue.
type proposal struct {
	command cluster.Command
	ask     *cluster.Ask
	answer  func(cluster.Reply)
}

// Bytes implements runtime.Message.
func (*proposal) Bytes() int { return 0 }

// Reject implements runtime.Rejecter.
func (p *proposal) Reject(err error) {
	p.answer(cluster.Reply{Request: p.ask.Request, Err: &cluster.Error{Code: wire.NotController, Message: "the controller takes no commands now: " + err.Error()}})
}

// Started implements runtime.Starter.
func (c *controllerActor) Started(t *runtime.Turn) {
	c.open = make(map[ident.RequestID]*proposal)
	c.timer = t.NewTimer(signalTick)
	c.timer.Reset(millis(c.tickMs))
	c.step(t, &cluster.Start{})
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
		case signal:
			c.timer.Reset(millis(c.tickMs))
			c.machine.Tick(c.now(t), &c.out)
			c.carryOut(t)
		default:
			panic("broker: the controller got a message that it does not know")
		}
	}
}

func (c *controllerActor) now(t *runtime.Turn) cluster.Now {
	mono, wall := t.Now()
	return cluster.Now{Mono: mono, Wall: wall}
}

func (c *controllerActor) step(t *runtime.Turn, cmd cluster.Command) {
	c.machine.Step(c.now(t), cmd, &c.out)
	c.carryOut(t)
}

func (c *controllerActor) propose(t *runtime.Turn, p *proposal) {
	c.requests++
	p.ask.Request = c.requests
	c.open[p.ask.Request] = p
	c.step(t, p.command)
}

func (c *controllerActor) saved(t *runtime.Turn, s *saved) {
	if s.err != nil {
		c.step(t, &cluster.PersistFailed{Save: s.id, Reason: s.err.Error()})
		_ = t.Send(c.root, &metadataLost{reason: s.err}) // Root is gone only when the broker stops
		return
	}
	c.step(t, &cluster.Persisted{Save: s.id})
}

// carryOut does what the machine asks, in the order it states.
func (c *controllerActor) carryOut(t *runtime.Turn) {
	if len(c.out.Persist) > 0 {
		s := &save{controller: t.Self(), saves: append([]cluster.Save(nil), c.out.Persist...)}
		if err := t.Send(c.writer, s); err != nil {
			c.log.Debug().Err(err).Msg("the metadata log is closed")
		}
	}
	// Letters are for other voters, of which there are none yet.
	for i := range c.out.Commit {
		_ = t.Send(c.metadata, &committed{image: c.out.Commit[i].Image, delta: c.out.Commit[i].Delta})
	}
	for i := range c.out.Reply {
		r := c.out.Reply[i]
		p := c.open[r.Request]
		delete(c.open, r.Request)
		if err := t.Send(c.metadata, &settledReply{answer: p.answer, reply: r}); err != nil {
			continue // Reject has answered
		}
	}
	for _, n := range c.out.Note {
		c.note(t, n)
	}
	c.out.Reset()
}

// note makes log lines and facts of what happened.
func (c *controllerActor) note(t *runtime.Turn, n cluster.Note) {
	switch n.Kind {
	case cluster.NoteElected:
		c.log.Info().Uint64("epoch", n.Term).Msg("this broker is the controller")
	case cluster.NoteDeposed:
		c.log.Info().Uint64("epoch", n.Term).Msg("this broker is not the controller any more")
	case cluster.NoteRegistered, cluster.NoteUnfenced:
		c.log.Debug().Int32("broker", int32(n.Broker)).Uint64("offset", n.Index).Msg("broker registered or unfenced")
	case cluster.NoteFenced:
		c.log.Info().Int32("broker", int32(n.Broker)).Msg("broker fenced")
	case cluster.NoteUnclean, cluster.NotePossibleLoss:
		c.log.Error().Str("topic", n.Topic).Int32("partition", n.Partition).Msg(codeUnclean + ": a leader was chosen that may miss records")
	case cluster.NoteDropped:
		c.log.Warn().Str("reason", n.Text).Msg("a letter or an entry of the metadata log could not be used")
	case cluster.NoteFailed:
		c.log.Error().Str("reason", n.Text).Msg(codeMetadataLost + ": the metadata log could not be written")
	default: // the others are for transcripts
	}
	c.facts.cluster(t, n)
}

// Stopping implements runtime.Stopper: whoever waits is answered.
func (c *controllerActor) Stopping(*runtime.Turn) {
	for _, id := range slices.Sorted(maps.Keys(c.open)) {
		c.open[id].Reject(runtime.ErrStopped)
	}
	c.open = nil
}

// Stopped implements runtime.Stopper.
func (c *controllerActor) Stopped(*runtime.Turn) {}
