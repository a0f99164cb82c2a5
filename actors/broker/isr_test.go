package broker

import (
	"fmt"
	"testing"

	"github.com/troupe-broker/troupe/cluster"
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
