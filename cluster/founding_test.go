package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-broker/troupe/wire/ident"
)

// hall is where brokers look for a cluster. Whoever is up hears the others; a broker that found a cluster says so from then on.
type hall struct {
	t      *testing.T
	guests []*guest
	b      strings.Builder
}

// guest is one broker with its directory.
type guest struct {
	hall    *hall
	options FoundingOptions
	disk    *disk
	f       *Founding // nil: down, or not needed any more
	up      bool
	slow    bool // its disk does not answer
	pending *Promise
	cluster ident.ClusterID // that it belongs to
	founded *Promise
	out     FoundingOut
}

func (h *hall) guest(number int) *guest {
	for _, g := range h.guests {
		if int(g.options.Self.Broker) == number && (g.up || g.disk != nil) {
			return g
		}
	}
	h.t.Fatalf("no broker %d", number)
	return nil
}

// admit brings a broker with an empty directory; two with one number have different directories.
func (h *hall) admit(number, expect int, join bool) *guest {
	h.t.Helper()
	v := voterOf(number)
	v.Node += ident.NodeID(1000 * len(h.guests))
	v.Directory[1] = byte(len(h.guests))
	g := &guest{hall: h, disk: diskOf(Durable{}), options: FoundingOptions{
		Self:      Announcement{Broker: v.Broker, Node: v.Node, Directory: v.Directory, Expect: expect},
		ClusterID: ident.ClusterID(fmt.Sprintf("c%d", number)), Features: []FeatureLevel{{PeerVersion, 1}}, Join: join, Numbered: true,
	}}
	h.guests = append(h.guests, g)
	return g
}

func (g *guest) say(format string, args ...any) {
	fmt.Fprintf(&g.hall.b, "%d: "+format+"\n", append([]any{g.options.Self.Broker}, args...)...)
}

// start brings a broker up; one that listens hears the others before it decides anything.
func (g *guest) start(listens bool) {
	g.hall.t.Helper()
	g.up = true
	if g.cluster != "" {
		return
	}
	o := g.options
	o.Durable = g.disk.durable()
	f, err := NewFounding(o)
	if err != nil {
		g.up = false
		g.say("%v", err)
		return
	}
	g.f = f
	if listens {
		for _, from := range g.hall.guests {
			if from != g && from.up {
				from.tell(g)
			}
		}
	}
	g.step(&Begin{})
}

func (g *guest) stop() {
	g.up, g.f, g.pending = false, nil, nil
	g.disk.crash()
	for _, o := range g.hall.guests {
		if o.f != nil && o != g {
			o.step(&Gone{Broker: g.options.Self.Broker, Node: g.options.Self.Node})
		}
	}
}

func (g *guest) step(cmd FoundingCommand) {
	g.hall.t.Helper()
	g.f.Step(cmd, &g.out)
	out := g.out
	g.out = FoundingOut{}
	if out.Found != nil {
		g.say("starts cluster %s", out.Found.ClusterID)
		g.cluster, g.founded, g.f = out.Found.ClusterID, out.Found, nil
	}
	if out.Join != "" {
		g.say("joins cluster %s", out.Join)
		g.cluster, g.f = out.Join, nil
	}
	if out.Promise != nil {
		g.say("promises cluster %s of %s", out.Promise.ClusterID, describeVoters(out.Promise.Voters))
		g.pending = out.Promise
	}
	if out.Waits != "" {
		g.say("%s", out.Waits)
	}
	if out.Promise != nil && !g.slow {
		g.sync()
	}
}

func describeVoters(voters []Voter) string {
	var out []string
	for _, v := range voters {
		out = append(out, fmt.Sprint(v.Broker))
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// sync writes the promise that is pending.
func (g *guest) sync() {
	g.hall.t.Helper()
	if g.pending == nil {
		return
	}
	d, err := Genesis(*g.pending)
	if err != nil {
		g.hall.t.Fatal(err)
	}
	g.disk = diskOf(d)
	g.pending = nil
	g.step(&Promised{})
}

// announcement is what a broker tells now.
func (g *guest) announcement() Announcement {
	a := g.options.Self
	if g.f != nil {
		a = g.f.Announcement()
	}
	if g.cluster != "" {
		a.Cluster, a.Promise = g.cluster, g.founded
	}
	return a
}

// tell brings one broker's word to another, as bytes.
func (g *guest) tell(to *guest) {
	g.hall.t.Helper()
	a, err := DecodeAnnouncement(EncodeAnnouncement(g.announcement()))
	if err != nil || !reflect.DeepEqual(a, g.announcement()) {
		g.hall.t.Fatalf("%+v arrives as %+v, %v", g.announcement(), a, err)
	}
	if to.f != nil {
		to.step(&Announced{a})
	}
}

// talk lets everybody hear everybody until nothing changes.
func (h *hall) talk(deaf map[int]bool) {
	h.t.Helper()
	for range 10 {
		for _, from := range h.guests {
			for _, to := range h.guests {
				if from != to && from.up && to.up && !deaf[int(from.options.Self.Broker)] && !deaf[int(to.options.Self.Broker)] {
					from.tell(to)
				}
			}
		}
	}
}

// TestFoundings runs the scripts in testdata/foundings.
func TestFoundings(t *testing.T) {
	datadriven.Walk(t, "testdata/foundings", func(t *testing.T, path string) {
		t.Helper()
		h := &hall{t: t}
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			t.Helper()
			h.b.Reset()
			number := func(key string, def int) int {
				td.MaybeScanArgs(t, key, &def)
				return def
			}
			deaf := map[int]bool{}
			switch td.Cmd {
			case "hall":
				h.guests = nil
			case "start": // broker=N expect=N join: a new one, or one that stopped
				n := number("broker", 1)
				var g *guest
				for _, o := range h.guests {
					if int(o.options.Self.Broker) == n && !o.up && !td.HasArg("new") {
						g = o
					}
				}
				if g == nil {
					g = h.admit(n, number("expect", 0), td.HasArg("join"))
				}
				g.slow = td.HasArg("slow")
				g.start(td.HasArg("listens"))
			case "stop":
				h.guest(number("broker", 1)).stop()
			case "sync":
				h.guest(number("broker", 1)).sync()
			case "forget":
				g := h.guest(number("broker", 1))
				if _, fresh, err := PromiseOf(g.disk.durable()); err != nil || !fresh {
					t.Fatalf("broker %d has nothing to forget: %v", number("broker", 1), err)
				}
				g.disk = diskOf(Durable{})
			case "talk": // deaf=N: one that nobody hears and that hears nobody
				deaf[number("deaf", 0)] = true
				h.talk(deaf)
			default:
				t.Fatalf("no verb %s", td.Cmd)
			}
			if h.b.Len() == 0 {
				return "ok\n"
			}
			return h.b.String()
		})
	})
}

// TestNoTwoClustersAreFounded lets brokers come, go, crash and hear each other in any order. A directory promises once; whoever starts Raft has the promise
// of all voters on their disks; and as there are fewer brokers than two clusters need, all that is founded is one cluster. In the end it is.
func TestNoTwoClustersAreFounded(t *testing.T) {
	ends := map[string]int{}
	for seed := range int64(300) {
		rng := rand.New(rand.NewSource(seed))
		h := &hall{t: t}
		n := 3 + rng.Intn(3)
		for i := 1; i <= n; i++ {
			expect := 3
			if i > 3 && rng.Intn(4) > 0 {
				expect = 0
			}
			g := h.admit(i, expect, true)
			g.slow = rng.Intn(3) == 0
		}
		promised := map[*guest]ident.ClusterID{}
		check := func() {
			t.Helper()
			for _, g := range h.guests {
				if d := g.disk.durable(); d.Snapshot != nil {
					p, _, err := PromiseOf(d)
					if err != nil {
						t.Fatal(err)
					}
					if old, ok := promised[g]; ok && old != p.ClusterID {
						t.Fatalf("seed %d: broker %d promised cluster %s, then %s", seed, g.options.Self.Broker, old, p.ClusterID)
					}
					promised[g] = p.ClusterID
				}
			}
			for _, g := range h.guests {
				if g.founded == nil {
					continue
				}
				ends["founded"]++
				if want, err := Genesis(*g.founded); err != nil || !bytes.Equal(want.Snapshot.Data, g.disk.durable().Snapshot.Data) {
					t.Fatalf("seed %d: broker %d starts Raft on something else than the promise: %v", seed, g.options.Self.Broker, err)
				}
				for _, o := range h.guests {
					if o.founded != nil && o.founded.ClusterID != g.founded.ClusterID {
						t.Fatalf("seed %d: clusters %s and %s", seed, o.founded.ClusterID, g.founded.ClusterID)
					}
					if slices.Contains(g.founded.Voters, o.options.Self.voter()) && promised[o] != g.founded.ClusterID {
						t.Fatalf("seed %d: broker %d starts a cluster that broker %d has not promised", seed, g.options.Self.Broker, o.options.Self.Broker)
					}
				}
			}
		}
		for range 200 {
			a, b := h.guests[rng.Intn(n)], h.guests[rng.Intn(n)]
			switch k := rng.Intn(12); {
			case k == 0 && a.up:
				a.stop()
			case k <= 2 && !a.up:
				a.start(rng.Intn(2) == 0)
			case k == 3:
				a.sync()
			case a != b && a.up && b.up:
				a.tell(b)
			}
			check()
		}
		for _, g := range h.guests {
			if g.slow = false; g.pending != nil {
				g.sync()
			}
			if !g.up {
				g.start(false)
			}
		}
		h.talk(nil)
		check()
		members := 0
		for _, g := range h.guests {
			if g.cluster != "" {
				members++
			}
		}
		for _, g := range h.guests {
			if members > 0 && g.f != nil && !strings.Contains(g.f.waits, "forget-bootstrap") {
				t.Fatalf("seed %d: broker %d stays outside and says %q", seed, g.options.Self.Broker, g.f.waits)
			}
		}
		switch {
		case members == n:
			ends["all are in"]++
		case members > 0:
			ends["some are promised elsewhere"]++
		default:
			ends["nobody is"]++ // four announced themselves, or two promises cross: an operator decides
		}
		if n == 3 && members != 3 {
			t.Fatalf("seed %d: three brokers that expect three found nothing:\n%s", seed, h.b.String())
		}
	}
	if ends["all are in"] == 0 || ends["nobody is"] == 0 || ends["founded"] == 0 {
		t.Errorf("%v", ends)
	}
}

func TestFoundersAreToldWhatContradictsItself(t *testing.T) {
	self := Announcement{Broker: 1, Node: 101, Directory: ident.DirectoryID{1}}
	lone, err := Genesis(Promise{ClusterID: "c", Voters: []Voter{voterOf(2)}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		expect         int
		join, numbered bool
		durable        Durable
		says           string
	}{
		"two":               {2, true, true, Durable{}, "1, 3 or 5"},
		"nothing":           {0, false, true, Durable{}, "without --join"},
		"alone with others": {1, true, true, Durable{}, "leave one of them out"},
		"no number":         {3, true, false, Durable{}, "needs --broker-id"},
		"another's promise": {3, true, true, lone, "TRP-4003"},
		"noise":             {3, true, true, Durable{Snapshot: &Snapshot{Index: 1, Term: 1, Data: []byte{0xc1}}, HardState: lone.HardState}, "TRP-4001"},
	} {
		self.Expect = c.expect
		if _, err := NewFounding(FoundingOptions{Self: self, Join: c.join, Numbered: c.numbered, Durable: c.durable}); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAPromiseIsForgottenOnlyBeforeRaftHasStarted: afterwards a voter's vote may rest on it.
func TestAPromiseIsForgottenOnlyBeforeRaftHasStarted(t *testing.T) {
	d := diskOf(loneGenesis(t))
	if p, fresh, err := PromiseOf(d.durable()); err != nil || !fresh || p.ClusterID != "c1" || !slices.Equal(p.Voters, []Voter{loneVoter}) {
		t.Fatalf("%+v, fresh %t, %v", p, fresh, err)
	}
	for node, want := range map[ident.NodeID]Role{loneVoter.Node: RoleFounder, 99: RoleObserver} {
		if role, err := RoleOf(d.durable(), node); err != nil || role != want {
			t.Fatalf("node %v has role %d, %v", node, role, err)
		}
	}
	startLone(t, d, Options{})
	if role, err := RoleOf(d.durable(), loneVoter.Node); err != nil || role != RoleVoter {
		t.Fatalf("role %d after the start, %v", role, err)
	}
	if role, err := RoleOf(Durable{}, 1); err != nil || role != RoleNone {
		t.Fatalf("role %d without a log, %v", role, err)
	}
	if _, err := RoleOf(Durable{HardState: []byte{1}}, 1); !errors.Is(err, ErrDamaged) {
		t.Fatal(err)
	}
	if _, fresh, err := PromiseOf(d.durable()); err != nil || fresh {
		t.Fatalf("fresh %t after Raft has started, %v", fresh, err)
	}
}

func FuzzDecodeAnnouncement(f *testing.F) {
	f.Add(EncodeAnnouncement(Announcement{Broker: 1, Node: 2, Directory: ident.DirectoryID{3}, Expect: 3, Cluster: "c"}))
	full := EncodeAnnouncement(Announcement{Broker: 1, Node: 2, Expect: 5, Promise: &Promise{
		ClusterID: "mPdxEDEzTnWOBDHjTzLWxg", Voters: []Voter{voterOf(1), voterOf(2), voterOf(3), voterOf(4), voterOf(5)}, Features: []FeatureLevel{{PeerVersion, 1}, {GroupVersion, 1}},
	}})
	if len(full) > 400 {
		f.Fatalf("an announcement of %d bytes", len(full))
	}
	f.Add(full)
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := DecodeAnnouncement(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		again := EncodeAnnouncement(a)
		if back, err := DecodeAnnouncement(again); err != nil || !bytes.Equal(EncodeAnnouncement(back), again) {
			t.Fatalf("%+v comes back as %+v, %v", a, back, err)
		}
	})
}
