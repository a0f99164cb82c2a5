package broker

import (
	"sync"
	"sync/atomic"

	"github.com/troupe-broker/troupe/wire/ident"
)

const (
	// slotShare is the share of the pool above which a frame uses the reserved slot: one such frame at a time, on top of the pool, so that eight
	// medium frames never wait for a giant one and a giant one never waits for an empty pool.
	slotShare = 8
	// stallMax is how long a reservation may receive nothing while others wait.
	stallMax = ident.Instant(1e9)
	// fillMax is how long the bytes of one reservation may take while others wait. Without it a client that sends a byte a second would keep its
	// share for ever.
	fillMax = ident.Instant(30e9)
)

// creditPool is the memory all sessions together may use for requests. No credit, no reading of the socket: that is the back-pressure of the broker.
// Credit is given in the order of asking. A claim that already holds bytes and turns out to need more goes before those that hold nothing, and may
// use the reserved slot, so that claims which wait holding bytes cannot wait for each other for ever.
//
// It is the one object all sessions share; each method holds the lock for a few instructions.
type creditPool struct {
	size int64

	mu       sync.Mutex
	free     int64     // negative only by debts
	slotBusy bool      // the reserved slot is taken
	growing  claimList // hold bytes, need more; served first
	fresh    claimList // hold nothing; FIFO
	large    claimList // need the slot; FIFO
	filling  claimList // granted, and their bytes are still arriving; oldest first
	owing    claimList // memory that was taken without asking, for answers which peers do not take; oldest first
	short    func()    // told, outside the lock, when the first claim begins to wait

	waits   atomic.Int64 // claims that had to wait, ever
	revoked atomic.Int64 // claims taken back, ever
}

// claim is one reservation. The zero value holds nothing. It is used by one goroutine at a time, but for granted and revoked.
type claim struct {
	owner claimant
	bytes int64 // charged to the pool
	slot  bool  // has the reserved slot
	want  int64 // waits for so many bytes more; 0: does not wait

	list       *claimList
	next, prev *claim

	began    ident.Instant // of filling
	progress atomic.Int64  // ident.Instant of the last byte received while filling
}

// claimant is told about a claim that waited. Both methods are called without the pool's lock and may only wake somebody up.
type claimant interface {
	creditGranted()
	creditRevoked() // let go: close the connection and release the claim
}

func newCreditPool(size int64, short func()) *creditPool {
	return &creditPool{size: size, free: size, short: short}
}

// needsSlot says whether a frame of so many bytes, which needs so much memory in all, is to use the reserved slot.
func (p *creditPool) needsSlot(frame int, memory int64) bool {
	return int64(frame) > p.size/slotShare || memory > p.size/2
}

// take reserves n bytes, or the slot, for c, which holds nothing. false: c waits and its owner will be told.
func (p *creditPool) take(c *claim, n int64, slot bool) bool {
	p.mu.Lock()
	if c.want != 0 || c.bytes != 0 || c.slot {
		p.mu.Unlock()
		panic("broker: a credit claim is taken twice")
	}
	switch {
	case slot:
		if !p.slotBusy && p.large.empty() && p.growing.empty() {
			p.slotBusy, c.slot = true, true
			p.mu.Unlock()
			return true
		}
		c.want = n
		p.large.push(c)
	case p.growing.empty() && p.fresh.empty() && n <= p.free:
		p.free -= n
		c.bytes = n
		p.mu.Unlock()
		return true
	default:
		c.want = n
		p.fresh.push(c)
	}
	p.waited()
	return false
}

// tryTake reserves n bytes for c if that needs no waiting.
func (p *creditPool) tryTake(c *claim, n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > p.free || !p.growing.empty() || !p.fresh.empty() {
		return false
	}
	p.free -= n
	c.bytes = n
	return true
}

// grow reserves n more bytes, or the slot, for c, whose owner holds bytes already. false: c waits, keeping what it has, and its owner will be told.
func (p *creditPool) grow(c *claim, n int64, slot bool) bool {
	p.mu.Lock()
	if c.slot { // whatever it needs
		p.mu.Unlock()
		return true
	}
	if p.grantGrowth(c, n, slot) {
		p.mu.Unlock()
		return true
	}
	c.want = n
	if c.list != nil { // nothing arrives while it waits
		c.list.remove(c)
	}
	if slot {
		p.large.push(c)
	} else {
		p.growing.push(c)
	}
	p.waited()
	return false
}

// grantGrowth tries to enlarge a claim now. Called with the lock.
func (p *creditPool) grantGrowth(c *claim, n int64, slot bool) bool {
	if !slot && n <= p.free && p.growing.emptyBut(c) {
		p.free -= n
		c.bytes += n
		return true
	}
	if !p.slotBusy && p.large.emptyBut(c) {
		p.slotBusy, c.slot = true, true
		return true
	}
	return false
}

// waited ends a take or grow that could not be served. Called with the lock, which it releases.
func (p *creditPool) waited() {
	p.waits.Add(1)
	p.mu.Unlock()
	if p.short != nil {
		p.short()
	}
}

// hand gives the slot of one claim to another of the same owner.
func (p *creditPool) hand(from, to *claim) {
	p.mu.Lock()
	from.slot, to.slot = false, true
	p.mu.Unlock()
}

// release gives back all that c holds and ends its waiting.
func (p *creditPool) release(c *claim) {
	p.mu.Lock()
	if c.list != nil {
		c.list.remove(c)
	}
	p.free += c.bytes
	if c.slot {
		p.slotBusy = false
	}
	c.bytes, c.slot, c.want, c.began = 0, false, 0, 0
	p.serve()
}

// has says whether c waits for nothing.
func (p *creditPool) has(c *claim) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return c.want == 0
}

// serve grants whatever can be granted, in order, and tells the owners. Called with the lock, which it releases.
func (p *creditPool) serve() {
	for {
		var owners [8]claimant
		n := 0
		for n < len(owners) {
			c := p.grantable()
			if c == nil {
				break
			}
			owners[n] = c.owner
			n++
		}
		p.mu.Unlock()
		for _, o := range owners[:n] {
			o.creditGranted()
		}
		if n < len(owners) {
			return
		}
		p.mu.Lock()
	}
}

// grantable takes the next claim that can be served off its queue, or returns nil. Called with the lock.
func (p *creditPool) grantable() *claim {
	if c := p.growing.first; c != nil {
		if p.grantGrowth(c, c.want, false) {
			p.growing.remove(c)
			c.want = 0
			return c
		}
	}
	if c := p.large.first; c != nil && !p.slotBusy {
		p.large.remove(c)
		p.slotBusy, c.slot, c.want = true, true, 0
		return c
	}
	if c := p.fresh.first; c != nil && p.growing.empty() && c.want <= p.free {
		p.fresh.remove(c)
		p.free -= c.want
		c.bytes, c.want = c.want, 0
		return c
	}
	return nil
}

// startFilling notes that the bytes of a granted claim begin to arrive.
func (p *creditPool) startFilling(c *claim, now ident.Instant) {
	p.mu.Lock()
	if c.began == 0 {
		c.began = now
	}
	c.progress.Store(int64(now))
	if c.list == nil {
		p.filling.push(c)
	}
	p.mu.Unlock()
}

// stopFilling notes that the bytes have arrived.
func (p *creditPool) stopFilling(c *claim) {
	p.mu.Lock()
	c.began = 0
	if c.list == &p.filling {
		c.list.remove(c)
	}
	p.mu.Unlock()
}

// owe makes n bytes the debt of c: memory that is used already, for answers that a peer does not take. It is never refused, so that free may become
// negative: then nothing is granted until debts are paid. 0 ends the debt. Call it whenever the peer took something.
func (p *creditPool) owe(c *claim, n int64, now ident.Instant) {
	if n == 0 {
		p.release(c)
		return
	}
	p.mu.Lock()
	p.free -= n - c.bytes
	c.bytes = n
	c.progress.Store(int64(now))
	if c.list == nil {
		c.began = now
		p.owing.push(c)
	}
	p.serve()
}

// debtMin is the debt from which a peer that takes nothing is worth being given up, in bytes.
const debtMin = 64 << 10

// sweep takes back reservations that stall while others wait, and says whether anybody waits still. The caller comes again in a fraction of stallMax.
func (p *creditPool) sweep(now ident.Instant) (waiting bool) {
	var owners []claimant // rare enough for an allocation
	p.mu.Lock()
	waiting = !p.growing.empty() || !p.fresh.empty() || !p.large.empty()
	if waiting {
		owners = p.filling.stalled(owners, now, 0)
		owners = p.owing.stalled(owners, now, debtMin)
	}
	p.mu.Unlock()
	for _, o := range owners {
		p.revoked.Add(1)
		o.creditRevoked()
	}
	return waiting
}

// stalled takes the claims of at least so many bytes that made no progress, or take too long, off the list and appends their owners.
func (l *claimList) stalled(owners []claimant, now ident.Instant, bytesMin int64) []claimant {
	for c := l.first; c != nil; {
		next := c.next
		if c.bytes >= bytesMin && (now-ident.Instant(c.progress.Load()) >= stallMax || now-c.began >= fillMax) {
			l.remove(c)
			owners = append(owners, c.owner)
		}
		c = next
	}
	return owners
}

// creditUse is a reading of the pool for metrics.
type creditUse struct {
	SizeBytes, UsedBytes int64
	SlotBusy             bool
	Waiting              int
}

func (p *creditPool) use() creditUse {
	p.mu.Lock()
	defer p.mu.Unlock()
	return creditUse{SizeBytes: p.size, UsedBytes: p.size - p.free, SlotBusy: p.slotBusy, Waiting: p.growing.n + p.fresh.n + p.large.n}
}

// claimList is an intrusive list: waiting costs no allocation.
type claimList struct {
	first, last *claim
	n           int
}

func (l *claimList) empty() bool { return l.first == nil }

// emptyBut says whether nobody but c, at the front, is in the list.
func (l *claimList) emptyBut(c *claim) bool { return l.first == nil || l.first == c }

func (l *claimList) push(c *claim) {
	c.list, c.prev, c.next = l, l.last, nil
	if l.last != nil {
		l.last.next = c
	} else {
		l.first = c
	}
	l.last = c
	l.n++
}

func (l *claimList) remove(c *claim) {
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		l.first = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		l.last = c.prev
	}
	c.next, c.prev, c.list = nil, nil, nil
	l.n--
}
