package broker

import (
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/checkup"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// An operator who says that the leader is right means the one that was compared with, and one that has its records.
func TestOnlyTheLeaderThatWasComparedWithReplacesRecords(t *testing.T) {
	c := newComparer(t, peer.VersionMax)
	other := append(append(append([]byte{}, batchOf(t, 0, 99)...), batchOf(t, 1, 99)...), c.records[2*len(c.records)/4:]...)
	check := c.begin()
	c.does(func(t *runtime.Turn) {
		a := c.honest()
		a.Digest[0] ^= 1
		(&digestGiven{a}).take(c.p, t)
		c.p.tookRecords(t, &peer.RangeAnswer{LeaderEpoch: 1, Ticket: c.p.comparing.ticket, Next: 4, High: 4, Payload: other})
	})
	m := <-c.compared
	c.does(func(t *runtime.Turn) { m.take(c.p, t) })
	c.finished("the comparison")
	if check.differs.count() != 1 {
		t.Fatalf("%+v", check)
	}
	refused := func(name, want string) {
		t.Helper()
		var said string
		c.does(func(t *runtime.Turn) { said = c.p.giveUpDivergent(t) })
		if !strings.Contains(said, want) || said == "" || len(c.p.file.Damage()) != 0 {
			t.Errorf("%s: %q, damaged: %v", name, said, c.p.file.Damage())
		}
	}
	refused("before the check is over", "not checked")
	c.does(func(t *runtime.Turn) { (&checkOver{number: 1}).take(c.p, t) })
	c.lead(1, 1)
	c.p.become.Damaged = []ident.BrokerID{1}
	refused("a damaged leader", "damaged")
	c.lead(3, 2)
	refused("another leader", "another broker led")
	c.lead(ident.NoBroker, 3)
	refused("no leader", "does not follow")
	c.lead(1, 4)
	if _, err := c.p.file.Truncate(3, 1000); err != nil {
		t.Fatal(err)
	}
	refused("a log that was cut", "truncated")
	c.does(func(t *runtime.Turn) {
		c.p.checking, c.p.checked = check, nil
		(&checkOver{number: 1}).take(c.p, t)
	})
	refused("a log that was cut before the check was over", "truncated")
	if len(c.p.checked.differs.list) != 1 {
		t.Errorf("%+v", c.p.checked)
	}
}

// Differences with two leaders are differences with neither.
func TestDifferencesWithTwoLeadersAreReplacedByNeither(t *testing.T) {
	for _, second := range []ident.BrokerID{1, 3} {
		check := &replicaCheck{}
		check.differ(differences{list: []difference{{store.OffsetRange{From: 0, To: 1}, differsRecord}}}, 1)
		check.differ(differences{}, 5)
		check.differ(differences{list: []difference{{store.OffsetRange{From: 2, To: 3}, differsRecord}}}, second)
		if want := map[ident.BrokerID]ident.BrokerID{1: 1, 3: ident.NoBroker}[second]; check.leader != want || check.differs.count() != 2 {
			t.Errorf("%d: %+v", second, check)
		}
	}
}

// More ranges differ than a check keeps: they are not gone when those that it keeps are replaced.
func TestRangesThatDoNotFitTheListAreNotForgotten(t *testing.T) {
	c := newComparer(t, peer.VersionMax)
	c.p.checked = &replicaCheck{leader: 1, generation: c.p.file.Generation(), differs: differences{list: []difference{{store.OffsetRange{From: -2, To: -1}, differsRecord}}, more: 3}}
	var said string
	c.does(func(t *runtime.Turn) { said = c.p.giveUpDivergent(t) })
	if r := c.p.checkupReport(); !strings.Contains(said, "more differ") || len(r.Divergent) != 0 || r.MoreDiffer != 3 || c.p.replica.stats.differing.Load() != 3 {
		t.Errorf("%q, %+v", said, r)
	}
	c.does(func(t *runtime.Turn) { said = c.p.giveUpDivergent(t) })
	if !strings.Contains(said, "more differ") {
		t.Errorf("once more: %q", said)
	}
}

// A check that could not compare everything has not found that nothing differs.
func TestACheckThatComparedNothingClearsNoAlarm(t *testing.T) {
	c := newComparer(t, peer.VersionMax)
	for _, x := range []struct {
		check replicaCheck
		want  int64
	}{
		{replicaCheck{whole: true, differs: differences{more: 2}}, 2},
		{replicaCheck{whole: true, why: notAnswered}, 2},
		{replicaCheck{}, 2},
		{replicaCheck{whole: true, why: notAnswered, differs: differences{more: 5}}, 5},
		{replicaCheck{whole: true}, 0},
	} {
		c.p.checking = &x.check
		c.does(func(t *runtime.Turn) { (&checkOver{}).take(c.p, t) })
		if got := c.p.replica.stats.differing.Load(); got != x.want {
			t.Errorf("%+v: %d ranges differ by the metric, want %d", x.check, got, x.want)
		}
	}
}

// An order that cannot be carried out is answered with why, not with a report that leaves it out.
func TestAnOrderThatIsNotCarriedOutSaysWhy(t *testing.T) {
	c := newComparer(t, peer.VersionMax)
	ordered := func(order checkup.Order, asked int64) (r checkup.Report) {
		t.Helper()
		c.does(func(t *runtime.Turn) {
			(&checkupAsk{order: order, asked: asked, answer: func(got checkup.Report) { r = got }}).take(c.p, t)
		})
		return r
	}
	says := func(name, want string, r checkup.Report) {
		t.Helper()
		if want == "" && r.Error != "" || !strings.Contains(r.Error, want) {
			t.Errorf("%s: %q, want %q", name, r.Error, want)
		}
	}
	says("a repair where nothing is damaged", "", ordered(checkup.Order{Do: checkup.Repair}, 0))
	says("a repair of what nobody has looked for", "not checked", ordered(checkup.Order{Do: checkup.Repair, Divergent: true}, 0))
	says("a check", "", ordered(checkup.Order{Do: checkup.Verify}, 3))
	says("a check that the scrubber has not heard of", "no check was ordered", ordered(checkup.Order{Do: checkup.Verify}, 0))
	c.p.machine = nil
	says("a question", "", ordered(checkup.Order{Do: checkup.Look}, 0))
	says("a repair of a replica that is offline", "out of service", ordered(checkup.Order{Do: checkup.Repair}, 0))
	says("likewise, of what differs", "out of service", ordered(checkup.Order{Do: checkup.Repair, Divergent: true}, 0))
}
