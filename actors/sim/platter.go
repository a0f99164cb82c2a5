package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-broker/troupe/actors/broker"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// looks is how many of a hundred operations are followed by a look at the platter: of those that change what a power cut would leave, or what the broker
// thinks it would. Names change far less often than bytes are synced.
func looks(p storetest.Point) int {
	switch p.Op {
	case "sync":
		return 2
	case "syncdir", "syncfs", "rename", "remove":
		return 12
	}
	return 0
}

// checkPlatter holds what the broker counts as durable against what would be left if the power failed at this moment and nothing survived that was not
// synced. It finds a promise that was made too early without having to wait for the cut that breaks it.
func (h *host) checkPlatter() {
	if h.inspection == nil || h.run.violation != nil {
		return
	}
	c := &checker{disk: h.disk.Platter()}
	starts, marks, err := c.checkpoints()
	if err != nil {
		h.run.fail("small files are whole on the platter", "%v", err)
		return
	}
	for _, p := range h.inspection.Partitions() {
		if !p.Serving || apart(p.Topic) {
			continue // compaction replaces segments: a batch that is in the cache as it has become need not be on the platter as such
		}
		l := &onPlatter{checker: c, p: p, dir: path.Join(dataDir, p.String()), start: starts[replica{p.ID, p.Partition}], mark: marks[replica{p.ID, p.Partition}]}
		if err := l.check(h.durable(p, l.mark), h.believed(p)); err != nil {
			h.run.fail("what counts as durable is on the platter", "%s: %v", p, err)
			return
		}
	}
	if !h.serving {
		return // there may be no controller yet
	}
	if err := c.committed(h.inspection.Image().Index()); err != nil {
		h.run.fail("what counts as durable is on the platter", "%v", err)
	}
}

// durable is the offset below which everything has been promised to survive a power cut: to clients, in the log's flushed end, or by the durable mark.
func (h *host) durable(p broker.PartitionState, mark ident.Offset) ident.Offset {
	if p.Offsets.Flushed > p.Offsets.LogStart { // else it may be the log start, which says nothing
		mark = max(mark, p.Offsets.Flushed)
	}
	if t := h.run.ghost.topics[p.ID]; t != nil && t.stable() && int(p.Partition) < len(t.partitions) {
		mark = max(mark, t.partitions[p.Partition].durable)
	}
	b, err := h.disk.Cache().Read(path.Join(dataDir, "control-block"))
	if err != nil {
		return mark // a full disk has none
	}
	if block, err := store.ReadControlBlock(b); err == nil && !block.Void {
		for _, s := range block.Slots {
			if s.Of(p.ID, p.Partition) {
				mark = max(mark, s.Flushed)
			}
		}
	}
	return mark
}

// believed lists the batches that the page cache has of a partition, first and last offsets.
func (h *host) believed(p broker.PartitionState) []batchRead {
	l := &onPlatter{checker: &checker{disk: h.disk.Cache()}, p: p, dir: path.Join(dataDir, p.String())}
	if l.identity() != nil {
		return nil // its directory was renamed: it is being deleted
	}
	segments, err := l.segments()
	if err != nil {
		return nil
	}
	var all []batchRead
	for _, s := range segments {
		all = append(all, s.batches...)
	}
	return all
}

// replica names a partition of one topic, not of whatever has its name.
type replica struct {
	id        ident.TopicID
	partition int32
}

// onPlatter is a partition as a power cut would leave it.
type onPlatter struct {
	*checker
	p     broker.PartitionState
	dir   string
	start ident.Offset // durable log start
	mark  ident.Offset // durable mark in the checkpoint
}

// check finds what is missing below the offset durable. cached is what there is in the page cache: what is not even there was lost before, or never was.
func (l *onPlatter) check(durable ident.Offset, cached []batchRead) error {
	durable = min(durable, l.p.Offsets.End)
	cached = slices.DeleteFunc(cached, func(b batchRead) bool { return b.base >= durable || b.last < max(l.start, l.p.Offsets.LogStart) })
	if len(cached) == 0 {
		return nil
	}
	segments, err := l.segments()
	if err = errors.Join(l.identity(), err); err != nil {
		return fmt.Errorf("everything below %d counts as durable: %w", durable, err)
	}
	if len(segments) > 0 && segments[0].base > l.start {
		return fmt.Errorf("the first segment begins at %d, above the durable log start %d", segments[0].base, l.start)
	}
	there := make(map[ident.Offset]batchRead)
	for _, s := range segments {
		for _, b := range s.batches {
			there[b.base] = b
		}
	}
	for _, b := range cached {
		if there[b.base].last != b.last || there[b.base].crc != b.crc {
			return fmt.Errorf("everything below %d counts as durable, and the batch of offsets %d to %d is not (log start %d, flushed to %d, durable mark in the checkpoint %d)",
				durable, b.base, b.last, l.p.Offsets.LogStart, l.p.Offsets.Flushed, l.mark)
		}
	}
	epochs, err := l.epochs(l.dir)
	if err != nil || len(epochs) == 0 {
		return nil //nolint:nilerr // noise, or not there yet: the epochs are taken from the batches
	}
	for _, s := range segments {
		s.batches = slices.DeleteFunc(s.batches, func(b batchRead) bool { return b.last >= l.mark })
		if err := agree(epochs, s, l.start); err != nil {
			return fmt.Errorf("below the durable mark %d: %w", l.mark, err)
		}
	}
	return nil
}

// identity verifies that the directory is of the topic.
func (l *onPlatter) identity() error {
	meta, err := l.read(path.Join(l.dir, "partition.metadata"))
	if err == nil && !bytes.Contains(meta, []byte(l.p.ID.String())) {
		err = fmt.Errorf("the identity of %s is %q, not that of topic %s", l.dir, meta, l.p.ID)
	}
	return err
}

// segments reads the segments as far as they are sound.
func (l *onPlatter) segments() ([]*segmentRead, error) {
	names, err := l.disk.List(l.dir)
	if err != nil {
		return nil, err
	}
	var out []*segmentRead
	for _, n := range names {
		digits, ok := strings.CutSuffix(n.Name, ".log")
		base, err := strconv.ParseInt(digits, 10, 64)
		if !ok || err != nil {
			continue
		}
		b, err := l.read(path.Join(l.dir, n.Name))
		if err != nil {
			return nil, err
		}
		s := &segmentRead{base: ident.Offset(base)}
		next := s.base
		for len(b) > 0 {
			v, more, err := record.Split(b)
			if err != nil || v.VerifyCRC() != nil || v.BaseOffset() < next {
				break // a checksum does not cover the base offset, which may be in a sector that was not written
			}
			s.batches = append(s.batches, batchRead{base: v.BaseOffset(), last: v.LastOffset(), epoch: v.LeaderEpoch(), crc: v.CRC()})
			b, next = more, v.NextOffset()
		}
		out = append(out, s)
	}
	return out, nil
}

// checkpoints reads log starts and durable marks.
func (c *checker) checkpoints() (starts, marks map[replica]ident.Offset, err error) {
	if starts, err = c.checkpoint("log-start-offset-checkpoint"); err != nil {
		return nil, nil, err
	}
	marks, err = c.checkpoint("recovery-point-offset-checkpoint")
	return starts, marks, err
}

// checkpoint reads the sealed copy of one, which is believed first and names topics by their ids.
func (c *checker) checkpoint(name string) (map[replica]ident.Offset, error) {
	b, err := c.read(path.Join(dataDir, name+".sealed"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	n := len(lines) - 1
	if n < 2 || lines[1] != strconv.Itoa(n-2) || !strings.HasPrefix(lines[n], "crc32c ") {
		return nil, fmt.Errorf("%s.sealed is %q", name, b)
	}
	offsets := make(map[replica]ident.Offset)
	for _, line := range lines[2:n] {
		words := strings.Split(line, " ")
		if len(words) < 4 {
			return nil, fmt.Errorf("%s.sealed has the line %q", name, line)
		}
		partition, err := strconv.ParseInt(words[1], 10, 32)
		offset, err2 := strconv.ParseInt(words[2], 10, 64)
		id, err3 := ident.ParseTopicID(words[len(words)-1])
		if err := errors.Join(err, err2, err3); err != nil {
			return nil, fmt.Errorf("%s.sealed has the line %q: %w", name, line, err)
		}
		offsets[replica{id, int32(partition)}] = ident.Offset(offset)
	}
	return offsets, nil
}

// committed verifies that the metadata log on the platter reaches index.
func (c *checker) committed(index uint64) error {
	newest, err := c.raft()
	if err != nil {
		return err
	}
	last := newest.Snapshot.Index
	if n := len(newest.Entries); n > 0 {
		last = newest.Entries[n-1].Index
	}
	if last < index {
		return fmt.Errorf("the metadata is committed up to index %d, and there only up to %d", index, last)
	}
	return nil
}
