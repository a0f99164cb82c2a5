package broker

import (
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/wire/ident"
)

// applicant is a claimant that remembers what it was told.
type applicant struct {
	claim   claim
	name    string
	told    *[]string
	revoked int
}

func (a *applicant) creditGranted() { *a.told = append(*a.told, a.name) }
func (a *applicant) creditRevoked() { a.revoked++ }

type office struct {
	*creditPool
	told []string
	all  []*applicant
}

func newOffice(size int64) *office { return &office{creditPool: newCreditPool(size, nil)} }

func (o *office) applicant(name string) *applicant {
	a := &applicant{name: name, told: &o.told}
	a.claim.owner = a
	o.all = append(o.all, a)
	return a
}

func (o *office) expectTold(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(o.told, want) {
		t.Fatalf("told %v, want %v", o.told, want)
	}
	o.told = nil
}

// expectBalance checks that what the claims hold and what is free add up.
func (o *office) expectBalance(t *testing.T) {
	t.Helper()
	held := int64(0)
	for _, a := range o.all {
		held += a.claim.bytes
	}
	if held+o.free != o.size || o.free < 0 {
		t.Fatalf("held %d + free %d != size %d", held, o.free, o.size)
	}
}

func TestCreditIsGivenInTheOrderOfAsking(t *testing.T) {
	o := newOffice(800)
	first, second, third := o.applicant("first"), o.applicant("second"), o.applicant("third")
	if !o.take(&first.claim, 800, false) {
		t.Fatal("an empty pool refuses")
	}
	if o.take(&second.claim, 100, false) || o.take(&third.claim, 50, false) {
		t.Fatal("a full pool gives")
	}
	if small := o.applicant("small"); o.tryTake(&small.claim, 1) {
		t.Fatal("somebody overtakes those who wait")
	}
	o.release(&first.claim)
	o.expectTold(t, "second", "third")
	o.expectBalance(t)
	o.release(&second.claim)
	o.release(&third.claim)
	o.expectTold(t)
	if o.free != o.size {
		t.Errorf("%d of %d are free in the end", o.free, o.size)
	}
}

func TestAGiantUsesTheReservedSlotAndNobodyWaitsForIt(t *testing.T) {
	o := newOffice(800)
	giant, other, small := o.applicant("giant"), o.applicant("other"), o.applicant("small")
	if !o.needsSlot(101, 101) || o.needsSlot(100, 100) || !o.needsSlot(1, 401) {
		t.Fatal("the slot is for frames above an eighth and memory above half of the pool")
	}
	if !o.take(&giant.claim, 5000, true) {
		t.Fatal("the free slot refuses")
	}
	if o.take(&other.claim, 5000, true) {
		t.Fatal("the slot is given twice")
	}
	if !o.take(&small.claim, 800, false) {
		t.Fatal("a small frame waits for a giant")
	}
	o.release(&giant.claim)
	o.expectTold(t, "other")
	o.release(&other.claim)
	o.release(&small.claim)
	o.expectBalance(t)
}

func TestClaimsThatGrowCannotWaitForEachOther(t *testing.T) {
	o := newOffice(800)
	a, b, late := o.applicant("a"), o.applicant("b"), o.applicant("late")
	if !o.take(&a.claim, 400, false) || !o.take(&b.claim, 400, false) {
		t.Fatal("an empty pool refuses")
	}
	// Both need more, and only the other's end could free it. The slot is for that.
	if !o.grow(&a.claim, 100, false) {
		t.Fatal("the reserved slot does not help a claim that grows")
	}
	if o.grow(&b.claim, 100, false) {
		t.Fatal("the slot is given twice")
	}
	if o.take(&late.claim, 10, false) {
		t.Fatal("a full pool gives")
	}
	o.release(&a.claim)
	// b goes before the one that holds nothing.
	o.expectTold(t, "b", "late")
	o.release(&b.claim)
	o.release(&late.claim)
	o.expectBalance(t)
}

func TestWhoLeavesWhileWaitingIsForgotten(t *testing.T) {
	o := newOffice(800)
	a, b, c := o.applicant("a"), o.applicant("b"), o.applicant("c")
	o.take(&a.claim, 800, false)
	o.take(&b.claim, 100, false)
	o.take(&c.claim, 100, false)
	o.release(&b.claim)
	o.release(&a.claim)
	o.expectTold(t, "c")
	if o.has(&b.claim); b.claim.bytes != 0 {
		t.Error("who left holds credit")
	}
	o.release(&c.claim)
	o.expectBalance(t)
}

func TestAStalledReservationIsTakenBackOnlyWhileOthersWait(t *testing.T) {
	o := newOffice(800)
	stalled, moving, waiting := o.applicant("stalled"), o.applicant("moving"), o.applicant("waiting")
	o.take(&stalled.claim, 400, false)
	o.take(&moving.claim, 400, false)
	o.startFilling(&stalled.claim, 1)
	o.startFilling(&moving.claim, 1)
	if o.sweep(1+10*stallMax) || stalled.revoked != 0 {
		t.Fatal("a reservation is taken back though nobody waits")
	}
	o.take(&waiting.claim, 100, false)
	moving.claim.progress.Store(int64(2 * stallMax))
	if !o.sweep(2*stallMax + stallMax/2) {
		t.Fatal("nobody waits, it says")
	}
	if stalled.revoked != 1 || moving.revoked != 0 {
		t.Fatalf("revoked %d and %d, want the stalled one alone", stalled.revoked, moving.revoked)
	}
	o.release(&stalled.claim) // as its owner does
	o.expectTold(t, "waiting")
	// A trickle keeps a reservation for half a minute, not for ever.
	another := o.applicant("another")
	o.take(&another.claim, 800, false)
	moving.claim.progress.Store(int64(fillMax))
	if o.sweep(fillMax + 2); moving.revoked != 1 {
		t.Error("a trickle of bytes keeps a reservation for ever")
	}
}

func TestCreditAddsUpWhateverHappens(t *testing.T) {
	seed := uint64(1)
	random := func(n uint64) uint64 {
		seed = seed*6364136223846793005 + 1442695040888963407
		return (seed >> 33) % n
	}
	o := newOffice(1 << 20)
	for range 12 {
		o.applicant("x")
	}
	for step := range 20000 {
		a := o.all[random(uint64(len(o.all)))]
		idle := a.claim.bytes == 0 && !a.claim.slot && a.claim.want == 0
		switch op := random(5); {
		case idle && op < 2:
			n := int64(random(1 << 19))
			o.take(&a.claim, n+1, o.needsSlot(int(n), n))
		case idle:
			o.tryTake(&a.claim, int64(random(1<<17))+1)
		case op == 0 && a.claim.want == 0:
			n := int64(random(1<<18)) + 1
			o.grow(&a.claim, n, o.needsSlot(0, a.claim.bytes+n))
		case op == 1 && a.claim.want == 0:
			o.startFilling(&a.claim, ident.Instant(step))
		case op == 2 && a.claim.want == 0:
			o.stopFilling(&a.claim)
		default:
			o.release(&a.claim)
		}
		o.expectBalance(t)
		slots := 0
		for _, x := range o.all {
			if x.claim.slot {
				slots++
			}
		}
		if slots > 1 || (slots == 1) != o.slotBusy {
			t.Fatalf("step %d: %d claims have the slot, busy is %v", step, slots, o.slotBusy)
		}
	}
	for _, a := range o.all {
		o.release(&a.claim)
	}
	if o.free != o.size || o.slotBusy || o.use().Waiting != 0 || !o.filling.empty() {
		t.Errorf("in the end %d of %d are free, slot %v, %d wait", o.free, o.size, o.slotBusy, o.use().Waiting)
	}
}

func TestAnswersThatNobodyTakesAreOnTheAccount(t *testing.T) {
	o := newOffice(800 << 10)
	debtor, small, other := o.applicant("debtor"), o.applicant("small"), o.applicant("other")
	o.owe(&debtor.claim, 900<<10, 0)
	o.owe(&small.claim, 4<<10, 0)
	if o.free >= 0 {
		t.Fatalf("%d bytes are free beside a debt above the pool's size", o.free)
	}
	if o.take(&other.claim, 1<<10, false) {
		t.Fatal("memory is given that is not there")
	}
	o.sweep(stallMax / 2)
	o.owe(&debtor.claim, 850<<10, stallMax/2) // the peer takes something
	if o.sweep(stallMax); debtor.revoked != 0 {
		t.Fatal("a debtor is given up who pays")
	}
	if o.sweep(2 * stallMax); debtor.revoked != 1 || small.revoked != 0 {
		t.Fatalf("revoked %d, %d: only the great debt is worth it", debtor.revoked, small.revoked)
	}
	o.owe(&debtor.claim, 0, 2*stallMax)
	o.expectTold(t, "other")
	o.expectBalance(t)
	o.owe(&small.claim, 0, 2*stallMax)
	o.release(&other.claim)
	if o.free != o.size {
		t.Errorf("%d of %d are free in the end", o.free, o.size)
	}
}
