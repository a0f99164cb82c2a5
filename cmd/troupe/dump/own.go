package dump

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"strconv"
	"strings"

	"github.com/troupe-broker/troupe/store"
)

// The files of a data directory that Kafka does not have.

// Mark is one line of a sealed checkpoint: like Checkpoint, and what Kafka's form has no room for.
type Mark struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Strict    *bool  `json:"strict,omitempty"` // of durable marks: the replica is whole up to the mark
	TopicID   string `json:"topic_id"`
}

// ControlHead is the head of the control block.
type ControlHead struct {
	Boot string `json:"boot_id"` // of the kernel; the block is believed in this boot only
	Void bool   `json:"void"`    // a sync or a read failed: nothing in it is believed
	// Untold: records may have been lost before this boot, and the controller has not heard that.
	Untold bool `json:"untold"`
	Logs   int  `json:"logs"`
}

// ControlSlot is what the control block remembers of one log, as it was with its last append.
type ControlSlot struct {
	Position int64  `json:"position"`
	Log      string `json:"log"` // a hash of topic id and partition
	Segment  int64  `json:"segment"`
	Size     int64  `json:"size"`
	End      int64  `json:"end"`
	Flushed  int64  `json:"flushed"`
	Epoch    int32  `json:"leader_epoch"`
	Start    int64  `json:"epoch_start"`
	Cutting  bool   `json:"cutting"` // a truncation was under way
}

// Note is a line of a small file.
type Note struct {
	Text string `json:"text"`
}

const sealPrefix = "crc32c "

// unsealed splits the checksum line off and verifies it. sealed is false when there is none.
func unsealed(path string, b []byte) (text []byte, sealed bool, err error) {
	i := bytes.LastIndex(b, []byte(sealPrefix))
	if i < 0 || i > 0 && b[i-1] != '\n' {
		return b, false, nil
	}
	text = b[:i]
	have := fmt.Sprintf("%08x", crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)))
	if want := strings.TrimSuffix(string(b[i+len(sealPrefix):]), "\n"); want != have {
		return nil, true, &DamageError{path, int64(bytes.Count(text, []byte("\n")) + 1), fmt.Sprintf("checksum %.20q, the content has %s", want, have)}
	}
	return text, true, nil
}

// readSealed reads the copy of a checkpoint that has a checksum.
func readSealed(path string, emit func(item any) error) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, sealed, err := unsealed(path, b)
	if err != nil {
		return err
	}
	if !sealed {
		return &DamageError{path, int64(bytes.Count(b, []byte("\n")) + 1), "the line with the checksum is missing"}
	}
	return linesOf(path, text, func(words []string, line int64) error {
		bad := &DamageError{path, line, "an entry is a topic, a partition, an offset, of durable marks a flag, and a topic id"}
		if len(words) != 4 && len(words) != 5 {
			return bad
		}
		partition, err1 := strconv.ParseInt(words[1], 10, 32)
		offset, err2 := strconv.ParseInt(words[2], 10, 64)
		if err1 != nil || err2 != nil {
			return bad
		}
		m := Mark{Topic: words[0], Partition: int32(partition), Offset: offset, TopicID: words[len(words)-1]}
		if len(words) == 5 {
			if words[3] != "0" && words[3] != "1" {
				return bad
			}
			strict := words[3] == "1"
			m.Strict = &strict
		}
		return emit(m)
	})
}

// readControl reads the control block. A torn slot is reported when the others are printed.
func readControl(path string, emit func(item any) error) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	c, err := store.ReadControlBlock(b)
	if err != nil {
		return &DamageError{path, 0, err.Error()}
	}
	if err := emit(ControlHead{c.Boot, c.Void, c.Untold, len(c.Slots)}); err != nil {
		return err
	}
	var torn error
	for _, s := range c.Slots {
		if s.Torn {
			torn = &DamageError{path, s.Position, "neither half of the slot has its checksum; its log is verified at the next start"}
			continue
		}
		item := ControlSlot{
			s.Position, fmt.Sprintf("%016x", s.Log), int64(s.Base), s.Size, int64(s.End), int64(s.Flushed), int32(s.Epoch.Epoch), int64(s.Epoch.Start), s.Cutting,
		}
		if err := emit(item); err != nil {
			return err
		}
	}
	return torn
}

// readNote reads the lock, which names the boot of the last start, and the marks of a clean stop and of an I/O error.
func readNote(path string, emit func(item any) error) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, _, err := unsealed(path, b)
	if err != nil {
		return err
	}
	if strings.HasSuffix(path, cleanName) && !json.Valid(text) {
		return &DamageError{path, 1, "no JSON: the marker is not believed, the logs are verified at the next start"}
	}
	for line := range strings.Lines(strings.TrimSpace(string(text))) {
		if err := emit(Note{strings.TrimSpace(line)}); err != nil {
			return err
		}
	}
	return nil
}
