package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-broker/troupe/actors/broker"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// inspectDisks stops the brokers in order, one after the other, and reads what they leave, with readers of its own: the segments of every partition, their
// indexes, and the metadata log.
func (r *run) inspectDisks() {
	for _, h := range r.hosts {
		h.inspectDisk()
	}
}

func (h *host) inspectDisk() {
	r := h.run
	if r.violation != nil {
		return
	}
	inspection := h.inspection // of this life
	partitions := inspection.Partitions()
	stopped := false
	h.stop(func(err error) {
		if err != nil {
			r.fail("a stop in order is clean", "%s: %v", h, err)
		}
		stopped = true
	})
	r.until("stopping", time.Minute, func() bool { return stopped })
	if r.violation != nil {
		return
	}
	lossy := r.ghost.lossy || h.lost
	c := &checker{disk: h.disk.Cache(), noisy: h.noisy || lossy, lossy: lossy, late: h.id > 0}
	closed := make(map[replica]broker.PartitionState)
	for _, p := range inspection.Closed() {
		closed[replica{p.ID, p.Partition}] = p
	}
	for _, p := range partitions {
		if m := r.ensemble.seen(h, &p); m != nil {
			p.Offsets.LogStart, p.Offsets.End = m.start, m.end // it took a while to hand over what it led
		}
		// Retention that waited for the disk, or an answer, may come first in the turn that closes the log, which nobody sees between.
		last := closed[replica{p.ID, p.Partition}].Offsets
		p.Offsets.LogStart, p.Offsets.End = max(p.Offsets.LogStart, last.LogStart), max(p.Offsets.End, last.End)
		if err := c.partition(p); err != nil {
			r.fail("the disk holds what the broker believed", "%s: %s-%d: %v", h, p.Topic, p.Partition, err)
			return
		}
	}
	if err := c.strangers(partitions); err != nil {
		r.fail("nothing is left over", "%s: %v", h, err)
	}
	if err := c.metadata(h.last); err != nil {
		r.fail("the image is the fold of the metadata log", "%s: %v", h, err)
	}
}

// checker reads a data directory that nobody has open.
type checker struct {
	disk  storetest.Look
	noisy bool // index files were damaged, or not synced in time
	lossy bool // what was not synced may have been lost, the identity of a partition for example
	late  bool // an empty log may have begun with a later batch than its first segment is named after: what its leader had first
}

func (c *checker) read(name string) ([]byte, error) { return c.disk.Read(name) }

// segment is a file of batches as it was read.
type segmentRead struct {
	base    ident.Offset
	batches []batchRead
}

type batchRead struct {
	at         int64
	base, last ident.Offset
	top        ident.Millis // greatest timestamp up to here
	epoch      ident.LeaderEpoch
	crc        uint32
}

// partition reads a partition's log: batches without gaps or damage, from at most the log start to the log end.
func (c *checker) partition(p broker.PartitionState) error {
	if !p.Serving {
		return errors.New("it was not served")
	}
	dir := path.Join(dataDir, p.String())
	names, err := c.disk.List(dir)
	if err != nil {
		return err
	}
	epochs, err := c.epochs(dir)
	if err != nil {
		return err
	}
	next := ident.NoOffset
	for _, n := range names {
		digits, ok := strings.CutSuffix(n.Name, ".log")
		if !ok {
			continue
		}
		base, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return err
		}
		gap := next != ident.NoOffset && ident.Offset(base) != next && (!apart(p.Topic) || ident.Offset(base) < next)
		// A log that was begun anew while segments below its start waited for their turn to go may have them still.
		if gap && (ident.Offset(base) > p.Offsets.LogStart || ident.Offset(base) < next) {
			return fmt.Errorf("segment %d follows one that ends at %d", base, next)
		}
		if next == ident.NoOffset && ident.Offset(base) > p.Offsets.LogStart {
			return fmt.Errorf("the first segment begins at %d, the log at %d", base, p.Offsets.LogStart)
		}
		s, err := c.segment(dir, ident.Offset(base), p.Offsets.LogStart, apart(p.Topic))
		if err != nil {
			return fmt.Errorf("segment %d: %w", base, err)
		}
		next = ident.Offset(base)
		if n := len(s.batches); n > 0 {
			next = s.batches[n-1].last + 1
		}
		if err := agree(epochs, s.batches, p.Offsets.LogStart); err != nil {
			return fmt.Errorf("segment %d: %w", base, err)
		}
		if c.noisy {
			continue // noise in an index that nobody has needed may stay
		}
		if err := errors.Join(c.offsetIndex(dir, s), c.timeIndex(dir, s)); err != nil {
			return fmt.Errorf("segment %d: %w", base, err)
		}
	}
	if next != p.Offsets.End {
		return fmt.Errorf("the last segment ends at %d, the log at %d", next, p.Offsets.End)
	}
	return nil
}

// epochStart is a line of the epoch file.
type epochStart struct {
	epoch ident.LeaderEpoch
	start ident.Offset
}

// epochs reads the epoch file: epochs and their starts rise.
func (c *checker) epochs(dir string) ([]epochStart, error) {
	b, err := c.read(path.Join(dir, "leader-epoch-checkpoint"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []epochStart
	for i, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		if i < 2 {
			continue // version and count
		}
		epoch, start, _ := strings.Cut(line, " ")
		n, err := strconv.ParseInt(epoch, 10, 32)
		at, err2 := strconv.ParseInt(start, 10, 64)
		if err := errors.Join(err, err2); err != nil {
			return nil, fmt.Errorf("the epoch file has the line %q: %w", line, err)
		}
		e := epochStart{ident.LeaderEpoch(n), ident.Offset(at)}
		if n := len(list); n > 0 && (e.epoch <= list[n-1].epoch || e.start <= list[n-1].start) {
			return nil, fmt.Errorf("the epoch file has epoch %d at %d after epoch %d at %d", e.epoch, e.start, list[n-1].epoch, list[n-1].start)
		}
		list = append(list, e)
	}
	return list, nil
}

// agree verifies that the epoch of each batch at or above the log start is the one that the epoch file has for its offset.
func agree(epochs []epochStart, batches []batchRead, start ident.Offset) error {
	for _, b := range batches {
		if b.base < start {
			continue
		}
		e := ident.NoLeaderEpoch
		for _, x := range epochs {
			if x.start <= b.base {
				e = x.epoch
			}
		}
		if e != b.epoch {
			return fmt.Errorf("the batch at %d is of epoch %d, the epoch file says %d: %v", b.base, b.epoch, e, epochs)
		}
	}
	return nil
}

// segment reads a segment. A compacted one has gaps, and any may have one up to the log start: a follower that ended below its leader's start goes on there.
func (c *checker) segment(dir string, base, start ident.Offset, gaps bool) (*segmentRead, error) {
	b, err := c.read(path.Join(dir, fmt.Sprintf("%020d.log", base)))
	if err != nil {
		return nil, err
	}
	s := &segmentRead{base: base}
	next, top := base, ident.NoTimestamp
	for rest := b; len(rest) > 0; {
		v, more, err := record.Split(rest)
		if err != nil {
			return nil, fmt.Errorf("position %d: %w", len(b)-len(rest), err)
		}
		if err := v.VerifyCRC(); err != nil {
			return nil, fmt.Errorf("offset %d: %w", v.BaseOffset(), err)
		}
		late := c.late && len(s.batches) == 0
		if v.BaseOffset() != next && (!gaps && !late && (!c.late || v.BaseOffset() > start) || v.BaseOffset() < next) {
			return nil, fmt.Errorf("a batch of offset %d where %d is next", v.BaseOffset(), next)
		}
		top = max(top, v.MaxTimestamp())
		s.batches = append(s.batches, batchRead{at: int64(len(b) - len(rest)), base: v.BaseOffset(), last: v.LastOffset(), top: top, epoch: v.LeaderEpoch()})
		next, rest = v.NextOffset(), more
	}
	return s, nil
}

// entries reads an index file and calls visit with each entry. A missing file has none.
func (c *checker) entries(dir string, base ident.Offset, suffix string, size int, visit func(b []byte) error) error {
	b, err := c.read(path.Join(dir, fmt.Sprintf("%020d%s", base, suffix)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(b)%size != 0 {
		return fmt.Errorf("%s has %d bytes", suffix, len(b))
	}
	for ; len(b) > 0; b = b[size:] {
		if err := visit(b[:size]); err != nil {
			return fmt.Errorf("%s: %w", suffix, err)
		}
	}
	return nil
}

// offsetIndex verifies that each entry names the end and the position of a batch, and that both rise.
func (c *checker) offsetIndex(dir string, s *segmentRead) error {
	i := 0
	return c.entries(dir, s.base, ".index", 8, func(b []byte) error {
		offset, at := s.base+ident.Offset(binary.BigEndian.Uint32(b)), int64(binary.BigEndian.Uint32(b[4:]))
		for i < len(s.batches) && s.batches[i].at < at {
			i++
		}
		if i == len(s.batches) || s.batches[i].at != at || s.batches[i].last != offset {
			return fmt.Errorf("offset %d at position %d is the end of no batch there", offset, at)
		}
		i++
		return nil
	})
}

// timeIndex verifies that each entry is the greatest timestamp up to its offset, and that both rise.
func (c *checker) timeIndex(dir string, s *segmentRead) error {
	last := ident.NoTimestamp
	i := 0
	return c.entries(dir, s.base, ".timeindex", 12, func(b []byte) error {
		ts, offset := ident.Millis(binary.BigEndian.Uint64(b)), s.base+ident.Offset(binary.BigEndian.Uint32(b[8:]))
		if ts <= last && last != ident.NoTimestamp {
			return fmt.Errorf("timestamp %d follows %d", ts, last)
		}
		last = ts
		for i < len(s.batches) && s.batches[i].last < offset {
			i++
		}
		if i == len(s.batches) || s.batches[i].last != offset || s.batches[i].top != ts {
			return fmt.Errorf("timestamp %d is not the greatest up to offset %d", ts, offset)
		}
		return nil
	})
}

// strangers finds directories of partitions that do not exist.
func (c *checker) strangers(partitions []broker.PartitionState) error {
	names, err := c.disk.List(dataDir)
	if err != nil {
		return err
	}
	known := make(map[string]bool)
	for _, p := range partitions {
		known[p.String()] = true
	}
	for _, n := range names {
		if n.Dir && n.Name != "raft" && !known[n.Name] && (!c.lossy || !strings.HasSuffix(n.Name, "-stray")) {
			return fmt.Errorf("directory %s is of no partition", n.Name)
		}
	}
	return nil
}

// metadata folds the metadata log, record by record, and compares with the image that the broker had.
func (c *checker) metadata(want *cluster.Image) error {
	newest, err := c.raft()
	if err != nil {
		return err
	}
	image, err := cluster.DecodeSnapshot(newest.Snapshot.Data)
	if err != nil {
		return err
	}
	for _, e := range newest.Entries {
		if e.Index <= image.Index() || e.Index > want.Index() {
			continue
		}
		records, err := cluster.RecordsOf(cluster.Entry{Index: e.Index, Term: e.Term, Data: e.Data})
		if err != nil {
			return err
		}
		if image, _, err = image.Apply(e.Index, e.Term, records); err != nil {
			return err
		}
	}
	if !image.Equal(want) {
		return fmt.Errorf("folding the log gives another image at index %d than the broker had at %d", image.Index(), want.Index())
	}
	return nil
}

// raft reads the file of the metadata log that counts.
func (c *checker) raft() (newest store.RaftFileState, err error) {
	for _, name := range []string{"0.raftlog", "1.raftlog"} {
		b, err := c.read(path.Join(dataDir, "raft", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return newest, err
		}
		s, err := store.ReadRaftFile(b)
		if err == nil && !s.Retired && s.Generation > newest.Generation {
			newest = s
		}
	}
	if newest.Generation == 0 {
		return newest, errors.New("neither file of the metadata log is the active one")
	}
	return newest, nil
}
