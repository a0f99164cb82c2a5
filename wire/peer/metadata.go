package peer

import "github.com/troupe-broker/troupe/wire"

// MetadataAsk is how an observer pulls the metadata log. A voter that has nothing new
// keeps it for WaitMs.
type MetadataAsk struct {
	ID       uint64
	From     uint64 // index of the first entry that is missing
	Term     uint64 // of the entry before it, as the observer knows it
	Snapshot uint64 // index of the snapshot that is being pulled; 0: none
	Offset   uint64 // the piece of it that is missing
	WaitMs   int32
	BytesMax int32
}

// Code implements Message.
func (*MetadataAsk) Code() Code { return CodeMetadataAsk }

// AppendTo implements Message.
func (m *MetadataAsk) AppendTo(dst []byte) []byte {
	at := len(dst)
	dst = begin(dst, CodeMetadataAsk, 7)
	dst = appendUint(dst, m.ID)
	dst = appendUint(dst, m.From)
	dst = appendUint(dst, m.Term)
	dst = appendUint(dst, m.Snapshot)
	dst = appendUint(dst, m.Offset)
	dst = appendInt(dst, int64(m.WaitMs))
	return end(appendInt(dst, int64(m.BytesMax)), at, 0)
}

// Decode implements Message.
func (m *MetadataAsk) Decode(b Body) error {
	r := b.r
	m.ID, m.From, m.Term, m.Snapshot, m.Offset, m.WaitMs, m.BytesMax = r.uint64(), r.uint64(), r.uint64(), r.uint64(), r.uint64(), r.int32(), r.int32()
	r.leave(0)
	return r.err(b.code)
}

// MetadataAnswer is committed entries, or a piece of a snapshot.
type MetadataAnswer struct {
	ID        uint64
	Result    wire.ErrorCode
	Committed uint64 // index of the newest committed entry
	Index     uint64 // of the first entry, or of the snapshot
	Term      uint64 // of the snapshot
	Snapshot  bool   // Data is a piece of a snapshot
	Offset    uint64 // of Data in the snapshot
	Total     uint64 // bytes of the snapshot
	Data      []byte // the cluster package's
}

// Code implements Message.
func (*MetadataAnswer) Code() Code { return CodeMetadataAnswer }

// AppendTo implements Message.
func (m *MetadataAnswer) AppendTo(dst []byte) []byte {
	at := len(dst)
	dst = appendArray(begin(dst, CodeMetadataAnswer, 2), 8)
	dst = appendUint(dst, m.ID)
	dst = appendInt(dst, int64(m.Result))
	dst = appendUint(dst, m.Committed)
	dst = appendUint(dst, m.Index)
	dst = appendUint(dst, m.Term)
	dst = appendBool(dst, m.Snapshot)
	dst = appendUint(dst, m.Offset)
	dst = appendUint(dst, m.Total)
	return end(appendBin(dst, m.Data), at, 0)
}

// Decode implements Message.
func (m *MetadataAnswer) Decode(b Body) error {
	r := b.r
	outer := r.enter()
	m.ID, m.Result, m.Committed, m.Index, m.Term = r.uint64(), wire.ErrorCode(r.int16()), r.uint64(), r.uint64(), r.uint64()
	m.Snapshot, m.Offset, m.Total = r.bool(), r.uint64(), r.uint64()
	r.leave(outer)
	m.Data = r.bin()
	r.leave(0)
	return r.err(b.code)
}
