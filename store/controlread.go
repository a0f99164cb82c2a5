package store

import (
	"fmt"

	"github.com/troupe-broker/troupe/wire/ident"
)

// ControlBlock is the content of a directory's control block, for people.
type ControlBlock struct {
	Boot string // the kernel's boot whose page cache it speaks of; empty: not known
	Void bool   // a sync or a read failed: nothing in it is believed
	// Untold: records may have been lost before this boot, and nobody has heard that.
	Untold bool
	Slots  []ControlSlot
}

// ControlSlot is what the block remembers of one log.
type ControlSlot struct {
	Position     int64  // of the slot in the file, in bytes
	Torn         bool   // neither half of the slot has its checksum; the rest is empty
	Log, File    uint64 // hashes of topic id and partition, and of device and inode
	Base         ident.Offset
	Size         int64 // bytes of batches in the active segment
	End, Flushed ident.Offset
	Epoch        Epoch // the newest
	Cutting      bool  // a truncation to End is under way
	Behind       bool  // the epoch file lacks more than Epoch
	NoEpochFile  bool  // there is none yet
	Lacking      bool  // what was told of the log is not all there, and nobody has heard that
}

// Of tells whether the slot is of a partition of the topic with this id.
func (s ControlSlot) Of(id ident.TopicID, partition int32) bool {
	return !s.Torn && s.Log == logKey(id, partition)
}

// ReadControlBlock decodes a control block. ErrFormat when its head is not sound,
// ErrNewerFormat when a newer version wrote it.
func ReadControlBlock(b []byte) (ControlBlock, error) {
	found, err := decodeControl(b)
	if err != nil {
		return ControlBlock{}, err
	}
	if !found.sound {
		return ControlBlock{}, fmt.Errorf("the head of the control block is lost or its checksum does not match: %w", ErrFormat)
	}
	c := ControlBlock{Boot: found.boot, Void: found.void, Untold: found.untold}
	for at := controlHead; at+slotSize <= len(b); at += slotSize {
		s := slot{halves: b[at:][:slotSize]}
		if s.empty() {
			continue
		}
		v, ok := s.get()
		c.Slots = append(c.Slots, ControlSlot{
			Position: int64(at), Torn: !ok, Log: v.log, File: v.file, Base: v.base, Size: v.size, End: v.end, Flushed: v.flushed, Epoch: v.epoch,
			Cutting: v.cutting, Behind: v.behind, NoEpochFile: v.bare, Lacking: v.lacking,
		})
	}
	return c, nil
}
