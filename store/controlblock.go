package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// The control block is one mapped file of a directory: a head with the kernel's
// boot id, then one slot for each log. It is rewritten in memory all the time and
// synced almost never: what it tells is what this boot's memory holds.
const (
	controlFile    = "control-block"
	controlMagic   = "TRPECTRL"
	controlVersion = 1
	controlHead    = 4096
	bootIDBytes    = 64
	// voidAt is the place of a word that is not 0 once a sync or a read failed:
	// one store, that works when the disk does not.
	voidAt = 512
	// untoldAt is that of one that is not 0 until somebody has heard what may be lost.
	untoldAt = 520
	slotsMin = 256
	slotsMax = 32768
)

// controlBlock is the open control block of a directory. A nil one, of a disk that
// had no room for it, gives no slots. The directory's mu guards all but bytes.
type controlBlock struct {
	mu      sync.Mutex // held while the mapping is touched here, or taken down
	file    File
	mapping Mapping
	bytes   []byte
	slots   int   // that the file has room for
	most    int   // that the mapping has
	free    []int // indexes of slots that no log has
}

// controlFound is what an existing block said.
type controlFound struct {
	sound bool // head and version are right; slots have checksums of their own
	boot  string
	void  bool
	// untold: see Opened.
	untold bool
	slots  map[uint64]slotState // by log
}

// readControl reads the block that an earlier process left. A block that is lost
// or noise is not sound, and no error.
func readControl(fs FS, dir string) (controlFound, error) {
	b, err := readFile(fs, filepath.Join(dir, controlFile))
	if isNotExist(err) || errors.Is(err, ErrFormat) {
		return controlFound{}, nil
	}
	if err != nil {
		return controlFound{}, err
	}
	return decodeControl(b)
}

func decodeControl(b []byte) (controlFound, error) {
	const at = len(controlMagic) + 4 + bootIDBytes
	if len(b) < controlHead || string(b[:len(controlMagic)]) != controlMagic ||
		crc32.Checksum(b[:at], castagnoli) != binary.LittleEndian.Uint32(b[at:]) {
		return controlFound{}, nil
	}
	if version := binary.LittleEndian.Uint32(b[len(controlMagic):]); version != controlVersion {
		return controlFound{}, fmt.Errorf("%s: version %d, this broker reads %d: %w", controlFile, version, controlVersion, ErrNewerFormat)
	}
	boot := b[len(controlMagic)+4:][:bootIDBytes]
	n := 0
	for n < len(boot) && boot[n] != 0 {
		n++
	}
	found := controlFound{
		sound:  true,
		boot:   string(boot[:n]),
		void:   binary.LittleEndian.Uint64(b[voidAt:]) != 0,
		untold: binary.LittleEndian.Uint64(b[untoldAt:]) != 0,
		slots:  map[uint64]slotState{},
	}
	for at := controlHead; at+slotSize <= len(b); at += slotSize {
		s := slot{halves: b[at:][:slotSize]}
		if s.empty() {
			continue
		}
		if v, ok := s.get(); ok {
			found.slots[v.log] = v
		}
	}
	return found, nil
}

// createControl replaces the block by a new one for this boot. void and untold carry
// over what this boot has not come to terms with. keep are slots that stay as they
// were, most is how many there may ever be.
func createControl(fs FS, dir, boot string, void, untold bool, keep map[uint64]slotState, most int) (c *controlBlock, kept map[uint64]*slot, err error) {
	name := filepath.Join(dir, controlFile)
	slots := slotsMin
	for slots < len(keep)+slotsMin/2 && slots < most {
		slots *= 2
	}
	slots = min(slots, most)
	f, err := fs.OpenFile(name+suffixTemporary, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, nil, err
	}
	c = &controlBlock{file: f, slots: slots, most: most}
	if kept, err = c.fill(boot, void, untold, keep); err == nil {
		// Synced once, so that after a power loss the boot id in it is an old one
		// and says so. What the slots tell of this boot is never synced on purpose.
		if err = f.Sync(); err == nil {
			err = fs.Rename(name+suffixTemporary, name)
		}
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("write %s: %w", name, err), c.close())
	}
	return c, kept, nil
}

func (c *controlBlock) fill(boot string, void, untold bool, keep map[uint64]slotState) (map[uint64]*slot, error) {
	if err := c.file.Allocate(0, controlHead+int64(c.slots)*slotSize); err != nil {
		return nil, err
	}
	m, err := c.file.Map(0, controlHead+int64(c.most)*slotSize)
	if err != nil {
		return nil, err
	}
	c.mapping, c.bytes = m, m.Bytes()
	head := append([]byte(controlMagic), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(head[len(controlMagic):], controlVersion)
	head = append(head, make([]byte, bootIDBytes)...)
	copy(head[len(controlMagic)+4:], boot)
	head = binary.LittleEndian.AppendUint32(head, crc32.Checksum(head, castagnoli))
	copy(c.bytes, head)
	c.setVoid(void)
	c.setUntold(untold)
	for i := c.slots - 1; i >= 0; i-- {
		c.free = append(c.free, i)
	}
	kept := make(map[uint64]*slot, len(keep))
	for _, key := range slices.Sorted(maps.Keys(keep)) { // equal histories make equal bytes
		v := keep[key]
		if s := c.take(); s != nil {
			s.put(&v)
			kept[key] = s
		}
	}
	return kept, nil
}

// take gives a log a slot; nil when there is none left or no space for more: such
// a log is verified at each restart.
func (c *controlBlock) take() *slot {
	if c == nil || (len(c.free) == 0 && !c.grow()) {
		return nil
	}
	i := c.free[len(c.free)-1]
	c.free = c.free[:len(c.free)-1]
	s := &slot{halves: c.bytes[controlHead+i*slotSize:][:slotSize:slotSize], index: i}
	s.clear()
	return s
}

// give takes a slot back.
func (c *controlBlock) give(s *slot) {
	if c == nil || s == nil {
		return
	}
	s.clear()
	c.free = append(c.free, s.index)
}

func (c *controlBlock) grow() bool {
	more := min(c.slots, c.most-c.slots)
	if more == 0 || c.file.Allocate(controlHead+int64(c.slots)*slotSize, int64(more)*slotSize) != nil {
		return false
	}
	for i := c.slots + more - 1; i >= c.slots; i-- {
		c.free = append(c.free, i)
	}
	c.slots += more
	return true
}

// setVoid says whether this boot's page cache is to be believed. It is a store
// into memory.
func (c *controlBlock) setVoid(void bool) { c.setWord(voidAt, void) }

// setUntold says whether anybody has yet to hear what may be lost; likewise.
func (c *controlBlock) setUntold(untold bool) { c.setWord(untoldAt, untold) }

func (c *controlBlock) setWord(at int, on bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes == nil {
		return
	}
	v := uint64(0)
	if on {
		v = 1
	}
	binary.LittleEndian.PutUint64(c.bytes[at:], v)
}

func (c *controlBlock) sync() error {
	if c == nil {
		return nil
	}
	return c.file.Sync()
}

func (c *controlBlock) close() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	if c.mapping != nil {
		err = c.mapping.Close()
		c.mapping, c.bytes = nil, nil
	}
	return errors.Join(err, c.file.Close())
}
