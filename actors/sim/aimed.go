package sim

import (
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/gossip"
	"github.com/troupe-broker/troupe/wire/ident"
)

// aimed finds the broker that a fault hits, as things are now; nil: nobody.
func (r *run) aimed(f *FaultPlan) *host {
	what, name, _ := strings.Cut(f.Who, ":")
	switch what {
	case "", "any":
		return r.hosts[f.Seed%uint64(len(r.hosts))]
	case "controller":
		for _, h := range r.hosts {
			if h.inspection != nil && h.broker != nil && h.inspection.Controls() {
				return h
			}
		}
		return nil
	case "leader", "follower":
		p := r.partitionCalled(name)
		if p == nil {
			return nil
		}
		if what == "leader" {
			return r.called(p.Leader)
		}
		others := slices.DeleteFunc(slices.Clone(p.Replicas), func(b ident.BrokerID) bool { return b == p.Leader })
		if len(others) == 0 {
			return nil
		}
		return r.called(others[f.Seed%uint64(len(others))])
	}
	n, err := strconv.Atoi(what)
	if err != nil {
		panic("sim: a fault hits " + f.Who)
	}
	return r.called(ident.BrokerID(n))
}

// partitionCalled finds a partition in the newest metadata by "TOPIC-N".
func (r *run) partitionCalled(name string) *cluster.Partition {
	i := strings.LastIndexByte(name, '-')
	n, err := strconv.ParseInt(name[i+1:], 10, 32)
	if i < 0 || err != nil {
		panic("sim: no partition is called " + name)
	}
	p, _ := r.ensemble.image.Partition(name[:i], int32(n))
	return p
}

// strikeTogether lets a fault happen that takes several brokers.
func (r *run) strikeTogether(h *host, f *FaultPlan) {
	other := r.hosts[(uint64(h.id-1)+1+f.Seed%uint64(len(r.hosts)-1))%uint64(len(r.hosts))]
	net := r.world.Net
	switch f.Kind {
	case Freeze:
		h.freeze()
		life := h.lives
		r.lasts(f, func() {
			if h.lives == life {
				h.thaw()
			}
		})
	case Split:
		net.Hold(h.node.Name, other.node.Name, true)
		r.lasts(f, func() { net.Hold(h.node.Name, other.node.Name, false) })
	case OneWay:
		net.HoldOneWay(h.node.Name, other.node.Name, true)
		r.lasts(f, func() { net.HoldOneWay(h.node.Name, other.node.Name, false) })
	case Isolate:
		r.isolate(h, true)
		r.lasts(f, func() { r.isolate(h, false) })
	case CutPeers:
		var ends []*End
		for _, e := range net.Connections(h.node.Name) {
			if e.far.owner == other.node.Name {
				ends = append(ends, e)
			}
		}
		if len(ends) > 0 {
			ends[f.Seed%uint64(len(ends))].Cut()
		}
	case Rumour:
		r.ensemble.rumours.bury(other, r.ensemble.rumours.member[h], gossip.Dead)
		r.lasts(f, func() { r.ensemble.rumours.up(other, h) })
	case PowerAll:
		if f.N > 0 {
			h.countdowns = append(h.countdowns, &countdown{n: f.N, fire: func() { r.powerAll(f) }})
			return
		}
		r.powerAll(f)
	default:
		panic("sim: a fault of one broker came to many")
	}
}

// powerAll ends everything that was not synced, everywhere.
func (r *run) powerAll(f *FaultPlan) {
	r.counted("power of all lost")
	if r.acks > 0 {
		r.counted("acknowledged before the power failed")
	}
	for i, o := range r.hosts {
		if o.node.Running() != nil {
			o.power(f.Seed + uint64(i))
		}
		o.again(f.Pause)
	}
}

// isolate cuts a broker off, or ends that.
func (r *run) isolate(h *host, on bool) {
	for _, o := range r.hosts {
		if o != h {
			r.world.Net.Hold(h.node.Name, o.node.Name, on)
		}
	}
	if on {
		r.ensemble.rumours.silent(h)
	} else {
		r.ensemble.rumours.back(h)
	}
}
