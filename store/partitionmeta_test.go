package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
)

func TestADirectoryInPlaceOfAnIdentitySetsOnePartitionAside(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	d, _ := openDir(t, store.OS(), dir)
	for i := range int32(2) {
		l, _, err := d.OpenLog(ident.TopicPartition{Topic: "odd", Partition: i}, topicID("odd"), smallLog(), store.LogHooks{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		appendSome(t, l, 3)
		if err := l.Close(true); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(true, 1); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "odd-1", "partition.metadata")
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(name, 0o755); err != nil {
		t.Fatal(err)
	}
	d, o := openDir(t, store.OS(), dir)
	if len(o.Strays) != 1 || len(o.Logs) != 1 {
		t.Fatalf("%d strays, %d logs, expected one of each", len(o.Strays), len(o.Logs))
	}
	if err := d.Close(false, 1); err != nil {
		t.Fatal(err)
	}
}
