package main

import (
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/bench/chaos/check"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// batchesFrom builds n batches of one record each.
func batchesFrom(t *testing.T, base ident.Offset, n int) (all []byte, each []record.View) {
	t.Helper()
	for i := range n {
		b := record.NewBuilder()
		b.BaseOffset = base + ident.Offset(i)
		b.Append(1, nil, []byte(strings.Repeat("v", 40)))
		v, err := b.Finish(nil)
		if err != nil {
			t.Fatal(err)
		}
		each = append(each, v)
		all = append(all, v...)
	}
	return all, each
}

// dataDirectory has a log of each topic with a closed segment of four batches, and an active one of four and reserved space.
func dataDirectory(t *testing.T, topics ...string) string {
	t.Helper()
	data := t.TempDir()
	write := func(name string, b []byte) {
		t.Helper()
		path := filepath.Join(data, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	closed, _ := batchesFrom(t, 0, 4)
	active, _ := batchesFrom(t, 4, 4)
	for _, topic := range topics {
		home := topic + "-0/"
		write(home+"00000000000000000000.log", closed)
		write(home+"00000000000000000004.log", append(active, make([]byte, 4096)...))
		for _, name := range []string{"00000000000000000000.index", "00000000000000000000.timeindex", "00000000000000000004.snapshot", "leader-epoch-checkpoint", "partition.metadata"} {
			write(home+name, []byte("something"))
		}
		write(home+"00000000000000000000.log.deleted", closed)
	}
	write("raft/0.raftlog", []byte("a vote"))
	write("meta.properties", []byte("who"))
	write("log-start-offset-checkpoint", []byte("0"))
	write("log-start-offset-checkpoint.sealed", []byte("0"))
	write("control-block", []byte("cache"))
	return data
}

// contents reads every file below a directory.
func contents(t *testing.T, data string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(data, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, data+"/")] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestABitIsTurnedInEveryFileThatCountsAndInNoOther(t *testing.T) {
	for _, live := range []bool{false, true} {
		data := dataDirectory(t, "t", offsetsTopic)
		before := contents(t, data)
		below := map[place]int64{{"t", 0}: 6, {offsetsTopic, 0}: 3}
		spots, counts, err := turnBits(data, below, rand.New(rand.NewPCG(1, 1)), live)
		if err != nil {
			t.Fatal(err)
		}
		var changed []string
		for name, text := range contents(t, data) {
			if text != before[name] {
				changed = append(changed, name)
			}
		}
		slices.Sort(changed)
		want := []string{
			offsetsTopic + "-0/00000000000000000000.index", offsetsTopic + "-0/00000000000000000000.log", offsetsTopic + "-0/00000000000000000000.timeindex",
			"t-0/00000000000000000000.index", "t-0/00000000000000000000.log", "t-0/00000000000000000000.timeindex", "t-0/00000000000000000004.log",
		}
		if !live {
			for _, topic := range []string{offsetsTopic, "t"} {
				want = append(want, topic+"-0/00000000000000000004.snapshot", topic+"-0/leader-epoch-checkpoint", topic+"-0/partition.metadata")
			}
			want = append(want, "control-block")
			twice := slices.DeleteFunc(slices.Clone(changed), func(name string) bool { return !strings.HasPrefix(name, "log-start") })
			if len(twice) != 1 {
				t.Errorf("of what is kept twice %v is hit", twice)
			}
			want = append(want, twice...)
		}
		slices.Sort(want)
		if !slices.Equal(changed, want) {
			t.Errorf("live %v: a bit was turned in %v, want %v", live, changed, want)
		}
		if len(spots) != 3 || counts["log"] != 3 {
			t.Errorf("live %v: %d batches were hit, the counts are %v", live, len(spots), counts)
		}
		for _, s := range spots {
			if s.offset >= below[s.place] {
				t.Errorf("live %v: %v at %d is hit, which lies above %d", live, s.place, s.offset, below[s.place])
			}
			if whole, err := s.whole(data); err != nil || whole {
				t.Errorf("live %v: %s is whole: %v, %v", live, s.at, whole, err)
			}
		}
	}
}

func TestALogIsWholeWhenTheBatchIsThereAsItWas(t *testing.T) {
	closed, each := batchesFrom(t, 0, 4)
	sum := crc32.ChecksumIEEE(each[2])
	other, _ := batchesFrom(t, 0, 4)
	record.View(other[len(each[0])+len(each[1]):][:len(each[2])]).SetLeaderEpoch(7) // no checksum covers it
	without := slices.Concat(each[0], each[1], each[3])
	cut := slices.Concat(each[0], each[1])
	for _, c := range []struct {
		name             string
		bytes            []byte
		plain, compacted bool
	}{
		{"as it was", closed, true, true},
		{"another leader epoch", other, false, true},
		{"left out", without, false, true},
		{"cut off, or compacted to its end", cut, false, true},
		{"the rest of the segment is reserved", append(slices.Clone(cut), make([]byte, 100)...), false, true},
		{"a torn header before it", append([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0xff}, closed[9:]...), false, false},
	} {
		for topic, want := range map[string]bool{"t": c.plain, offsetsTopic: c.compacted} {
			data := dataDirectory(t, topic)
			if err := os.WriteFile(filepath.Join(data, topic+"-0", "00000000000000000000.log"), c.bytes, 0o644); err != nil {
				t.Fatal(err)
			}
			s := &spot{place: place{topic, 0}, offset: 2, sum: sum}
			if whole, err := s.whole(data); err != nil || whole != want {
				t.Errorf("%s of %s: whole is %v (%v), want %v", c.name, topic, whole, err, want)
			}
		}
	}
}

// What a broker gives out before it knows is told; what it gives out after it has refused it, or had it sound, is a violation.
func TestKnownDamageMustNotBeGivenOutAgain(t *testing.T) {
	_, each := batchesFrom(t, 0, 1)
	bad := slices.Clone(each[0])
	bad[len(bad)-1] ^= 1
	const sound, damaged, refused, elsewhere = "sound", "damaged", "refused", "elsewhere"
	for _, c := range []struct {
		answers []string
		fatal   bool
		early   int
	}{
		{[]string{damaged, damaged, refused, sound}, false, 2},
		{[]string{damaged, elsewhere, sound, sound}, false, 1},
		{[]string{refused, damaged}, true, 0},
		{[]string{sound, elsewhere, damaged}, true, 0},
		{[]string{elsewhere, damaged}, false, 1},
	} {
		dir := t.TempDir()
		clock, err := newClock()
		if err != nil {
			t.Fatal(err)
		}
		rec, err := newRecorder(clock, dir)
		if err != nil {
			t.Fatal(err)
		}
		n := &nemesis{rec: rec}
		s := &spot{place: place{"t", 0}, sum: crc32.ChecksumIEEE(each[0])}
		for _, a := range c.answers {
			switch a {
			case sound:
				n.judge(1, s, 0, each[0])
			case damaged:
				n.judge(1, s, 0, bad)
			case refused:
				n.judge(1, s, corruptMessage, nil)
			case elsewhere:
				n.judge(1, s, 6, nil)
			}
		}
		n.rec.write(check.Event{Kind: check.Fault, Worker: "end"})
		if err := rec.close(); err != nil {
			t.Fatal(err)
		}
		events, err := check.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		fatal := slices.ContainsFunc(events, func(e check.Event) bool { return e.Kind == check.Fatal })
		if fatal != c.fatal || n.rot.bad != c.early {
			t.Errorf("%v: a violation: %v, given out before: %d", c.answers, fatal, n.rot.bad)
		}
	}
}

func TestTrialsEndTogetherAndAreCounted(t *testing.T) {
	var r rot
	one := &spot{place: place{"t", 0}}
	r.add(2, []*spot{one}, map[string]int{"log": 1, "index": 2})
	r.mended(0) // somebody looked before it began
	if victim, spots, open := r.open(); victim != 2 || len(spots) != 1 || open != 1 || !r.torn(2, place{"t", 0}) || r.torn(1, place{"t", 0}) || r.torn(2, place{"t", 1}) {
		t.Errorf("broker %d, %d batches, %d trials", victim, len(spots), open)
	}
	r.add(2, nil, map[string]int{"log": 1})
	r.mended(2)
	if _, spots, open := r.open(); open != 0 || len(spots) != 0 || r.torn(2, place{"t", 0}) || !r.any() {
		t.Errorf("%d batches and %d trials are left", len(spots), open)
	}
	total := rotted{trials: []time.Duration{mendMax + time.Second}, open: 1, bad: 3, counts: map[string]int{"log": 4}}
	total.add(r.sum())
	const want = "bits turned at 4 times in 2 index files, 6 log files; all whole and in sync after 61.0 s at most, 2 times not within 1m0s; 3 answers with damage before it was found"
	if text := total.text(); text != want {
		t.Errorf("the report says %q", text)
	}
}

func TestFillsEndWhenEveryPartitionServes(t *testing.T) {
	send := func(tp string, t0, t1 int64, o check.Outcome) check.Event {
		return check.Event{Kind: check.Send, TP: tp, T0: t0, T1: t1, Outcome: o}
	}
	fill := func(t1 int64) check.Event {
		return check.Event{Kind: check.Fault, Worker: diskFullName, T0: t1 - 500_000, T1: t1}
	}
	f := fillsIn([]check.Event{
		fill(1_000_000), fill(10_000_000),
		{Kind: check.Fault, Worker: "pause", T1: 2_000_000},
		send("t-0", 900_000, 1_100_000, check.OK), send("t-0", 1_000_000, 1_300_000, check.OK), send("t-1", 1_100_000, 3_000_000, check.OK), send("t-1", 1_000_001, 1_200_000, check.Info),
		send("t-0", 10_100_000, 10_200_000, check.OK), send("t-1", 10_100_000, 16_000_000, check.OK),
		{Kind: check.Commit, Group: "g", TP: "t-0", T0: 10_000_000, T1: 30_000_000, Outcome: check.OK},
	})
	if !slices.Equal(f, fills{2 * time.Second, 6 * time.Second}) {
		t.Errorf("served after %v", f)
	}
	const want = "disks full 2 times; every partition served 6.0 s after at most, 1 times not within 5s"
	if f.text() != want {
		t.Errorf("the report says %q", f.text())
	}
}
