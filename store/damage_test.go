package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

func filesOf(t testing.TB, fs store.FS, suffix string) []string {
	t.Helper()
	names, err := fs.ReadDir("/data/orders-3")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range names {
		if strings.HasSuffix(e.Name, suffix) {
			list = append(list, filepath.Join("/data/orders-3", e.Name))
		}
	}
	return list
}

func overwrite(t testing.TB, fs store.FS, name string, content []byte) {
	t.Helper()
	f, err := fs.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(content, 0); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func contents(t testing.TB, fs store.FS, name string) []byte {
	t.Helper()
	f, err := fs.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil && size > 0 {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return b
}

// Indexes, snapshots and the epoch file are caches: whatever they hold, the log is
// what its batches say.
func TestCachesMayBeNoise(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	noise := map[string]func(old []byte) []byte{
		"deleted":   nil,
		"empty":     func([]byte) []byte { return nil },
		"zeros":     func(old []byte) []byte { return make([]byte, len(old)+24) },
		"noise":     func(old []byte) []byte { b := make([]byte, len(old)+5); fill(r, b); return b },
		"cut":       func(old []byte) []byte { return old[:len(old)/2] },
		"short":     func(old []byte) []byte { return old[:max(len(old)-1, 0)] },
		"doubled":   func(old []byte) []byte { return append(bytes.Clone(old), old...) },
		"one flip":  func(old []byte) []byte { b := bytes.Clone(old); flipOne(r, b); return b },
		"half zero": func(old []byte) []byte { b := bytes.Clone(old); clear(b[len(b)/2:]); return b },
	}
	for _, suffix := range []string{".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint"} {
		for what, change := range noise {
			for _, how := range []string{"clean", "kill", "power loss"} {
				t.Run(strings.Join([]string{suffix, what, how}, "/"), func(t *testing.T) {
					cachesMayBe(t, suffix, change, how)
				})
			}
		}
	}
}

func fill(r *rand.Rand, b []byte) {
	for i := range b {
		b[i] = byte(r.Uint32())
	}
}

func flipOne(r *rand.Rand, b []byte) {
	if len(b) > 0 {
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
	}
}

func cachesMayBe(t *testing.T, suffix string, change func([]byte) []byte, how string) {
	t.Helper()
	w := newWorld(t, 1, smallLog())
	for i := range 60 {
		opAppend{3, 900, 0}.run(w)
		if i%20 == 10 {
			opEpoch{}.run(w)
		}
	}
	w.flush()
	if how == "clean" {
		if err := errors.Join(w.log.Close(true), w.sync.Close(), w.dir.Close(true, 1)); err != nil {
			t.Fatal(err)
		}
	}
	switch how {
	case "kill":
		w.disk.Kill()
	case "power loss":
		w.disk.Crash(1)
	}
	fs := w.disk.FS()
	files := filesOf(t, fs, suffix)
	if len(files) == 0 {
		t.Fatalf("no file ends in %s\n%s", suffix, w.disk.Dump())
	}
	for _, name := range files {
		if change == nil {
			if err := fs.Remove(name); err != nil {
				t.Fatal(err)
			}
			continue
		}
		overwrite(t, fs, name, change(contents(t, fs, name)))
	}
	w.disk.Kill()
	w.open()
	if suffix != ".snapshot" {
		w.seen = nil
	}
	w.check(w.ghost.end)
	for part := 0; part <= 100; part += 7 {
		opRead{part, 3000}.run(w)
		opFind{part}.run(w)
	}
	// What was looked at is right now, or was.
	for range 4 {
		opAppend{2, 700, 0}.run(w)
	}
	w.flush()
	opRestart{clean: false}.run(w)
	opRestart{clean: true}.run(w)
}

func TestDamageBelowTheMarkIsToldAndNotServed(t *testing.T) {
	for _, field := range []struct {
		name string
		at   int64
	}{{"length", 8}, {"base offset", 0}, {"magic", 16}} {
		t.Run(field.name, func(t *testing.T) {
			w := newWorld(t, 1, smallLog())
			for range 12 {
				opAppend{2, 700, 0}.run(w)
			}
			w.flush()
			if w.log.Segments() != 1 {
				t.Fatal("one segment was expected")
			}
			// The sixth batch, far below the mark, of the segment that is scanned.
			pos := int64(0)
			for _, b := range w.ghost.batches[:5] {
				pos += int64(len(b))
			}
			bad := w.ghost.batches[5]
			opCheckpoint{}.run(w)
			w.disk.Crash(1)
			w.disk.Flip("/data/orders-3/00000000000000000000.log", pos+field.at, 6)
			for _, name := range []string{"index", "timeindex"} {
				err := w.disk.FS().Remove("/data/orders-3/00000000000000000000." + name)
				if err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
			}
			_, r := w.open()
			if r.Whole || len(r.Damage) != 1 || r.Damage[0] != (store.OffsetRange{From: bad.BaseOffset(), To: bad.NextOffset()}) {
				t.Fatalf("recovered %+v, the batch at %d is damaged", r, bad.BaseOffset())
			}
			if w.log.End() != w.ghost.end {
				t.Fatalf("damage in the middle moved the end to %d", w.log.End())
			}
			serveAround(t, w, bad)
		})
	}
}

// serveAround checks that all but one batch is served.
func serveAround(t *testing.T, w *world, bad record.View) {
	t.Helper()
	for _, b := range w.ghost.batches {
		r, err := w.log.Read(b.BaseOffset(), w.log.End(), 100, true)
		if b.BaseOffset() == bad.BaseOffset() {
			if !errors.Is(err, store.ErrDamaged) {
				t.Fatalf("the damaged batch was read with %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("the batch at %d: %v", b.BaseOffset(), err)
		}
		got := make([]byte, r.Len())
		if _, err := r.ReadAt(got, 0); err != nil {
			t.Fatal(err)
		}
		r.Release()
		if !bytes.Equal(got, b) {
			t.Fatalf("another batch than that at %d was served", b.BaseOffset())
		}
	}
	if got := readAll(t, w.log, 0, bad.BaseOffset(), 1<<20); len(got) != 5 {
		t.Fatalf("%d batches are served before the damage", len(got))
	}
	mustAppend(t, w.log, batch(t, w.log.End(), 0, 0, 1, 10))
	if err := w.log.SetStart(bad.NextOffset()); err != nil {
		t.Fatal(err)
	}
	if d := w.log.Damage(); len(d) != 0 {
		t.Fatalf("deleting the damaged records left %v", d)
	}
}

func TestATornTailAboveTheMarkIsCutSilentlyButToldOf(t *testing.T) {
	w := newWorld(t, 1, smallLog())
	for range 4 {
		opAppend{2, 700, 0}.run(w)
	}
	w.flush()
	opAppend{2, 700, 0}.run(w)
	pos := int64(0)
	for _, b := range w.ghost.batches[:4] {
		pos += int64(len(b))
	}
	// Everything reached the platter, with a flipped bit in the last batch.
	syncAll(t, w.disk)
	w.disk.Crash(1)
	w.disk.Flip("/data/orders-3/00000000000000000000.log", pos+200, 1)
	_, r := w.open()
	if r.CutBytes == 0 || len(r.Damage) != 0 || !r.Whole || w.log.End() != w.ghost.flushed {
		t.Fatalf("recovered %+v, flushed was %d", r, w.ghost.flushed)
	}
	// Never append to a file that lost batches.
	if w.log.Segments() != 2 {
		t.Fatalf("%d segments after a torn tail", w.log.Segments())
	}
}

func TestPromisedOffsetsAreNotGivenAwayWhenTheirFileIsLost(t *testing.T) {
	w := newFilled(t, 12, opAppend{2, 700, 0})
	w.disk.Crash(1)
	f, err := w.disk.FS().OpenFile("/data/orders-3/00000000000000000000.log", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(3000); err != nil {
		t.Fatal(err)
	}
	w.disk.Kill()
	_, r := w.open()
	if r.Whole || w.log.End() != w.ghost.end || len(r.Damage) != 1 || r.Damage[0].To != w.ghost.end {
		t.Fatalf("recovered %+v, everything below %d was promised", r, w.ghost.end)
	}
	_, err = w.log.Read(w.ghost.end-1, w.ghost.end, 100, true)
	if !errors.Is(err, store.ErrDamaged) {
		t.Fatal(err)
	}
	mustAppend(t, w.log, batch(t, w.log.End(), 0, 0, 1, 10))
	if got := readAll(t, w.log, w.ghost.end, w.log.End(), 1000); len(got) != 1 {
		t.Fatal("the log does not go on")
	}
}

func TestARegionKnowsItsUnsoundBatch(t *testing.T) {
	w := newWorld(t, 1, smallLog())
	for range 12 {
		opAppend{2, 700, 0}.run(w)
	}
	w.flush()
	if err := w.log.Roll(0); err != nil {
		t.Fatal(err)
	}
	pos := int64(0)
	for _, b := range w.ghost.batches[:5] {
		pos += int64(len(b))
	}
	bad := w.ghost.batches[5]
	w.disk.Flip("/data/orders-3/00000000000000000000.log", pos+300, 0)
	r, err := w.log.Read(0, w.log.End(), 1<<20, true)
	if err != nil {
		t.Fatal(err)
	}
	sound, broken, err := r.Check(nil)
	r.Release()
	if want := (store.OffsetRange{From: bad.BaseOffset(), To: bad.NextOffset()}); err != nil || sound != pos || broken != want {
		t.Fatalf("sound up to %d, then %v, %v; expected %d, %v", sound, broken, err, pos, want)
	}
	if err := w.log.Condemn(broken, 0); err != nil {
		t.Fatal(err)
	}
	serveAround(t, w, bad)
}

func TestRetainedRegionsOutliveTheirSegment(t *testing.T) {
	w := newWorld(t, 1, smallLog())
	for range 60 {
		opAppend{2, 700, 0}.run(w)
	}
	w.flush()
	r, err := w.log.Read(0, w.log.End(), 1<<20, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.log.SetStart(w.log.End()); err != nil {
		t.Fatal(err)
	}
	if trimmed, err := w.log.ApplyRetention(0, w.log.End()); err != nil || trimmed.Segments == 0 {
		t.Fatal(trimmed, err)
	}
	w.flush()
	if _, err := w.log.ApplyRetention(1_000_000, w.log.End()); err != nil {
		t.Fatal(err)
	}
	if left := filesOf(t, w.disk.FS(), ".deleted"); len(left) > 0 {
		t.Fatalf("still there: %v", left)
	}
	b := make([]byte, r.Len())
	if _, err := r.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	v, _, err := record.Split(b)
	if err != nil || !bytes.Equal(v, w.ghost.batches[0]) {
		t.Fatalf("the unlinked segment gave other bytes: %v", err)
	}
	r.Release()
	if _, err := w.log.Read(0, w.log.End(), 100, true); !errors.Is(err, store.ErrOffsetOutOfRange) {
		t.Fatal(err)
	}
}

func TestDeletedFilesWaitForTheirDelay(t *testing.T) {
	w := newWorld(t, 1, smallLog())
	for range 60 {
		opAppend{2, 700, 0}.run(w)
	}
	w.flush()
	if err := w.log.SetStart(w.log.End()); err != nil {
		t.Fatal(err)
	}
	trimmed, err := w.log.ApplyRetention(1000, w.log.End())
	if err != nil {
		t.Fatal(err)
	}
	if left := filesOf(t, w.disk.FS(), ".deleted"); len(left) > 0 {
		t.Fatal("renamed before the new start was durable")
	}
	w.flush()
	logs := func() int { return len(filesOf(t, w.disk.FS(), ".log.deleted")) }
	if logs() != trimmed.Segments {
		t.Fatalf("%d of %d files were renamed", logs(), trimmed.Segments)
	}
	for _, step := range []struct {
		now  ident.Millis
		want int
	}{{1000, trimmed.Segments}, {60_999, trimmed.Segments}, {61_000, 0}} {
		if _, err := w.log.ApplyRetention(step.now, w.log.End()); err != nil {
			t.Fatal(err)
		}
		if logs() != step.want {
			t.Fatalf("at %d there are %d files, expected %d", step.now, logs(), step.want)
		}
	}
}

func TestIdentityFilesThatAreLost(t *testing.T) {
	build := func(t *testing.T) *storetest.Disk {
		t.Helper()
		disk := storetest.NewDisk(1)
		d, l, _, _ := openOn(t, disk.FS(), smallLog())
		appendSome(t, l, 5)
		if err := errors.Join(l.Close(true), d.Close(true, 4)); err != nil {
			t.Fatal(err)
		}
		return disk
	}
	open := func(disk *storetest.Disk) (*store.Directory, store.Opened, error) {
		return store.OpenDirectory(store.DirectoryOptions{FS: disk.FS(), Path: "/data", Broker: 1, Rand: seeded(6), Generations: &store.Generations{}, BallastBytes: 8192})
	}
	for _, c := range []struct {
		files string
		code  store.Code
	}{
		{"meta.properties", store.CodeMeta},
		{"log-start-offset-checkpoint log-start-offset-checkpoint.sealed", store.CodeStartLost},
	} {
		for _, how := range []string{"removed", "flipped"} {
			t.Run(c.files+"/"+how, func(t *testing.T) {
				disk := build(t)
				for name := range strings.FieldsSeq(c.files) {
					path := "/data/" + name
					if how == "removed" {
						if err := disk.FS().Remove(path); err != nil {
							t.Fatal(err)
						}
						continue
					}
					b := contents(t, disk.FS(), path)
					b[0] ^= 0x40
					overwrite(t, disk.FS(), path, b)
				}
				_, _, err := open(disk)
				var coded *store.Error
				if !errors.As(err, &coded) || coded.Code != c.code {
					t.Fatalf("%v, expected %s", err, c.code)
				}
			})
		}
	}
	t.Run("one copy of the log starts", func(t *testing.T) {
		for _, name := range []string{"log-start-offset-checkpoint", "log-start-offset-checkpoint.sealed"} {
			disk := build(t)
			overwrite(t, disk.FS(), "/data/"+name, []byte("noise"))
			if _, _, err := open(disk); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("marks", func(t *testing.T) {
		disk := build(t)
		for _, name := range []string{"recovery-point-offset-checkpoint", "recovery-point-offset-checkpoint.sealed", ".kafka_cleanshutdown"} {
			if err := disk.FS().Remove("/data/" + name); err != nil {
				t.Fatal(err)
			}
		}
		syncAll(t, disk)
		disk.Crash(1)
		d, o, err := open(disk)
		if err != nil || o.Marked {
			t.Fatal(o, err)
		}
		l, r, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0)
		if err != nil || r.Whole || l.End() != 10 {
			t.Fatalf("%+v, %v: without its mark a log is not whole", r, err)
		}
	})
	t.Run("marks whose version is damaged", func(t *testing.T) {
		disk := build(t)
		const name = "/data/recovery-point-offset-checkpoint"
		for _, path := range []string{name, name + ".sealed"} {
			b := contents(t, disk.FS(), path)
			b[0] ^= 1 // 0 becomes 1
			overwrite(t, disk.FS(), path, b)
		}
		if _, o, err := open(disk); err != nil || o.Marked {
			t.Fatalf("%+v, %v: what no checksum confirms is not of a newer version", o, err)
		}
	})
	t.Run("partition.metadata", func(t *testing.T) {
		for _, how := range []string{"removed", "flipped", "of another topic"} {
			disk := build(t)
			path := "/data/orders-3/partition.metadata"
			switch how {
			case "removed":
				if err := disk.FS().Remove(path); err != nil {
					t.Fatal(err)
				}
			case "flipped":
				b := contents(t, disk.FS(), path)
				b[25] ^= 1
				overwrite(t, disk.FS(), path, b)
			}
			d, o, err := open(disk)
			if err != nil {
				t.Fatal(err)
			}
			id := topicID("orders")
			if how == "of another topic" {
				id = topicID("another")
				if _, _, err := d.OpenLog(testPartition, id, smallLog(), store.LogHooks{}, 0); !errors.Is(err, store.ErrStray) {
					t.Fatal(err)
				}
			} else if len(o.Strays) != 1 || len(o.Logs) != 0 {
				t.Fatalf("%s: found %+v", how, o)
			}
			l, r, err := d.OpenLog(testPartition, id, smallLog(), store.LogHooks{}, 0)
			if err != nil || !r.Created || l.End() != 0 {
				t.Fatalf("%s: the new log is %+v, %v", how, r, err)
			}
			strays := 0
			names, err := disk.FS().ReadDir("/data")
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range names {
				if strings.HasSuffix(e.Name, "-stray") {
					strays++
				}
			}
			if strays != 1 {
				t.Fatalf("%s: %d strays\n%s", how, strays, disk.Dump())
			}
		}
	})
	t.Run("newer versions", func(t *testing.T) {
		for name, text := range map[string]string{
			"/data/meta.properties":                         "version=2\nnode.id=1\n",
			"/data/orders-3/partition.metadata":             "version: 7\ntopic_id: abc\n",
			"/data/log-start-offset-checkpoint.sealed":      sealedText("1\n0\n"),
			"/data/recovery-point-offset-checkpoint.sealed": sealedText("1\n0\n"),
		} {
			disk := build(t)
			overwrite(t, disk.FS(), name, []byte(text))
			d, _, err := open(disk)
			if err == nil {
				_, _, err = d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0)
			}
			var coded *store.Error
			if !errors.As(err, &coded) || coded.Code != store.CodeNewer {
				t.Errorf("%s of a newer version: %v", name, err)
			}
		}
	})
}

func syncAll(t testing.TB, disk *storetest.Disk) {
	t.Helper()
	d, err := disk.FS().OpenDir("/data")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.SyncFS(); err != nil {
		t.Fatal(err)
	}
}

func sealedText(text string) string { return string(store.Seal([]byte(text))) }

func TestADirectoryIsOneBrokersAlone(t *testing.T) {
	disk := storetest.NewDisk(1)
	openOn(t, disk.FS(), smallLog())
	try := func(o store.DirectoryOptions) error {
		o.FS, o.Path, o.Rand, o.Generations = disk.FS(), "/data", seeded(1), &store.Generations{}
		_, _, err := store.OpenDirectory(o)
		return err
	}
	code := func(err error) store.Code {
		if coded, ok := errors.AsType[*store.Error](err); ok {
			return coded.Code
		}
		return store.Code(fmt.Sprint(err))
	}
	if got := code(try(store.DirectoryOptions{Broker: 1})); got != store.CodeLocked {
		t.Errorf("a second broker got %s", got)
	}
	disk.Kill()
	if got := code(try(store.DirectoryOptions{Broker: 2})); got != store.CodeForeign {
		t.Errorf("another broker got %s", got)
	}
	d, _, err := store.OpenDirectory(store.DirectoryOptions{FS: disk.FS(), Path: "/data", Broker: 1, Rand: seeded(1), Generations: &store.Generations{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.JoinCluster("one"), d.JoinCluster("one")); err != nil {
		t.Fatal(err)
	}
	if got := code(d.JoinCluster("two")); got != store.CodeForeign {
		t.Errorf("a second cluster got %s", got)
	}
	disk.Kill()
	if got := code(try(store.DirectoryOptions{Broker: 1, Cluster: "two"})); got != store.CodeForeign {
		t.Errorf("another cluster got %s", got)
	}
	if err := try(store.DirectoryOptions{Broker: 1, Cluster: "one"}); err != nil {
		t.Error(err)
	}
}
