package sim

import (
	"fmt"
	"strings"
	"time"
)

// schedule has a fault come in its time. Nothing goes wrong any more once everything was healed.
func (r *run) schedule(f *FaultPlan) {
	r.world.after(f.At, func() {
		if r.healed || r.violation != nil {
			return
		}
		r.tell("f%d: %v", f.Number, f)
		r.strike(f)
	})
}

// strike lets a fault happen.
func (r *run) strike(f *FaultPlan) {
	h := r.host
	if r.ensemble != nil {
		if h = r.aimed(f); h == nil {
			r.tell("f%d hits nobody", f.Number)
			return
		}
		r.tell("it hits %s", h)
	}
	alive := h.node.Running() != nil
	switch f.Kind {
	case Kill, Power, CleanStop:
		if f.Before != "" {
			op, glob, _ := strings.Cut(f.Before, " ")
			h.countdowns = append(h.countdowns, &countdown{n: f.N, op: op, glob: glob, fire: func() { h.end(f.Kind, f) }})
		} else if alive {
			h.end(f.Kind, f)
		}
	case KillAt:
		h.countdowns = append(h.countdowns, &countdown{n: f.N, fire: func() { h.end(Kill, f) }})
	case PowerAt:
		h.countdowns = append(h.countdowns, &countdown{n: f.N, fire: func() { h.end(Power, f) }})
	case PowerAtSync:
		h.countdowns = append(h.countdowns, &countdown{n: f.N, syncs: true, fire: func() { h.end(Power, f) }})
	case BrokenDisk:
		name := fmt.Sprint(f.Number)
		h.breakDisk(name, f.Rule)
		r.lasts(f, h.repairDisk)
	case FullDisk:
		h.disk.Capacity = h.disk.Used() + f.Room
		r.lasts(f, func() { h.disk.Capacity = 0 })
	case SlowDisk:
		h.slow = 20
		r.lasts(f, func() { h.slow = 0 })
	case CutLine, LoseAnswer, TruncateAnswer:
		if len(h.ports) > 0 {
			p := h.ports[f.Seed%uint64(len(h.ports))]
			switch f.Kind {
			case LoseAnswer:
				p.lose = true
			case TruncateAnswer:
				p.allow = f.N
			default:
				p.end.Cut()
			}
		}
	case HoldLine:
		c := r.clients[f.Seed%uint64(len(r.clients))]
		r.world.Net.Hold(c.name, h.node.Name, true)
		r.lasts(f, func() { r.world.Net.Hold(c.name, h.node.Name, false) })
	case WallJump:
		if h.id > 0 {
			h.node.Clock.Jump(f.Jump)
			return
		}
		r.groups.jumped(func() { h.node.Clock.Jump(f.Jump) })
	case Noise:
		h.noise = f.Seed | 1
	case Ask:
		r.clients[0].script.(*admin).told(f.Rule)
	case Silence, Quit, Die, Move:
		for _, c := range r.clients {
			if m, ok := c.script.(*member); ok && c.plan.Number == f.N {
				m.struck(f)
			}
		}
	default:
		r.strikeTogether(h, f)
	}
}

// lasts ends a fault in its time.
func (r *run) lasts(f *FaultPlan, end func()) {
	r.world.after(f.For, func() {
		r.tell("f%d is over", f.Number)
		end()
	})
}

// end ends the process in one of the ways, and starts it again.
func (h *host) end(how FaultKind, f *FaultPlan) {
	switch how {
	case Power:
		h.power(f.Seed)
	case CleanStop:
		h.stop(func(error) { h.again(f.Pause) })
		return
	default:
		h.kill()
	}
	h.again(f.Pause)
}

// restart ends the broker in a way drawn from the seed and starts it again.
func (r *run) restart() {
	if r.violation != nil {
		return
	}
	draw := stream(r.plan.Seed, "restart")
	how := one(draw, Kill, CleanStop)
	if r.plan.Promise != PromiseCached {
		how = one(draw, Kill, CleanStop, Power, Power)
	}
	for _, k := range []FaultKind{Kill, CleanStop, Power} {
		if k.String() == r.plan.Last {
			how = k
		}
	}
	r.tell("the last restart: %v", how)
	stopped := false
	switch how {
	case CleanStop:
		r.host.stop(func(err error) {
			if err != nil {
				r.fail("a stop in order is clean", "%v", err)
			}
			stopped = true
		})
		r.until("stopping", time.Minute, func() bool { return stopped })
	case Power:
		r.host.power(draw.Uint64())
	default:
		r.host.kill()
	}
	r.world.after(0, r.host.start)
	r.until("starting", healMax, func() bool { return r.host.broker != nil && r.host.serving && r.host.broker.Ready() })
}
