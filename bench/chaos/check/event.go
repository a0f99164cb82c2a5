package check

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Kind is what an event tells of.
type Kind string

// The kinds.
const (
	Send    Kind = "send"    // one record: Worker, TP, Number, CRC; with OK, Offset, -1: the client does not know it
	Poll    Kind = "poll"    // Records that a reader was given of TP, by rising offset
	Assign  Kind = "assign"  // Worker begins to read TP, at Offset; of a member, Patience is how long it may go on when another one has it
	Revoke  Kind = "revoke"  // Worker, a member, reads TP no more
	Commit  Kind = "commit"  // Worker commits Offset of TP for Group
	Fetched Kind = "fetched" // somebody asked for the committed offset of TP by Group; Offset -1: none
	Final   Kind = "final"   // Records of TP, as Poll, read completely from the start after the faults
	Replica Kind = "replica" // Batches of TP on the disk of Worker, a broker that was stopped in order
	Fault   Kind = "fault"   // what the nemesis did, in Text, from T0 to T1
	Ends    Kind = "ends"    // somebody asked where TP ends, and was told Offset
	Usage   Kind = "usage"   // what Worker, a broker, holds, in Load
	Leader  Kind = "leader"  // the metadata of TP changed: Broker leads in Epoch; Text says it all
	Fatal   Kind = "fatal"   // what no client and no broker should come to, in Text
)

// Outcome is how an operation ended.
type Outcome string

// The outcomes.
const (
	OK   Outcome = "ok"
	Fail Outcome = "fail"
	Info Outcome = "info"
)

// Event is one line of a history. Times are microseconds since the history began, by the machine's monotonic clock.
type Event struct {
	Kind    Kind    `json:"k"`
	Worker  string  `json:"w,omitempty"`
	Group   string  `json:"g,omitempty"`
	TP      string  `json:"tp,omitempty"` // topic, dash, partition
	T0      int64   `json:"t0"`           // before it was asked for
	T1      int64   `json:"t1"`           // after it was answered
	Outcome Outcome `json:"r,omitempty"`
	Number  int64   `json:"n,omitempty"` // of a record, by Worker and TP, from 0 on in the order of sending
	CRC     uint32  `json:"c,omitempty"` // IEEE, of the record's value
	Offset  int64   `json:"o,omitempty"`
	Broker  int32   `json:"b,omitempty"` // who leads; 0 or less: nobody
	Epoch   int32   `json:"e,omitempty"` // of a leader
	Load    *Load   `json:"u,omitempty"`
	Text    string  `json:"x,omitempty"` // an error, or what happened, for people
	// Patience is in microseconds.
	Patience int64    `json:"pa,omitempty"`
	Records  []Record `json:"rs,omitempty"`
	Batches  []Batch  `json:"bs,omitempty"`
}

// Record is one record as somebody read it.
type Record struct {
	Offset int64  `json:"o"`
	Worker string `json:"w"` // who sent it; "": the value names nobody
	Number int64  `json:"n"`
	CRC    uint32 `json:"c"`
}

// same tells whether two readings of an offset are of the same record.
func (r Record) same(o Record) bool {
	return r.Worker == o.Worker && r.Number == o.Number && r.CRC == o.CRC
}

func (r Record) String() string { return fmt.Sprintf("%s/%d (crc %08x)", r.Worker, r.Number, r.CRC) }

// Load is what a broker's process holds.
type Load struct {
	Rest        Rest  `json:"r,omitempty"`
	Anon        int64 `json:"a"` // bytes of memory of its own
	Descriptors int   `json:"d"` // that are no files of its data directory
	Files       int   `json:"f"` // of its data directory, open
	Goroutines  int   `json:"g"`
}

// Rest tells whether a broker had anything to do.
type Rest string

// The rests; in between there is work.
const (
	Before Rest = "before" // founded, and no client has come yet
	After  Rest = "after"  // all clients have left
)

// Batch is one batch on a disk. Two with equal fields are equal byte by byte: CRC covers all that is not named here.
type Batch struct {
	Base     int64  `json:"o"`
	Last     int64  `json:"l"`
	Epoch    int32  `json:"e"` // of the leader that took it
	Producer int64  `json:"p"` // -1: not idempotent
	Term     int16  `json:"pe"`
	Sequence int32  `json:"s"`
	Bytes    int    `json:"b"`
	CRC      uint32 `json:"c"`
}

// Read reads the history in the files *.jsonl of dir, by rising T1; so events of one worker stay in their order: a rebalance that comes while a member polls stands before what the
// poll returned.
func Read(dir string) ([]Event, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no history", dir)
	}
	slices.Sort(files)
	var events []Event
	for _, f := range files {
		if events, err = readFile(events, f); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.T1, b.T1) })
	return events, nil
}

func readFile(events []Event, path string) (_ []Event, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 256<<20)
	for n := 1; lines.Scan(); n++ {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, n, err)
		}
		events = append(events, e)
	}
	return events, lines.Err()
}
