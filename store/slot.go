package store

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/troupe-broker/troupe/wire/ident"
)

// slotState is what the control block remembers of one log. It is rewritten with
// every append, by plain stores into mapped memory, so that it survives the death
// of the process but promises nothing about the death of the machine.
type slotState struct {
	log     uint64       // logKey: which log this is
	file    uint64       // fileKey of the active segment's file
	base    ident.Offset // of the active segment
	size    int64        // bytes of batches in the active segment
	end     ident.Offset // log end
	flushed ident.Offset // durable mark: everything below has been synced
	epoch   Epoch        // the newest, which the epoch file may lack
	cutting bool         // a truncation to end is under way
	behind  bool         // the epoch file lacks more than the newest epoch
	bare    bool         // there is no epoch file yet
	lacking bool         // what was told of the log is not all there, and nobody has heard that
}

// A slot has two halves, written in turn, so that a process killed in the middle
// of one leaves the other.
const (
	slotHalf  = 128
	slotSize  = 2 * slotHalf
	slotWords = 9 // before the checksum
	// Flags in the upper half of the word that holds size.
	slotCutting = 1 << 62
	slotBehind  = 1 << 61
	slotBare    = 1 << 60
	slotLacking = 1 << 59
	slotFlags   = slotCutting | slotBehind | slotBare | slotLacking
)

// slot is one log's place in the control block. Only the log's owner writes it.
type slot struct {
	halves []byte // slotSize bytes of mapped memory
	turn   uint64 // sequence number of the last write
	index  int
}

// put replaces the slot's content.
func (s *slot) put(v *slotState) {
	s.turn++
	b := s.halves[(s.turn&1)*slotHalf:][:slotHalf:slotHalf]
	size := uint64(v.size)
	if v.cutting {
		size |= slotCutting
	}
	if v.behind {
		size |= slotBehind
	}
	if v.bare {
		size |= slotBare
	}
	if v.lacking {
		size |= slotLacking
	}
	w := words{
		s.turn, v.log, v.file, uint64(v.base), size, uint64(v.end), uint64(v.flushed),
		uint64(uint32(v.epoch.Epoch)), uint64(v.epoch.Start),
	}
	for i := range w {
		binary.LittleEndian.PutUint64(b[i*8:], w[i])
	}
	binary.LittleEndian.PutUint64(b[slotWords*8:], w.sum())
}

// get reads the newer sound half. ok is false when there is none.
func (s *slot) get() (v slotState, ok bool) {
	var best uint64
	for i := range 2 {
		b := s.halves[i*slotHalf:][:slotHalf]
		var w words
		for k := range w {
			w[k] = binary.LittleEndian.Uint64(b[k*8:])
		}
		if w.sum() != binary.LittleEndian.Uint64(b[slotWords*8:]) || w[0] <= best {
			continue
		}
		best, ok = w[0], true
		v = slotState{
			log:     w[1],
			file:    w[2],
			base:    ident.Offset(w[3]),
			size:    int64(w[4] &^ slotFlags),
			end:     ident.Offset(w[5]),
			flushed: ident.Offset(w[6]),
			epoch:   Epoch{ident.LeaderEpoch(uint32(w[7])), ident.Offset(w[8])},
			cutting: w[4]&slotCutting != 0,
			behind:  w[4]&slotBehind != 0,
			bare:    w[4]&slotBare != 0,
			lacking: w[4]&slotLacking != 0,
		}
	}
	return v, ok
}

// empty tells that no log has the slot.
func (s *slot) empty() bool { return bytes.Equal(s.halves, noSlot[:]) }

var noSlot [slotSize]byte

// clear makes the slot free for another log.
func (s *slot) clear() { clear(s.halves) }

// words are a half of a slot without its checksum.
type words [slotWords]uint64

// sum is a checksum: it has to notice a half-written slot and a page of noise, not
// an adversary, and it is paid with every append.
func (w *words) sum() uint64 {
	const k0, k1, k2, k3 = 0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0xd6e8feb86659fd93
	return fold(w[0]^k0, w[1]^k1) ^ fold(w[2]^k2, w[3]^k3) ^ fold(w[4]^k1, w[5]^k0) ^ fold(w[6]^k3, w[7]^k2) ^
		fold(w[8]^0x2545f4914f6cdd1d, k1)
}

func fold(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x, y)
	return hi ^ lo
}

// hash mixes three words into one that is not 0.
func hash(a, b, c uint64) uint64 {
	w := words{a, b, c}
	return w.sum() | 1
}

// logKey names a log in the control block: topic id and partition.
func logKey(id ident.TopicID, partition int32) uint64 {
	return hash(binary.LittleEndian.Uint64(id[:8]), binary.LittleEndian.Uint64(id[8:]), uint64(uint32(partition)))
}

// fileKey names a file in the control block: device and inode.
func fileKey(id FileID) uint64 { return hash(id.Device, id.Inode, 0) }
