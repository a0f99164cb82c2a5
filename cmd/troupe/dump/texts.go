package dump

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"strconv"
	"strings"
)

// Producer is one entry of a producer snapshot.
type Producer struct {
	ProducerID       int64 `json:"producer_id"`
	ProducerEpoch    int16 `json:"producer_epoch"`
	LastSequence     int32 `json:"last_sequence"`
	LastOffset       int64 `json:"last_offset"`
	OffsetDelta      int32 `json:"offset_delta"`
	Timestamp        int64 `json:"timestamp"`
	CoordinatorEpoch int32 `json:"coordinator_epoch"`
	TxnFirstOffset   int64 `json:"current_txn_first_offset"`
}

// Epoch is one line of a leader-epoch checkpoint.
type Epoch struct {
	Epoch int32 `json:"leader_epoch"`
	Start int64 `json:"start_offset"`
}

// Checkpoint is one line of an offset checkpoint of a data directory.
type Checkpoint struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

// Property is one line of a properties file.
type Property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Layout of a producer snapshot (ProducerSnapshot.json): version, checksum of the rest, number of entries, entries.
const (
	snapshotVersion   = 1
	snapshotHeader    = 2 + 4 + 4
	snapshotEntrySize = 8 + 2 + 4 + 8 + 4 + 8 + 4 + 8
)

func readSnapshot(path string, emit func(item any) error) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if len(b) < snapshotHeader {
		return &DamageError{path, 0, fmt.Sprintf("%d bytes, a snapshot has at least %d", len(b), snapshotHeader)}
	}
	if version := int16(binary.BigEndian.Uint16(b)); version != snapshotVersion {
		return &DamageError{path, 0, fmt.Sprintf("version %d; this build reads %d", version, snapshotVersion)}
	}
	if want, have := binary.BigEndian.Uint32(b[2:]), crc32.Checksum(b[6:], crc32.MakeTable(crc32.Castagnoli)); want != have {
		return &DamageError{path, 2, fmt.Sprintf("checksum %08x, the content has %08x", want, have)}
	}
	count := int64(binary.BigEndian.Uint32(b[6:]))
	rest := b[snapshotHeader:]
	if count*snapshotEntrySize != int64(len(rest)) {
		return &DamageError{path, 6, fmt.Sprintf("%d entries are announced, and %d bytes follow", count, len(rest))}
	}
	for ; len(rest) > 0; rest = rest[snapshotEntrySize:] {
		p := Producer{
			ProducerID:       int64(binary.BigEndian.Uint64(rest)),
			ProducerEpoch:    int16(binary.BigEndian.Uint16(rest[8:])),
			LastSequence:     int32(binary.BigEndian.Uint32(rest[10:])),
			LastOffset:       int64(binary.BigEndian.Uint64(rest[14:])),
			OffsetDelta:      int32(binary.BigEndian.Uint32(rest[22:])),
			Timestamp:        int64(binary.BigEndian.Uint64(rest[26:])),
			CoordinatorEpoch: int32(binary.BigEndian.Uint32(rest[34:])),
			TxnFirstOffset:   int64(binary.BigEndian.Uint64(rest[38:])),
		}
		if err := emit(p); err != nil {
			return err
		}
	}
	return nil
}

// checkpointLines reads Kafka's checkpoint form: a version, the number of lines, the lines (CheckpointFile.java).
func checkpointLines(path string, visit func(words []string, line int64) error) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return linesOf(path, b, visit)
}

// linesOf visits the lines of a checkpoint.
func linesOf(path string, b []byte, visit func(words []string, line int64) error) error {
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	if lines[0] != "0" {
		return &DamageError{path, 1, fmt.Sprintf("version %q; this build reads 0", lines[0])}
	}
	if len(lines) < 2 {
		return &DamageError{path, 2, "the number of entries is missing"}
	}
	count, err := strconv.Atoi(strings.TrimSpace(lines[1]))
	if err != nil {
		return &DamageError{path, 2, fmt.Sprintf("%q is not a number of entries", lines[1])}
	}
	entries := lines[2:]
	if count != len(entries) {
		return &DamageError{path, 2, fmt.Sprintf("%d entries are announced, and %d follow", count, len(entries))}
	}
	for i, text := range entries {
		if err := visit(strings.Fields(text), int64(i+3)); err != nil {
			return err
		}
	}
	return nil
}

func readEpochs(path string, emit func(item any) error) error {
	return checkpointLines(path, func(words []string, line int64) error {
		if len(words) != 2 {
			return &DamageError{path, line, "an entry is an epoch and an offset"}
		}
		epoch, err1 := strconv.ParseInt(words[0], 10, 32)
		start, err2 := strconv.ParseInt(words[1], 10, 64)
		if err1 != nil || err2 != nil {
			return &DamageError{path, line, "an entry is an epoch and an offset"}
		}
		return emit(Epoch{int32(epoch), start})
	})
}

func readCheckpoint(path string, emit func(item any) error) error {
	return checkpointLines(path, func(words []string, line int64) error {
		if len(words) != 3 {
			return &DamageError{path, line, "an entry is a topic, a partition and an offset"}
		}
		partition, err1 := strconv.ParseInt(words[1], 10, 32)
		offset, err2 := strconv.ParseInt(words[2], 10, 64)
		if err1 != nil || err2 != nil {
			return &DamageError{path, line, "an entry is a topic, a partition and an offset"}
		}
		return emit(Checkpoint{words[0], int32(partition), offset})
	})
}

// readProperties reads name=value (meta.properties) and name: value (partition.metadata, whose last line is a checksum
// behind a blank).
func readProperties(path string, emit func(item any) error) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if b, _, err = unsealed(path, b); err != nil {
		return err
	}
	number := int64(0)
	for line := range bytes.Lines(b) {
		number++
		text := strings.TrimSpace(string(line))
		if text == "" || text[0] == '#' {
			continue
		}
		i := strings.IndexAny(text, "=: ")
		if i < 0 {
			return &DamageError{path, number, "a line is a name and a value"}
		}
		if err := emit(Property{strings.TrimSpace(text[:i]), strings.TrimLeft(text[i+1:], " ")}); err != nil {
			return err
		}
	}
	return nil
}
