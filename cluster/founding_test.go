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
	run     Incarnation
	ghosts  []Gone // runs that are over, which gossip still shows
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
		ClusterID: ident.ClusterID(fmt.Sprintf("c%d", number)), Features: []FeatureLevel{{PeerVersion, 1}}, Serves: []FeatureRange{{PeerVersion, 1, 2}}, Join: join, Numbered: true,
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
	g.run[0], g.run[1] = g.run[0]+1, byte(g.options.Self.Broker)
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
	g.step(&Begin{Address: g.address()})
}

func (g *guest) stop() {
	g.die()
	g.bury()
}

// die ends a broker, and gossip has not noticed.
func (g *guest) die() {
	g.up, g.f, g.pending = false, nil, nil
	g.disk.crash()
	g.ghosts = append(g.ghosts, Gone{Broker: g.options.Self.Broker, Node: g.options.Self.Node, Run: g.run})
}

// bury lets gossip notice.
func (g *guest) bury() {
	for i := range g.ghosts {
		for _, o := range g.hall.guests {
			if o.f != nil {
				o.step(&g.ghosts[i])
			}
		}
	}
	g.ghosts = nil
}

func (g *guest) address() string { return fmt.Sprintf("10.0.0.%d:9094", g.options.Self.Broker) }

// show lets gossip show a broker to another.
func (g *guest) show(to *guest) {
	a := g.announcement()
	if to.f != nil {
		to.step(&Seen{Broker: a.Broker, Node: a.Node, Run: g.run, Address: g.address(), Expect: a.Expect, Cluster: a.Cluster})
	}
}

// gossip lets gossip show everybody to everybody.
func (h *hall) gossip() {
	for _, from := range h.guests {
		for _, to := range h.guests {
			if from != to && from.up && to.up {
				from.show(to)
			}
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
		if out.Wrong {
			out.Waits += " (!)"
		}
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
		to.step(&Announced{a, g.run})
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
				if td.HasArg("newer") {
					g.options.Features, g.options.Serves = []FeatureLevel{{PeerVersion, 3}}, []FeatureRange{{PeerVersion, 1, 3}}
				}
				g.slow = td.HasArg("slow")
				g.start(td.HasArg("listens"))
			case "stop":
				h.guest(number("broker", 1)).stop()
			case "die": // gossip has not noticed
				h.guest(number("broker", 1)).die()
			case "bury":
				h.guest(number("broker", 1)).bury()
			case "remember": // gossip shows a broker its own earlier life
				g := h.guest(number("broker", 1))
				last := g.ghosts[len(g.ghosts)-1]
				g.step(&Seen{Broker: last.Broker, Node: last.Node, Run: last.Run, Address: fmt.Sprintf("10.0.0.%d:9094", last.Broker), Expect: g.options.Self.Expect})
			case "rumour": // gossip says to another that a broker is gone, which it is not: its links stay
				g := h.guest(number("broker", 1))
				h.guest(number("at", 1)).step(&Gone{Broker: g.options.Self.Broker, Node: g.options.Self.Node, Run: g.run})
			case "tell": // it announces itself to one other
				h.guest(number("broker", 1)).tell(h.guest(number("to", 1)))
			case "gossip": // shows everybody to everybody, without a link
				h.gossip()
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
				a.die()
			case k == 1 && !a.up:
				a.bury()
			case k == 4 && a != b && a.up && b.up:
				a.show(b)
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
		for _, g := range h.guests {
			g.bury()
		}
		h.gossip()
		h.talk(nil)
		h.gossip()
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

// TestFoundersFindEachOtherAfterRumours: three founders are suspected by gossip, restart and lose links, in any order. As on links, a broker announces itself
// when one opens and when its word changes, and not again. Once all are up, linked and shown, they have a cluster, with nothing said twice.
func TestFoundersFindEachOtherAfterRumours(t *testing.T) {
	rumours := 0
	for seed := range int64(500) {
		rng := rand.New(rand.NewSource(seed))
		h := &hall{t: t}
		for i := 1; i <= 3; i++ {
			h.admit(i, 3, true).slow = rng.Intn(3) == 0
		}
		type link struct{ from, to *guest }
		told := map[link]string{} // of the links that are open
		open := func(from, to *guest) {
			l := link{from, to}
			if word := fmt.Sprintf("%x", EncodeAnnouncement(from.announcement())); from.up && to.up && told[l] != word {
				told[l] = word
				from.tell(to)
			}
		}
		spread := func() {
			for range 4 {
				for _, from := range h.guests {
					for _, to := range h.guests {
						if _, ok := told[link{from, to}]; ok {
							open(from, to)
						}
					}
				}
			}
		}
		for range 60 {
			a, b := h.guests[rng.Intn(3)], h.guests[rng.Intn(3)]
			switch k := rng.Intn(12); {
			case !a.up && k < 6:
				a.bury() // gossip knows of the next run only when it has met it: the order of the two is any
				a.start(false)
			case !a.up:
				a.start(false)
			case k == 0:
				a.die()
				for _, o := range h.guests {
					delete(told, link{a, o})
					delete(told, link{o, a})
				}
			case a == b || !b.up:
			case k == 1:
				delete(told, link{a, b})
			case k <= 4 && b.f != nil: // dead, or left
				rumours++
				b.step(&Gone{Broker: a.options.Self.Broker, Node: a.options.Self.Node, Run: a.run})
			case k <= 7:
				a.show(b)
			case k == 8:
				a.sync()
			default:
				open(a, b)
			}
			spread()
		}
		for _, g := range h.guests {
			if g.slow = false; g.pending != nil {
				g.sync()
			}
			if !g.up {
				g.start(false)
			}
			g.bury()
		}
		h.gossip()
		for _, from := range h.guests {
			for _, to := range h.guests {
				if from != to {
					open(from, to)
				}
			}
		}
		spread()
		for _, g := range h.guests {
			if g.cluster == "" {
				t.Fatalf("seed %d: broker %d waits for ever:\n%s", seed, g.options.Self.Broker, h.b.String())
			}
		}
	}
	if rumours == 0 {
		t.Error("nobody was suspected")
	}
}

// TestStrangersThatComeAndGoAreForgotten: what is remembered of runs that are out of sight is bounded.
func TestStrangersThatComeAndGoAreForgotten(t *testing.T) {
	h := &hall{t: t}
	g := h.admit(1, 3, true)
	g.start(false)
	for i := range 3 * sightsMax {
		who := Announcement{Broker: 2, Node: ident.NodeID(1000 + i), Expect: 3}
		g.step(&Announced{who, Incarnation{1}})
		g.step(&Gone{Broker: who.Broker, Node: who.Node, Run: Incarnation{1}})
	}
	if len(g.f.sights) != 0 || len(g.f.words) != sightsMax {
		t.Errorf("%d sights and %d words are left", len(g.f.sights), len(g.f.words))
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
	startLone(t, d, Options{})
	if _, _, err := PromiseOf(Durable{HardState: []byte{1}}); !errors.Is(err, ErrDamaged) {
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
