package cluster

import (
	"fmt"
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/wire/ident"
)

// testSeat is what a member has besides its controller: an observer in its place, or a voter's doubts.
type testSeat struct {
	watch *watcher // nil: a voter, or down
	next  *Reseat  // of a voter, once it is on disk
	open  map[ident.RequestID]uint64
	n     *member
}

// votes tells whether the disk says that this member is a voter, as a start of the broker reads it.
func (n *member) votes(d Durable) bool {
	if d.Snapshot == nil {
		return false
	}
	p, _, err := PromiseOf(d)
	if err != nil {
		n.w.t.Fatal(err)
	}
	return slices.ContainsFunc(p.Voters, func(v Voter) bool { return v.Node == n.options.Node })
}

// observe makes the member an observer, from what its disk keeps.
func (n *member) observe(published *Image) {
	n.w.t.Helper()
	n.c, n.saves = nil, nil
	x := newWatcher(n.w, ObserverOptions{Broker: n.options.Broker, Node: n.options.Node, Cluster: "c1", Voters: []ident.BrokerID{1, 2, 3, 4, 5}})
	x.disk, x.member = n.disk, n
	o := x.options
	o.Durable = n.disk.durable()
	observer, err := NewObserver(o)
	if err != nil {
		n.w.t.Fatal(err)
	}
	x.o, x.image = observer, published
	n.seat = testSeat{watch: x, n: n}
	if published != nil {
		reached["retired"]++
	}
	x.step(&Start{Published: published})
}

// promote makes the member a voter. Its disk has what the observer kept last.
func (n *member) promote(published *Image) {
	n.w.t.Helper()
	o := n.options
	o.Durable = n.disk.durable()
	c, err := New(o)
	if err != nil {
		n.w.t.Fatalf("node %d: %v", n.number, err)
	}
	n.c, n.image, n.seat = c, published, testSeat{n: n}
	reached["promoted"]++
	n.step(&Start{Published: published})
}

// pull sends what a voter asks that doubts its vote.
func (n *member) pull(ask *PullAsk) {
	if ask == nil {
		return
	}
	w := n.w
	to := w.home(ask.To)
	if to == nil || to.c == nil || w.cut[[2]int{n.number, to.number}] || w.cut[[2]int{to.number, n.number}] {
		return
	}
	if n.seat.open == nil {
		n.seat.open, n.seat.n = map[ident.RequestID]uint64{}, n
	}
	p := ask.Pull
	w.requests++
	p.Request, p.Deadline = w.requests, w.now.Mono+ident.Instant(ask.WaitMs)*millisecond
	n.seat.open[p.Request] = ask.ID
	to.step(&p)
}

// tick lets an observer go on, and brings a voter what it pulled.
func (s *testSeat) tick() {
	if s.watch != nil {
		s.watch.tick()
		return
	}
	for _, id := range slices.Sorted(mapsKeys(s.open)) {
		if r, ok := s.n.w.replies[id]; ok && s.n.c != nil {
			pull := s.open[id]
			delete(s.open, id)
			s.n.step(&Pulled{Pull: pull, Reply: r})
		}
	}
}

// home is the member in which a broker lives; nil: nowhere.
func (w *world) home(b ident.BrokerID) *member {
	for _, n := range slices.Backward(w.nodes) {
		if n.options.Broker == b {
			return n
		}
	}
	return nil
}

// hire adds a member with an empty disk, that is nothing yet. A broker that is there already has lost its disk.
func (w *world) hire(broker ident.BrokerID) *member {
	if old := w.home(broker); old != nil {
		old.stop(false)
	}
	number := len(w.nodes) + 1
	o := w.nodes[0].options
	o.Node, o.Broker = voterOf(number).Node, broker
	n := &member{w: w, number: number, options: o, disk: diskOf(Durable{})}
	w.nodes = append(w.nodes, n)
	return n
}

func (n *member) directory() ident.DirectoryID { return voterOf(n.number).Directory }

// newest is the image that a member published last; nil: it is down or has none.
func (n *member) newest() *Image {
	if n.seat.watch != nil {
		return n.seat.watch.image
	}
	if n.c == nil {
		return nil
	}
	return n.c.Image()
}

// enrol registers the broker of a member with the controller, as the present run of it.
func (n *member) enrol(incarnation byte) {
	w := n.w
	w.t.Helper()
	leader := w.await()
	reg := registration(int(n.options.Broker), incarnation, "")
	reg.Directories = []ident.DirectoryID{n.directory()}
	reg.hold(leader.c.Image(), nil, nil)
	if r := w.ask(leader, &reg.Ask, reg); r.Err != nil {
		w.t.Fatalf("register broker %d: %v", n.options.Broker, r.Err)
	}
}

// upgrade lets the cluster use what only newer builds know.
func (w *world) upgrade() {
	w.t.Helper()
	cmd := &UpdateFeatures{Updates: []FeatureUpdate{{Name: PeerVersion, Level: votersSince, Kind: Upgrade}}}
	if r := w.ask(w.await(), &cmd.Ask, cmd); r.Err != nil || r.Body.(*UpdateFeaturesReply).Features[0].Err != nil {
		w.t.Fatalf("raising %s: %s", PeerVersion, describeReply(r))
	}
}

// beatAll lets every broker that is up and registered tell the controller what it has and what it is.
func (w *world) beatAll() {
	w.t.Helper()
	leader := w.controller()
	if leader == nil {
		return
	}
	for _, n := range w.nodes {
		m := n.newest()
		b, ok := leader.c.Image().Broker(n.options.Broker)
		if m == nil || !ok || !slices.Contains(b.Directories, n.directory()) {
			continue
		}
		hb := &Heartbeat{Broker: b.ID, Epoch: b.Epoch, Applied: m.Index(), Arrived: w.now.Mono}
		if n.seat.watch != nil {
			hb.Node = n.options.Node
		}
		w.request(leader, &hb.Ask, hb)
		if leader.c == nil || !leader.c.Leading() {
			return
		}
	}
}

// live lets time pass with heartbeats.
func (w *world) live(ticks int) {
	w.t.Helper()
	for range ticks {
		w.ticks(1)
		w.beatAll()
		w.settle()
	}
}

func (w *world) addVoter(n *member) Reply {
	w.t.Helper()
	cmd := &AddVoter{Cluster: "c1", Broker: n.options.Broker, Directory: n.directory()}
	return w.ask(w.await(), &cmd.Ask, cmd)
}

func (w *world) removeVoter(n *member) Reply {
	w.t.Helper()
	cmd := &RemoveVoter{Cluster: "c1", Broker: n.options.Broker, Directory: n.directory()}
	return w.ask(w.await(), &cmd.Ask, cmd)
}

func granted(t *testing.T, r Reply) {
	t.Helper()
	if r.Err != nil {
		t.Fatal(r.Err)
	}
}

// votersAre waits until the voters, and nobody else, are who is named, and act as such.
func (w *world) votersAre(t *testing.T, members ...*member) {
	t.Helper()
	wrong := ""
	for range 200 {
		if wrong = w.misseated(members); wrong == "" {
			return
		}
		w.live(1)
	}
	t.Fatalf("%s:%s", wrong, w.state())
}

// misseated tells who is not what it should be.
func (w *world) misseated(members []*member) string {
	leader := w.controller()
	if leader == nil {
		return "nobody is the controller"
	}
	voters := leader.c.Image().Voters()
	if len(voters) != len(members) {
		return nodesOf(voters)
	}
	for _, n := range w.nodes {
		wanted := slices.Contains(members, n)
		if wanted != isVoter(leader.c.Image(), n.options.Node) {
			return nodesOf(voters)
		}
		up := n.c != nil || n.seat.watch != nil
		if up && wanted != (n.c != nil) {
			return nodesOf(voters) + "; another one behaves otherwise"
		}
		if m := n.newest(); up && (m == nil || !m.Equal(leader.c.Image())) {
			return "an image lags"
		}
	}
	return ""
}

func nodesOf(voters []Voter) string {
	text := "voters:"
	for _, v := range voters {
		text += " " + v.Node.String()
	}
	return text
}

// state is what every member is, for a failure's text.
func (w *world) state() string {
	text := ""
	for _, n := range w.nodes {
		switch {
		case n.c != nil:
			st := n.c.rn.BasicStatus()
			text += fmt.Sprintf("\nnode %d of broker %d: %v, term %d, vote %d, leader %d, commit %d, last %d, image %d of %s, %q", n.number, n.options.Broker, st.RaftState, st.GetTerm(), st.GetVote(), st.Lead, st.GetCommit(), n.c.last, n.c.image.index, nodesOf(n.c.image.voters), n.c.failed)
		case n.seat.watch != nil:
			text += fmt.Sprintf("\nnode %d of broker %d: an observer", n.number, n.options.Broker)
			if m := n.newest(); m != nil {
				text += fmt.Sprintf(" at %d of %s", m.index, nodesOf(m.voters))
			}
			text += fmt.Sprintf(", asking %d of %v %q; %q", n.seat.watch.o.to, n.seat.watch.o.voters, n.seat.watch.o.failed, n.seat.watch.notes)
		default:
			text += fmt.Sprintf("\nnode %d of broker %d: down", n.number, n.options.Broker)
		}
	}
	return text
}
