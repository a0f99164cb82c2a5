package store

import (
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
	cutting bool         // a truncation to end is under way
	behind  bool         // the epoch file lacks the newest epochs
}

// A slot has two halves, written in turn, so that a process killed in the middle
// of one leaves the other.
const (
	slotHalf = 64
	slotSize = 2 * slotHalf
	// Flags in the upper half of the word that holds size.
	slotCutting = 1 << 62
	slotBehind  = 1 << 61
	slotFlags   = slotCutting | slotBehind
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
	le := binary.LittleEndian
	le.PutUint64(b[0:], s.turn)
	le.PutUint64(b[8:], v.log)
	le.PutUint64(b[16:], v.file)
	le.PutUint64(b[24:], uint64(v.base))
	le.PutUint64(b[32:], size)
	le.PutUint64(b[40:], uint64(v.end))
	le.PutUint64(b[48:], uint64(v.flushed))
	le.PutUint64(b[56:], mix8(s.turn, v.log, v.file, uint64(v.base), size, uint64(v.end), uint64(v.flushed)))
}

// get reads the newer sound half. ok is false when there is none.
func (s *slot) get() (v slotState, ok bool) {
	le := binary.LittleEndian
	var best uint64
	for i := range 2 {
		b := s.halves[i*slotHalf:][:slotHalf]
		turn, size := le.Uint64(b[0:]), le.Uint64(b[32:])
		sound := le.Uint64(b[56:]) == mix8(turn, le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint64(b[24:]), size, le.Uint64(b[40:]), le.Uint64(b[48:]))
		if !sound || turn == 0 || turn <= best {
			continue
		}
		best, ok = turn, true
		v = slotState{
			log:     le.Uint64(b[8:]),
			file:    le.Uint64(b[16:]),
			base:    ident.Offset(le.Uint64(b[24:])),
			size:    int64(size &^ slotFlags),
			end:     ident.Offset(le.Uint64(b[40:])),
			flushed: ident.Offset(le.Uint64(b[48:])),
			cutting: size&slotCutting != 0,
			behind:  size&slotBehind != 0,
		}
	}
	return v, ok
}

// clear makes the slot free for another log.
func (s *slot) clear() { clear(s.halves) }

// mix8 is a checksum over seven words: it has to notice a half-written slot and a
// page of noise, not an adversary, and it is paid with every append.
func mix8(a, b, c, d, e, f, g uint64) uint64 {
	const k0, k1, k2, k3 = 0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0xd6e8feb86659fd93
	return fold(a^k0, b^k1) ^ fold(c^k2, d^k3) ^ fold(e^k1, f^k0) ^ fold(g^k3, 0x2545f4914f6cdd1d)
}

func fold(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x, y)
	return hi ^ lo
}

// logKey names a log in the control block: topic id and partition.
func logKey(id ident.TopicID, partition int32) uint64 {
	a, b := binary.LittleEndian.Uint64(id[:8]), binary.LittleEndian.Uint64(id[8:])
	return mix8(a, b, uint64(uint32(partition)), 0, 0, 0, 0) | 1
}

// fileKey names a file in the control block: device and inode.
func fileKey(id FileID) uint64 { return mix8(id.Device, id.Inode, 0, 0, 0, 0, 0) | 1 }
