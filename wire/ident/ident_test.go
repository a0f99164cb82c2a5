package ident_test

import (
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/wire/ident"
)

func TestTopicIDTextIsKafkasUuidText(t *testing.T) {
	// The second text is what Java prints for the id of the metadata topic,
	// new Uuid(0L, 1L).toString().
	for text, id := range map[string]ident.TopicID{
		"AAAAAAAAAAAAAAAAAAAAAA": {},
		"AAAAAAAAAAAAAAAAAAAAAQ": {15: 1},
		"_____________________w": {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255},
		"ASNFZ4mrze8BI0VniavN7w": {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef},
	} {
		if got := id.String(); got != text {
			t.Errorf("String() = %q, want %q", got, text)
		}
		got, err := ident.ParseTopicID(text)
		if err != nil || got != id {
			t.Errorf("ParseTopicID(%q) = %v, %v", text, got, err)
		}
	}
}

func TestAnIDHasOneTextOnly(t *testing.T) {
	for _, text := range []string{
		"",
		"AAAAAAAAAAAAAAAAAAAAA",    // 21
		"AAAAAAAAAAAAAAAAAAAAAAA",  // 23
		"AAAAAAAAAAAAAAAAAAAAAA==", // padded
		"AAAAAAAAAAAAAAAAAAAAAB",   // bits after the last byte
		"AAAAAAAAAA/AAAAAAAAAAA",   // the other base 64 alphabet
		"AAAAAAAAAA\nAAAAAAAAAAA",  // a line break that base 64 would skip
		"AAAAAAAAAA\n\nAAAAAAAAAAAA",
		strings.Repeat("é", 11),
	} {
		if id, err := ident.ParseTopicID(text); err == nil {
			t.Errorf("ParseTopicID(%q) = %v, want an error", text, id)
		}
		if id, err := ident.ParseDirectoryID(text); err == nil {
			t.Errorf("ParseDirectoryID(%q) = %v, want an error", text, id)
		}
	}
}

func TestSequencesWrapToZero(t *testing.T) {
	const last = ident.Sequence(2147483647)
	for _, c := range []struct {
		from ident.Sequence
		n    int32
		want ident.Sequence
	}{{0, 0, 0}, {0, 7, 7}, {last, 1, 0}, {last - 1, 3, 1}, {last, 2147483647, last - 1}} {
		if got := c.from.Add(c.n); got != c.want {
			t.Errorf("%v.Add(%d) = %v, want %v", c.from, c.n, got, c.want)
		}
	}
}

func TestPartitionsPrintAndOrderAsDirectories(t *testing.T) {
	a0, a10, b0 := ident.TopicPartition{Topic: "a"}, ident.TopicPartition{Topic: "a", Partition: 10}, ident.TopicPartition{Topic: "b"}
	if a10.String() != "a-10" {
		t.Errorf("String() = %q", a10.String())
	}
	if a0.Compare(a10) != -1 || b0.Compare(a10) != 1 || a0.Compare(a0) != 0 || a10.Compare(b0) != -1 || a10.Compare(a0) != 1 {
		t.Error("partitions do not order by topic, then by number")
	}
}

func TestNodeIDPrintsSixteenDigits(t *testing.T) {
	if got := ident.NodeID(0xab).String(); got != "00000000000000ab" {
		t.Errorf("String() = %q", got)
	}
}

func TestReservedDirectoryIDs(t *testing.T) {
	for _, id := range []ident.DirectoryID{ident.DirectoryUnassigned, ident.DirectoryLost, ident.DirectoryMigrating, {15: 99}} {
		if !id.IsReserved() {
			t.Errorf("%v is not reserved", id)
		}
	}
	for _, id := range []ident.DirectoryID{{15: 100}, {0: 1}, {14: 1}} {
		if id.IsReserved() {
			t.Errorf("%v is reserved", id)
		}
	}
}

func FuzzParseTopicID(f *testing.F) {
	f.Add("AAAAAAAAAAAAAAAAAAAAAA")
	f.Add("ASNFZ4mrze8BI0VniavN7w")
	f.Add("AAAAAAAAAAAAAAAAAAAAAB")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ident.ParseTopicID(s)
		if err != nil {
			if !id.IsZero() {
				t.Fatalf("a refused text gave %v", id)
			}
			return
		}
		if id.String() != s {
			t.Fatalf("%q parses, but prints as %q", s, id.String())
		}
	})
}
