package store_test

import (
	"encoding/binary"
	"errors"
	"os"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
)

// TestIndexEntriesThatAreLikelyAndWrong gives one entry of an offset index after the other a position or an offset that could be right: of a neighbour, or a
// few bytes off. However the log is opened then, it ends where it ended, nothing counts as damaged, and every offset is read as the batch that holds it.
func TestIndexEntriesThatAreLikelyAndWrong(t *testing.T) {
	const batches, perBatch = 60, 3
	write := func(clean bool) *storetest.Disk {
		disk := storetest.NewDisk(7)
		d, _ := openDir(t, disk.FS(), "/data")
		l, _, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range batches {
			// The first batch has the greatest timestamp, so that no entry of the time index confirms what the offset index says.
			mustAppend(t, l, batch(t, l.End(), 0, ident.Millis(100_000-i*10), perBatch, 400))
		}
		flush(t, d, l)
		if clean {
			if err := errors.Join(l.Close(true), d.Close(true, 1)); err != nil {
				t.Fatal(err)
			}
		}
		return disk
	}
	for _, restart := range []string{"clean", "kill", "power"} {
		pristine := write(restart == "clean")
		names, err := pristine.Cache().List("/data/orders-3")
		if err != nil {
			t.Fatal(err)
		}
		tried := 0
		for _, n := range names {
			name := "/data/orders-3/" + n.Name
			index, err := pristine.Cache().Read(name)
			if err != nil || len(n.Name) < 6 || n.Name[len(n.Name)-6:] != ".index" {
				continue
			}
			for at := 0; at+8 <= len(index); at += 8 {
				for _, wrong := range likely(index, at) {
					tried++
					disk := pristine.Clone()
					disk.Overwrite(name, wrong)
					switch restart {
					case "power":
						disk.Crash(1)
					default:
						disk.Kill()
					}
					whole(t, disk, batches*perBatch)
					if t.Failed() {
						t.Fatalf("%s: %s, entry %d: %x", restart, n.Name, at/8, wrong[at:at+8])
					}
				}
			}
		}
		if tried < 20 {
			t.Errorf("%s: %d entries were changed", restart, tried)
		}
	}
}

// likely returns an index file with the entry at a byte changed in some ways.
func likely(index []byte, at int) (out [][]byte) {
	change := func(offset, pos uint32) {
		b := append([]byte(nil), index...)
		binary.BigEndian.PutUint32(b[at:], offset)
		binary.BigEndian.PutUint32(b[at+4:], pos)
		out = append(out, b)
	}
	offset, pos := binary.BigEndian.Uint32(index[at:]), binary.BigEndian.Uint32(index[at+4:])
	change(offset, pos+9)
	change(offset-2, pos)
	if next := at + 8; next+8 <= len(index) {
		change(offset, binary.BigEndian.Uint32(index[next+4:]))
		change(binary.BigEndian.Uint32(index[next:])-1, pos)
	}
	return out
}

// whole opens the log and reads it from every offset.
func whole(t *testing.T, disk *storetest.Disk, end ident.Offset) {
	t.Helper()
	d, _ := openDir(t, disk.FS(), "/data")
	l, r, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if r.End != end || !r.Whole || len(r.Damage) > 0 {
		t.Errorf("opened as %+v", r)
	}
	for o := ident.Offset(0); o < end && !t.Failed(); o++ {
		region, err := l.Read(o, end, 500, true)
		if err != nil {
			t.Errorf("read at %d: %v", o, err)
			return
		}
		b := make([]byte, region.Len())
		if _, err := region.ReadAt(b, 0); err != nil || len(b) < 8 {
			t.Errorf("read at %d: %d bytes, %v", o, len(b), err)
		} else if base := ident.Offset(binary.BigEndian.Uint64(b)); base != o/3*3 {
			t.Errorf("offset %d is read as the batch at %d", o, base)
		}
		region.Release()
	}
	if err := errors.Join(l.Close(false), d.Close(false, 1)); err != nil {
		t.Error(err)
	}
}

// TestNoCleanMarkerForALogThatWasNotOpened: a log that could not be opened in this life is as its last process left it, and a stop in order says nothing
// about it.
func TestNoCleanMarkerForALogThatWasNotOpened(t *testing.T) {
	disk := storetest.NewDisk(3)
	d, _ := openDir(t, disk.FS(), "/data")
	l, _, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, batch(t, 0, 0, 1000, 1, 200))
	disk.Kill()
	fsys := storetest.Faults(disk.FS(), "open *.log from 1: EMFILE")
	d, _ = openDir(t, fsys, "/data")
	if _, _, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0); !errors.Is(err, store.ErrExhausted) {
		t.Fatalf("opened without descriptors: %v", err)
	}
	if err := d.Close(true, 1); err == nil {
		t.Error("a directory with a log that was never opened was closed clean")
	}
	if _, err := disk.FS().Stat("/data/.kafka_cleanshutdown"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the clean marker: %v", err)
	}
	d, opened := openDir(t, disk.FS(), "/data")
	if opened.Mode != store.RecoverSameBoot {
		t.Errorf("the next start recovers as %v", opened.Mode)
	}
	if err := d.Close(false, 1); err != nil {
		t.Error(err)
	}
}
