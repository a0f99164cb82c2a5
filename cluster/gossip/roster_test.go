package gossip

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/hashicorp/memberlist"

	"github.com/troupe-broker/troupe/wire/ident"
)

// bench is a roster without a library behind it.
type bench struct {
	*roster
	t     *testing.T
	wakes int
}

func newBench(t *testing.T, own Member) *bench {
	t.Helper()
	b := &bench{t: t}
	b.roster = newRoster(own, encoded(t, own), func() { b.wakes++ })
	return b
}

func encoded(t *testing.T, m Member) []byte {
	t.Helper()
	meta, err := m.encode()
	if err != nil {
		t.Fatal(err)
	}
	return meta
}

func nameOf(id ident.BrokerID) string {
	m := member(id, "a")
	return m.Name()
}

var somewhere = netip.MustParseAddrPort("10.0.0.9:9094")

// come lets the member in and tells that it is alive.
func (b *bench) come(m Member) error {
	b.t.Helper()
	meta := encoded(b.t, m)
	if err := b.admit(m.Name(), meta, somewhere); err != nil {
		return err
	}
	b.alive(m.Name(), meta, somewhere)
	return nil
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// story prints the facts in one line.
func (b *bench) story() string {
	var words []string
	for _, f := range b.take().Facts {
		words = append(words, fmt.Sprintf("%d %s", f.Member.Broker, f.State))
	}
	return strings.Join(words, ", ")
}

func TestFactsOfOneMemberMerge(t *testing.T) {
	m, later, leaving := member(2, "a"), member(2, "a"), member(2, "a")
	later.Rack, leaving.Leaving = "another", true
	for _, c := range []struct {
		name string
		told string // before
		do   func(b *bench)
		want string
	}{
		{"comes", "", func(b *bench) { b.must(b.come(m)) }, "2 joined"},
		{"comes twice", "", func(b *bench) { b.must(b.come(m)); b.must(b.come(m)) }, "2 joined"},
		{"comes and changes", "", func(b *bench) { b.must(b.come(m)); b.must(b.come(later)) }, "2 joined"},
		{"comes and dies", "", func(b *bench) { b.must(b.come(m)); b.gone(m.Name()) }, "2 dead"},
		{"comes and leaves", "", func(b *bench) { b.must(b.come(m)); b.must(b.come(leaving)); b.gone(m.Name()) }, "2 left"},
		{"changes", "2 joined", func(b *bench) { b.must(b.come(later)) }, "2 updated"},
		{"says the same again", "2 joined", func(b *bench) { b.must(b.come(m)) }, ""},
		{"dies", "2 joined", func(b *bench) { b.gone(m.Name()) }, "2 dead"},
		{"dies and comes back", "2 joined", func(b *bench) { b.gone(m.Name()); b.must(b.come(m)) }, "2 updated"},
		{"dies twice", "2 joined", func(b *bench) { b.gone(m.Name()); b.gone(m.Name()) }, "2 dead"},
		{"nobody dies", "", func(b *bench) { b.gone(m.Name()) }, ""},
		{"we ourselves", "", func(b *bench) { b.must(b.come(member(1, "a"))) }, ""},
		{"in order", "", func(b *bench) {
			b.must(b.come(member(4, "a")))
			b.must(b.come(m))
			b.must(b.come(member(3, "a")))
			b.gone(nameOf(4))
		}, "4 dead, 2 joined, 3 joined"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, member(1, "a"))
			if c.told != "" {
				b.must(b.come(m))
				if got := b.story(); got != c.told {
					t.Fatalf("before it: %q", got)
				}
			}
			before := b.wakes
			c.do(b)
			if got := b.wakes - before; (got == 1) != (c.want != "") || got > 1 {
				t.Errorf("woken %d times", got)
			}
			if got := b.story(); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if got := b.story(); got != "" {
				t.Errorf("told again: %q", got)
			}
		})
	}
}

func TestMemberThatIsGoneMayComeBack(t *testing.T) {
	b := newBench(t, member(1, "a"))
	for range 3 {
		b.must(b.come(member(2, "a")))
		if got := b.story(); got != "2 joined" {
			t.Fatalf("%q", got)
		}
		b.gone(nameOf(2))
		if got := b.story(); got != "2 dead" {
			t.Fatalf("%q", got)
		}
		if len(b.members) != 0 {
			t.Fatal("who is gone and told is remembered")
		}
	}
}

func TestRosterAndStrangersAreBounded(t *testing.T) {
	b := newBench(t, member(1, "a"))
	refused := 0
	for id := ident.BrokerID(2); id < 2*membersMax; id++ {
		if b.come(member(id, "a")) != nil {
			refused++
		}
	}
	if len(b.members) != membersMax || len(b.queue) != membersMax || refused != membersMax-2 {
		t.Errorf("%d members, %d in the queue, %d refused", len(b.members), len(b.queue), refused)
	}
	if notes := b.take().Notes; len(notes) != 1 || notes[0].Code != codeRefused {
		t.Errorf("%d notes: %v", len(notes), notes)
	}
	b.must(b.come(member(2, "a"))) // those who are in stay in
	b.gone(nameOf(2))
	b.take()
	b.must(b.come(member(5000, "a")))

	b = newBench(t, member(1, "a"))
	for id := ident.BrokerID(2); id < 1000; id++ { // let in, and never alive
		m := member(id, "a")
		if err := b.admit(m.Name(), encoded(t, m), somewhere); (err == nil) != (id < 2+strangersMax) {
			t.Fatalf("stranger %d: %v", id, err)
		}
	}
	b.admitStrangers()
	b.must(b.come(member(2000, "a")))
}

func TestNotesAreBoundedWhoeverOffends(t *testing.T) {
	b := newBench(t, member(1, "a"))
	var notes []Note
	for i := range 10 * offendersMax {
		b.note(codeRefused, fmt.Sprint(i), "it offends")
		b.note(codeRefused, fmt.Sprint(i), "it offends again")
		if i%10 == 0 {
			notes = append(notes, b.take().Notes...)
		}
	}
	notes = append(notes, b.take().Notes...)
	if len(notes) != offendersMax+1 || !strings.Contains(notes[len(notes)-1].Text, "not named") {
		t.Errorf("%d notes, the last is %v", len(notes), notes[len(notes)-1])
	}
	b = newBench(t, member(1, "a"))
	for i := range offendersMax {
		b.note(codeRefused, fmt.Sprint(i), "nobody takes")
	}
	if got := len(b.take().Notes); got != notesMax {
		t.Errorf("%d notes waited", got)
	}
	b.note(codeRefused, fmt.Sprint(notesMax), "what had no room is said later")
	if got := len(b.take().Notes); got != 1 {
		t.Errorf("%d notes", got)
	}
}

func TestNewsOfNonsenseIsRefused(t *testing.T) {
	good := member(2, "a")
	meta := encoded(t, good)
	for name, c := range map[string]struct {
		name string
		meta []byte
		at   string
	}{
		"another's name":  {"b3-0102000000000000", meta, "10.0.0.2:9094"},
		"no member":       {good.Name(), []byte("hello"), "10.0.0.2:9094"},
		"nothing":         {good.Name(), nil, "10.0.0.2:9094"},
		"an endless name": {strings.Repeat("b", 1<<20), meta, "10.0.0.2:9094"},
		"everywhere":      {good.Name(), meta, "0.0.0.0:9094"},
		"no port":         {good.Name(), meta, "10.0.0.2:0"},
		"many":            {good.Name(), meta, "224.0.0.1:9094"},
	} {
		b := newBench(t, member(1, "a"))
		if err := b.admit(c.name, c.meta, netip.MustParseAddrPort(c.at)); err == nil {
			t.Errorf("%s is let in", name)
		}
		notes := b.take().Notes
		if len(notes) != 1 || notes[0].Code != codeRefused || len(notes[0].Text) > 512 {
			t.Errorf("%s: notes %.600v", name, notes)
		}
		if err := b.admit(good.Name(), meta, somewhere); err != nil {
			t.Errorf("after %s, a good one is refused: %v", name, err)
		}
	}
}

func TestMergeWithAnotherClusterIsVetoedAsAWhole(t *testing.T) {
	b := newBench(t, member(1, "a"))
	node := func(m Member, state memberlist.NodeStateType) *memberlist.Node {
		return &memberlist.Node{Name: m.Name(), Addr: []byte{10, 0, 0, 2}, Port: 9094, Meta: encoded(t, m), State: state}
	}
	d := delegate{roster: b.roster}
	mates := []*memberlist.Node{node(member(2, "a"), memberlist.StateAlive), node(member(3, ""), memberlist.StateAlive)}
	if err := d.NotifyMerge(mates); err != nil {
		t.Errorf("mates and one without a cluster: %v", err)
	}
	if err := d.NotifyMerge(append(mates, node(member(4, "b"), memberlist.StateDead))); err != nil {
		t.Errorf("the dead do not count: %v", err)
	}
	for _, state := range []memberlist.NodeStateType{memberlist.StateAlive, memberlist.StateSuspect} {
		if err := d.NotifyMerge(append(mates, node(member(4, "b"), state))); err == nil {
			t.Errorf("another cluster runs into ours, %v", state)
		}
	}
	if notes := b.take().Notes; len(notes) != 1 || notes[0].Code != codeForeign {
		t.Errorf("notes %v", notes)
	}
}

func TestNothingIsHeardAfterTheEnd(t *testing.T) {
	b := newBench(t, member(1, "a"))
	b.must(b.come(member(2, "a")))
	b.close()
	before := b.wakes
	b.must(b.come(member(3, "a")))
	b.gone(nameOf(2))
	b.note(codeRefused, "x", "y")
	if got := b.story(); got != "2 joined" || b.wakes != before {
		t.Errorf("%q, woken %d times", got, b.wakes-before)
	}
}
