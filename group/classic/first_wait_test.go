package classic_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/group/classic"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire/ident"
)

// TestFirstWaitIsNeverLongerThanKafkas compares the end of the first wait with a naive reckoning of the two rules: the first pause of a window, and
// Kafka's.
func TestFirstWaitIsNeverLongerThanKafkas(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	byQuiet, byKafka := 0, 0
	for range 3000 {
		delay := []int64{0, 1, 60, 100, 150, 250, 3000}[rng.IntN(7)]
		rebalance := []int64{1, 120, 400, 1000, 5000}[rng.IntN(5)]
		arrivals := []int64{0}
		for range rng.IntN(60) {
			arrivals = append(arrivals, arrivals[len(arrivals)-1]+rng.Int64N(80))
		}
		quiet, kafka := quietEnd(arrivals, delay), kafkaEnd(arrivals, delay, rebalance)
		if quiet < kafka {
			byQuiet++
		} else {
			byKafka++
		}

		w := newWorld()
		w.cfg.InitialRebalanceDelay = int32(delay)
		ended := int64(-1)
		for at, next := int64(0), 0; at < 20_000; at++ {
			w.pass(ident.Instant(min(at, 1)) * millisecond)
			if next > 0 && w.g.State() != classic.PreparingRebalance {
				ended = at
				break
			}
			for ; next < len(arrivals) && arrivals[next] == at; next++ {
				w.g.Join(w.now, &w.cfg, w.request(), &coord.Join{
					Group: "g", NewMember: fmt.Sprintf("m%d", next), ProtocolType: classic.ConsumerProtocol,
					Protocols: []coord.Protocol{{Name: "range"}}, SessionTimeout: 10_000, RebalanceTimeout: int32(rebalance),
				}, &w.out)
			}
			w.out.Reset()
		}
		// What is due at once runs at the next tick.
		if want := max(min(quiet, kafka), 1); ended != want {
			t.Fatalf("arrivals %v, delay %d, rebalance timeout %d: ended at %d, should at %d (quiet %d, Kafka %d)", arrivals, delay, rebalance, ended, want, quiet, kafka)
		}
	}
	if byQuiet < 100 || byKafka < 100 {
		t.Errorf("%d ended by the pause, %d by Kafka's rule: one of them is hardly tried", byQuiet, byKafka)
	}
}

// quietEnd is when nobody has come for a window.
func quietEnd(arrivals []int64, delay int64) int64 {
	end := int64(0)
	for i, at := range arrivals {
		if i > 0 && at >= end {
			break
		}
		end = at + min(100+int64(i+1), 300, delay)
	}
	return end
}

// kafkaEnd is when Kafka's rule ends: after a delay, or as many more as somebody came in the one before, all in all a rebalance timeout.
func kafkaEnd(arrivals []int64, delay, rebalance int64) int64 {
	from, to, left := int64(0), delay, max(rebalance-delay, 0)
	for {
		came := slices.ContainsFunc(arrivals[1:], func(at int64) bool { return at >= from && at < to })
		if !came || left == 0 {
			return to
		}
		step := to - from
		from, to = to, to+min(delay, left)
		left = max(left-step, 0)
	}
}

// TestHundredMembersAreSyncedInHalfASecond is the target for a cold start, without the network and the disk: what the group itself adds.
func TestHundredMembersAreSyncedInHalfASecond(t *testing.T) {
	w := newWorld()
	for i := range 100 {
		w.join("", "", fmt.Sprintf("m%d", i))
		w.pass(millisecond)
	}
	last := w.now.Mono - millisecond
	for w.g.State() == classic.PreparingRebalance {
		w.pass(millisecond)
	}
	for i := range 100 {
		w.g.Sync(w.now, &w.cfg, w.request(), &coord.Sync{Group: "g", Member: fmt.Sprintf("m%d", i), Generation: 1}, &w.out)
	}
	if took := w.now.Mono - last; w.g.State() != classic.Stable || took > 250*millisecond {
		t.Errorf("%v after %d ms", w.g.State(), took/millisecond)
	}
	// One more: the round ends with the last rejoin, without any wait.
	w.join("", "", "late")
	for i := range 100 {
		w.join(fmt.Sprintf("m%d", i), "", "")
	}
	if w.g.State() != classic.CompletingRebalance || w.g.Generation() != 2 {
		t.Errorf("%s", w.g.Draw())
	}
}

// TestPendingMembersAreBounded lets a client ask for ids without end.
func TestPendingMembersAreBounded(t *testing.T) {
	w := newWorld()
	for i := range classic.PendingMax + 100 {
		w.g.Join(w.now, &w.cfg, w.request(), &coord.Join{
			Group: "g", NewMember: fmt.Sprintf("m%d", i), ProtocolType: classic.ConsumerProtocol, Protocols: []coord.Protocol{{Name: "range"}},
			SessionTimeout: 10_000, RebalanceTimeout: 10_000, RequireKnownMember: true,
		}, &w.out)
		w.out.Reset()
	}
	if w.g.Pending() != classic.PendingMax || w.out.Timers.Len() != classic.PendingMax {
		t.Errorf("%d pending, %d timers", w.g.Pending(), w.out.Timers.Len())
	}
	// The oldest were forgotten, the others can join.
	w.join("m99", "", "")
	w.join("m100", "", "")
	if w.g.Len() != 1 || w.g.Leader() != "m100" {
		t.Errorf("%d members, led by %s", w.g.Len(), w.g.Leader())
	}
}

// FuzzSubscription reads subscriptions that clients send.
func FuzzSubscription(f *testing.F) {
	f.Add(subscription("t", "u"))
	f.Add(subscription())
	f.Add([]byte{0, 1, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 3, 0x7f, 0xff, 0xff, 0xff, 0, 1, 't'})
	f.Fuzz(func(t *testing.T, metadata []byte) {
		w := newWorld()
		w.g.Join(w.now, &w.cfg, 1, &coord.Join{
			Group: "g", NewMember: "m", ProtocolType: classic.ConsumerProtocol, Protocols: []coord.Protocol{{Name: "range", Metadata: metadata}},
			SessionTimeout: 10_000, RebalanceTimeout: 10_000,
		}, &w.out)
		w.pass(1000 * millisecond)
		w.g.Sync(w.now, &w.cfg, 2, &coord.Sync{Group: "g", Member: "m", Generation: 1}, &w.out)
		if w.g.State() != classic.Stable {
			t.Fatalf("%s", w.g.Draw())
		}
		if known := w.g.Expiry() == classic.ExpireUnsubscribed; !known && !w.g.Subscribed("any") {
			t.Error("nobody knows the topics, and any is not subscribed to")
		}
	})
}
