package store_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// seeded is a source of ids that is the same in every run.
func seeded(seed uint64) io.Reader {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return rand.NewChaCha8(key)
}

func topicID(name string) ident.TopicID {
	sum := sha256.Sum256([]byte(name))
	return ident.TopicID(sum[:16])
}

// batch builds a batch of n records of about size bytes in all.
func batch(t testing.TB, base ident.Offset, epoch ident.LeaderEpoch, ts ident.Millis, n, size int) record.View {
	t.Helper()
	b := record.NewBuilder()
	b.BaseOffset, b.LeaderEpoch = base, epoch
	value := make([]byte, max(size/n, 1))
	for i := range n {
		for j := range value {
			value[j] = byte(int(base) + i + j*7)
		}
		b.Append(ts+ident.Millis(i), fmt.Appendf(nil, "k%d", int(base)+i), value)
	}
	out, err := b.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := record.View(out)
	v.SetBaseOffset(base)
	v.SetLeaderEpoch(epoch)
	return v
}

// smallLog is a configuration under which everything happens early.
func smallLog() store.LogConfig {
	c := store.DefaultLogConfig()
	c.SegmentBytes = 16 << 10
	c.SegmentIndexBytes = 4 << 10
	c.IndexIntervalBytes = 512
	c.AllocateMin, c.AllocateMax = 4<<10, 8<<10
	return c
}

func openDir(t testing.TB, fs store.FS, path string) (*store.Directory, store.Opened) {
	t.Helper()
	d, o, err := store.OpenDirectory(store.DirectoryOptions{
		FS: fs, Path: path, Broker: 1, Rand: seeded(1), Generations: &store.Generations{}, Parallel: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return d, o
}

func mustAppend(t testing.TB, l *store.Log, v record.View) {
	t.Helper()
	if err := l.Append(v, 0); err != nil {
		t.Fatal(err)
	}
}

// flush syncs one log and returns its flushed end.
func flush(t testing.TB, d *store.Directory, l *store.Log) ident.Offset {
	t.Helper()
	s, err := d.NewSyncer()
	if err != nil {
		t.Fatal(err)
	}
	w, dirty := l.BeginSync()
	if !dirty {
		return l.Flushed()
	}
	for _, r := range s.Sync(nil, []store.SyncWork{w}) {
		if _, _, err := l.Synced(r); err != nil {
			t.Fatal(err)
		}
	}
	return l.Flushed()
}

// readAll reads [from, upTo) in pieces of at most bytesMax and returns the batches.
func readAll(t testing.TB, l *store.Log, from, upTo ident.Offset, bytesMax int) []record.View {
	t.Helper()
	var all []record.View
	for from < upTo {
		r, err := l.Read(from, upTo, bytesMax, true)
		if err != nil {
			t.Fatalf("read at %d: %v", from, err)
		}
		b := make([]byte, r.Len())
		if r.Len() > 0 {
			if _, err := r.ReadAt(b, 0); err != nil {
				t.Fatal(err)
			}
		}
		if m := r.Mapped(); m != nil && string(m) != string(b) {
			t.Fatalf("mapping and file differ at offset %d", from)
		}
		for rest := b; len(rest) > 0; {
			v, more, err := record.Split(rest)
			if err != nil {
				t.Fatalf("read at %d: %v", from, err)
			}
			if err := v.VerifyCRC(); err != nil {
				t.Fatal(err)
			}
			all, rest = append(all, v), more
		}
		next := r.Next()
		r.Release()
		if next <= from {
			t.Fatalf("read at %d does not advance: next %d", from, next)
		}
		from = next
	}
	return all
}
