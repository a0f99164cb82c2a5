package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"reflect"
	"testing"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// bytesFile is a file in memory with the two methods that parsers of open files
// use.
type bytesFile struct {
	File
	b []byte
}

func (f *bytesFile) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(f.b).ReadAt(p, off)
}
func (f *bytesFile) Size() (int64, error) { return int64(len(f.b)), nil }
func (f *bytesFile) Close() error         { return nil }

// bytesFS opens one file, for reading.
type bytesFS struct {
	FS
	b []byte
}

func (s bytesFS) OpenFile(string, int, fs.FileMode) (File, error) { return &bytesFile{b: s.b}, nil }

func FuzzOffsetIndex(f *testing.F) {
	f.Add([]byte{}, int64(0))
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 100, 0, 0, 0, 9, 0, 0, 2, 0}, int64(5))
	f.Add(bytes.Repeat([]byte{0}, 40), int64(-1))
	f.Fuzz(func(t *testing.T, b []byte, o int64) {
		x := newOffsetIndex(bytesFS{b: b}, "index", 100)
		if err := x.load(); err != nil {
			if !errors.Is(err, ErrFormat) || len(b)%offsetEntrySize == 0 {
				t.Fatal(err)
			}
			return
		}
		p, err := x.byOffset(ident.Offset(o))
		if err != nil {
			t.Fatal(err)
		}
		if p.offset > ident.Offset(o) && p.offset != x.base-1 {
			t.Fatalf("asked for %d, got %+v", o, p)
		}
		if p, err = x.byPosition(o); err != nil || (p.pos > o && p.pos != 0) {
			t.Fatalf("asked for position %d, got %+v, %v", o, p, err)
		}
	})
}

func FuzzTimeIndex(f *testing.F) {
	f.Add([]byte{}, int64(0))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 4}, int64(8))
	f.Fuzz(func(t *testing.T, b []byte, ts int64) {
		x := newTimeIndex(bytesFS{b: b}, "timeindex", 100)
		if err := x.load(); err != nil {
			if !errors.Is(err, ErrFormat) || len(b)%timeEntrySize == 0 {
				t.Fatal(err)
			}
			return
		}
		m, err := x.before(ident.Millis(ts))
		if err != nil || (m.timestamp >= ident.Millis(ts) && m.timestamp != ident.NoTimestamp) {
			t.Fatalf("asked for what is before %d, got %+v, %v", ts, m, err)
		}
	})
}

func FuzzSnapshot(f *testing.F) {
	f.Add(encodeSnapshot(nil))
	f.Add(encodeSnapshot([]record.ProducerEntry{{ProducerID: 7, ProducerEpoch: 2, LastSequence: 9, LastOffset: 40, OffsetDelta: 3, Timestamp: 5, CoordinatorEpoch: -1, CurrentTxnFirstOffset: -1}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := decodeSnapshot(b)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(encodeSnapshot(list), b) {
			t.Fatal("a snapshot was read that is written differently")
		}
	})
}

func FuzzEpochs(f *testing.F) {
	f.Add([]byte("0\n2\n0 0\n4 17\n"))
	f.Add([]byte("0\n0\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decodeEpochs(b)
		if err != nil {
			if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrNewerFormat) {
				t.Fatal(err)
			}
			return
		}
		again, err := decodeEpochs(e.encode(nil))
		if err != nil || !reflect.DeepEqual(again, e) {
			t.Fatalf("%+v became %+v, %v", e, again, err)
		}
		for _, x := range e.list {
			if got := e.of(x.Start); got != x.Epoch {
				t.Fatalf("offset %d is of epoch %d, the file says %d", x.Start, got, x.Epoch)
			}
		}
	})
}

func FuzzMarks(f *testing.F) {
	f.Add([]byte("0\n1\norders 3 17\n"), false, false)
	f.Add([]byte("0\n1\norders 3 17 1\n"), true, false)
	f.Add([]byte("0\n1\norders 3 17 1 sMUEgVkutVSvcc5P4NPj0Q\n"), true, true)
	f.Fuzz(func(t *testing.T, b []byte, flag, topic bool) {
		more := markColumns{flag: flag, topic: topic}
		marks, err := decodeMarks(b, more)
		if err != nil {
			if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrNewerFormat) {
				t.Fatal(err)
			}
			return
		}
		again, err := decodeMarks(encodeMarks(marks, more), more)
		if err != nil || !reflect.DeepEqual(again, marks) {
			t.Fatalf("%+v became %+v, %v", marks, again, err)
		}
	})
}

func FuzzSealed(f *testing.F) {
	f.Add(seal([]byte("0\n0\n")))
	f.Add([]byte("crc32c 00000000\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		text, err := unseal(b)
		if err != nil {
			return
		}
		if !bytes.Equal(seal(bytes.Clone(text)), b) {
			t.Fatal("a text was unsealed that is sealed differently")
		}
	})
}

func FuzzMeta(f *testing.F) {
	f.Add(encodeMeta(Meta{Cluster: "c", Broker: 1, Directory: ident.DirectoryID{1, 2, 3}, Node: 9}))
	f.Add([]byte("#\n#Mon\nversion=1\ncluster.id=x\nnode.id=1\ndirectory.id=AQIDAAAAAAAAAAAAAAAAAA\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMeta(b)
		if err != nil {
			if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrNewerFormat) {
				t.Fatal(err)
			}
			return
		}
		if m.Node == 0 {
			m.Node = 1 // Kafka's own file gets one when it is adopted
		}
		if again, err := decodeMeta(encodeMeta(m)); err != nil || again != m {
			t.Fatalf("%+v became %+v, %v", m, again, err)
		}
	})
}

func FuzzPartitionMeta(f *testing.F) {
	f.Add(encodePartitionMeta(ident.TopicID{1}))
	f.Add([]byte("version: 0\ntopic_id: AQIDAAAAAAAAAAAAAAAAAA\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		id, err := decodePartitionMeta(b)
		if err != nil {
			if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrNewerFormat) {
				t.Fatal(err)
			}
			return
		}
		if again, err := decodePartitionMeta(encodePartitionMeta(id)); err != nil || again != id {
			t.Fatalf("%s became %s, %v", id, again, err)
		}
	})
}

func FuzzRaftLog(f *testing.F) {
	file := func(saves ...RaftSave) []byte {
		b := encodeRaftHead(raftHeader{generation: 1})
		for _, s := range saves {
			frame, err := (&RaftLog{}).encode(s, 1)
			if err != nil {
				f.Fatal(err)
			}
			b = append(b, frame...)
		}
		return b
	}
	f.Add(file(RaftSave{}))
	f.Add(file(RaftSave{}, RaftSave{Hard: []byte("h"), Entries: []RaftEntry{{Index: 1, Term: 1, Data: []byte("d")}}}))
	f.Add(file(RaftSave{Snapshot: &RaftSnapshot{Index: 7, Term: 2}}, RaftSave{Entries: []RaftEntry{{Index: 8, Term: 2}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := decodeRaftHead(b)
		if err != nil {
			return
		}
		s, pos, err := decodeRaftFile(b, h.generation)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		if pos < raftHead || pos%frameAlign != 0 {
			t.Fatalf("the next frame would go to %d", pos)
		}
		for i, e := range s.Entries {
			if e.Index != s.Snapshot.Index+1+uint64(i) {
				t.Fatalf("entry %d is in place %d behind %d", e.Index, i, s.Snapshot.Index)
			}
		}
	})
}

func FuzzControlBlock(f *testing.F) {
	head := make([]byte, controlHead+2*slotSize)
	copy(head, controlMagic)
	binary.LittleEndian.PutUint32(head[8:], controlVersion)
	copy(head[12:], "boot")
	const at = 8 + 4 + bootIDBytes
	binary.LittleEndian.PutUint32(head[at:], crc32.Checksum(head[:at], castagnoli))
	s := slot{halves: head[controlHead:][:slotSize]}
	s.put(&slotState{log: 5, file: 6, base: 7, size: 8, end: 9, flushed: 7})
	f.Add(bytes.Clone(head))
	f.Fuzz(func(t *testing.T, b []byte) {
		found, err := decodeControl(b)
		if err != nil && !errors.Is(err, ErrNewerFormat) {
			t.Fatal(err)
		}
		for key, v := range found.slots {
			s := slot{halves: make([]byte, slotSize)}
			s.put(&v)
			if again, ok := s.get(); !ok || again != v || key != v.log {
				t.Fatalf("%+v became %+v, %t", v, again, ok)
			}
		}
	})
}

func FuzzSegment(f *testing.F) {
	b := record.NewBuilder()
	var file []byte
	for i := range 4 {
		b.BaseOffset = ident.Offset(i * 2)
		b.Append(1, []byte("k"), []byte("v"))
		b.Append(2, nil, nil)
		out, err := b.Finish(nil)
		if err != nil {
			f.Fatal(err)
		}
		file = append(file, out...)
	}
	f.Add(file, true)
	f.Add(append(bytes.Clone(file), make([]byte, 100)...), false)
	f.Fuzz(func(t *testing.T, b []byte, check bool) {
		sc := newScanner(make([]byte, 256), bytes.NewReader(b), 0, int64(len(b)), 0)
		sc.check = check
		for {
			before, next := sc.pos, sc.next
			v, at, err := sc.batch()
			if err == nil {
				if at != before || sc.pos <= before || sc.pos > sc.limit || v.BaseOffset() < next || len(v) < record.HeaderSize {
					t.Fatalf("a batch at %d leads from %d to %d", at, before, sc.pos)
				}
				continue
			}
			if errors.Is(err, io.EOF) {
				return
			}
			h, err := sc.resync(0, 1<<40)
			if err != nil || sc.pos <= before || h.to != sc.pos || h.pos != before {
				t.Fatalf("a hole %+v, %v at %d", h, err, before)
			}
		}
	})
}
