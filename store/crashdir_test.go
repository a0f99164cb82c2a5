package store_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
)

// cut runs a history and calls check with what each of its points leaves behind:
// after a power loss, twice, and after a kill.
func cut(t *testing.T, history func(disk *storetest.Disk), check func(where string, disk *storetest.Disk, power bool)) {
	t.Helper()
	disk := storetest.NewDisk(1)
	points := 0
	disk.OnPoint = func(p storetest.Point) {
		for k := range uint64(3) {
			image := disk.Clone()
			if k < 2 {
				image.Crash(uint64(p.N)<<2 + k)
			} else {
				image.Kill()
			}
			check(fmt.Sprintf("point %d, %s %s, case %d", p.N, p.Op, p.Name, k), image, k < 2)
			points++
		}
	}
	history(disk)
	if points < 30 {
		t.Fatalf("%d points: the test does not test it", points)
	}
}

func directoryOn(disk *storetest.Disk) (*store.Directory, store.Opened, error) {
	return directoryAt(disk, "/data")
}

func directoryAt(disk *storetest.Disk, path string) (*store.Directory, store.Opened, error) {
	return store.OpenDirectory(store.DirectoryOptions{
		FS: disk.FS(), Path: path, Broker: 1, Rand: seeded(8), Generations: &store.Generations{}, Parallel: 1,
		BallastBytes: 4096, RaftReserveBytes: 32 << 10,
	})
}

func TestADirectoryCanBeMadeAndJoinedThroughAnyCrash(t *testing.T) {
	var promised store.Meta // what a call has returned with
	cut(t, func(disk *storetest.Disk) {
		d, _, err := directoryOn(disk)
		if err != nil {
			t.Fatal(err)
		}
		promised = d.Meta()
		if err := d.JoinCluster("a-cluster"); err != nil {
			t.Fatal(err)
		}
		promised = d.Meta()
		if err := d.Checkpoint(); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(true, 3); err != nil {
			t.Fatal(err)
		}
	}, func(where string, disk *storetest.Disk, _ bool) {
		d, _, err := directoryOn(disk)
		if err != nil {
			t.Fatalf("%s: %v\n%s", where, err, disk.Dump())
		}
		if m := d.Meta(); promised.Node != 0 && (m.Directory != promised.Directory || m.Node != promised.Node || (promised.Cluster != "" && m.Cluster != promised.Cluster)) {
			t.Fatalf("%s: identity %+v, promised %+v", where, m, promised)
		}
	})
}

// TestADirectoryThatWasHalfMadeOutlivesThePower has a process die while it makes the directory. The next one finds it, and what that one says has to outlive a
// power cut, though it made no directory itself.
func TestADirectoryThatWasHalfMadeOutlivesThePower(t *testing.T) {
	const path = "/srv/troupe/data"
	cut(t, func(disk *storetest.Disk) {
		d, _, err := directoryAt(disk, path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(d.JoinCluster("a-cluster"), d.Checkpoint(), d.Close(true, 3)); err != nil {
			t.Fatal(err)
		}
	}, func(where string, disk *storetest.Disk, _ bool) {
		d, _, err := directoryAt(disk, path)
		if err != nil {
			t.Fatalf("%s: %v\n%s", where, err, disk.Dump())
		}
		promised := d.Meta()
		if _, err := disk.Platter().Read(path + "/meta.properties"); err != nil {
			t.Fatalf("%s: the power fails, and: %v\n%s", where, err, disk.Dump())
		}
		disk.Crash(1)
		if d, _, err = directoryAt(disk, path); err != nil || d.Meta() != promised {
			t.Fatalf("%s: identity %+v (%v), promised %+v", where, d.Meta(), err, promised)
		}
	})
}

func TestADeletedLogStaysDeletedThroughAnyCrash(t *testing.T) {
	deleted, created := false, false
	other := topicID("orders, the second")
	cut(t, func(disk *storetest.Disk) {
		d, _, err := directoryOn(disk)
		if err != nil {
			t.Fatal(err)
		}
		l, _, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		appendSome(t, l, 20)
		if err := tryFlush(t, d, l); err != nil {
			t.Fatal(err)
		}
		created = true
		if err := d.DeleteLog(l); err != nil {
			t.Fatal(err)
		}
		deleted = true
		if l, _, err = d.OpenLog(testPartition, other, smallLog(), store.LogHooks{}, 0); err != nil {
			t.Fatal(err)
		}
		appendSome(t, l, 2)
		if err := errors.Join(tryFlush(t, d, l), d.Checkpoint()); err != nil {
			t.Fatal(err)
		}
	}, func(where string, disk *storetest.Disk, _ bool) {
		d, o, err := directoryOn(disk)
		if err != nil {
			t.Fatalf("%s: %v\n%s", where, err, disk.Dump())
		}
		for _, found := range o.Logs {
			switch {
			case found.Topic == topicID("orders") && deleted:
				t.Fatalf("%s: the deleted log is back\n%s", where, disk.Dump())
			case found.Topic == topicID("orders"):
				l, r, err := d.OpenLog(found.Partition, found.Topic, smallLog(), store.LogHooks{}, 0)
				if err != nil || (created && l.End() != 40) {
					t.Fatalf("%s: %+v, %v", where, r, err)
				}
			default:
				l, r, err := d.OpenLog(found.Partition, found.Topic, smallLog(), store.LogHooks{}, 0)
				if err != nil || l.End() > 4 {
					t.Fatalf("%s: the new log holds %+v, %v", where, r, err)
				}
			}
		}
		if created && !deleted && len(o.Logs) == 0 && len(o.Strays) > 0 {
			t.Fatalf("%s: the log became a stray: %v", where, o.Strays)
		}
	})
}

// raftGhost is the state that saves lead to, told independently of the log.
type raftGhost struct {
	hard     string
	snapshot store.RaftSnapshot
	entries  []store.RaftEntry
}

func (g raftGhost) save(s store.RaftSave) raftGhost {
	n := raftGhost{g.hard, g.snapshot, append([]store.RaftEntry(nil), g.entries...)}
	if s.Snapshot != nil {
		n.snapshot, n.entries = *s.Snapshot, nil
	}
	if len(s.Hard) > 0 {
		n.hard = string(s.Hard)
	}
	for _, e := range s.Entries {
		n.entries = append(n.entries[:e.Index-n.snapshot.Index-1], e)
	}
	return n
}

func (g raftGhost) equals(s store.RaftState) bool {
	return g.hard == string(s.Hard) && g.snapshot.Index == s.Snapshot.Index && g.snapshot.Term == s.Snapshot.Term &&
		string(g.snapshot.Data) == string(s.Snapshot.Data) && len(g.entries) == len(s.Entries) &&
		(len(g.entries) == 0 || reflect.DeepEqual(g.entries, s.Entries))
}

func TestNoCrashTakesASavedVote(t *testing.T) {
	var now, next raftGhost // what was saved, and what a save under way leads to
	opened := false
	history := func(disk *storetest.Disk) {
		d, _, err := directoryOn(disk)
		if err != nil {
			t.Fatal(err)
		}
		r, _, err := d.OpenRaftLog()
		if err != nil {
			t.Fatal(err)
		}
		opened = true
		do := func(to raftGhost, save func() error) {
			next = to
			if err := save(); err != nil {
				t.Fatal(err)
			}
			now = next
		}
		save := func(s store.RaftSave) { do(now.save(s), func() error { return r.Save(s) }) }
		for term := uint64(1); term < 8; term++ {
			save(store.RaftSave{Hard: fmt.Appendf(nil, "term %d", term)})
			first := now.snapshot.Index + uint64(len(now.entries)) + 1
			save(store.RaftSave{Entries: bigEntries(first, first+3, term)})
			if term%2 == 0 {
				save(store.RaftSave{Entries: bigEntries(first+1, first+2, term), Hard: fmt.Appendf(nil, "term %d, a vote", term)})
			}
			if term%3 == 0 {
				at := now.entries[len(now.entries)/2]
				s := store.RaftSnapshot{Index: at.Index, Term: at.Term, Data: fmt.Appendf(nil, "up to %d", at.Index)}
				rest := now.entries[len(now.entries)/2+1:]
				do(raftGhost{now.hard, s, rest}, func() error { return r.Compact([]byte(now.hard), s, rest) })
			}
		}
		save(store.RaftSave{Snapshot: &store.RaftSnapshot{Index: 500, Term: 9, Data: []byte("received")}})
		save(store.RaftSave{Entries: bigEntries(501, 502, 9)})
	}
	cut(t, history, func(where string, disk *storetest.Disk, _ bool) {
		d, _, err := directoryOn(disk)
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		r, s, err := d.OpenRaftLog()
		if err != nil {
			t.Fatalf("%s: %v\n%s", where, err, disk.Dump())
		}
		if s.Created && opened {
			t.Fatalf("%s: the log is gone", where)
		}
		if !now.equals(s) && !next.equals(s) {
			t.Fatalf("%s: found %+v,\nsaved was %+v,\nor       %+v", where, s, now, next)
		}
		first := s.Snapshot.Index + uint64(len(s.Entries)) + 1
		if err := r.Save(store.RaftSave{Hard: []byte("after the crash"), Entries: entries(first, first, 99)}); err != nil {
			t.Fatalf("%s: %v", where, err)
		}
	})
}

// bigEntries are entries that fill several sectors.
func bigEntries(from, to, term uint64) []store.RaftEntry {
	list := entries(from, to, term)
	for i := range list {
		list[i].Data = []byte(strings.Repeat(string(list[i].Data), 40))
	}
	return list
}

func TestARaftLogOnAFullDiskUsesItsBallastThenRefuses(t *testing.T) {
	disk := storetest.NewDisk(1)
	d, _, err := directoryOn(disk)
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := d.OpenRaftLog()
	if err != nil {
		t.Fatal(err)
	}
	disk.Capacity = disk.Used()
	saved := uint64(0)
	for {
		err := r.Save(store.RaftSave{Entries: bigEntries(saved+1, saved+1, 1)})
		if errors.Is(err, store.ErrNoSpace) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		saved++
	}
	if saved < 5 {
		t.Fatalf("%d saves fit into the ballast", saved)
	}
	// Compaction has a file in reserve, so that it works on the full disk.
	if err := r.Compact([]byte("hard"), store.RaftSnapshot{Index: saved, Term: 1, Data: []byte("s")}, nil); err != nil {
		t.Fatal(err)
	}
	if err := r.Save(store.RaftSave{Entries: entries(saved+1, saved+1, 2)}); err != nil {
		t.Fatal(err)
	}
	disk.Crash(1)
	if d, _, err = directoryOn(disk); err != nil {
		t.Fatal(err)
	}
	if _, s, err := d.OpenRaftLog(); err != nil || s.Snapshot.Index != saved || len(s.Entries) != 1 || string(s.Hard) != "hard" {
		t.Fatalf("found %+v, %v", s, err)
	}
}

func TestADamagedRaftLogIsRefused(t *testing.T) {
	build := func() *storetest.Disk {
		disk := storetest.NewDisk(1)
		d, _, err := directoryOn(disk)
		if err != nil {
			t.Fatal(err)
		}
		r, _, err := d.OpenRaftLog()
		if err != nil {
			t.Fatal(err)
		}
		for i := range uint64(5) {
			if err := r.Save(store.RaftSave{Entries: bigEntries(i+1, i+1, 1)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(r.Close(), d.Close(true, 1)); err != nil {
			t.Fatal(err)
		}
		return disk
	}
	// 600 is in the first frames; 3 is in the head; both are far from the tail.
	for _, at := range []int64{3, 530, 600, 1500} {
		disk := build()
		disk.Flip("/data/raft/0.raftlog", at, 2)
		d, _, err := directoryOn(disk)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = d.OpenRaftLog()
		var coded *store.Error
		if !errors.As(err, &coded) || coded.Code != store.CodeRaft {
			t.Errorf("a flipped bit at %d: %v", at, err)
		}
	}
	// A failed sync leaves nothing to be trusted.
	disk := storetest.NewDisk(1)
	faults := storetest.Faults(disk.FS())
	d, _, err := store.OpenDirectory(store.DirectoryOptions{FS: faults, Path: "/data", Broker: 1, Rand: seeded(8), Generations: &store.Generations{}})
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := d.OpenRaftLog()
	if err != nil {
		t.Fatal(err)
	}
	faults.Add("sync *.raftlog nth 1: EIO")
	wantOffline(t, "the failed save", r.Save(store.RaftSave{Hard: []byte("vote")}))
	wantOffline(t, "the next save", r.Save(store.RaftSave{Hard: []byte("vote")}))
	wantOffline(t, "compaction", r.Compact(nil, store.RaftSnapshot{Index: 1}, nil))
}

// TestANameThatComesAgainInheritsNothing deletes a log with a durable mark and a
// moved start, makes another of its name, and cuts the power before any checkpoint
// is written: what the old lines say is not about the new log.
func TestANameThatComesAgainInheritsNothing(t *testing.T) {
	disk := storetest.NewDisk(1)
	d, old, _, _ := openOn(t, disk.FS(), smallLog())
	tp := old.Partition()
	appendSome(t, old, 40)
	if err := old.SetStart(9); err != nil {
		t.Fatal(err)
	}
	flush(t, d, old)
	old.SetStrict(true)
	if err := errors.Join(d.Checkpoint(), d.DeleteLog(old)); err != nil {
		t.Fatal(err)
	}
	id := ident.TopicID{0xaa, 1}
	l, _, err := d.OpenLog(tp, id, smallLog(), store.LogHooks{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	appendSome(t, l, 3)
	flush(t, d, l)
	end := l.End()
	disk.Crash(1)

	d, _, err = directoryOn(disk)
	if err != nil {
		t.Fatal(err)
	}
	l, r, err := d.OpenLog(tp, id, smallLog(), store.LogHooks{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Damage) > 0 || l.Start() != 0 || l.End() != end || d.Strict(tp) {
		t.Errorf("from %d to %d, expected 0 to %d; strict %t; damage %v", l.Start(), l.End(), end, d.Strict(tp), r.Damage)
	}
}

// A follower whose leader begins above its own end drops everything and begins
// there.
func TestALogBegunAnewKeepsNothingThroughAnyCrash(t *testing.T) {
	const at = 1000
	begun, appended := false, false
	cut(t, func(disk *storetest.Disk) {
		d, _, err := directoryOn(disk)
		if err != nil {
			t.Fatal(err)
		}
		l, _, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		appendSome(t, l, 40)
		if err := tryFlush(t, d, l); err != nil {
			t.Fatal(err)
		}
		generation := l.Generation()
		if err := l.Restart(at, 0); err != nil {
			t.Fatal(err)
		}
		if l.Start() != at || l.End() != at || l.Flushed() != at || l.Generation() <= generation || l.LastEpoch() != ident.NoLeaderEpoch {
			t.Fatalf("[%d, %d), flushed %d, generation %d", l.Start(), l.End(), l.Flushed(), l.Generation())
		}
		if err := tryFlush(t, d, l); err != nil {
			t.Fatal(err)
		}
		begun = true
		mustAppend(t, l, batch(t, at, 7, 0, 2, 100))
		if err := tryFlush(t, d, l); err != nil {
			t.Fatal(err)
		}
		appended = true
		if err := d.Checkpoint(); err != nil {
			t.Fatal(err)
		}
	}, func(where string, disk *storetest.Disk, _ bool) {
		d, o, err := directoryOn(disk)
		if err != nil || len(o.Strays) > 0 && begun {
			t.Fatalf("%s: %+v, %v", where, o, err)
		}
		l, r, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0)
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		switch {
		case begun && (l.Start() != at || l.End() < at || l.End() > at+2 || len(r.Damage) > 0):
			t.Fatalf("%s: [%d, %d), %+v\n%s", where, l.Start(), l.End(), r, disk.Dump())
		case appended && (l.End() != at+2 || l.LastEpoch() != 7):
			t.Fatalf("%s: the end is %d, of epoch %d", where, l.End(), l.LastEpoch())
		case !begun && l.End() > 80 && l.End() != at:
			t.Fatalf("%s: the end is %d", where, l.End())
		}
		if l.Start() < l.End() {
			readAll(t, l, l.Start(), l.End(), 1<<20)
		}
	})
}
