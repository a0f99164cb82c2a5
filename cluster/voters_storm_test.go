package cluster

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"testing/cryptotest"

	"github.com/troupe-broker/troupe/wire/ident"
)

// TestVotersChangeThroughStorms lets operators change the voters of a quorum in which members die, lose power, are cut off, and now and then lose their disk
// for good. Whatever was acknowledged stays, no two act in one term, all images agree (carryOut and commit look at each step), and at the end those who should
// vote do, and nobody else.
func TestVotersChangeThroughStorms(t *testing.T) {
	clear(reached)
	seeds := int64(24)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newVoterStorm(t, seed).run(t) })
	}
	for _, what := range []string{"stops", "cuts", "promoted", "retired", "added", "removed", "replaced", "topics acknowledged", "several controllers"} {
		if reached[what] == 0 {
			t.Errorf("never happened: %s", what)
		}
	}
}

type voterStorm struct {
	*world
	rng     *rand.Rand
	lost    *member // a voter without its disk, not removed yet
	acked   map[string]bool
	pending map[ident.RequestID]string
	changes map[ident.RequestID]string
	id      byte
}

func newVoterStorm(t *testing.T, seed int64) *voterStorm {
	t.Helper()
	cryptotest.SetGlobalRandom(t, uint64(seed)+1)
	s := &voterStorm{rng: rand.New(rand.NewSource(seed)), acked: map[string]bool{}, pending: map[ident.RequestID]string{}, changes: map[ident.RequestID]string{}}
	s.world = newWorld(t, []int{1, 3}[s.rng.Intn(2)], Options{SnapshotBytes: 2000, KeepBytes: 500}, nil)
	for len(s.nodes) < 5 {
		s.hire(voterOf(len(s.nodes) + 1).Broker)
	}
	for _, n := range s.nodes {
		n.start()
	}
	for _, n := range s.nodes {
		n.enrol(1)
	}
	s.upgrade()
	s.world.rng, s.lossPct = s.rng, s.rng.Intn(8)
	return s
}

func (s *voterStorm) run(t *testing.T) {
	t.Helper()
	for range 600 {
		s.trouble()
		s.change()
		if n := s.nodes[s.rng.Intn(len(s.nodes))]; n.c != nil {
			s.randomCommand(s.rng, n, &s.id, s.acked, s.pending)
		}
		for range s.rng.Intn(20) {
			if !s.turn() {
				break
			}
		}
		if s.rng.Intn(2) == 0 {
			s.now.Mono += 100 * millisecond
			s.now.Wall += 100
			for _, n := range s.nodes {
				if n.c != nil {
					n.tick()
				}
				n.seat.tick()
			}
			s.beatAll()
		}
		s.collect(s.acked, s.pending)
		s.count()
	}
	s.calm(t)
}

// trouble breaks or mends something, now and then.
func (s *voterStorm) trouble() {
	n := s.nodes[s.rng.Intn(len(s.nodes))]
	mine := s.home(n.options.Broker) == n
	switch s.rng.Intn(50) {
	case 0:
		if n.c != nil || n.seat.watch != nil {
			n.stop(s.rng.Intn(2) == 0)
			reached["stops"]++
		}
	case 1, 2, 3, 4, 5:
		if mine && n.c == nil && n.seat.watch == nil {
			n.start()
		}
	case 6:
		for _, o := range s.nodes {
			s.cut[[2]int{n.number, o.number}] = true
			s.cut[[2]int{o.number, n.number}] = s.rng.Intn(3) > 0
		}
		reached["cuts"]++
	case 7, 8, 9:
		clear(s.cut)
	case 10:
		s.replace(n)
	}
}

// replace takes a voter's disk away for good, if the others can do without.
func (s *voterStorm) replace(n *member) {
	if s.lost != nil || s.home(n.options.Broker) != n || s.rng.Intn(3) > 0 {
		return
	}
	s.mend()
	if m := s.await().c.Image(); len(m.Voters()) < 3 || !isVoter(m, n.options.Node) {
		return
	}
	s.lost = n
	s.hire(n.options.Broker).start()
	reached["replaced"]++
}

// change lets an operator add or remove a voter.
func (s *voterStorm) change() {
	leader := s.controller()
	if leader == nil || s.rng.Intn(4) > 0 {
		return
	}
	m := leader.c.Image()
	n := s.nodes[s.rng.Intn(len(s.nodes))]
	if s.lost != nil && !isVoter(m, s.lost.options.Node) && len(s.changes) == 0 {
		s.lost = nil
	}
	var cmd Command
	var a *Ask
	switch b, known := m.Broker(n.options.Broker); {
	case s.home(n.options.Broker) == n && (!known || !slices.Contains(b.Directories, n.directory())):
		reg := registration(int(n.options.Broker), byte(n.number), "")
		reg.Directories = []ident.DirectoryID{n.directory()}
		reg.hold(m, nil, nil)
		a, cmd = &reg.Ask, reg
	case s.lost != nil && isVoter(m, s.lost.options.Node):
		c := &RemoveVoter{Broker: s.lost.options.Broker, Directory: s.lost.directory()}
		a, cmd = &c.Ask, c
	case !isVoter(m, n.options.Node) && len(m.Voters()) < 5:
		c := &AddVoter{Broker: n.options.Broker, Directory: n.directory()}
		a, cmd = &c.Ask, c
	case isVoter(m, n.options.Node) && s.rng.Intn(2) == 0:
		c := &RemoveVoter{Broker: n.options.Broker, Directory: n.directory()}
		a, cmd = &c.Ask, c
	default:
		return
	}
	id := s.request(leader, a, cmd)
	switch cmd.(type) { //nolint:gochecksumtype // the others are no changes
	case *AddVoter:
		s.changes[id] = "added"
	case *RemoveVoter:
		s.changes[id] = "removed"
	}
}

// count notes which changes were granted, and forgets those that were answered.
func (s *voterStorm) count() {
	for id, what := range s.changes {
		if r, ok := s.replies[id]; ok {
			delete(s.changes, id)
			if r.Err == nil {
				reached[what]++
			}
		}
	}
	clear(s.changes) // whoever died answers nobody
}

// mend ends all faults but that of the lost disk, and waits until what was begun is finished.
func (s *voterStorm) mend() {
	clear(s.cut)
	loss := s.lossPct
	s.lossPct, s.world.rng = 0, nil
	for _, n := range s.nodes {
		if s.home(n.options.Broker) == n && n.c == nil && n.seat.watch == nil {
			n.start()
		}
	}
	s.await()
	s.live(20)
	s.await()
	s.lossPct, s.world.rng = loss, s.rng
}

// calm heals everything, finishes what was begun, and looks at the outcome.
func (s *voterStorm) calm(t *testing.T) {
	t.Helper()
	s.mend()
	leader := s.await()
	s.world.rng = nil
	if s.lost != nil && isVoter(leader.c.Image(), s.lost.options.Node) {
		granted(t, s.removeVoter(s.lost))
	}
	var voters []*member
	for _, n := range s.nodes {
		if isVoter(s.await().c.Image(), n.options.Node) {
			voters = append(voters, n)
		}
	}
	s.votersAre(t, voters...)
	for name := range s.acked {
		if _, ok := s.await().c.Image().Topic(name); !ok {
			t.Fatalf("topic %s was acknowledged and is gone", name)
		}
	}
	s.create(t, "at-the-end")
	if len(s.acked) > 0 {
		reached["topics acknowledged"]++
	}
	if len(s.leaders) > 1 {
		reached["several controllers"]++
	}
}
