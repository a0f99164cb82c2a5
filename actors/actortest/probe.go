package actortest

import (
	"testing"

	"github.com/troupe-broker/troupe/actors"
)

// instrument declares the actor with a probe around each instance.
func (k *Kit) instrument(info actors.Info) actors.Info {
	create := info.New
	info.New = func() actors.Actor {
		k.instances++
		return &probe{kit: k, actor: create()}
	}
	return info
}

// probe is between the runtime and the actor.
type probe struct {
	kit   *Kit
	actor actors.Actor
}

// measure asks for the allocations of one message.
type measure struct {
	msg    any
	allocs float64
	done   bool
}

// measureRuns is the number of times that a message is handled to be measured.
const measureRuns = 100

// Provision implements actors.Provisioner.
func (p *probe) Provision(c *actors.Ctx) error {
	if inner, ok := p.actor.(actors.Provisioner); ok {
		return inner.Provision(c)
	}
	return nil
}

// Receive implements actors.Actor.
func (p *probe) Receive(c *actors.Ctx, msg any) error {
	if m, ok := msg.(*measure); ok {
		m.allocs = testing.AllocsPerRun(measureRuns, func() {
			if err := p.actor.Receive(c, m.msg); err != nil {
				p.kit.tb.Errorf("%s: %T: %v", p.kit.id, m.msg, err)
			}
		})
		m.done = true
		return nil
	}
	err := p.actor.Receive(c, msg)
	p.kit.handled++
	return err
}

// Stop implements actors.Stopper.
func (p *probe) Stop(c *actors.Ctx) {
	if inner, ok := p.actor.(actors.Stopper); ok {
		inner.Stop(c)
	}
}
