package gossip

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-broker/troupe/wire/ident"
)

// crowd starts n brokers of one cluster that all know the first by --join, and waits until each sees each.
func crowd(t *testing.T, net *network, n int, change ...func(*Options)) []*broker {
	t.Helper()
	var brokers []*broker
	for id := ident.BrokerID(1); id <= ident.BrokerID(n); id++ {
		o := net.options(member(id, "cluster-a"), "10.0.0.1:9094")
		for _, c := range change {
			c(&o)
		}
		brokers = append(brokers, net.start(o))
	}
	within(t, RejoinInterval+pushPullInterval, "each broker sees each other one", func() bool { return allSee(brokers...) })
	return brokers
}

func TestBrokersFindEachOtherByOneSeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		brokers := crowd(t, newNetwork(t), 5)
		for _, b := range brokers {
			for _, o := range brokers {
				if b == o {
					continue
				}
				want := o.self
				want.Address = o.address
				if got := b.states()[o.self.Name()].Member; !got.equal(&want) {
					t.Errorf("%s hears of %+v, want %+v", b.self.Name(), got, want)
				}
			}
			if len(b.noted()) != 0 {
				t.Errorf("%s has notes: %v", b.self.Name(), b.noted())
			}
		}
	})
}

// The bounds are those of the settings, not of luck: a member is dead 1.2 s after the first suspicion, the first suspicion comes after a failed probe of
// 300 ms, and each round of probes takes 300 ms for each other member. Five members confirm each other's suspicion, which takes up to 4.8 s when nobody does.
func TestKilledBrokerIsDeadForAllInTime(t *testing.T) {
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var times []time.Duration
			for range 20 {
				synctest.Test(t, func(t *testing.T) {
					net := newNetwork(t)
					brokers := crowd(t, net, n)
					victim, rest := brokers[n-1], brokers[:n-1]
					killed := time.Now()
					victim.kill()
					within(t, 5*time.Second, "the killed broker is dead for all", func() bool {
						return !slices.ContainsFunc(rest, func(b *broker) bool { return !b.is(victim, Dead) })
					})
					for _, b := range rest {
						f := b.states()[victim.self.Name()]
						if took := f.at.Sub(killed); took < 1200*time.Millisecond {
							t.Errorf("dead after %v, which leaves no time to refute", took)
						} else {
							times = append(times, took)
						}
					}
				})
			}
			slices.Sort(times)
			t.Logf("n=%d: %d observations, p50 %v, p90 %v, max %v", n, len(times), times[len(times)/2], times[len(times)*9/10], times[len(times)-1])
			if p50, worst := times[len(times)/2], times[len(times)-1]; p50 > 2500*time.Millisecond || worst > 4*time.Second {
				t.Errorf("p50 %v, max %v by the fake clock", p50, worst)
			}
		})
	}
}

// A process that is stopped finds in its socket, when it goes on, what the others have said of it, and refutes. (One whose packets are lost for a second
// may be declared dead, and comes back.)
func TestBrokerThatIsFrozenForASecondIsNotDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		brokers := crowd(t, net, 3)
		frozen := brokers[1]
		for range 20 {
			thaw := frozen.socket.freeze()
			pass(time.Second)
			thaw()
			pass(5 * time.Second)
		}
		for _, b := range []*broker{brokers[0], brokers[2]} {
			for _, f := range b.heard() {
				if f.Member.Broker == frozen.self.Broker && f.State != Joined && f.State != Updated {
					t.Errorf("%s hears that the frozen broker is %v", b.self.Name(), f.State)
				}
			}
		}
	})
}

// Who hears nobody confirm its suspicion waits four times as long, because it may be the one that is cut off.
func TestBrokerThatIsCutOffTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		brokers := crowd(t, net, 5)
		pass(time.Minute)
		net.isolate(brokers[4])
		before := time.Now()
		dead := func() bool {
			return slices.ContainsFunc(brokers[:4], func(b *broker) bool { return brokers[4].is(b, Dead) })
		}
		const unconfirmed = suspicionMaxTimeoutMult * suspicionMult * probeInterval
		within(t, unconfirmed+5*probeInterval, "it calls somebody dead", dead)
		if took := time.Since(before); took < unconfirmed {
			t.Errorf("after %v", took)
		}
	})
}

func TestSplitHealsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		brokers := crowd(t, net, 3)
		apart, rest := brokers[2], brokers[:2]
		net.isolate(apart)
		within(t, 10*time.Second, "both sides take each other for dead", func() bool {
			return apart.is(rest[0], Dead) && apart.is(rest[1], Dead) && rest[0].is(apart, Dead) && rest[1].is(apart, Dead)
		})
		if !allSee(rest...) {
			t.Error("the majority has lost itself")
		}
		pass(5 * time.Minute) // the library has forgotten whom it lost
		net.heal()
		within(t, RejoinInterval+2*time.Second, "all see each other again", func() bool { return allSee(brokers...) })
		if texts := apart.said(CodeUnreachable); len(texts) != 1 {
			t.Errorf("the one apart has only one seed to complain of, once: %q", texts)
		}
	})
}

// A seed is not enough when it is the one that is down: brokers that are registered are contacted, too.
func TestSplitHealsWithoutTheSeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		brokers := crowd(t, net, 3)
		for _, b := range brokers {
			b.register(Peer{1, "10.0.0.1:9094"}, Peer{2, "10.0.0.2:9094"}, Peer{3, "10.0.0.3:9094"})
		}
		net.isolate(brokers[2])
		pass(time.Minute)
		brokers[0].kill()
		net.heal()
		within(t, RejoinInterval+2*time.Second, "the two that are left see each other", func() bool { return allSee(brokers[1:]...) })
	})
}

func TestRestartWithTheSameIDIsAnotherMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		brokers := crowd(t, net, 3)
		old := brokers[2]
		old.kill()
		again := old.self
		again.Incarnation[0]++
		pass(200 * time.Millisecond) // nobody has noticed yet
		now := net.start(net.options(again, "10.0.0.1:9094"))
		rest := brokers[:2]
		within(t, time.Second, "the new run is seen while the old one is still shown", func() bool { return allSee(rest[0], rest[1], now) })
		within(t, 5*time.Second, "the old run is dead", func() bool { return rest[0].is(old, Dead) && rest[1].is(old, Dead) })
		pass(time.Minute)
		if !allSee(rest[0], rest[1], now) || now.sees(old) {
			t.Error("the new run did not stay, or is told of the old one")
		}
	})
}

func TestLeaveIsNotADeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		brokers := crowd(t, newNetwork(t), 3)
		leaver, rest := brokers[1], []*broker{brokers[0], brokers[2]}
		leaver.leave()
		within(t, time.Second, "the others know that it has left", func() bool { return rest[0].is(leaver, Left) && rest[1].is(leaver, Left) })
		pass(time.Minute)
		for _, b := range rest {
			if !b.is(leaver, Left) {
				t.Errorf("%s says %v", b.self.Name(), b.states()[leaver.self.Name()].State)
			}
		}
	})
}

func TestWhatIsAnnouncedReachesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		brokers := crowd(t, newNetwork(t), 3)
		changed := brokers[2].self
		changed.Rack = "elsewhere"
		if err := brokers[2].g.Announce(changed); err != nil {
			t.Fatal(err)
		}
		within(t, time.Second, "the others hear the news", func() bool {
			for _, b := range brokers[:2] {
				f := b.states()[changed.Name()]
				if f.State != Updated || f.Member.Rack != "elsewhere" {
					return false
				}
			}
			return true
		})
	})
}

func TestForeignClusterIsRefusedAndSaysSoOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		ours := crowd(t, net, 3)
		stranger := net.start(net.options(member(9, "cluster-b"), "10.0.0.1:9094", "10.0.0.2:9094"))
		pass(5 * time.Minute)
		for _, b := range ours {
			if _, known := b.states()[stranger.self.Name()]; known {
				t.Errorf("%s has heard of a member of another cluster", b.self.Name())
			}
			if texts := b.said(codeForeign); len(texts) > 1 {
				t.Errorf("%s says it %d times: %q", b.self.Name(), len(texts), texts)
			}
		}
		texts := ours[0].said(codeForeign)
		if len(texts) != 1 || !strings.Contains(texts[0], "broker 9") || !strings.Contains(texts[0], "cluster-b") || !strings.Contains(texts[0], "cluster-a") {
			t.Errorf("the seed says %q", texts)
		}
		if len(stranger.states()) != 0 || len(stranger.said(codeForeign)) == 0 {
			t.Errorf("the stranger has facts %v and notes %v", stranger.states(), stranger.noted())
		}
		if !allSee(ours...) {
			t.Error("the cluster has suffered")
		}
	})
}

func TestFoundersHearWhatTheyNeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		var founders []*broker
		for id := ident.BrokerID(1); id <= 3; id++ {
			self := member(id, "")
			self.Expect = 3
			founders = append(founders, net.start(net.options(self, "10.0.0.1:9094", "10.0.0.2:9094", "10.0.0.3:9094")))
		}
		within(t, RejoinInterval+time.Second, "the founders see each other", func() bool { return allSee(founders...) })
		for _, b := range founders {
			for _, f := range b.states() {
				if f.Member.Cluster != "" || f.Member.Expect != 3 {
					t.Errorf("%s hears %+v", b.self.Name(), f.Member)
				}
			}
		}
	})
}

// A broker without a cluster hears members of any, which keeps it from founding another; once it belongs to one, the others are gone.
func TestBelongingToAClusterEndsWhatWasHeardOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		member1 := net.start(net.options(member(1, "cluster-a")))
		fresh := net.start(net.options(member(2, ""), "10.0.0.1:9094"))
		within(t, time.Second, "the fresh broker sees the member", func() bool { return allSee(member1, fresh) })
		self := fresh.self
		self.Cluster = "cluster-b"
		if err := fresh.g.Announce(self); err != nil {
			t.Fatal(err)
		}
		within(t, time.Second, "the member is gone for the other cluster", func() bool { return !fresh.sees(member1) })
		pass(5 * time.Minute)
		if fresh.sees(member1) || len(fresh.said(codeForeign)) != 1 {
			t.Errorf("sees it: %v, notes %v", fresh.sees(member1), fresh.noted())
		}
	})
}

func TestSeedsAreLookedUpAtEachAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		first := net.start(net.options(member(1, "cluster-a")))
		second := net.start(net.options(member(2, "cluster-a"), "seed.example:9094"))
		pass(3 * RejoinInterval)
		if texts := second.said(CodeUnreachable); len(texts) != 1 || !strings.Contains(texts[0], "seed.example") {
			t.Errorf("a name without an address is worth one note: %q", texts)
		}
		net.name("seed.example", "10.0.0.77", "10.0.0.1") // the first of them is nobody's
		within(t, RejoinInterval+time.Second, "the name leads to the other broker", func() bool { return allSee(first, second) })
	})
}

func TestAddressesOfTheSixthVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		var brokers []*broker
		for id := ident.BrokerID(1); id <= 3; id++ {
			o := net.options(member(id, "cluster-a"), "[fd00::1]:9094")
			o.Advertise = fmt.Sprintf("[fd00::%d]:9094", id)
			brokers = append(brokers, net.start(o))
		}
		within(t, RejoinInterval+pushPullInterval, "each broker sees each other one", func() bool { return allSee(brokers...) })
		if got := brokers[0].states()[brokers[2].self.Name()].Member.Address; got != netip.MustParseAddrPort("[fd00::3]:9094") {
			t.Errorf("the address is %s", got)
		}
	})
}

func TestUnreachableSeedIsNotedAgainAfterItAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		second := net.start(net.options(member(2, "cluster-a"), "10.0.0.1:9094"))
		pass(5 * RejoinInterval)
		first := net.start(net.options(member(1, "cluster-a")))
		within(t, RejoinInterval+time.Second, "they see each other", func() bool { return allSee(first, second) })
		first.kill()
		pass(5 * RejoinInterval)
		if texts := second.said(CodeUnreachable); len(texts) != 2 {
			t.Errorf("two silences of the seed are %d notes: %q", len(texts), texts)
		}
	})
}

// Seeds and registered brokers may be many and all dead; each is tried, never too many in one go, and never the broker itself.
func TestRejoinTriesAllInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		b := net.start(net.options(member(1, "cluster-a"), "10.0.0.1:9094", "10.0.0.2:9094", "10.0.0.2:9094"))
		peers := []Peer{{Broker: 1, Address: "10.0.0.1:9094"}}
		want := map[netip.AddrPort]int{netip.MustParseAddrPort("10.0.0.2:9094"): 1}
		for id := ident.BrokerID(3); id < 23; id++ {
			peers = append(peers, Peer{Broker: id, Address: fmt.Sprintf("10.0.0.%d:9094", id)})
			want[netip.MustParseAddrPort(peers[len(peers)-1].Address)] = 1
		}
		synctest.Wait() // its first attempt, at the one seed, is over
		b.contacts()
		tried := map[netip.AddrPort]int{}
		for range 3 {
			if answered := b.g.Rejoin(t.Context(), peers); answered != 0 {
				t.Errorf("%d of nobody have answered", answered)
			}
			whom := b.contacts()
			if len(whom) > contactsMax {
				t.Errorf("%d contacts in one go", len(whom))
			}
			for _, a := range whom {
				tried[a]++
			}
		}
		for a := range want {
			if tried[a] == 0 {
				t.Errorf("%s was not tried in three goes", a)
			}
		}
		for a := range tried {
			if want[a] == 0 {
				t.Errorf("%s was tried", a)
			}
		}
	})
}

func TestStrangersGetAnotherChanceWithEachRejoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		b := net.start(net.options(member(1, "cluster-a")))
		synctest.Wait()
		late := member(500, "cluster-a")
		for id := ident.BrokerID(2); id < 2+strangersMax; id++ {
			m := member(id, "cluster-a")
			if err := b.g.roster.admit(m.Name(), encoded(t, m), somewhere); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.g.roster.admit(late.Name(), encoded(t, late), somewhere); err == nil {
			t.Error("one stranger too many is let in")
		}
		b.g.Rejoin(t.Context(), nil)
		if err := b.g.roster.admit(late.Name(), encoded(t, late), somewhere); err != nil {
			t.Errorf("after a Rejoin: %v", err)
		}
	})
}

// Stop does not wait for a network that swallows everything.
func TestStopEndsDialsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		net.setCut(func(netip.AddrPort, netip.AddrPort) bool { return true })
		b := net.start(net.options(member(1, "cluster-a"), "10.0.0.2:9094"))
		synctest.Wait()
		if len(b.contacts()) != 1 {
			t.Fatal("it does not dial")
		}
		before := time.Now()
		b.kill()
		if took := time.Since(before); took != 0 {
			t.Errorf("the end took %v by the fake clock", took)
		}
	})
}
