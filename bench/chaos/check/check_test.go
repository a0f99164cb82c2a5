package check

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const seeds = 30

func TestGoodHistoriesPass(t *testing.T) {
	for seed := range uint64(seeds) {
		for _, v := range All(good(seed)) {
			t.Errorf("seed %d: %v", seed, v)
		}
	}
}

func TestEachFaultIsCalledByItsName(t *testing.T) {
	kinds := map[Anomaly]int{}
	for _, f := range faults {
		kinds[f.want]++
		t.Run(string(f.want)+"/"+f.name, func(t *testing.T) {
			tried := 0
			for seed := range uint64(seeds) {
				events := good(seed)
				if !f.do(rand.New(rand.NewPCG(seed, 1)), &events) {
					continue
				}
				tried++
				found := All(events)
				if !slices.ContainsFunc(found, func(v Violation) bool { return v.Anomaly == f.want }) {
					t.Errorf("seed %d: want %s, found %v", seed, f.want, found)
				}
			}
			if tried < 3 {
				t.Errorf("only %d histories could be spoilt", tried)
			}
		})
	}
	for _, a := range []Anomaly{Lost, Duplicate, Reordered, Moved, Hole, Unsent, Inconsistent, Vanished, Skip, CommitLost, Divergent, Sequence, Stale, Split, Shared, Grown, GaveUp} {
		if kinds[a] < 3 {
			t.Errorf("%s has %d bad histories, fewer than 3", a, kinds[a])
		}
	}
}

func TestSequencesGoRound(t *testing.T) {
	top := int32(1<<31 - 1)
	batches := []Batch{{Base: 0, Last: int64(top) - 1, Producer: 1, Sequence: 0}, {Base: int64(top), Last: int64(top) + 2, Producer: 1, Sequence: top}}
	next := Batch{Base: int64(top) + 3, Last: int64(top) + 3, Producer: 1, Sequence: 2}
	if found := All([]Event{{Kind: Replica, TP: tp, Worker: "b", Batches: append(slices.Clone(batches), next)}}); len(found) != 0 {
		t.Error(found)
	}
	next.Sequence = 3
	if found := All([]Event{{Kind: Replica, TP: tp, Worker: "b", Batches: append(slices.Clone(batches), next)}}); len(found) != 1 {
		t.Error("a gap at the turn is not found:", found)
	}
}

func TestHistoriesAreReadAsTheyWereWritten(t *testing.T) {
	dir := t.TempDir()
	events := good(1)
	var files [2]strings.Builder
	for i, e := range events {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&files[i%2], "%s\n", line)
	}
	for i := range files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i, ".jsonl")), []byte(files[i].String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(read) != len(events) {
		t.Fatalf("%d events were written, and %d are read", len(events), len(read))
	}
	for _, e := range read {
		if !slices.ContainsFunc(events, func(o Event) bool { return reflect.DeepEqual(e, o) }) {
			t.Errorf("%+v was not written", e)
		}
	}
	if _, err := Read(t.TempDir()); err == nil {
		t.Error("a directory without a history is read")
	}
	if err := os.WriteFile(filepath.Join(dir, "2.jsonl"), []byte("{\"k\":\"poll\"}\n{\"k\":"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "2.jsonl, line 2") {
		t.Errorf("half a line: %v", err)
	}
}
