package cluster

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// watcher is an observer in the world of voters. Its pulls and answers travel as bytes, may be lost, and may come too late.
type watcher struct {
	w       *world
	options ObserverOptions
	disk    *disk
	o       *Observer // nil: down
	out     ObserverOut
	image   *Image
	open    map[ident.RequestID]uint64 // pulls at voters
	member  *member                    // it may become; nil: it has no part in the quorum
	notes   []string
}

func newWatcher(w *world, o ObserverOptions) *watcher {
	return &watcher{w: w, options: o, disk: diskOf(Durable{}), open: map[ident.RequestID]uint64{}}
}

func (x *watcher) start() {
	x.w.t.Helper()
	o := x.options
	o.Durable = x.disk.durable()
	observer, err := NewObserver(o)
	if err != nil {
		x.w.t.Fatal(err)
	}
	x.o, x.image = observer, nil
	clear(x.open)
	x.step(&Start{})
}

func (x *watcher) step(cmd ObserverCommand) {
	x.w.t.Helper()
	x.o.Step(x.w.now, cmd, &x.out)
	x.carryOut()
}

func (x *watcher) tick() {
	x.w.t.Helper()
	x.o.Tick(x.w.now, &x.out)
	x.carryOut()
	x.collect()
}

func (x *watcher) carryOut() {
	w := x.w
	w.t.Helper()
	for _, s := range x.out.Persist {
		x.disk.save(s)
	}
	for _, c := range x.out.Commit {
		h := hashOf(EncodeSnapshot(c.Image))
		if other, ok := w.committed[c.Image.Index()]; ok && other != h {
			w.t.Fatalf("an observer has another image at index %d than the voters had", c.Image.Index())
		}
		if x.image != nil && (c.Image.Index() <= x.image.Index() || !c.Delta.Whole && c.Image.Index() != x.image.Index()+1) {
			w.t.Fatalf("an observer's image %d follows %d", c.Image.Index(), x.image.Index())
		}
		x.image = c.Image
	}
	for _, n := range x.out.Note {
		if n.Kind == NoteFailed {
			w.t.Fatal(n.Text)
		}
		x.notes = append(x.notes, describeNote(n))
	}
	ask := x.out.Ask
	if r := x.out.Reseat; r != nil {
		x.member.promote(x.image)
		return
	}
	x.out.Reset()
	if ask == nil {
		return
	}
	n := w.home(ask.To)
	if n == nil || n.c == nil || w.rng != nil && w.rng.Intn(100) < 5 {
		return // lost
	}
	b, err := EncodeCommand(&ask.Pull)
	if err != nil {
		w.t.Fatal(err)
	}
	cmd, err := DecodeCommand(b)
	if err != nil {
		w.t.Fatal(err)
	}
	a := AskOf(cmd)
	w.requests++
	a.Request, a.Deadline = w.requests, w.now.Mono+ident.Instant(ask.WaitMs)*millisecond
	x.open[a.Request] = ask.ID
	n.step(cmd)
}

// collect brings the answers that are there.
func (x *watcher) collect() {
	x.w.t.Helper()
	for _, id := range slices.Sorted(mapsKeys(x.open)) {
		r, ok := x.w.replies[id]
		if !ok {
			continue
		}
		pull := x.open[id]
		delete(x.open, id)
		if x.w.rng != nil && x.w.rng.Intn(100) < 5 {
			continue
		}
		back, err := DecodeReply(EncodeReply(r))
		if err != nil {
			x.w.t.Fatal(err)
		}
		x.step(&Pulled{Pull: pull, Reply: back})
	}
}

func mapsKeys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// TestObserversFollowThroughStorms lets observers follow a quorum in which voters die, are cut off and lose the lead. What they have is always what was
// committed, they go back nowhere, and in the end they have all of it. They die, too, and start from what their disk kept.
func TestObserversFollowThroughStorms(t *testing.T) {
	clear(reached)
	for seed := range int64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, uint64(seed)+1)
			rng := rand.New(rand.NewSource(seed))
			w := newWorld(t, 3, Options{SnapshotBytes: 1500, KeepBytes: 300}, rng)
			for _, n := range w.nodes {
				n.start()
			}
			var watchers []*watcher
			for i := range 2 {
				x := newWatcher(w, ObserverOptions{Broker: ident.BrokerID(8 + i), Voters: []ident.BrokerID{1, 2, 3}, BytesMax: int32(100 + rng.Intn(900)), SnapshotBytes: 1000})
				x.start()
				watchers = append(watchers, x)
			}
			id := byte(0)
			for range 250 {
				w.fault(rng)
				if n := w.nodes[rng.Intn(3)]; n.c != nil {
					w.randomCommand(rng, n, &id, map[string]bool{}, map[ident.RequestID]string{})
				}
				for range rng.Intn(20) {
					if !w.turn() {
						break
					}
				}
				w.now.Mono += 100 * millisecond
				for _, n := range w.nodes {
					if n.c != nil {
						n.tick()
					}
				}
				for _, x := range watchers {
					switch {
					case x.o == nil:
						x.start()
					case rng.Intn(60) == 0:
						x.o = nil
						if rng.Intn(2) == 0 {
							x.disk.crash()
						}
						reached["observers died"]++
					default:
						x.tick()
					}
				}
			}
			w.heal()
			w.rng = nil // nothing is lost any more
			for range 120 {
				w.ticks(1)
				for _, x := range watchers {
					if x.o == nil {
						x.start()
					}
					x.tick()
				}
			}
			for _, x := range watchers {
				if !x.image.Equal(w.await().c.Image()) {
					t.Fatalf("an observer is at %d, the controller at %d", x.image.Index(), w.await().c.Image().Index())
				}
				for _, n := range x.notes {
					reached[strings.Fields(n)[0]]++
				}
			}
		})
	}
	for _, what := range []string{"observers died", "restored", "silent", "leader"} {
		if reached[what] == 0 {
			t.Errorf("never happened: %s", what)
		}
	}
}

// quiet is a world of three voters with a topic.
func quiet(t *testing.T, o Options) *world {
	t.Helper()
	cryptotest.SetGlobalRandom(t, 5)
	w := newWorld(t, 3, o, nil)
	for _, n := range w.nodes {
		n.start()
	}
	w.join(1, 1, "")
	w.create(t, "a")
	w.ticks(3)
	return w
}

func (w *world) create(t *testing.T, name string) {
	t.Helper()
	w.nextTopic++
	cmd := &CreateTopics{Topics: []NewTopic{{Name: name, ID: ident.TopicID{0: w.nextTopic}, Partitions: 3, ReplicationFactor: 1}}}
	if r := w.ask(w.await(), &cmd.Ask, cmd); r.Err != nil {
		t.Fatal(r.Err)
	}
}

func TestAnObserverIsToldWhenSomethingHappens(t *testing.T) {
	w := quiet(t, Options{})
	x := newWatcher(w, ObserverOptions{Broker: 8, Voters: []ident.BrokerID{2}})
	x.start()
	for range 3 {
		x.collect() // the snapshot, the entries, and one that waits
	}
	if !x.image.Equal(w.node(2).c.Image()) || len(x.open) != 1 {
		t.Fatalf("image %v, %d pulls wait", x.image, len(x.open))
	}
	w.create(t, "b")
	w.ticks(1)
	x.collect()
	if _, ok := x.image.Topic("b"); !ok {
		t.Fatal("a parked pull is not answered when an entry is committed")
	}
	// Nothing happens: the answer says so before the observer gives the voter up.
	asked := x.o.asked
	for range 15 {
		w.ticks(1)
		x.tick()
	}
	if x.o.asked == asked || x.o.at != 1 || len(x.notes) != 2 {
		t.Fatalf("pull %d after %d, voter %d, %v", x.o.asked, asked, x.o.at, x.notes)
	}
}

func TestAnObserverTurnsToAnotherVoterAfterTwoSeconds(t *testing.T) {
	w := quiet(t, Options{})
	x := newWatcher(w, ObserverOptions{Broker: 8, Voters: []ident.BrokerID{1, 2, 3}})
	x.start()
	x.collect()
	first := x.o.voters[x.o.at%3]
	w.node(int(first)).stop(true)
	clear(x.open)
	for range 20 {
		w.ticks(1)
		x.tick()
	}
	if x.o.voters[x.o.at%3] != first {
		t.Fatal("it gave the voter up within 2 s")
	}
	for range 10 {
		w.ticks(1)
		x.tick()
	}
	if next := x.o.voters[x.o.at%3]; next == first || !slices.Contains(x.notes, "silent") {
		t.Fatalf("it asks %d after %d, %v", next, first, x.notes)
	}
	w.create(t, "c")
	for range 5 {
		w.ticks(1)
		x.tick()
	}
	if _, ok := x.image.Topic("c"); !ok {
		t.Fatal("it does not go on with the next voter")
	}
}

// TestAnEntryTooLargeForAnAnswerComesAsASnapshot: a batch may be larger than a frame between brokers.
func TestAnEntryTooLargeForAnAnswerComesAsASnapshot(t *testing.T) {
	w := quiet(t, Options{})
	for b := 2; b <= 5; b++ {
		w.join(b, 1, "")
	}
	x := newWatcher(w, ObserverOptions{Broker: 8, Voters: []ident.BrokerID{1, 2, 3}})
	x.start()
	for range 3 {
		x.collect()
	}
	cmd := &CreateTopics{Topics: []NewTopic{{Name: "large", ID: ident.TopicID{99}, Partitions: 10_000, ReplicationFactor: 5}}}
	if r := w.ask(w.await(), &cmd.Ask, cmd); r.Err != nil || r.Body.(*CreateTopicsReply).Topics[0].Err != nil {
		t.Fatal(describeReply(r))
	}
	for range 10 {
		w.ticks(1)
		x.tick()
	}
	for _, r := range w.replies {
		if body, ok := r.Body.(*PullReply); ok && len(EncodeReply(Reply{Body: body})) > pullBytesMax+1000 {
			t.Fatalf("an answer of %d bytes", len(EncodeReply(Reply{Body: body})))
		}
	}
	restored := slices.DeleteFunc(slices.Clone(x.notes), func(n string) bool { return !strings.HasPrefix(n, "restored") })
	if topic, ok := x.image.Topic("large"); !ok || len(topic.Partitions) != 10_000 || len(restored) != 2 {
		t.Fatalf("index %d, notes %v", x.image.Index(), x.notes)
	}
	w.create(t, "small")
	for range 5 {
		w.ticks(1)
		x.tick()
	}
	if _, ok := x.image.Topic("small"); !ok {
		t.Fatal("it does not go on with entries")
	}
}

func TestAnObserverOfAnotherClusterGetsNothing(t *testing.T) {
	w := quiet(t, Options{})
	x := newWatcher(w, ObserverOptions{Broker: 8, Cluster: "other", Voters: []ident.BrokerID{1}})
	x.start()
	x.collect()
	if x.o.Image().Index() != 0 || len(x.notes) != 1 || !strings.Contains(x.notes[0], `cluster "c1", not "other"`) {
		t.Fatalf("index %d, %v", x.o.Image().Index(), x.notes)
	}
}

// TestAnObserverBelievesNoNonsense sends it what no voter sends: it says what was wrong, asks the next voter, pauses when all were wrong, and keeps what it has.
func TestAnObserverBelievesNoNonsense(t *testing.T) {
	w := quiet(t, Options{})
	good := EncodeSnapshot(w.await().c.Image())
	index, term := w.await().c.Image().Index(), w.await().c.Image().Term()
	whole := &SnapshotPiece{Index: index, Term: term, Total: int64(len(good)), Data: good}
	for name, c := range map[string]struct {
		reply Reply
		says  string
	}{
		"a refusal":               {Reply{Err: refuse(wire.NotController, "stopped")}, "stopped"},
		"another reply":           {Reply{Body: &VerifiedReply{}}, "something else"},
		"a gap":                   {Reply{Body: &PullReply{Entries: []Entry{{Index: 5, Term: 1, Data: []byte{0}}}}}, "does not follow"},
		"no entry":                {Reply{Body: &PullReply{Entries: []Entry{{Index: 1, Term: 1}}}}, "no known type"},
		"a piece from the middle": {Reply{Body: &PullReply{Snapshot: &SnapshotPiece{Index: index, Total: 10, Offset: 3, Data: []byte("x")}}}, "after 0"},
		"an empty piece":          {Reply{Body: &PullReply{Snapshot: &SnapshotPiece{Index: index, Total: 10}}}, "after 0"},
		"too much":                {Reply{Body: &PullReply{Snapshot: &SnapshotPiece{Index: index, Total: 10, Data: bytes.Repeat([]byte("x"), 11)}}}, "after 0"},
		"a giant":                 {Reply{Body: &PullReply{Snapshot: &SnapshotPiece{Index: index, Total: 1 << 40, Data: []byte("x")}}}, "more than"},
		"noise":                   {Reply{Body: &PullReply{Snapshot: &SnapshotPiece{Index: index, Total: 1, Data: []byte{0xc1}}}}, "malformed"},
		"another index":           {Reply{Body: &PullReply{Snapshot: &SnapshotPiece{Index: index + 1, Term: term, Total: whole.Total, Data: good}}}, "was sent as"},
		"another cluster":         {Reply{Body: &PullReply{Snapshot: whole}}, `cluster "c1", this broker of "c2"`},
	} {
		o, err := NewObserver(ObserverOptions{Broker: 8, Cluster: "c2", Voters: []ident.BrokerID{1, 2}})
		if err != nil {
			t.Fatal(err)
		}
		var out ObserverOut
		o.Step(Now{Mono: 1}, &Start{}, &out)
		first := out.Ask
		out.Reset()
		o.Step(Now{Mono: 2}, &Pulled{Pull: first.ID, Reply: c.reply}, &out)
		if n := len(out.Note); n == 0 || out.Note[n-1].Kind != NoteDropped || !strings.Contains(out.Note[n-1].Text, c.says) || len(out.Persist) > 0 || o.Image().Index() != 0 {
			t.Errorf("%s: %+v", name, out)
		}
		second := out.Ask
		if second == nil || second.To == first.To {
			t.Fatalf("%s: then it asks %+v", name, second)
		}
		out.Reset()
		o.Step(Now{Mono: 2}, &Pulled{Pull: second.ID, Reply: c.reply}, &out)
		if out.Ask != nil {
			t.Errorf("%s: it asks on and on", name)
		}
		out.Reset()
		o.Tick(Now{Mono: 503 * millisecond}, &out)
		if out.Ask == nil || out.Ask.To != first.To {
			t.Errorf("%s: in the end it asks %+v", name, out.Ask)
		}
	}
}

func TestAnObserverStopsAtMetadataOfANewerVersion(t *testing.T) {
	o, err := NewObserver(ObserverOptions{Broker: 8, Voters: []ident.BrokerID{1}})
	if err != nil {
		t.Fatal(err)
	}
	var out ObserverOut
	o.Step(Now{Mono: 1}, &Start{}, &out)
	entry := Entry{Index: 1, Term: 1, Data: append([]byte{0}, raw(func(w *writer) { w.open(codeEnd, 0) })...)}
	o.Step(Now{Mono: 2}, &Pulled{Pull: 1, Reply: Reply{Body: &PullReply{Entries: []Entry{entry}}}}, &out)
	if n := len(out.Note); out.Note[n-1].Kind != NoteFailed || !strings.Contains(out.Note[n-1].Text, "newer version") {
		t.Fatalf("%+v", out.Note)
	}
	out.Reset()
	if o.Tick(Now{Mono: 100_000 * millisecond}, &out); out.Ask != nil {
		t.Fatal("it goes on behind an entry that it does not know")
	}
}

// A broker that joins knows the members of the cluster and not who of them votes. It waited half a second after each that does not.
func TestAnObserverAsksOnUntilAVoterAnswers(t *testing.T) {
	o, err := NewObserver(ObserverOptions{Broker: 9, Cluster: "c", Voters: []ident.BrokerID{4, 5, 6, 7}})
	if err != nil {
		t.Fatal(err)
	}
	now := Now{Mono: 1}
	var asked []ident.BrokerID
	refuse := Reply{Err: refuse(wire.NotController, "no vote")}
	answer := func(out *ObserverOut, r Reply) {
		for out.Ask != nil {
			asked = append(asked, out.Ask.To)
			id := out.Ask.ID
			out.Reset()
			if len(asked) > 20 {
				t.Fatalf("it never pauses: %v", asked)
			}
			o.Step(now, &Pulled{Pull: id, Reply: r}, out)
		}
		out.Reset()
	}
	var out ObserverOut
	o.Step(now, &Start{}, &out)
	answer(&out, refuse)
	if !slices.Equal(asked, []ident.BrokerID{4, 5, 6, 7}) {
		t.Fatalf("asked are %v, and then it pauses", asked)
	}
	o.Tick(now, &out)
	if out.Ask != nil {
		t.Fatal("everybody has refused, and it asks on at once")
	}
	o.Step(now, &Seeds{Voters: []ident.BrokerID{1, 4}}, &out)
	o.Step(now, &Seeds{}, &out) // nobody is shown for a moment: that is nobody to ask
	now.Mono += refusalMs * millisecond
	o.Tick(now, &out)
	asked = nil
	answer(&out, Reply{Body: &PullReply{Leader: 1, Term: 1, Entries: []Entry{{Index: 7, Term: 1}}}}) // an answer, and of no use
	// 4 was to be asked next, and stays it.
	if !slices.Equal(asked, []ident.BrokerID{4, 1}) {
		t.Fatalf("asked are %v, and then it pauses", asked)
	}
}
