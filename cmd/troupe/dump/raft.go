package dump

import (
	"fmt"
	"os"
	"strings"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/store"
)

// RaftFile says which life of the metadata log a file holds.
type RaftFile struct {
	Generation uint64 `json:"generation"`
	Retired    bool   `json:"retired"`    // the other file has taken over
	TornBytes  int64  `json:"torn_bytes"` // of an unfinished save
}

// RaftHardState is what a voter may not forget.
type RaftHardState struct {
	Term   uint64 `json:"term"`
	Vote   uint64 `json:"vote"` // a node id; 0: none
	Commit uint64 `json:"commit"`
}

// RaftSnapshot is where a snapshot stands. Its records follow it as RaftRecord.
type RaftSnapshot struct {
	Index   uint64 `json:"snapshot_index"`
	Term    uint64 `json:"term"`
	Bytes   int    `json:"bytes"`
	Records int    `json:"records"`
}

// RaftRecord is one record of the metadata log. An entry without records begins a term.
type RaftRecord struct {
	Index  uint64 `json:"index"`
	Term   uint64 `json:"term"`
	Record string `json:"record"` // its type and fields, for people
}

func readRaft(path string, emit func(item any) error) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if zeros(b) {
		return emit(Reserved{Position: 0, Bytes: int64(len(b))}) // waits for the next generation
	}
	state, err := store.ReadRaftFile(b)
	if err != nil {
		return &DamageError{path, 0, err.Error()}
	}
	if err := emit(RaftFile{state.Generation, state.Retired, state.Torn}); err != nil {
		return err
	}
	if len(state.Hard) > 0 {
		term, vote, commit, err := cluster.HardStateOf(state.Hard)
		if err != nil {
			return &DamageError{path, 0, err.Error()}
		}
		if err := emit(RaftHardState{term, vote, commit}); err != nil {
			return err
		}
	}
	if err := readRaftSnapshot(path, state.Snapshot, emit); err != nil {
		return err
	}
	for _, e := range state.Entries {
		records, err := cluster.RecordsOf(cluster.Entry{Index: e.Index, Term: e.Term, Data: e.Data})
		if err != nil {
			return &DamageError{path, 0, fmt.Sprintf("entry %d: %v", e.Index, err)}
		}
		if err := emitRecords(e.Index, e.Term, records, emit); err != nil {
			return err
		}
	}
	return nil
}

func readRaftSnapshot(path string, s store.RaftSnapshot, emit func(item any) error) error {
	if s.Index == 0 {
		return nil
	}
	image, err := cluster.DecodeSnapshot(s.Data)
	if err != nil {
		return &DamageError{path, 0, fmt.Sprintf("snapshot %d: %v", s.Index, err)}
	}
	records := image.Records()
	if err := emit(RaftSnapshot{s.Index, s.Term, len(s.Data), len(records)}); err != nil {
		return err
	}
	return emitRecords(s.Index, s.Term, records, emit)
}

func emitRecords(index, term uint64, records []cluster.Record, emit func(item any) error) error {
	if len(records) == 0 {
		return emit(RaftRecord{index, term, ""})
	}
	for _, r := range records {
		if err := emit(RaftRecord{index, term, recordText(r)}); err != nil {
			return err
		}
	}
	return nil
}

// recordText prints a record's type and fields.
func recordText(r cluster.Record) string {
	if c, ok := r.(*cluster.ConfigRecord); ok { // its value is a pointer
		value := "null: the default"
		if c.Value != nil {
			value = *c.Value
		}
		return fmt.Sprintf("ConfigRecord{Resource:%v Name:%s Value:%s}", c.Resource, c.Name, value)
	}
	text := strings.TrimPrefix(fmt.Sprintf("%T%+v", r, r), "*cluster.")
	return strings.Replace(text, "&", "", 1)
}
