package dump

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Kind is what a file is.
type Kind string

// The kinds.
const (
	Segment    Kind = "segment"
	Index      Kind = "index"
	TimeIndex  Kind = "timeindex"
	Snapshot   Kind = "snapshot"
	Epochs     Kind = "leader-epochs"
	Offsets    Kind = "checkpoint"
	Properties Kind = "properties"
	Raft       Kind = "raft"
	Sealed     Kind = "sealed-checkpoint"
	Control    Kind = "control-block"
	Notes      Kind = "note"
	Unknown    Kind = ""
)

// cleanName is the file that says that the broker was stopped in order.
const cleanName = ".kafka_cleanshutdown"

// setAside are the suffixes of files that the broker put out of service or was about to put into it.
var setAside = []string{".deleted", ".cleaned", ".swap", ".copy"}

// KindOf tells a file's kind by its name, and for the files of a segment the offset in it.
func KindOf(path string) (kind Kind, base int64) {
	name := filepath.Base(path)
	for again := true; again; {
		again = slices.ContainsFunc(setAside, func(suffix string) bool {
			cut, ok := strings.CutSuffix(name, suffix)
			name = cut
			return ok
		})
	}
	switch {
	case name == "leader-epoch-checkpoint":
		return Epochs, 0
	case strings.HasSuffix(name, "-checkpoint"):
		return Offsets, 0
	case name == "meta.properties" || name == "partition.metadata":
		return Properties, 0
	case strings.HasSuffix(name, "-checkpoint.sealed"):
		return Sealed, 0
	case name == "control-block":
		return Control, 0
	case name == cleanName || name == ".lock" || name == "io-error":
		return Notes, 0
	case strings.HasSuffix(name, ".raftlog"):
		return Raft, 0
	}
	stem, suffix, ok := strings.Cut(name, ".")
	if !ok {
		return Unknown, 0
	}
	kinds := map[string]Kind{"log": Segment, "index": Index, "timeindex": TimeIndex, "snapshot": Snapshot}
	kind = kinds[suffix]
	base, err := strconv.ParseInt(stem, 10, 64)
	if err != nil || base < 0 || kind == Unknown {
		return Unknown, 0
	}
	return kind, base
}

// DamageError is where a file stops making sense.
type DamageError struct {
	Path     string
	Position int64 // in bytes; for a text file the line
	Reason   string
}

// Error prints place and reason.
func (e *DamageError) Error() string {
	return fmt.Sprintf("%s: damaged at %d: %s", e.Path, e.Position, e.Reason)
}

// UnknownError is a file that no reader here is for.
type UnknownError struct{ Path string }

// Error names the file.
func (e *UnknownError) Error() string { return e.Path + ": nothing here reads a file of this name" }

// Options says how deep to read.
type Options struct {
	Records bool // segments: the records of each batch too
	Check   bool // segments: verify checksums; indexes: hold each entry against the segment beside it
}

// File reads a file and hands each item to emit, whose error ends the reading and is returned. The error is a
// *DamageError, an *UnknownError, or one of the file system.
func File(path string, o Options, emit func(item any) error) error {
	kind, base := KindOf(path)
	switch kind {
	case Segment:
		return readSegment(path, o, emit)
	case Index:
		return readIndex(path, base, o, emit)
	case TimeIndex:
		return readTimeIndex(path, base, o, emit)
	case Snapshot:
		return readSnapshot(path, emit)
	case Epochs:
		return readEpochs(path, emit)
	case Offsets:
		return readCheckpoint(path, emit)
	case Properties:
		return readProperties(path, emit)
	case Raft:
		return readRaft(path, emit)
	case Sealed:
		return readSealed(path, emit)
	case Control:
		return readControl(path, emit)
	case Notes:
		return readNote(path, emit)
	case Unknown:
	}
	return &UnknownError{path}
}
