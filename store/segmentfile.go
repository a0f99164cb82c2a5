package store

import (
	"errors"
	"math"
	"os"
	"sync"
	"sync/atomic"
)

// segmentFile is the open file of a segment and, while it is the active one, its
// mapping: counted by reference, so that a send in flight keeps both. The segment
// itself holds one reference.
type segmentFile struct {
	file  File
	refs  atomic.Int64
	void  *voidFrom // of the segment; nil: it is none of a log
	trust *trust    // of the segment; nil: the same

	// bytes is the mapping, nil when there is none. It is set once, by the owner,
	// before any reader can see it.
	bytes   []byte
	mapping Mapping

	// reserved is how much of the file fallocate granted; size <= reserved while
	// the segment is active. Only grow and seal change it, under growth.
	reserved atomic.Int64
	ahead    atomic.Bool // a job that reserves is under way
	job      func()      // that job, made once
	// What the job goes by: the owner's until it is queued, the job's until ahead
	// is false again.
	target int64
	policy growthPolicy

	// The owner's.
	began   int64 // the file's size when this process first appended through the mapping
	covered int64 // below it the page cache holds whole pages; see cover

	growth sync.Mutex
	sealed bool  // the file ends where its batches end, and never grows again
	step   int64 // next reservation step in bytes

	// failed hears the errors of jobs and of the last release, where no caller
	// waits for them.
	failed func(error)
}

func newSegmentFile(f File, failed func(error)) *segmentFile {
	sf := &segmentFile{file: f, failed: failed}
	sf.refs.Store(1)
	return sf
}

// retain takes a reference. The caller must hold one already.
func (sf *segmentFile) retain() {
	if sf.refs.Add(1) <= 1 {
		panic("store: a closed segment file was retained")
	}
}

// release gives a reference back; the last one unmaps and closes.
func (sf *segmentFile) release() {
	switch n := sf.refs.Add(-1); {
	case n > 0:
		return
	case n < 0:
		panic("store: a segment file was released twice")
	}
	var err error
	if sf.mapping != nil {
		err = sf.mapping.Close()
		sf.bytes = nil
	}
	if err = errors.Join(err, sf.file.Close()); err != nil {
		sf.failed(err)
	}
}

// mapTo maps the first n bytes of the file's range. It is an economy, so that a
// failure (vm.max_map_count) leaves the file to be written by pwrite.
func (sf *segmentFile) mapTo(n int64) {
	if n <= 0 || n > math.MaxInt {
		return
	}
	m, err := sf.file.Map(0, n)
	if err != nil {
		return
	}
	sf.mapping, sf.bytes = m, m.Bytes()
}

// growth policy of one log, see LogConfig.
type growthPolicy struct {
	min, max int64 // of a step, in bytes
	limit    int64 // the segment's greatest size
	whole    bool  // reserve the whole segment at once
}

// reserve makes sure that the file covers [0, need), in steps that double. On a
// full disk it settles for exactly what is needed, and if there is not even that,
// nothing has changed.
func (sf *segmentFile) reserve(need int64, p growthPolicy) error {
	sf.growth.Lock()
	defer sf.growth.Unlock()
	return sf.reserveLocked(need, p)
}

func (sf *segmentFile) reserveLocked(need int64, p growthPolicy) error {
	have := sf.reserved.Load()
	if need <= have {
		return nil
	}
	if sf.sealed {
		panic("store: a sealed segment was asked to grow")
	}
	step := max(sf.step, p.min)
	want := max(need, have+step)
	if p.whole {
		want = max(want, p.limit)
	}
	// Beyond the segment's limit only a single batch may reach, and it says so.
	want = max(need, min(want, p.limit))
	err := sf.file.Allocate(have, want-have)
	if err != nil && IsNoSpace(err) && want > need {
		// A failed fallocate may have grown the file part of the way; the
		// shorter request covers that range or is refused as a whole.
		want = need
		err = sf.file.Allocate(have, want-have)
	}
	if err != nil {
		return errors.Join(err, sf.file.Truncate(have))
	}
	sf.reserved.Store(want)
	sf.step = min(step*2, p.max)
	return nil
}

// Space is reserved by a job as soon as less than half a window of it is left, and
// pages are covered a piece at a time. Both grow with what the process has appended to
// the file, so that ten thousand quiet partitions do not hold ten thousand windows.
const (
	windowMax = 8 << 20
	pageSize  = 4 << 10
	coverMax  = 256 << 10
)

// zeros is never written to, so that the kernel gives all of it one page.
var zeros [coverMax]byte

// cover puts zeros into the page cache from the first page behind pos on, where the
// log ends, to need or somewhat beyond, all of it reserved: then the copy that follows
// meets large folios that are up to date. A first touch through the mapping would have
// the kernel read the reserved space instead, and zero it in smaller folios, at three
// times the cost of these writes. The page that holds pos is there already.
func (sf *segmentFile) cover(pos, need int64) error {
	piece := int64(pageSize)
	for piece < coverMax && piece < need-sf.began {
		piece *= 2
	}
	at := max(sf.covered, roundUp(pos, pageSize))
	to := min(roundUp(need, piece), sf.reserved.Load())
	for at < to {
		end := min(roundUp(at+1, coverMax), to)
		if _, err := sf.file.WriteAt(zeros[:end-at], at); err != nil {
			return err
		}
		at = end
		sf.covered = end
	}
	return nil
}

// roundUp returns the first multiple of step, a power of two, that is not below n.
func roundUp(n, step int64) int64 { return (n + step - 1) &^ (step - 1) }

// keepAhead has space reserved behind size on the background, so that the writer does
// not wait for the file system's journal.
func (sf *segmentFile) keepAhead(size int64, p growthPolicy, background func(func())) {
	window := min(size-sf.began, windowMax)
	if sf.reserved.Load() >= min(size+window/2, p.limit) || !sf.ahead.CompareAndSwap(false, true) {
		return
	}
	if sf.job == nil {
		sf.job = func() {
			defer sf.release()
			defer sf.ahead.Store(false)
			sf.goAhead(sf.target, sf.policy)
		}
	}
	sf.target, sf.policy = min(size+window, p.limit), p
	sf.retain()
	background(sf.job)
}

func (sf *segmentFile) goAhead(target int64, p growthPolicy) {
	sf.growth.Lock()
	defer sf.growth.Unlock()
	if sf.sealed {
		return
	}
	// An error means that the disk is full, or broken. The writer will meet it again
	// when it needs the space, with a client to tell.
	_ = sf.reserveLocked(target, p)
}

// seal cuts the reserved tail off, so that the file ends with its last batch, and
// forbids growing.
func (sf *segmentFile) seal(size int64) error {
	sf.growth.Lock()
	defer sf.growth.Unlock()
	if sf.reserved.Load() != size {
		if err := sf.file.Truncate(size); err != nil {
			return err
		}
		sf.reserved.Store(size)
	}
	sf.sealed = true
	return nil
}

// freeze forbids growing without cutting anything.
func (sf *segmentFile) freeze() {
	sf.growth.Lock()
	defer sf.growth.Unlock()
	sf.sealed = true
}

// openSegmentFile opens a segment's file.
func openSegmentFile(fs FS, name string, flag int, failed func(error)) (*segmentFile, error) {
	f, err := fs.OpenFile(name, flag, 0o644)
	if err != nil {
		return nil, err
	}
	sf := newSegmentFile(f, failed)
	if flag&os.O_TRUNC == 0 && flag&os.O_EXCL == 0 {
		size, err := f.Size()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		sf.reserved.Store(size)
	}
	return sf, nil
}
