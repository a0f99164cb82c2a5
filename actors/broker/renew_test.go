package broker_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/troupe-broker/troupe/wire/record"
)

// keysIn reads the closed segments of a partition's directory, and says which value each key has last. It is false while something in them is unsound, or moves.
func keysIn(t *testing.T, dir string) (map[string]string, bool) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(names) < 2 {
		return nil, false
	}
	last := map[string]string{}
	for _, name := range names[:len(names)-1] {
		rest, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, false
		}
		if err != nil {
			t.Fatal(err)
		}
		for len(rest) > 0 {
			v, behind, err := record.Split(rest)
			if err != nil || v.VerifyCRC() != nil {
				return nil, false
			}
			var it record.Iterator
			if err := it.Reset(v, record.Bound{}); err != nil {
				return nil, false
			}
			for it.Next() {
				rec := it.Record()
				last[string(rec.Key)], _, _ = strings.Cut(string(rec.Value), " ")
			}
			it.Close()
			rest = behind
		}
	}
	return last, true
}

// startCompacted starts three brokers with a compacted topic t, which are quick to compact and to look for damage, and a client that writes to it.
func startCompacted(t *testing.T, backoffMs, dirtyRatio string) (*replicas, *kgo.Client) {
	t.Helper()
	c := startColdReplicas(t, patient, "log.cleaner.backoff.ms="+backoffMs, "log.scrub.interval.ms=200", "log.scrub.max.bytes.per.second=1000000000")
	configs := map[string]*string{}
	for k, v := range map[string]string{
		"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": dirtyRatio, "delete.retention.ms": "0",
	} {
		configs[k] = &v
	}
	c.create("t", 1, configs)
	c.whole("t")
	return c, c.client(kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.DefaultProduceTopic("t"), kgo.ProducerBatchMaxBytes(900_000))
}

// TestALeaderIsNotCompactedWhileItIsCopied: a follower whose compacted part is damaged gets all of it from a leader that is written to, and would be compacted, all the time.
func TestALeaderIsNotCompactedWhileItIsCopied(t *testing.T) {
	t.Parallel()
	c, client := startCompacted(t, "1", "0.001")
	produce := func(key string) {
		r := &kgo.Record{Key: []byte(key), Value: []byte("v " + strings.Repeat("x", 500_000))}
		if err := client.ProduceSync(within(t, 30*time.Second), r).FirstErr(); err != nil {
			t.Error(err)
		}
	}
	const keys = 60
	for i := range keys {
		produce(fmt.Sprintf("k%d", i))
	}
	bad := (c.leader("t", 0) + 1) % 3
	dir := filepath.Join(c.dirs[bad], "t-0")
	segment := filepath.Join(dir, "00000000000000000000.log")
	over, written := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(written)
		for {
			select {
			case <-over:
				return
			default:
				produce("again")
			}
		}
	}()
	stop := sync.OnceFunc(func() { close(over); <-written })
	defer stop()
	flip(t, segment, 50)
	awaitFact(t, "the damage to be found", func() bool {
		_, err := os.Stat(filepath.Join(dir, "damaged-offsets"))
		return err == nil
	})
	awaitFact(t, "the damage to be mended", func() bool {
		_, err := os.Stat(filepath.Join(dir, "damaged-offsets"))
		return errors.Is(err, os.ErrNotExist)
	})
	stop()
	c.whole("t")
	last, sound := map[string]string(nil), false
	awaitFact(t, "the files to be quiet", func() bool { last, sound = keysIn(t, dir); return sound })
	if len(last) < keys { // the one that was written again and again may be in the active segment only
		t.Errorf("the replica has %d keys, %d were written", len(last), keys)
	}
}

// Replicas are compacted each for itself. A bit of one that turns costs it all of its compacted part, and no deleted key comes back.
func TestADamagedCompactedReplicaIsMendedAsAWhole(t *testing.T) {
	t.Parallel()
	c, client := startCompacted(t, "20", "0.01")
	produce := func(from, to int) {
		for i := from; i < to; i++ {
			r := &kgo.Record{Key: fmt.Appendf(nil, "k%d", i%7), Value: fmt.Appendf(nil, "%d %s", i, strings.Repeat("x", 100_000))}
			if i%10 == 3 {
				r.Key, r.Value = []byte("gone"), nil
				if i < 10 {
					r.Value = []byte("alive")
				}
			}
			if err := client.ProduceSync(within(t, 30*time.Second), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	compacted := func(i int) bool {
		size := int64(0)
		names, err := filepath.Glob(filepath.Join(c.dirs[i], "t-0", "*.log"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names[:max(len(names)-1, 0)] {
			info, err := os.Stat(name)
			if err != nil {
				return false
			}
			size += info.Size()
		}
		return len(names) >= 2 && size < 2_500_000
	}
	produce(0, 80)
	for i := range c.dirs {
		awaitFact(t, "the log to be compacted", func() bool { return compacted(i) })
	}
	bad := (c.leader("t", 0) + 1) % 3
	dir := filepath.Join(c.dirs[bad], "t-0")
	segment := filepath.Join(dir, "00000000000000000000.log")
	awaitFact(t, "the segment to have its name, which it lacks for a moment when it is swapped", func() bool { _, err := os.Stat(segment); return err == nil })
	flip(t, segment, 50)
	awaitFact(t, "the damage to be found", func() bool {
		_, err := os.Stat(filepath.Join(dir, "damaged-offsets"))
		return err == nil
	})
	produce(80, 95)
	awaitFact(t, "the damage to be mended", func() bool {
		_, err := os.Stat(filepath.Join(dir, "damaged-offsets"))
		_, sound := keysIn(t, dir)
		return errors.Is(err, os.ErrNotExist) && sound
	})
	c.whole("t")
	keys, sound := map[string]string(nil), false
	awaitFact(t, "the files to be quiet", func() bool { keys, sound = keysIn(t, dir); return sound })
	if len(keys) < 7 || keys["gone"] != "" {
		t.Errorf("the replica has %v", keys)
	}
}
