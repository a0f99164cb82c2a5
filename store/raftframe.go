package store

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// A Raft log file is a head of one sector and frames behind it. A frame is what one
// Save wrote, whole or not at all: its checksum covers generation, length and body.
// Frames begin at multiples of 8 bytes. Generation tells the frames of this life of
// the file from what an earlier one left behind them.
const (
	raftMagic      = "TRPERAFT"
	raftVersion    = 1
	raftHead       = 512
	raftHeadBytes  = len(raftMagic) + 4 + 8 + 4 + 4
	frameMagic     = 0x54524652 // "TRFR"
	frameHead      = 4 + 4 + 4 + 4
	frameAlign     = 8
	frameBytesMax  = 1 << 30
	recordHard     = 1
	recordEntry    = 2
	recordSnapshot = 3
)

// raftHeader is the head of a file.
type raftHeader struct {
	generation uint64
	retired    bool // another file has taken over
}

func encodeRaftHead(h raftHeader) []byte {
	b := make([]byte, 0, raftHead)
	b = append(b, raftMagic...)
	b = binary.LittleEndian.AppendUint32(b, raftVersion)
	b = binary.LittleEndian.AppendUint64(b, h.generation)
	flags := uint32(0)
	if h.retired {
		flags = 1
	}
	b = binary.LittleEndian.AppendUint32(b, flags)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	return b[:raftHead]
}

// decodeRaftHead reads a head. ErrFormat when there is none.
func decodeRaftHead(b []byte) (raftHeader, error) {
	if len(b) < raftHead || string(b[:len(raftMagic)]) != raftMagic {
		return raftHeader{}, fmt.Errorf("no head of a Raft log: %w", ErrFormat)
	}
	sum := raftHeadBytes - 4
	if crc32.Checksum(b[:sum], castagnoli) != binary.LittleEndian.Uint32(b[sum:]) {
		return raftHeader{}, fmt.Errorf("the head's checksum does not match: %w", ErrFormat)
	}
	at := len(raftMagic)
	if v := binary.LittleEndian.Uint32(b[at:]); v != raftVersion {
		return raftHeader{}, fmt.Errorf("version %d, this broker reads %d: %w", v, raftVersion, ErrNewerFormat)
	}
	return raftHeader{
		generation: binary.LittleEndian.Uint64(b[at+4:]),
		retired:    binary.LittleEndian.Uint32(b[at+12:])&1 != 0,
	}, nil
}

// beginFrame appends the head of a frame to an empty buffer; endFrame fills it in
// and pads the frame.
func beginFrame(b []byte) []byte { return append(b[:0], make([]byte, frameHead)...) }

func endFrame(b []byte, generation uint64) ([]byte, error) {
	body := len(b) - frameHead
	if body > frameBytesMax {
		return nil, fmt.Errorf("a Raft save of %d bytes, %d are allowed", body, frameBytesMax)
	}
	le := binary.LittleEndian
	le.PutUint32(b, frameMagic)
	le.PutUint32(b[4:], uint32(generation))
	le.PutUint32(b[8:], uint32(body))
	le.PutUint32(b[12:], frameSum(b, b[frameHead:], generation))
	for len(b)%frameAlign != 0 {
		b = append(b, 0)
	}
	return b, nil
}

func frameSum(head, body []byte, generation uint64) uint32 {
	var g [8]byte
	binary.LittleEndian.PutUint64(g[:], generation)
	sum := crc32.Update(0, castagnoli, g[:])
	sum = crc32.Update(sum, castagnoli, head[8:12])
	return crc32.Update(sum, castagnoli, body)
}

// frameAt returns the body of the frame at the front of b and its padded size. ok
// is false when there is none of this generation.
func frameAt(b []byte, generation uint64) (body []byte, size int, ok bool) {
	le := binary.LittleEndian
	if len(b) < frameHead || le.Uint32(b) != frameMagic || le.Uint32(b[4:]) != uint32(generation) {
		return nil, 0, false
	}
	n := le.Uint32(b[8:])
	if n > frameBytesMax || int64(n) > int64(len(b)-frameHead) {
		return nil, 0, false
	}
	body = b[frameHead:][:n]
	if frameSum(b, body, generation) != le.Uint32(b[12:]) {
		return nil, 0, false
	}
	size = (frameHead + int(n) + frameAlign - 1) / frameAlign * frameAlign
	return body, size, true
}

func appendRecord(b []byte, kind byte, payload ...[]byte) []byte {
	n := 0
	for _, p := range payload {
		n += len(p)
	}
	b = append(b, kind)
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	for _, p := range payload {
		b = append(b, p...)
	}
	return b
}

func appendEntry(b []byte, e *RaftEntry) []byte {
	var head [20]byte
	binary.LittleEndian.PutUint64(head[:], e.Index)
	binary.LittleEndian.PutUint64(head[8:], e.Term)
	binary.LittleEndian.PutUint32(head[16:], uint32(e.Kind))
	return appendRecord(b, recordEntry, head[:], e.Data)
}

func appendSnapshot(b []byte, s *RaftSnapshot) []byte {
	var head [16]byte
	binary.LittleEndian.PutUint64(head[:], s.Index)
	binary.LittleEndian.PutUint64(head[8:], s.Term)
	return appendRecord(b, recordSnapshot, head[:], s.Data)
}

// apply folds the records of a frame's body into the state. The slices of the
// state alias the body.
func (s *RaftState) apply(body []byte) error {
	le := binary.LittleEndian
	for len(body) > 0 {
		if len(body) < 5 || int64(le.Uint32(body[1:])) > int64(len(body)-5) {
			return fmt.Errorf("a record reaches beyond its frame: %w", ErrFormat)
		}
		kind, p := body[0], body[5:][:le.Uint32(body[1:])]
		body = body[5+len(p):]
		switch {
		case kind == recordHard:
			s.Hard = p
		case kind == recordEntry && len(p) >= 20:
			e := RaftEntry{Index: le.Uint64(p), Term: le.Uint64(p[8:]), Kind: int32(le.Uint32(p[16:])), Data: p[20:]}
			if err := s.add(e); err != nil {
				return err
			}
		case kind == recordSnapshot && len(p) >= 16:
			s.Snapshot = RaftSnapshot{Index: le.Uint64(p), Term: le.Uint64(p[8:]), Data: p[16:]}
			s.Entries = s.Entries[:0]
		default:
			return fmt.Errorf("record of kind %d with %d bytes: %w", kind, len(p), ErrFormat)
		}
	}
	return nil
}

// add appends an entry, which replaces the one of its index and all that follow.
func (s *RaftState) add(e RaftEntry) error {
	first := s.Snapshot.Index + 1
	next := first + uint64(len(s.Entries))
	if e.Index < first || e.Index > next {
		return fmt.Errorf("entry %d, one of [%d, %d] was expected: %w", e.Index, first, next, ErrFormat)
	}
	s.Entries = append(s.Entries[:e.Index-first], e)
	return nil
}
