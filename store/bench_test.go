package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/troupe-broker/troupe/store"
)

func benchLog(b testing.TB, mode store.AppendMode, writeMin int32) (*store.Directory, *store.Log, *worker) {
	b.Helper()
	jobs := &worker{}
	d, _, err := store.OpenDirectory(store.DirectoryOptions{
		FS: store.OS(), Path: b.TempDir(), Broker: 1, Rand: seeded(1), Generations: &store.Generations{}, Background: jobs.Run,
	})
	if err != nil {
		b.Fatal(err)
	}
	c := store.DefaultLogConfig()
	c.SegmentBytes, c.Append, c.AppendWriteMin = 256<<20, mode, writeMin
	c.FileDeleteDelayMs = 0
	l, _, err := d.OpenLog(testPartition, topicID("orders"), c, store.LogHooks{}, 0)
	if err != nil {
		b.Fatal(err)
	}
	return d, l, jobs
}

// BenchmarkAppend is the cost of an append into a log, beside what it costs to copy
// the same bytes into a mapping and to write them with pwrite: the floors.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{1 << 10, 16 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20} {
		for _, mode := range []struct {
			name     string
			mode     store.AppendMode
			writeMin int32
		}{{"mapped", store.AppendMapped, 1 << 30}, {"written", store.AppendWritten, 0}} {
			b.Run(fmt.Sprintf("by=%s/size=%d", mode.name, size), func(b *testing.B) {
				d, l, jobs := benchLog(b, mode.mode, mode.writeMin)
				v := batch(b, 0, 0, 1000, 1, size-100)
				b.SetBytes(int64(len(v)))
				b.ReportAllocs()
				b.ResetTimer()
				before := cpuTime(b)
				for range b.N {
					v.SetBaseOffset(l.End())
					if err := l.Append(v, 0); err != nil {
						b.Fatal(err)
					}
					if l.Segments() > 2 {
						b.StopTimer()
						jobs.Wait()
						paused := cpuTime(b)
						drop(b, d, l)
						jobs.Wait()
						before += cpuTime(b) - paused
						b.StartTimer()
					}
				}
				b.StopTimer()
				jobs.Wait()
				reportCPU(b, before, len(v))
				if err := l.Close(false); err != nil {
					b.Fatal(err)
				}
				jobs.Wait()
				if err := d.Close(false, 0); err != nil {
					b.Fatal(err)
				}
			})
		}
		b.Run(fmt.Sprintf("by=floor/size=%d", size), func(b *testing.B) { benchFloor(b, size) })
	}
}

// cpuTime is the CPU time of the process so far, which other processes disturb less
// than they do the clock.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func reportCPU(b *testing.B, before time.Duration, size int) {
	b.Helper()
	gb := float64(b.N) * float64(size) / 1e9
	b.ReportMetric((cpuTime(b)-before).Seconds()/gb, "cpu-s/GB")
}

// drop deletes all closed segments, so that a benchmark does not fill the disk.
func drop(b testing.TB, d *store.Directory, l *store.Log) {
	b.Helper()
	if err := l.SetStart(l.End()); err != nil {
		b.Fatal(err)
	}
	if _, err := l.ApplyRetention(0, l.End()); err != nil {
		b.Fatal(err)
	}
	flush(b, d, l)
	if _, err := l.ApplyRetention(1, l.End()); err != nil {
		b.Fatal(err)
	}
}

// benchFloor copies into a reserved mapping of 256 MiB whose pages were touched
// before: nothing but the copy.
func benchFloor(b *testing.B, size int) {
	b.Helper()
	const span = 256 << 20
	f, err := store.OS().OpenFile(filepath.Join(b.TempDir(), "floor"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		b.Fatal(err)
	}
	if err := f.Allocate(0, span); err != nil {
		b.Fatal(err)
	}
	m, err := f.Map(0, span)
	if err != nil {
		b.Fatal(err)
	}
	for at := 0; at < span; at += os.Getpagesize() {
		m.Bytes()[at] = 1
	}
	v := batch(b, 0, 0, 1000, 1, size-100)
	b.SetBytes(int64(len(v)))
	to, pos := m.Bytes(), 0
	b.ResetTimer()
	before := cpuTime(b)
	for range b.N {
		if pos+len(v) > span {
			pos = 0
		}
		pos += copy(to[pos:], v)
	}
	b.StopTimer()
	reportCPU(b, before, len(v))
	if err := m.Close(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRead is the cost of finding and holding a region at the log's end.
func BenchmarkRead(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("at=end/size=%d", size), func(b *testing.B) {
			_, l, _ := benchLog(b, store.AppendMapped, 0)
			v := batch(b, 0, 0, 1000, 1, size-100)
			for range 100 {
				v.SetBaseOffset(l.End())
				mustAppend(b, l, v)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				r, err := l.Read(l.End()-4, l.End(), 1<<20, true)
				if err != nil || r.Len() == 0 {
					b.Fatal(err)
				}
				r.Release()
			}
		})
	}
}

func TestTheHotPathAllocatesNothing(t *testing.T) {
	for _, mode := range []store.AppendMode{store.AppendMapped, store.AppendWritten} {
		d, l, jobs := benchLog(t, mode, 0)
		v := batch(t, 0, 0, 1000, 1, 900)
		append1 := func() {
			v.SetBaseOffset(l.End())
			if err := l.Append(v, 0); err != nil {
				t.Fatal(err)
			}
		}
		// The first appends fill the index buffer and grow the file.
		for range 20_000 {
			append1()
		}
		if n := testing.AllocsPerRun(2000, append1); n > 0 {
			t.Errorf("mode %d: an append allocates %v times", mode, n)
		}
		from := l.Start()
		if n := testing.AllocsPerRun(1000, func() {
			r, err := l.Read(from, l.End(), 64<<10, true)
			if err != nil || r.Len() == 0 {
				t.Fatal(err)
			}
			from = r.Next()
			r.Retain()
			r.Release()
			if from > l.End()-200 {
				from = l.Start()
			}
		}); n > 0 {
			t.Errorf("mode %d: a sequential read allocates %v times", mode, n)
		}
		if n := testing.AllocsPerRun(1000, func() {
			r, err := l.Read(l.End()-3, l.End(), 64<<10, true)
			if err != nil || r.Len() == 0 {
				t.Fatal(err)
			}
			r.Release()
		}); n > 0 {
			t.Errorf("mode %d: a read at the end allocates %v times", mode, n)
		}
		s, err := d.NewSyncer()
		if err != nil {
			t.Fatal(err)
		}
		var works []store.SyncWork
		var results []store.SyncResult
		if n := testing.AllocsPerRun(50, func() {
			append1()
			w, _ := l.BeginSync()
			works = append(works[:0], w)
			results = s.Sync(results[:0], works)
			if _, _, err := l.Synced(results[0]); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("mode %d: a flush allocates %v times", mode, n)
		}
		if err := l.Close(false); err != nil {
			t.Fatal(err)
		}
		jobs.Wait()
	}
}
