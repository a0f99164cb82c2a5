package coord

import "github.com/troupe-broker/troupe/wire/ident"

// TimerKind says what a timer is for.
type TimerKind int8

// The kinds of timers.
const (
	TimerSession   TimerKind = iota + 1 // a member has not been heard of
	TimerJoin                           // members that do not rejoin in time are removed
	TimerInitial                        // the first rebalance of a group may end
	TimerSync                           // members that do not sync in time are removed
	TimerPending                        // a member that was given an id has not joined with it
	TimerRebalance                      // a member has not given up partitions in time
	TimerAssign                         // the next target assignment may be made
	TimerRegex                          // regular expressions are to be resolved again
	TimerExpire                         // offsets are to be looked through
)

// TimerKey names a timer: at most one of a kind for a member (or, with an empty Member, for a group or the shard) is set.
type TimerKey struct {
	Kind          TimerKind
	Group, Member string
}

// Timers are the deadlines of one shard: a heap with an index. Setting a timer that is set moves it, and allocates nothing.
type Timers struct {
	heap []timer
	at   map[TimerKey]int // place in the heap
}

type timer struct {
	due ident.Instant
	key TimerKey
}

// NewTimers makes an empty set.
func NewTimers() *Timers { return &Timers{at: make(map[TimerKey]int)} }

// Set sets or moves a timer.
func (t *Timers) Set(key TimerKey, due ident.Instant) {
	i, ok := t.at[key]
	if !ok {
		i = len(t.heap)
		t.heap = append(t.heap, timer{due, key})
		t.at[key] = i
		t.up(i)
		return
	}
	t.heap[i].due = due
	t.up(i)
	t.down(t.at[key])
}

// Cancel removes a timer, if it is set.
func (t *Timers) Cancel(key TimerKey) {
	i, ok := t.at[key]
	if !ok {
		return
	}
	last := len(t.heap) - 1
	t.swap(i, last)
	t.heap = t.heap[:last]
	delete(t.at, key)
	if i < last {
		moved := t.heap[i].key
		t.up(i)
		t.down(t.at[moved])
	}
}

// Due tells when a timer is due; false: it is not set.
func (t *Timers) Due(key TimerKey) (ident.Instant, bool) {
	i, ok := t.at[key]
	if !ok {
		return 0, false
	}
	return t.heap[i].due, true
}

// Next tells when the first one is due; false: none is set.
func (t *Timers) Next() (ident.Instant, bool) {
	if len(t.heap) == 0 {
		return 0, false
	}
	return t.heap[0].due, true
}

// Pop takes the first timer that is due at now; false: none is. Of those due at the same instant the least key comes first, so that a run can be repeated.
func (t *Timers) Pop(now ident.Instant) (TimerKey, bool) {
	if len(t.heap) == 0 || t.heap[0].due > now {
		return TimerKey{}, false
	}
	key := t.heap[0].key
	t.Cancel(key)
	return key, true
}

// Len is how many are set.
func (t *Timers) Len() int { return len(t.heap) }

func (t *Timers) less(i, j int) bool {
	a, b := &t.heap[i], &t.heap[j]
	switch {
	case a.due != b.due:
		return a.due < b.due
	case a.key.Group != b.key.Group:
		return a.key.Group < b.key.Group
	case a.key.Kind != b.key.Kind:
		return a.key.Kind < b.key.Kind
	}
	return a.key.Member < b.key.Member
}

func (t *Timers) swap(i, j int) {
	t.heap[i], t.heap[j] = t.heap[j], t.heap[i]
	t.at[t.heap[i].key], t.at[t.heap[j].key] = i, j
}

func (t *Timers) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !t.less(i, parent) {
			return
		}
		t.swap(i, parent)
		i = parent
	}
}

func (t *Timers) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(t.heap) {
			return
		}
		if child+1 < len(t.heap) && t.less(child+1, child) {
			child++
		}
		if !t.less(child, i) {
			return
		}
		t.swap(i, child)
		i = child
	}
}
