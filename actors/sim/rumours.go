package sim

import (
	"math/rand/v2"
	"time"

	"github.com/troupe-broker/troupe/cluster/gossip"
)

// Bounds of the time until gossip has reached somebody.
const (
	rumourMax    = 800 * time.Millisecond
	deathSoonest = time.Second // as measured of memberlist with the tuned settings
	deathLatest  = 2600 * time.Millisecond
	rumourAgain  = 300 * time.Millisecond
	rumourLostOf = 12 // one death of so many is never told
)

// rumours is gossip as the simulation has it: facts that reach every broker in their own time, some of them never.
type rumours struct {
	run    *run
	rand   *rand.Rand
	member map[*host]gossip.Member         // what the newest life of each tells
	shown  map[*host]map[[16]byte]sighting // by viewer and incarnation; forgotten when the viewer dies
}

// sighting is an incarnation that a viewer is shown alive.
type sighting struct {
	host   *host
	member gossip.Member
}

func newRumours(r *run) *rumours {
	return &rumours{run: r, rand: r.world.Rand("rumours"), member: make(map[*host]gossip.Member), shown: make(map[*host]map[[16]byte]sighting)}
}

// tell spreads what a broker says of itself. One that has just started is shown the others as well.
func (g *rumours) tell(h *host, m gossip.Member) {
	before, known := g.member[h]
	g.member[h] = m
	for _, o := range g.run.hosts {
		if o != h {
			g.up(o, h)
		}
	}
	if !known || before.Incarnation != m.Incarnation {
		life := h.lives
		g.after(0, rumourMax, func() {
			if h.lives == life && h.broker != nil {
				g.look(h)
			}
		})
	}
}

// look shows all others to one that has just started, and tells it that these were all.
func (g *rumours) look(h *host) {
	for _, o := range g.run.hosts {
		if o != h {
			g.show(h, o)
		}
	}
	h.broker.LookedAround()
}

// up shows a broker to another in a while, as it is then.
func (g *rumours) up(viewer, h *host) { g.after(0, rumourMax, func() { g.show(viewer, h) }) }

func (g *rumours) after(least, most time.Duration, f func()) {
	g.run.world.after(between(g.rand, least, most), f)
}

func (g *rumours) show(viewer, h *host) {
	m, told := g.member[h]
	if viewer.broker == nil || h.broker == nil || !told || h.stopping {
		return
	}
	if viewer.isolated() || h.isolated() {
		g.after(rumourAgain, 2*rumourAgain, func() { g.show(viewer, h) })
		return
	}
	seen := g.shown[viewer]
	if seen == nil {
		seen = make(map[[16]byte]sighting)
		g.shown[viewer] = seen
	}
	f := gossip.Fact{State: gossip.Joined, Member: m}
	if _, again := seen[m.Incarnation]; again {
		f.State = gossip.Updated
	}
	seen[m.Incarnation] = sighting{h, m}
	g.heard(viewer, f)
}

func (g *rumours) heard(viewer *host, f gossip.Fact) {
	g.run.world.event("gossip for "+viewer.node.Name, uint64(f.State), uint64(f.Member.Broker))
	viewer.broker.Heard(f)
}

// gone tells all others, each in its time, that a life of a broker is over, or seems to be.
func (g *rumours) gone(h *host, s gossip.State) {
	m, told := g.member[h]
	if !told {
		return
	}
	for _, o := range g.run.hosts {
		if o == h || s == gossip.Dead && g.rand.IntN(rumourLostOf) == 0 && !g.run.healed {
			continue
		}
		g.after(deathSoonest, deathLatest, func() { g.bury(o, m, s) })
	}
}

// bury tells a viewer that an incarnation is gone, if it was shown to it.
func (g *rumours) bury(viewer *host, m gossip.Member, s gossip.State) {
	if _, seen := g.shown[viewer][m.Incarnation]; viewer.broker != nil && seen {
		delete(g.shown[viewer], m.Incarnation)
		g.heard(viewer, gossip.Fact{State: s, Member: m})
	}
}

// silent tells, after a while, that a broker which stands still, or reaches nobody, is dead; and it that the others are.
func (g *rumours) silent(h *host) {
	life := h.lives
	m := g.member[h]
	for _, o := range g.run.hosts {
		if o == h {
			continue
		}
		g.after(deathSoonest, deathLatest, func() {
			if h.lives == life && (h.frozen || h.isolated()) {
				g.bury(o, m, gossip.Dead)
			}
		})
		g.after(deathSoonest, deathLatest, func() {
			if h.lives == life && h.isolated() {
				g.bury(h, g.member[o], gossip.Dead)
			}
		})
	}
}

// back shows a broker that was silent again, and the others to it.
func (g *rumours) back(h *host) {
	for _, o := range g.run.hosts {
		if o != h {
			g.up(o, h)
			g.up(h, o)
		}
	}
}

// died forgets what a process was shown.
func (g *rumours) died(h *host) {
	delete(g.shown, h)
	if !h.stopping {
		g.gone(h, gossip.Dead)
	}
}
