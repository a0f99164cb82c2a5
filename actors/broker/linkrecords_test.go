package broker

import (
	"bytes"
	"crypto/rand"
	"io/fs"
	"sync/atomic"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
	"github.com/troupe-broker/troupe/wire/record"
)

// logFile is a log with some batches, and their bytes.
type logFile struct {
	log   *store.Log
	bytes []byte
}

// coldOnce says of every file that reading it needs the disk, until it was read.
type coldOnce struct {
	store.FS
	read *atomic.Int32
}

type coldOnceFile struct {
	store.File
	read *atomic.Int32
}

func (f coldOnceFile) Resident(int64, int64) bool { return f.read.Load() > 0 }

func (f coldOnceFile) ReadAt(b []byte, at int64) (int, error) {
	f.read.Add(1)
	return f.File.ReadAt(b, at)
}

func (c coldOnce) OpenFile(name string, flag int, perm fs.FileMode) (store.File, error) {
	f, err := c.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return coldOnceFile{f, c.read}, nil
}

// newLogFile makes a log with one batch of about so many bytes.
func newLogFile(t testing.TB, size int) *logFile {
	t.Helper()
	return newLogFileOn(t, store.OS(), size)
}

func newLogFileOn(t testing.TB, fsys store.FS, size int) *logFile {
	t.Helper()
	dir, _, err := store.OpenDirectory(store.DirectoryOptions{FS: fsys, Path: t.TempDir(), Broker: 1, Rand: rand.Reader, Generations: &store.Generations{}, OpenLogsMax: 100})
	if err != nil {
		t.Fatal(err)
	}
	log, _, err := dir.OpenLog(ident.TopicPartition{Topic: "t"}, ident.TopicID{1}, store.DefaultLogConfig(), store.LogHooks{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(false); err != nil {
			t.Error(err)
		}
		if err := dir.Close(false, 1); err != nil {
			t.Error(err)
		}
	})
	b := record.NewBuilder()
	value := make([]byte, size)
	for i := range value {
		value[i] = byte(i * 7)
	}
	b.LeaderEpoch = 1
	b.Append(1, nil, value)
	out, err := b.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := record.View(out)
	v.SetLeaderEpoch(1)
	if err := log.Append(v, 1); err != nil {
		t.Fatal(err)
	}
	return &logFile{log: log, bytes: out}
}

// region is all of it, with a reference.
func (f *logFile) region(t testing.TB) store.Region {
	t.Helper()
	r, err := f.log.Read(0, f.log.End(), len(f.bytes)+1, true)
	if err != nil || r.Len() != len(f.bytes) {
		t.Fatalf("read %d bytes, %v", r.Len(), err)
	}
	return r
}

func TestRecordsGoFromTheirFileToTheFollower(t *testing.T) {
	noLeaks(t)
	cold := &atomic.Int32{}
	files := []*logFile{newLogFile(t, 10), newLogFile(t, 20<<10), newLogFile(t, 100<<10), newLogFile(t, 3<<20), newLogFileOn(t, coldOnce{store.OS(), cold}, 200<<10)}
	a, b := newSide(t, sideOptions{self: identityOf(1, 10)}), newSide(t, sideOptions{self: identityOf(2, 20)})
	meet(a, b)
	link := b.table.find(1, peer.Data, false)
	const rounds = 30
	for i := range rounds {
		f := files[i%len(files)]
		m := linkAnswers.Get().(*linkAnswer)
		m.head, m.region = peer.Answer{Topic: ident.TopicID{1}, From: ident.Offset(i)}, f.region(t)
		if err := link.ref.Post(m); err != nil {
			t.Fatal(err)
		}
	}
	for i := range rounds {
		x := a.await("answer", nil)
		var head peer.Answer
		decode(t, x.frame, &head)
		if head.From != ident.Offset(i) || !bytes.Equal(x.data, files[i%len(files)].bytes) {
			t.Fatalf("answer %d is %d with %d bytes", i, head.From, len(x.data))
		}
	}
	// One that comes too late lets its region go.
	b.stop()
	m := &linkAnswer{region: files[3].region(t)}
	if err := link.ref.Post(m); err == nil {
		t.Error("a link that has stopped takes an answer")
	}
}

func TestRecordsThatNobodyHasTakenInHoldUpOthers(t *testing.T) {
	noLeaks(t)
	a, b := newSide(t, sideOptions{self: identityOf(1, 10), credit: 1 << 20, pace: quickPace}), newSide(t, sideOptions{self: identityOf(2, 20), pace: quickPace})
	a.held = make(chan *chunk, 100)
	a.know(2, b.address)
	a.follow(2, true)
	b.await("opened", on(peer.Data, false))
	link := b.table.find(1, peer.Data, false)
	file := newLogFile(t, 100<<10)
	const answers = 40
	for i := range answers {
		if err := link.ref.Post(&linkAnswer{head: peer.Answer{From: ident.Offset(i)}, region: file.region(t)}); err != nil {
			t.Fatal(err)
		}
	}
	got := 0
	for over := time.Now().Add(3 * quickPace.silence); time.Now().Before(over); { // longer than a peer may be silent
		select {
		case x := <-a.told:
			if x.what == "closed" {
				t.Fatalf("closed because %v", x.reason)
			}
			if x.what == "answer" {
				got++
			}
		case <-time.After(10 * time.Millisecond):
		}
	}
	if got == answers || got < 5 {
		t.Fatalf("%d answers were taken in with memory for about ten", got)
	}
	u := a.credit.use()
	if u.UsedBytes > u.SizeBytes {
		t.Errorf("%+v", u)
	}
	// Each that is let go makes room for another.
	for range got {
		(<-a.held).release()
	}
	for ; got < answers; got++ {
		a.await("answer", nil)
		(<-a.held).release()
	}
}
