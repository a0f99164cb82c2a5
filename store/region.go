package store

import (
	"errors"
	"io"

	"github.com/troupe-broker/troupe/wire/ident"
)

// Region is a run of whole batches in one segment, held by reference: file and
// mapping stay open until Release, even when the segment is deleted meanwhile. A
// Region is a value; it may be copied, but the copies share one reference, so
// Retain once for each further Release. All methods may be called from any
// goroutine. The zero Region is empty, and needs no Release.
type Region struct {
	held   *segmentFile
	off    int64
	mapped []byte
	n      int
	from   ident.Offset // asked for; the first batch has it, or lies behind it
	next   ident.Offset
	made   ident.Generation // of the log
	// What the log knew of its batches without looking at them: none begins below floor, none is of an epoch above newest, and one that holds from of none above epoch.
	floor         ident.Offset
	epoch, newest ident.LeaderEpoch
}

// Len is the number of bytes, 0 for the empty region.
func (r *Region) Len() int { return r.n }

// Next is the offset at which reading continues after this region.
func (r *Region) Next() ident.Offset { return r.next }

// Generation is that of the log when the region was read. What is found out about its
// bytes says nothing of a log that has another one.
func (r *Region) Generation() ident.Generation { return r.made }

// Mapped is the region's bytes in memory, when it lies in the mapped tail of the
// log, else nil. They must not be written to, and not be touched after Release.
func (r *Region) Mapped() []byte { return r.mapped }

// File is the file that holds the region from position off on, for sendfile.
func (r *Region) File() (f File, off int64) {
	if r.held == nil {
		return nil, 0
	}
	return r.held.file, r.off
}

// Resident tells whether reading the region needs no disk, as far as the kernel
// says; a region that is not should be read on a goroutine that may wait.
func (r *Region) Resident() bool {
	return r.held == nil || r.held.file.Resident(r.off, int64(r.n))
}

// ReadAt copies bytes of the region, from its position off on. It may wait for the
// disk and never touches the mapping. io.EOF at the region's end.
func (r *Region) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= int64(r.n) {
		return 0, io.EOF
	}
	short := int64(len(p)) > int64(r.n)-off
	if short {
		p = p[:int64(r.n)-off]
	}
	n, err := r.held.file.ReadAt(p, r.off+off)
	if n == len(p) {
		err = nil
	}
	if err == nil && short {
		err = io.EOF
	}
	return n, err
}

// Void tells whether a truncation has taken some of the region out of the log since it was
// read. Its bytes may have changed: what has not been sent must not be, and whoever was
// promised it has to be parted from.
func (r *Region) Void() bool {
	return r.held != nil && r.held.void != nil && !r.held.void.before(r.off+int64(r.n))
}

// Retain takes another reference.
func (r *Region) Retain() {
	if r.held != nil {
		r.held.retain()
	}
}

// Release gives the reference back. The region is empty afterwards.
func (r *Region) Release() {
	if r.held != nil {
		r.held.release()
	}
	*r = Region{next: r.next}
}

// Slice is the part [from, to) of the region, in bytes, sharing its reference: it
// takes none of its own. The bounds need not be batch boundaries; Next is that of
// the whole.
func (r *Region) Slice(from, to int) Region {
	s := *r
	s.off, s.n, s.mapped = r.off+int64(from), to-from, nil
	if r.mapped != nil {
		s.mapped = r.mapped[from:to:to]
	}
	return s
}

// isShort tells whether a read met the file's end.
func isShort(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// Prefetch has the disk read the region, and n bytes behind it for whoever asks next, and does not wait for them. A file that cannot be told so is left alone.
func (r *Region) Prefetch(n int64) {
	if r.held == nil {
		return
	}
	if f, ok := r.held.file.(interface{ WillNeed(off, n int64) }); ok {
		f.WillNeed(r.off, int64(r.n)+n)
	}
}
