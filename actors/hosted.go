package actors

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire/ident"
)

// running is one extension actor of a Host, through all its instances.
type running struct {
	host     *Host
	info     Info
	settings Settings
	log      zerolog.Logger
	series   *seriesSet
	ref      atomic.Pointer[runtime.Ref] // nil until it is spawned
	errors   errorLog

	provided chan struct{} // closed after the first Provision
	outcome  error         // of it; set before
	told     bool
}

// spec is how the runtime spawns it. It owns a goroutine: what its author does there
// holds up nobody else.
func (r *running) spec() runtime.Spec {
	return runtime.Spec{
		Name: r.info.ID(), Kind: r.info.ID(), Blocking: true, OnBug: r.info.Policy.runtime(),
		CountMax: r.info.Mailbox.CountMax, BytesMax: r.info.Mailbox.BytesMax,
		New: func() runtime.Behaviour {
			h := &hosted{run: r, actor: r.info.New()}
			h.ctx.of = r
			return h
		},
	}
}

// first reports the outcome of the first Provision, later ones are nobody's business.
func (r *running) first(err error) bool {
	if r.told {
		return false
	}
	r.told, r.outcome = true, err
	close(r.provided)
	return true
}

// hosted is one instance: the behaviour around an Actor.
type hosted struct {
	run         *running
	actor       Actor
	ctx         Ctx
	provisioned bool
}

// Started provisions the instance.
func (h *hosted) Started(t *runtime.Turn) {
	ended := false
	defer func() {
		if !ended {
			h.run.first(fmt.Errorf("%s: %s panicked in Provision", codeNotProvided, h.run.info.ID()))
		}
	}()
	err := h.provision(t)
	ended = true
	if !h.run.first(err) && err != nil {
		panic(err)
	}
	h.provisioned = err == nil
}

// Turn gives the messages to the actor.
func (h *hosted) Turn(t *runtime.Turn, batch []runtime.Message) {
	h.ctx.turn = t
	for i, m := range batch {
		msg := any(m)
		if e, ok := m.(*envelope); ok {
			msg = e.msg
		}
		if err := h.actor.Receive(&h.ctx, msg); err != nil {
			now, _ := t.Now()
			h.run.errors.note(&h.run.log, now, err)
			h.ctx.Count("errors", 1)
		}
		batch[i] = nil
	}
	h.ctx.turn = nil
}

// Stopping lets the actor let go of what it holds.
func (h *hosted) Stopping(t *runtime.Turn) {
	if s, ok := h.actor.(Stopper); ok && h.provisioned {
		h.ctx.turn = t
		s.Stop(&h.ctx)
		h.ctx.turn = nil
	}
}

// Stopped has nothing to do.
func (*hosted) Stopped(*runtime.Turn) {}

// provision prepares the instance and sees to it that no setting is ignored.
func (h *hosted) provision(t *runtime.Turn) error {
	p, ok := h.actor.(Provisioner)
	if ok {
		h.ctx.turn = t
		err := p.Provision(&h.ctx)
		h.ctx.turn = nil
		if err != nil {
			return err
		}
	}
	if !h.ctx.configured && len(h.run.settings) > 0 {
		// It never asks for settings, so each of them is one that it does not know.
		return h.run.settings.decode(h.run.info.ID(), &struct{}{})
	}
	return nil
}

// errorLog writes the errors of an actor, but not more than one line per errorEvery.
type errorLog struct {
	next    ident.Instant
	skipped int
}

const errorEvery = 10 * time.Second

func (l *errorLog) note(log *zerolog.Logger, now ident.Instant, err error) {
	if now < l.next {
		l.skipped++
		return
	}
	log.Warn().Err(err).Int("skipped", l.skipped).Msg("the actor could not handle a message")
	l.next, l.skipped = now+ident.Instant(errorEvery), 0
}
