package cluster

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math/rand"
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire/ident"
)

// world is several controllers in memory, with disks that forget what is not synced and a post that can lose, hold back and reorder letters. Without
// a random source everything happens in the order in which it was asked for.
type world struct {
	t       testing.TB
	rng     *rand.Rand // nil: first come, first served
	now     Now
	nodes   []*member
	images  []*Image // that any node has published, by index
	post    []mail
	cut     map[[2]int]bool // letters from one node to another are lost
	lossPct int
	trace   func(format string, args ...any)

	committed map[uint64]uint64 // index → hash of the image every node must have there
	leaders   map[uint64]int    // term → node that acted in it
	events    uint64            // hash over everything that happened
	nextTopic byte
	replies   map[ident.RequestID]Reply
	requests  ident.RequestID
}

type mail struct {
	from, to int
	letter   Letter
}

type member struct {
	w       *world
	number  int // from 1; also its broker id
	options Options
	disk    *disk
	c       *Controller // nil: down, or an observer
	seat    testSeat
	held    bool // its disk takes its time
	out     Out
	saves   []Save
	image   *Image // newest published
}

func voterOf(number int) Voter {
	return Voter{Node: ident.NodeID(100 + number), Broker: ident.BrokerID(number), Directory: ident.DirectoryID{0: byte(number), 15: 200}}
}

func newWorld(tb testing.TB, voters int, o Options, rng *rand.Rand) *world {
	tb.Helper()
	w := &world{
		t: tb, rng: rng, now: Now{Mono: 1_000_000_000, Wall: 1_700_000_000_000}, cut: map[[2]int]bool{}, trace: func(string, ...any) {},
		committed: map[uint64]uint64{}, leaders: map[uint64]int{}, replies: map[ident.RequestID]Reply{},
	}
	p := Promise{ClusterID: "c1", Features: []FeatureLevel{{Name: PeerVersion, Level: 1}}}
	for n := 1; n <= voters; n++ {
		p.Voters = append(p.Voters, voterOf(n))
	}
	g, err := Genesis(p)
	if err != nil {
		tb.Fatal(err)
	}
	if o.Features == nil {
		o.Features = []FeatureRange{{Name: PeerVersion, Min: 1, Max: 2}, {Name: "test.version", Min: 0, Max: 3}}
	}
	for n := 1; n <= voters; n++ {
		o.Node, o.Broker = voterOf(n).Node, voterOf(n).Broker
		w.nodes = append(w.nodes, &member{w: w, number: n, options: o, disk: diskOf(g)})
	}
	return w
}

func (w *world) node(number int) *member { return w.nodes[number-1] }

// start builds a controller from the node's disk.
func (n *member) start() {
	n.w.t.Helper()
	o := n.options
	o.Durable = n.disk.durable()
	if !n.votes(o.Durable) {
		n.observe(nil)
		return
	}
	c, err := New(o)
	if err != nil {
		n.w.t.Fatalf("node %d: %v", n.number, err)
	}
	n.c, n.image = c, nil
	n.step(&Start{})
}

// stop kills the node; letters and saves in flight are lost, and with a crash everything that is not synced.
func (n *member) stop(crash bool) {
	n.c, n.saves, n.image, n.seat = nil, nil, nil, testSeat{}
	n.out.Reset()
	if crash {
		n.disk.crash()
	}
}

func (n *member) step(cmd Command) {
	n.w.t.Helper()
	n.c.Step(n.w.now, cmd, &n.out)
	n.carryOut()
}

func (n *member) tick() {
	n.w.t.Helper()
	n.c.Tick(n.w.now, &n.out)
	n.carryOut()
}

// carryOut does what Out asks and holds what happened against what all nodes agree on.
func (n *member) carryOut() {
	w := n.w
	w.t.Helper()
	n.saves = append(n.saves, n.out.Persist...)
	for _, l := range n.out.Send {
		w.hash("send %d %d %x", n.number, l.To, l.Data)
		w.post = append(w.post, mail{from: n.number, to: int(l.To) - 100, letter: l})
	}
	for _, c := range n.out.Commit {
		n.commit(c)
	}
	for _, r := range n.out.Reply {
		if _, twice := w.replies[r.Request]; twice {
			w.t.Fatalf("request %d is answered twice", r.Request)
		}
		w.replies[r.Request] = r
		w.trace("%d> %s\n", n.number, describeReply(r))
	}
	for _, note := range n.out.Note {
		w.hash("note %d %+v", n.number, note)
		if note.Kind == NoteElected {
			if other, ok := w.leaders[note.Term]; ok && other != n.number {
				w.t.Fatalf("nodes %d and %d both act in term %d", other, n.number, note.Term)
			}
			w.leaders[note.Term] = n.number
		}
		w.trace("%d: %s\n", n.number, describeNote(note))
	}
	n.pull(n.out.Ask)
	if n.out.Reseat != nil {
		n.seat.next = n.out.Reseat
	}
	n.out.Reset()
	if err := n.c.Check(); err != nil {
		w.t.Fatalf("node %d: %v", n.number, err)
	}
}

// commit checks that images follow each other and are the same everywhere.
func (n *member) commit(c Committed) {
	w := n.w
	w.t.Helper()
	if n.image != nil && !c.Delta.Whole && c.Image.Index() != n.image.Index()+1 {
		w.t.Fatalf("node %d: image %d follows %d", n.number, c.Image.Index(), n.image.Index())
	}
	if n.image != nil {
		want := diff(n.image, c.Image)
		want.Whole = c.Delta.Whole
		if got, want := describeDelta(c.Delta), describeDelta(want); got != want {
			w.t.Fatalf("node %d index %d: the delta says\n%sthe images say\n%s", n.number, c.Image.Index(), got, want)
		}
	}
	n.image = c.Image
	if k := len(w.images); k == 0 || w.images[k-1].Index() < c.Image.Index() {
		w.images = append(w.images, c.Image)
	}
	h := hashOf(EncodeSnapshot(c.Image))
	if other, ok := w.committed[c.Image.Index()]; ok && other != h {
		w.t.Fatalf("node %d has another image at index %d than the first node had", n.number, c.Image.Index())
	}
	w.committed[c.Image.Index()] = h
	w.hash("commit %d %d %x", n.number, c.Image.Index(), h)
}

func hashOf(b []byte) uint64 {
	h := fnv.New64a()
	if _, err := h.Write(b); err != nil {
		panic(err)
	}
	return h.Sum64()
}

func (w *world) hash(format string, args ...any) {
	h := fnv.New64a()
	if _, err := fmt.Fprintf(h, "%x "+format, append([]any{w.events}, args...)...); err != nil {
		panic(err)
	}
	w.events = h.Sum64()
}

// turn does one thing that is due: a save that reaches the disk, or a letter that arrives. It tells whether there was one.
func (w *world) turn() bool {
	w.t.Helper()
	var due []func()
	for _, n := range w.nodes {
		if n.c != nil && len(n.saves) > 0 && !n.held {
			due = append(due, n.persist)
		}
	}
	for i := range w.post {
		if w.rng == nil && i > 0 {
			break
		}
		due = append(due, func() { w.deliver(i) })
	}
	if len(due) == 0 {
		return false
	}
	pick := 0
	if w.rng != nil {
		pick = w.rng.Intn(len(due))
	}
	due[pick]()
	return true
}

func (n *member) persist() {
	n.w.t.Helper()
	s := n.saves[0]
	n.saves = n.saves[1:]
	n.disk.save(s)
	if r := n.seat.next; r != nil && r.Save == s.ID {
		n.observe(n.image)
		return
	}
	n.step(&Persisted{Save: s.ID})
}

func (w *world) deliver(i int) {
	w.t.Helper()
	m := w.post[i]
	w.post = append(w.post[:i:i], w.post[i+1:]...)
	lost := w.cut[[2]int{m.from, m.to}] || w.rng != nil && w.rng.Intn(100) < w.lossPct
	to := w.node(m.to)
	if from := w.node(m.from); m.letter.Snapshot && from.c != nil {
		from.step(&SnapshotSent{Node: m.letter.To, Failed: lost || to.c == nil})
	}
	if !lost && to.c != nil {
		to.step(&Receive{Data: bytes.Clone(m.letter.Data)})
	}
}

// settle runs turns until nothing is due.
func (w *world) settle() {
	w.t.Helper()
	for turns := 0; w.turn(); turns++ {
		if turns > 1_000_000 {
			w.t.Fatal("the world does not come to rest")
		}
	}
}

// ticks lets time pass for all nodes that are up.
func (w *world) ticks(n int) {
	w.t.Helper()
	for range n {
		w.now.Mono += 100 * millisecond
		w.now.Wall += 100
		for _, n := range w.nodes {
			if n.c != nil {
				n.tick()
			}
			n.seat.tick()
		}
		w.settle()
	}
}

// controller returns the node that acts, nil if none or more than one does.
func (w *world) controller() *member {
	var found *member
	for _, n := range w.nodes {
		if n.c == nil || !n.c.Leading() {
			continue
		}
		if found != nil {
			return nil
		}
		found = n
	}
	return found
}

// await lets time pass until somebody acts.
func (w *world) await() *member {
	w.t.Helper()
	for range 200 {
		if n := w.controller(); n != nil {
			return n
		}
		w.ticks(1)
	}
	w.t.Fatalf("nobody is elected in 20 s:%s", w.state())
	return nil
}

// request gives a command an id and hands it to a node; the reply may come later.
func (w *world) request(n *member, a *Ask, cmd Command) ident.RequestID {
	w.t.Helper()
	w.requests++
	a.Request = w.requests
	n.step(cmd)
	return a.Request
}

// ask is request with the reply.
func (w *world) ask(n *member, a *Ask, cmd Command) Reply {
	w.t.Helper()
	id := w.request(n, a, cmd)
	w.settle()
	r, ok := w.replies[id]
	if !ok {
		w.t.Fatalf("no answer to %T", cmd)
	}
	return r
}

func registration(broker int, incarnation byte, rack string) *RegisterBroker {
	return &RegisterBroker{
		Broker: ident.BrokerID(broker), Incarnation: Incarnation{incarnation, byte(broker)}, ClusterID: "c1", Rack: rack,
		Directories: []ident.DirectoryID{voterOf(broker).Directory},
		Endpoints:   []Endpoint{{Name: "PLAINTEXT", Host: fmt.Sprintf("host%d", broker), Port: uint16(9090 + broker)}},
		Features:    []FeatureRange{{Name: PeerVersion, Min: 1, Max: 2}, {Name: "test.version", Min: 0, Max: 2}},
	}
}

// hold says that all replicas of the broker in an image were found at the start, but those that are gone.
func (cmd *RegisterBroker) hold(m *Image, gone, unverified []ReplicaRef) {
	h := Held{Directory: cmd.Directories[0]}
	for t := range m.Topics() {
		of := HeldTopic{Topic: t.ID}
		for i, p := range t.Partitions {
			ref := ReplicaRef{Topic: t.ID, Partition: int32(i)}
			switch {
			case !p.HasReplica(cmd.Broker) || slices.Contains(gone, ref):
			case slices.Contains(unverified, ref):
				of.Unverified = append(of.Unverified, ref.Partition)
			default:
				of.Whole = append(of.Whole, ref.Partition)
			}
		}
		h.Topics = append(h.Topics, of)
	}
	cmd.Held = []Held{h}
	if b, ok := m.Broker(cmd.Broker); ok {
		cmd.Runs = []Incarnation{b.Incarnation}
	}
}

// join registers and unfences a broker with whoever acts.
func (w *world) join(broker int, incarnation byte, rack string) ident.BrokerEpoch {
	w.t.Helper()
	leader := w.await()
	reg := registration(broker, incarnation, rack)
	reg.hold(leader.c.Image(), nil, nil)
	r := w.ask(leader, &reg.Ask, reg)
	if r.Err != nil {
		w.t.Fatalf("register broker %d: %v", broker, r.Err)
	}
	epoch := r.Body.(*RegisterBrokerReply).Epoch
	hb := &Heartbeat{Broker: ident.BrokerID(broker), Epoch: epoch, Applied: leader.c.Image().Index(), Arrived: w.now.Mono}
	if r := w.ask(leader, &hb.Ask, hb); r.Err != nil || r.Body.(*HeartbeatReply).Fenced {
		w.t.Fatalf("heartbeat of broker %d: %s", broker, describeReply(r))
	}
	return epoch
}

func topicResource(name string) config.Resource {
	return config.Resource{Type: config.TopicResource, Name: name}
}
