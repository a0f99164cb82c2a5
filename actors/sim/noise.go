package sim

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
)

// makeNoise damages index files, producer snapshots and epoch files, which are caches: whatever is in them, the broker starts right.
func (h *host) makeNoise(seed uint64) {
	n := &noise{rand: rand.New(rand.NewPCG(seed, 1)), last: make(map[string][]byte)}
	for name := range strings.SplitSeq(h.disk.Dump(), "\n") {
		name, rest, ok := strings.Cut(name, " ")
		if ok && strings.HasSuffix(name, "/leader-epoch-checkpoint") && !strings.HasPrefix(rest, "0 ") {
			h.disk.Flip(name, 0, 7) // one digit for another could not be told from the truth
		}
		if !ok || !strings.HasSuffix(name, "index") && !strings.HasSuffix(name, ".snapshot") {
			continue
		}
		b, err := h.disk.Cache().Read(name)
		if err != nil || len(b) == 0 || chance(n.rand, 40) {
			continue
		}
		h.disk.Overwrite(name, n.damaged(path.Ext(name), bytes.Clone(b)))
	}
}

// noise is damage to files that are caches.
type noise struct {
	rand *rand.Rand
	last map[string][]byte // the file before, by the end of its name
}

// fields are the widths of the columns of index files.
var fields = map[string][]int{".index": {4, 4}, ".timeindex": {8, 4}}

// damaged returns what a file has become: bits are flipped; entries have a column of a neighbour, so that they are likely and wrong; its end is missing, or
// zeros; or it is another file.
func (n *noise) damaged(suffix string, b []byte) []byte {
	r := n.rand
	before := n.last[suffix]
	n.last[suffix] = bytes.Clone(b)
	width := 0
	for _, w := range fields[suffix] {
		width += w
	}
	switch how := r.IntN(6); {
	case how <= 1 && width > 0 && len(b) >= 2*width:
		for range 1 + r.IntN(3) {
			i := r.IntN(len(b)/width - 1)
			from, to := i*width, (i+1)*width
			if chance(r, 50) {
				from, to = to, from
			}
			if column := fields[suffix]; chance(r, 50) {
				copy(b[to:][:column[0]], b[from:])
			} else {
				copy(b[to+column[0]:][:column[1]], b[from+column[0]:])
			}
		}
	case how == 2:
		b = b[:r.IntN(len(b))]
	case how == 3:
		clear(b[r.IntN(len(b)):])
	case how == 4 && before != nil && width > 0: // a producer snapshot of another log has a checksum that is right
		b = slices.Clone(before)
	default:
		for range 1 + r.IntN(20) {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
	}
	return b
}

// Of the control block; see store's FORMAT.md.
const (
	slotsAt   = 4096
	slotBytes = 256
	slotWords = 9 // of a half, before the checksum
)

// tearSlots is what a kill leaves that comes while a log writes its place in the control block: the half that is not the newest has the first words of what
// would have come next.
func (h *host) tearSlots() {
	name := path.Join(dataDir, "control-block")
	b, err := h.disk.Cache().Read(name)
	if err != nil || !chance(h.torn, 30) {
		return
	}
	b = bytes.Clone(b)
	for at := slotsAt; at+slotBytes <= len(b); at += slotBytes {
		older, newer := b[at:][:slotBytes/2], b[at+slotBytes/2:][:slotBytes/2]
		if binary.LittleEndian.Uint64(older) > binary.LittleEndian.Uint64(newer) {
			older, newer = newer, older
		}
		turn := binary.LittleEndian.Uint64(newer)
		if turn == 0 {
			continue // nobody's
		}
		next := bytes.Clone(newer[:slotWords*8])
		binary.LittleEndian.PutUint64(next, turn+1)
		for _, word := range []int{4, 5} { // size and end
			binary.LittleEndian.PutUint64(next[word*8:], binary.LittleEndian.Uint64(next[word*8:])+1+h.torn.Uint64N(200))
		}
		copy(older, next[:8*(1+h.torn.IntN(slotWords))])
	}
	h.disk.Overwrite(name, b)
}
