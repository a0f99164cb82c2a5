package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
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
	slots := h.slots()
	for _, p := range h.inspection.Partitions() {
		if !p.Serving || apart(p.Topic) {
			continue // compaction replaces segments: a batch that is in the cache as it has become need not be on the platter as such
		}
		l := &onPlatter{
			checker: c, p: p, dir: dataDir + "/" + p.String(), start: starts[replica{p.ID, p.Partition}], mark: marks[replica{p.ID, p.Partition}], found: &h.found[0],
		}
		durable := min(h.durable(&p, l.mark, slots), p.Offsets.End)
		if durable == 0 {
			continue // nothing is below it
		}
		if err := l.check(durable, h.believed(p)); err != nil {
			h.run.fail("what counts as durable is on the platter", "%s: %v", p, err)
			return
		}
	}
	if !h.serving || h.id > 0 {
		return // there may be no controller yet; among several, others may have committed what is not synced here
	}
	if err := c.committed(h.inspection.Image().Index()); err != nil {
		h.run.fail("what counts as durable is on the platter", "%v", err)
	}
}

// durable is the offset below which everything has been promised to survive a power cut: to clients, in the log's flushed end, or by the durable mark.
func (h *host) durable(p *broker.PartitionState, mark ident.Offset, slots []store.ControlSlot) ident.Offset {
	if p.Offsets.Flushed > p.Offsets.LogStart { // else it may be the log start, which says nothing
		mark = max(mark, p.Offsets.Flushed)
	}
	if t := h.run.ghost.topics[p.ID]; h.id == 0 && t != nil && t.stable() && int(p.Partition) < len(t.partitions) {
		mark = max(mark, t.partitions[p.Partition].durable)
	}
	for i := range slots {
		if slots[i].Of(p.ID, p.Partition) {
			mark = max(mark, slots[i].Flushed)
		}
	}
	return mark
}

// slots are those of the control block; none if it is not believed.
func (h *host) slots() []store.ControlSlot {
	b, err := h.disk.Cache().Read(dataDir + "/control-block")
	if err != nil {
		return nil // a full disk has none
	}
	block, err := store.ReadControlBlock(b)
	if err != nil || block.Void {
		return nil
	}
	return block.Slots
}

// believed lists the batches that the page cache has of a partition, first and last offsets.
func (h *host) believed(p broker.PartitionState) []batchRead {
	l := &onPlatter{checker: &checker{disk: h.disk.Cache()}, p: p, dir: dataDir + "/" + p.String(), found: &h.found[1]}
	if l.identity() != nil || l.segments() != nil {
		return nil // its directory was renamed: it is being deleted
	}
	return l.found.batches
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
	found *found
}

// found is what segments were read. It is used again and again: there are many looks.
type found struct {
	bases   []ident.Offset
	batches []batchRead
	there   map[ident.Offset]batchRead // by base, the last of a base
}

// check finds what is missing below the offset durable. cached is what there is in the page cache: what is not even there was lost before, or never was.
func (l *onPlatter) check(durable ident.Offset, cached []batchRead) error {
	cached = slices.DeleteFunc(cached, func(b batchRead) bool { return b.base >= durable || b.last < max(l.start, l.p.Offsets.LogStart) })
	if len(cached) == 0 {
		return nil
	}
	if err := errors.Join(l.identity(), l.segments()); err != nil {
		return fmt.Errorf("everything below %d counts as durable: %w", durable, err)
	}
	f := l.found
	if len(f.bases) > 0 && f.bases[0] > l.start {
		return fmt.Errorf("the first segment begins at %d, above the durable log start %d", f.bases[0], l.start)
	}
	if f.there == nil {
		f.there = make(map[ident.Offset]batchRead)
	}
	clear(f.there)
	for _, b := range f.batches {
		f.there[b.base] = b
	}
	for _, b := range cached {
		if found := f.there[b.base]; found.last != b.last || found.crc != b.crc {
			return fmt.Errorf("everything below %d counts as durable, and the batch of offsets %d to %d is not (log start %d, flushed to %d, durable mark in the checkpoint %d)",
				durable, b.base, b.last, l.p.Offsets.LogStart, l.p.Offsets.Flushed, l.mark)
		}
	}
	epochs, err := l.epochs(l.dir)
	if err != nil || len(epochs) == 0 {
		return nil //nolint:nilerr // noise, or not there yet: the epochs are taken from the batches
	}
	f.batches = slices.DeleteFunc(f.batches, func(b batchRead) bool { return b.last >= l.mark })
	if err := agree(epochs, f.batches, l.start); err != nil {
		return fmt.Errorf("below the durable mark %d: %w", l.mark, err)
	}
	return nil
}

// identity verifies that the directory is of the topic.
func (l *onPlatter) identity() error {
	meta, err := l.read(l.dir + "/partition.metadata")
	if err == nil && !bytes.Contains(meta, []byte(l.p.ID.String())) {
		err = fmt.Errorf("the identity of %s is %q, not that of topic %s", l.dir, meta, l.p.ID)
	}
	return err
}

// segments finds the segments, and reads them as far as they are sound.
func (l *onPlatter) segments() error {
	f := l.found
	f.bases, f.batches = f.bases[:0], f.batches[:0]
	files, err := l.disk.Files(l.dir, ".log")
	if err != nil {
		return err
	}
	for _, file := range files {
		base, err := strconv.ParseInt(strings.TrimSuffix(file.Name, ".log"), 10, 64)
		if err != nil {
			continue
		}
		f.bases = append(f.bases, ident.Offset(base))
		next := ident.Offset(base)
		for b := file.Bytes; len(b) > 0; {
			v, more, err := record.Split(b)
			if err != nil || v.VerifyCRC() != nil || v.BaseOffset() < next {
				break // a checksum does not cover the base offset, which may be in a sector that was not written
			}
			f.batches = append(f.batches, batchRead{base: v.BaseOffset(), last: v.LastOffset(), epoch: v.LeaderEpoch(), crc: v.CRC()})
			b, next = more, v.NextOffset()
		}
	}
	return nil
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
	b, err := c.read(dataDir + "/" + name + ".sealed")
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
