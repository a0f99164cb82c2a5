package cluster

import (
	"errors"
	"strings"
	"testing"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

func TestNewRefusesWhatNoVoterLeftBehind(t *testing.T) {
	g := loneGenesis(t)
	other, err := Genesis(Promise{ClusterID: "c1", Voters: []Voter{voterOf(1)}})
	if err != nil {
		t.Fatal(err)
	}
	newer := newWriter()
	newer.array(1)
	newer.uint(snapshotVersion + 1)
	entry := func(index, term uint64) Entry {
		return encodeEntry(&pb.Entry{Index: &index, Term: &term, Type: pb.EntryNormal.Enum()})
	}
	for name, c := range map[string]struct {
		change func(d *Durable)
		kind   error
		says   string
	}{
		"nothing":                 {func(d *Durable) { *d = Durable{} }, ErrDamaged, "no snapshot"},
		"no hard state":           {func(d *Durable) { d.HardState = nil }, ErrDamaged, "no hard state"},
		"hard state of noise":     {func(d *Durable) { d.HardState = []byte{1, 2} }, ErrDamaged, "hard state"},
		"short hard state":        {func(d *Durable) { d.HardState = []byte{0x91, 1} }, ErrDamaged, "fewer than 3"},
		"snapshot of noise":       {func(d *Durable) { d.Snapshot.Data = []byte{0xc1} }, ErrDamaged, "index 1"},
		"newer snapshot":          {func(d *Durable) { d.Snapshot.Data = newer.buf.Bytes() }, ErrNewerVersion, "version 2"},
		"mislabelled snapshot":    {func(d *Durable) { d.Snapshot.Index = 2 }, ErrDamaged, "stored for index 2"},
		"gap after the snapshot":  {func(d *Durable) { d.Entries = []Entry{entry(3, 1)} }, ErrDamaged, "missing"},
		"gap between entries":     {func(d *Durable) { d.Entries = []Entry{entry(2, 1), entry(4, 1)} }, ErrDamaged, "follows"},
		"falling terms":           {func(d *Durable) { d.Entries = []Entry{entry(2, 1), entry(3, 0)} }, ErrDamaged, "follows"},
		"entry without a type":    {func(d *Durable) { d.Entries = []Entry{{Index: 2, Term: 1}} }, ErrDamaged, "no known type"},
		"entry of an unknown one": {func(d *Durable) { d.Entries = []Entry{{Index: 2, Term: 1, Data: []byte{9}}} }, ErrDamaged, "no known type"},
		"commit beyond the end":   {func(d *Durable) { d.HardState = encodeHardState(1, 0, 5) }, ErrDamaged, "is committed"},
		"term below the entries'": {func(d *Durable) { d.HardState, d.Entries = encodeHardState(1, 0, 1), []Entry{entry(2, 4)} }, ErrDamaged, "hard state term 1"},
		"another node's log":      {func(d *Durable) { *d = other }, nil, "not among the voters"},
	} {
		d := copyOf(g)
		c.change(&d)
		_, err := New(Options{Node: loneVoter.Node, Broker: loneVoter.Broker, Durable: d})
		if err == nil || c.kind != nil && !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGenesisWantsAnOddPromise(t *testing.T) {
	twice := []Voter{voterOf(1), voterOf(1), voterOf(2)}
	sameNode := []Voter{voterOf(1), voterOf(2), {Node: voterOf(1).Node, Broker: 3, Directory: ident.DirectoryID{7}}}
	for name, p := range map[string]Promise{
		"no voters":       {ClusterID: "c"},
		"two voters":      {ClusterID: "c", Voters: []Voter{voterOf(1), voterOf(2)}},
		"a voter twice":   {ClusterID: "c", Voters: twice},
		"a node id twice": {ClusterID: "c", Voters: sameNode},
		"no cluster id":   {Voters: []Voter{voterOf(1)}},
		"node id 0":       {ClusterID: "c", Voters: []Voter{{Broker: 1, Directory: ident.DirectoryID{1}}}},
		"no directory":    {ClusterID: "c", Voters: []Voter{{Node: 1, Broker: 1}}},
		"negative broker": {ClusterID: "c", Voters: []Voter{{Node: 1, Broker: -1, Directory: ident.DirectoryID{1}}}},
	} {
		if _, err := Genesis(p); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	a, errA := Genesis(Promise{ClusterID: "c", Voters: []Voter{voterOf(1), voterOf(2), voterOf(3)}})
	b, errB := Genesis(Promise{ClusterID: "c", Voters: []Voter{voterOf(3), voterOf(1), voterOf(2)}})
	if errA != nil || errB != nil || string(a.Snapshot.Data) != string(b.Snapshot.Data) {
		t.Errorf("the order of voters changes the promise: %v %v", errA, errB)
	}
}

func TestALeaderActsOnlyAfterTheFirstEntryOfItsTermIsApplied(t *testing.T) {
	d := diskOf(loneGenesis(t))
	c, err := New(Options{Node: loneVoter.Node, Broker: loneVoter.Broker, Durable: d.durable()})
	if err != nil {
		t.Fatal(err)
	}
	out := &Out{}
	c.Step(Now{Mono: 1}, &Start{}, out)
	rounds := 0
	for !c.Leading() {
		// Until the disk has answered for vote and entry, every command is refused, even when Raft already calls this node the leader.
		asked := &DescribeQuorum{Ask: Ask{Request: ident.RequestID(rounds + 1)}}
		c.Step(Now{Mono: 1}, asked, out)
		if len(out.Reply) != 1 || out.Reply[0].Err == nil || out.Reply[0].Err.Code != wire.NotController {
			t.Fatalf("round %d: %+v", rounds, out.Reply)
		}
		saves := append([]Save(nil), out.Persist...)
		out.Reset()
		if rounds++; rounds > 10 || len(saves) == 0 {
			t.Fatalf("no election after %d rounds", rounds)
		}
		for _, s := range saves {
			c.Step(Now{Mono: 1}, &Persisted{Save: s.ID}, out)
		}
		out.Reply = out.Reply[:0]
	}
	if rounds < 3 {
		t.Fatalf("elected after %d rounds: vote and entry were not waited for", rounds)
	}
}

// committedEntry is a raft log whose entry at index 2 is committed.
func committedEntry(t *testing.T, kind pb.EntryType, data []byte) Durable {
	t.Helper()
	d := loneGenesis(t)
	index, term := uint64(2), uint64(1)
	d.Entries = []Entry{encodeEntry(&pb.Entry{Index: &index, Term: &term, Type: kind.Enum(), Data: data})}
	d.HardState = encodeHardState(1, 0, 2)
	return d
}

func TestEntriesOfANewerVersionStopTheMachineWithWords(t *testing.T) {
	value := "x"
	for name, c := range map[string]struct {
		kind pb.EntryType
		data []byte
		says string
	}{
		"unknown record": {pb.EntryNormal, raw(func(w *writer) { w.open(codeEnd, 0) }), "newer version"},
		"voter change":   {pb.EntryConfChangeV2, nil, "newer version"},
		"noise":          {pb.EntryNormal, []byte{0xc1}, "malformed"},
		"contradiction":  {pb.EntryNormal, EncodeBatch([]Record{&ConfigRecord{Resource: topicResource("nosuch"), Name: "x", Value: &value}}), "contradicts"},
	} {
		c1, err := New(Options{Node: loneVoter.Node, Broker: loneVoter.Broker, Durable: committedEntry(t, c.kind, c.data)})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out, told := &Out{}, ""
		c1.Step(Now{Mono: 1}, &Start{}, out)
		for range 10 {
			saves := append([]Save(nil), out.Persist...)
			for _, n := range out.Note {
				if n.Kind == NoteFailed {
					told = n.Text
				}
			}
			out.Reset()
			for _, s := range saves {
				c1.Step(Now{Mono: 1}, &Persisted{Save: s.ID}, out)
			}
			c1.Tick(Now{Mono: 1}, out)
		}
		if !strings.Contains(told, c.says) || !strings.Contains(told, "index 2") || c1.Leading() || c1.Image().Index() != 1 {
			t.Errorf("%s: note %q, leading %t, index %d", name, told, c1.Leading(), c1.Image().Index())
		}
		if err := c1.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestASlowControllerFencesNobody(t *testing.T) {
	l := startLone(t, diskOf(loneGenesis(t)), Options{})
	l.register(1)
	fenced := func() bool {
		b, _ := l.c.Image().Broker(1)
		return b.Fenced
	}
	l.now.Mono += 60_000 * millisecond // the process was stopped for a minute, and so was the broker's heart
	l.c.Tick(l.now, &l.out)
	l.settle()
	if fenced() {
		t.Fatal("the controller blames the broker for its own absence")
	}
	for range 59 {
		l.now.Mono += 100 * millisecond
		l.c.Tick(l.now, &l.out)
		l.settle()
	}
	if fenced() {
		t.Fatal("fenced before its session ended")
	}
	for range 3 {
		l.now.Mono += 100 * millisecond
		l.c.Tick(l.now, &l.out)
		l.settle()
	}
	if !fenced() {
		t.Fatal("a silent broker is never fenced")
	}
}

func TestASecondProcessUnderAnotherBrokersIdIsRefusedWhileTheFirstLives(t *testing.T) {
	l := startLone(t, diskOf(loneGenesis(t)), Options{})
	first := registration(2, 1, "")
	epoch := l.ask(first, &first.Ask).Body.(*RegisterBrokerReply).Epoch
	hb := &Heartbeat{Broker: 2, Epoch: epoch, Applied: l.c.Image().Index(), Arrived: l.now.Mono}
	l.ask(hb, &hb.Ask)
	second := registration(2, 2, "")
	if r := l.ask(second, &second.Ask); r.Err == nil || r.Err.Code != wire.DuplicateBrokerRegistration {
		t.Fatalf("%+v", r)
	}
	l.now.Mono += 7000 * millisecond // no heartbeat for longer than a session
	if r := l.ask(second, &second.Ask); r.Err != nil {
		t.Fatal(r.Err)
	}
	ghost := &Heartbeat{Broker: 2, Epoch: epoch, Applied: l.c.Image().Index(), Arrived: l.now.Mono}
	if r := l.ask(ghost, &ghost.Ask); r.Err == nil || r.Err.Code != wire.StaleBrokerEpoch {
		t.Fatalf("the first process still counts: %+v", r)
	}
}

// TestAControllerDoesNotEndARunThatItHasNotHeardOf: it stood still, and another one has registered the broker anew meanwhile.
func TestAControllerDoesNotEndARunThatItHasNotHeardOf(t *testing.T) {
	l := startLone(t, diskOf(loneGenesis(t)), Options{})
	first := registration(2, 1, "")
	epoch := l.ask(first, &first.Ask).Body.(*RegisterBrokerReply).Epoch
	for _, id := range []ident.BrokerID{2, 3} {
		later := &Heartbeat{Broker: id, Epoch: epoch + 100, Arrived: l.now.Mono}
		if r := l.ask(later, &later.Ask); r.Err == nil || r.Err.Code != wire.NotController {
			t.Errorf("broker %d, of a registration to come: %+v", id, r)
		}
	}
	never := &Heartbeat{Broker: 3, Epoch: epoch, Arrived: l.now.Mono}
	if r := l.ask(never, &never.Ask); r.Err == nil || r.Err.Code != wire.BrokerIDNotRegistered {
		t.Errorf("a broker that is not there: %+v", r)
	}
}
