package runtime

// slot is a queued message with its size, which is asked for once.
type slot struct {
	msg   Message
	bytes int
}

const (
	ringMin = 4
	// ringCalm is the number of times a ring must have run empty, never having been
	// more than a quarter full, before it is halved.
	ringCalm = 256
)

// ring is a queue on a power-of-two array that grows on demand and shrinks after a
// calm time, so that a burst does not keep its memory. In a steady state it does
// not allocate. The zero ring is empty.
type ring struct {
	buf  []slot
	head int // index of the oldest
	n    int // queued; n <= len(buf)
	peak int // largest n since the last look at the size
	calm int // times run empty since then
}

func (r *ring) push(s slot) {
	if r.n == len(r.buf) {
		r.resize(max(ringMin, 2*len(r.buf)))
	}
	r.buf[(r.head+r.n)&(len(r.buf)-1)] = s
	r.n++
	r.peak = max(r.peak, r.n)
}

// pushFront puts s before the oldest.
func (r *ring) pushFront(s slot) {
	if r.n == len(r.buf) {
		r.resize(max(ringMin, 2*len(r.buf)))
	}
	r.head = (r.head - 1) & (len(r.buf) - 1)
	r.buf[r.head] = s
	r.n++
	r.peak = max(r.peak, r.n)
}

// pop takes the oldest. The ring must not be empty.
func (r *ring) pop() slot {
	s := r.buf[r.head]
	r.buf[r.head] = slot{}
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.n--
	if r.n == 0 {
		r.relax()
	}
	return s
}

// relax halves an empty ring that was large for nothing for a while.
func (r *ring) relax() {
	r.calm++
	if r.calm < ringCalm {
		return
	}
	if len(r.buf) > ringMin && r.peak <= len(r.buf)/4 {
		r.resize(len(r.buf) / 2)
	}
	r.calm, r.peak = 0, 0
}

func (r *ring) resize(size int) {
	buf := make([]slot, size)
	for i := range r.n {
		buf[i] = r.buf[(r.head+i)&(len(r.buf)-1)]
	}
	r.buf, r.head = buf, 0
}
