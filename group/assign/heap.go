package assign

// heap has the member with the least load on top (direction +1) or the one with the most (-1); among equals the one that comes first. Loads may change
// outside: then the entry's key is old until settled or fix looks at it, which is right as long as changes only move an entry away from the top.
type heap struct {
	entries   []entry
	load      []int32
	direction int32
}

type entry struct{ key, member int32 }

func newHeap(members, load []int32, direction int32) *heap {
	h := &heap{entries: make([]entry, len(members)), load: load, direction: direction}
	for i, m := range members {
		h.entries[i] = entry{direction * load[m], m}
	}
	for i := len(members)/2 - 1; i >= 0; i-- {
		h.sink(i)
	}
	return h
}

func (a entry) less(b entry) bool { return a.key < b.key || a.key == b.key && a.member < b.member }

func (h *heap) len() int { return len(h.entries) }

// top is the member on top. The heap must not be empty.
func (h *heap) top() int32 { return h.entries[0].member }

// settled is the member on top after entries with old keys have sunk.
func (h *heap) settled() int32 {
	for h.entries[0].key != h.direction*h.load[h.top()] {
		h.fix()
	}
	return h.top()
}

// fix lets the top sink to where its load belongs.
func (h *heap) fix() {
	h.entries[0].key = h.direction * h.load[h.top()]
	h.sink(0)
}

func (h *heap) pop() {
	last := len(h.entries) - 1
	h.entries[0] = h.entries[last]
	h.entries = h.entries[:last]
	h.sink(0)
}

// sink lets an entry sink to where it is not before its children.
func (h *heap) sink(i int) {
	e := h.entries
	for {
		child := 2*i + 1
		if child >= len(e) {
			return
		}
		if right := child + 1; right < len(e) && e[right].less(e[child]) {
			child = right
		}
		if !e[child].less(e[i]) {
			return
		}
		e[i], e[child] = e[child], e[i]
		i = child
	}
}
