package broker

import (
	"fmt"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire/ident"
)

// TestWhatTheControllerDidNotHearIsToldAgainAsItIsNow: the newest of each replica, and each once, whatever was on its way when it was lost.
func TestWhatTheControllerDidNotHearIsToldAgainAsItIsNow(t *testing.T) {
	a, b, c := &replica{}, &replica{}, &replica{}
	names := map[*replica]string{a: "a", b: "b", c: "c"}
	mark := func(r *replica, m cluster.Mark) *replicaMark {
		return &replicaMark{replica: r, ReplicaMark: cluster.ReplicaMark{Mark: m}}
	}
	draw := func(list []*replicaMark) string {
		s := ""
		for _, m := range list {
			s += fmt.Sprint(names[m.replica], m.Mark, " ")
		}
		return s
	}
	var u untold[*replicaMark]
	step := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	u.keep(mark(a, cluster.MarkDamaged))
	u.keep(mark(b, cluster.MarkOffline))
	u.keep(mark(a, cluster.MarkOffline))
	step("told", draw(u.take()), "a2 b2 ")
	if u.due() {
		t.Error("due while something is on its way")
	}
	u.keep(mark(b, cluster.MarkSound))
	u.keep(mark(c, cluster.MarkDamaged))
	u.keep(mark(c, cluster.MarkOffline))
	u.heard(false)
	step("told again", draw(u.take()), "a2 b0 c2 ")
	u.keep(mark(c, cluster.MarkSound))
	u.heard(true)
	step("the rest", draw(u.take()), "c0 ")
	u.heard(true)
	if u.due() {
		t.Error("due, and everything was heard")
	}
}

// TestTheNewestProposalOfEachReplicaIsKept: while a command is under way, leaders propose again; each command names a partition once.
func TestTheNewestProposalOfEachReplicaIsKept(t *testing.T) {
	a, b := &replica{}, &replica{}
	names := map[*replica]string{a: "a", b: "b"}
	wish := func(r *replica, epoch ident.PartitionEpoch, resign bool) *wishISR {
		return &wishISR{replica: r, proposal: partition.Proposal{PartitionEpoch: epoch, Resign: resign}}
	}
	taken := func(w *wishes) string {
		s := ""
		for _, m := range w.take() {
			s += fmt.Sprint(names[m.replica], m.proposal.PartitionEpoch, m.proposal.Resign, " ")
		}
		return s
	}
	var w wishes
	for _, m := range []*wishISR{wish(a, 1, false), wish(a, 1, true), wish(b, 1, false), wish(a, 2, false)} {
		w.keep(m)
	}
	if s := taken(&w); s != "a2 false b1 false " {
		t.Error(s)
	}
	w.keep(wish(a, 3, true)) // the older wish to resign waits
	w.keep(wish(b, 2, false))
	if s := taken(&w); s != "a3 true b2 false " {
		t.Error(s)
	}
	if s := taken(&w); s != "" {
		t.Error(s)
	}
	for range isrWishesMax + 1 {
		w.keep(wish(&replica{}, 1, false))
	}
	if n, rest := len(w.take()), len(w.take()); n != isrWishesMax || rest != 1 {
		t.Errorf("%d in a command, then %d", n, rest)
	}
}

// TestManyProposalsCostWhatEachOfThemCosts: when a broker dies, whoever leads something has thousands to propose, and proposes it again every second. Comparing each
// with all others took a minute and more.
func TestManyProposalsCostWhatEachOfThemCosts(t *testing.T) {
	list := make([]*wishISR, 100_000)
	for i := range list {
		list[i] = &wishISR{replica: &replica{}}
	}
	var w wishes
	began := time.Now()
	for range 2 {
		for _, m := range list {
			w.keep(m)
		}
	}
	if took := time.Since(began); len(w.list) != len(list) || took > 10*time.Second {
		t.Errorf("%d proposals, each told twice, became %d in %v", len(list), len(w.list), took)
	}
}
