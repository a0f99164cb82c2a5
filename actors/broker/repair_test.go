package broker_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// steady is a partition with records of about 100 KB in small segments.
type steady struct {
	c      *replicas
	client *kgo.Client
	n      int
}

func (c *replicas) steady(topic string) *steady {
	small := "1048576"
	c.create(topic, 1, map[string]*string{"segment.bytes": &small})
	c.whole(topic)
	return &steady{c: c, client: c.client(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.DefaultProduceTopic(topic))}
}

func (*steady) value(i int) string { return fmt.Sprint("record ", i, strings.Repeat(" ", 100_000)) }

func (s *steady) produce(count int) {
	s.c.t.Helper()
	for range count {
		if err := s.client.ProduceSync(within(s.c.t, 30*time.Second), &kgo.Record{Value: []byte(s.value(s.n))}).FirstErr(); err != nil {
			s.c.t.Fatal(err)
		}
		s.n++
	}
}

// read reads all of it, and no other record.
func (s *steady) read(topic string) {
	s.c.t.Helper()
	reader := s.c.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(0)}}))
	defer reader.Close()
	ctx := within(s.c.t, 30*time.Second)
	for i := 0; i < s.n; {
		reader.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			if r.Offset != int64(i) || string(r.Value) != s.value(i) {
				s.c.t.Fatalf("offset %d: %.20q", r.Offset, r.Value)
			}
			i++
		})
		if ctx.Err() != nil {
			s.c.t.Fatalf("%d of %d records", i, s.n)
		}
	}
}

// sound waits until the files of closed segments are the same at two replicas, and nothing is known to be damaged.
func (c *replicas) sound(topic string, at, as int) {
	c.t.Helper()
	dir, like := filepath.Join(c.dirs[at], topic+"-0"), filepath.Join(c.dirs[as], topic+"-0")
	awaitFact(c.t, "the damage to be mended", func() bool {
		if _, err := os.Stat(filepath.Join(dir, "damaged-offsets")); !errors.Is(err, os.ErrNotExist) {
			return false
		}
		names, err := filepath.Glob(filepath.Join(like, "*.log"))
		if err != nil || len(names) < 2 {
			c.t.Fatalf("%d segments, %v", len(names), err)
		}
		for _, name := range names[:len(names)-1] {
			want, err1 := os.ReadFile(name)
			got, err2 := os.ReadFile(filepath.Join(dir, filepath.Base(name)))
			if err1 != nil || err2 != nil || !bytes.Equal(want, got) {
				return false
			}
		}
		return true
	})
}

// A batch that a leader finds damaged comes back from the one that leads in its place.
func TestADamagedLeaderIsMendedByTheNext(t *testing.T) {
	t.Parallel()
	c := startColdReplicas(t, patient)
	s := c.steady("t")
	s.produce(40)
	c.whole("t")
	bad := c.leader("t", 0)
	name := filepath.Join(c.dirs[bad], "t-0", "00000000000000000000.log")
	flip(t, name, 250_000) // in the batch at offset 2
	flip(t, name, 650_000)
	s.read("t")
	awaitFact(t, "another leader", func() bool { return c.leader("t", 0) != bad })
	c.sound("t", bad, (bad+1)%3)
	s.produce(5)
	c.whole("t")
	s.read("t")
	c.equal("t", 1)
}

// A consumer that reads at a damaged follower is sent back to the leader, which has the records: it does not hear that they are corrupt.
func TestADamagedFollowerSendsConsumersToTheLeader(t *testing.T) {
	t.Parallel()
	c := startColdReplicas(t, patient)
	s := c.steady("t")
	s.produce(20)
	c.whole("t")
	bad := (c.leader("t", 0) + 1) % 3
	topic := c.running[bad].metadata("t").Topics[0].TopicID
	awaitFact(t, "the follower to serve what is committed", func() bool {
		p := c.running[bad].fetchAs("rack", topic, 0, 0)
		return p.ErrorCode == 0 && p.HighWatermark == 20 && len(p.RecordBatches) > 0
	})
	flip(t, filepath.Join(c.dirs[bad], "t-0", "00000000000000000000.log"), 250_000) // in the batch at offset 2
	if p := c.running[bad].fetchAs("rack", topic, 2, 0); !errors.Is(kerr.ErrorForCode(p.ErrorCode), kerr.NotLeaderForPartition) {
		t.Errorf("a damaged record is read: %v", kerr.ErrorForCode(p.ErrorCode))
	}
	c.sound("t", bad, (bad+1)%3)
	if p := c.running[bad].fetchAs("rack", topic, 2, 0); p.ErrorCode != 0 || len(p.RecordBatches) == 0 {
		t.Errorf("a mended record is read: %v", kerr.ErrorForCode(p.ErrorCode))
	}
}

// A segment that is missing at a start comes back from the leader, and the replica is in sync.
func TestAMissingSegmentIsFetchedFromTheLeader(t *testing.T) {
	t.Parallel()
	c := startReplicas(t, patient)
	s := c.steady("t")
	s.produce(45)
	c.whole("t")
	bad := (c.leader("t", 0) + 1) % 3
	c.stop(bad)
	names, err := filepath.Glob(filepath.Join(c.dirs[bad], "t-0", "*.log"))
	if err != nil || len(names) < 4 {
		t.Fatalf("%d segments, %v", len(names), err)
	}
	for _, name := range names[1:3] {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	s.produce(3)
	c.again(bad)
	c.sound("t", bad, c.leader("t", 0))
	c.whole("t")
	s.read("t")
	c.equal("t", 1)
}

// Random bits flip in the files of one of three replicas, while clients write. The scrub finds them without anybody reading, all of it is mended, and nobody is ever
// given a damaged byte: the files are flipped where they are not in memory, as on a disk that rots.
func TestScrubFindsRandomDamageAndItIsMended(t *testing.T) {
	t.Parallel()
	c := startColdReplicas(t, patient, "log.scrub.interval.ms=300", "log.scrub.max.bytes.per.second=1000000000")
	s := c.steady("t")
	s.produce(40)
	c.whole("t")
	r := rand.New(rand.NewPCG(7, 7))
	for round := range 3 {
		bad := (c.leader("t", 0) + round) % 3 // the leader in the first round
		names, err := filepath.Glob(filepath.Join(c.dirs[bad], "t-0", "*.log"))
		if err != nil || len(names) < 4 {
			t.Fatalf("%d segments, %v", len(names), err)
		}
		for _, name := range names[:len(names)-1] {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			at := r.Int64N(info.Size())
			t.Logf("round %d: byte %d of %s", round, at, name)
			flip(t, name, at)
		}
		s.produce(3)
		c.sound("t", bad, (bad+1)%3)
		c.whole("t")
		s.read("t")
	}
	c.equal("t", 1)
}

// Records in the page cache are sent without a look at their checksums, so that a leader whose copy is bad there finds out by a follower that refuses them.
func TestAFollowerHasItsLeaderLookAtWhatComesDamaged(t *testing.T) {
	t.Parallel()
	c := startReplicas(t, patient)
	s := c.steady("t")
	s.produce(30)
	c.whole("t")
	bad := c.leader("t", 0)
	empty := (bad + 1) % 3
	flip(t, filepath.Join(c.dirs[bad], "t-0", "00000000000000000000.log"), 550_000)
	c.stop(empty)
	if err := os.RemoveAll(filepath.Join(c.dirs[empty], "t-0")); err != nil {
		t.Fatal(err)
	}
	c.again(empty)
	c.whole("t")
	c.sound("t", bad, 3-bad-empty)
	s.produce(3)
	s.read("t")
	c.equal("t", 1)
}
