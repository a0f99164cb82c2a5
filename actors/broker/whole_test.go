package broker_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
)

// place makes a topic with so many partitions on these brokers, the first preferred.
func (c *replicas) place(topic string, partitions int32, brokers ...int32) {
	c.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 20_000
	nt := kmsg.NewCreateTopicsRequestTopic()
	nt.Topic, nt.NumPartitions, nt.ReplicationFactor = topic, -1, -1
	for p := range partitions {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = p, brokers
		nt.ReplicaAssignment = append(nt.ReplicaAssignment, a)
	}
	req.Topics = append(req.Topics, nt)
	resp, err := req.RequestWith(within(c.t, 20*time.Second), c.client())
	if err != nil || resp.Topics[0].ErrorCode != 0 {
		c.t.Fatal(err, resp.Topics)
	}
}

// partitions are what broker i tells of topic t.
func (c *replicas) partitions(i int) []kmsg.MetadataResponseTopicPartition {
	c.t.Helper()
	return c.running[i].metadata("t").Topics[0].Partitions
}

// TestAReplicaWhoseFilesAreGoneIsNotElected: it may lead by the metadata, what it had is not there when its broker comes back, and the other replica is away.
// Whatever the files are gone by, nobody leads until the other is back, and then nothing is lost.
func TestAReplicaWhoseFilesAreGoneIsNotElected(t *testing.T) {
	t.Parallel()
	for _, ending := range []string{"stopped", "killed"} {
		t.Run(ending, func(t *testing.T) {
			c := startReplicas(t, "broker.session.timeout.ms=2000", "broker.heartbeat.interval.ms=200", "min.insync.replicas=2")
			c.place("t", 3, 1, 3)
			c.place("u", 1, 1, 3)
			cl := c.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
			for p := range int32(3) {
				c.produce(cl, p, 0, 20)
			}
			c.stopAll()
			at := func(name string) string { return filepath.Join(c.dirs[0], name) }
			if ending == "killed" { // by what is left of it: the control block of this boot, and no clean marker
				if err := os.Remove(at(".kafka_cleanshutdown")); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(
				os.RemoveAll(at("t-0")),                 // an operator was mistaken
				os.Remove(at("t-1/partition.metadata")), // a stray
				os.RemoveAll(at("t-2")),                 // and something else has its name:
				os.Rename(at("u-0"), at("t-2")),
			); err != nil {
				t.Fatal(err)
			}
			c.begin(0)
			c.begin(1)
			c.serving(0)
			c.serving(1)
			eventually(t, "broker 3 to lead no more", func() bool {
				return !slices.ContainsFunc(c.partitions(0), func(p kmsg.MetadataResponseTopicPartition) bool { return p.Leader == 3 })
			})
			for _, p := range c.partitions(0) {
				if p.Leader != -1 {
					t.Errorf("broker 1 came back without its records, and leads: %+v", p)
				}
			}
			c.again(2)
			for p := range int32(3) {
				c.read(p, 20)
			}
			eventually(t, "both replicas to be in sync", func() bool {
				return !slices.ContainsFunc(c.partitions(0), func(p kmsg.MetadataResponseTopicPartition) bool { return len(p.ISR) < 2 })
			})
			c.stopAll()
			for p := range 3 {
				if a, b := c.batches(0, "t", p), c.batches(2, "t", p); !bytes.Equal(a, b) {
					t.Errorf("partition %d: %d bytes of batches and %d", p, len(a), len(b))
				}
			}
		})
	}
}

// TestALogThatIsShorterThanItWasIsNotElected: its broker was killed, and registers it as whole, because the machine has not been started anew. Its recovery finds
// that the file has become shorter, and the other replica is away.
func TestALogThatIsShorterThanItWasIsNotElected(t *testing.T) {
	t.Parallel()
	c := startReplicas(t, "broker.session.timeout.ms=2000", "broker.heartbeat.interval.ms=200", "min.insync.replicas=2")
	c.place("t", 1, 1, 3)
	c.produce(c.client(), 0, 0, 20)
	c.stopAll()
	segment := filepath.Join(c.dirs[0], "t-0", "00000000000000000000.log")
	info, err := os.Stat(segment)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(filepath.Join(c.dirs[0], ".kafka_cleanshutdown")), os.Truncate(segment, info.Size()/2)); err != nil {
		t.Fatal(err)
	}
	c.begin(0)
	c.begin(1)
	c.serving(0)
	c.serving(1)
	eventually(t, "broker 3 to lead no more", func() bool { return c.partitions(0)[0].Leader != 3 })
	for _, p := range c.partitions(0) {
		if p.Leader != -1 {
			t.Errorf("broker 1 came back with half of its records, and leads: %+v", p)
		}
	}
	c.again(2)
	c.read(0, 20)
}

// TestAFollowerOnAFullDiskReplicatesAgain: when its partition is not strict any more, the mark that says so has to be off its disk before it may tell of what is
// only in memory. While that cannot be written it tells nothing, and when there is space again it goes on.
func TestAFollowerOnAFullDiskReplicatesAgain(t *testing.T) {
	t.Parallel()
	disk := storetest.Faults(store.OS())
	c := startReplicasOn(t, [3]store.FS{2: disk}, "min.insync.replicas=2")
	c.place("t", 1, 1, 3)
	cl := c.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	c.produce(cl, 0, 0, 5)
	marked := func() bool {
		b, err := os.ReadFile(filepath.Join(c.dirs[2], "recovery-point-offset-checkpoint.sealed"))
		if err != nil {
			t.Fatal(err)
		}
		return regexp.MustCompile(`(?m)^t 0 \d+ 1 `).Match(b)
	}
	c.stop(2) // which writes the mark
	c.again(2)
	eventually(t, "broker 3 to be in sync", func() bool { return len(c.partitions(0)[0].ISR) == 2 })
	if !marked() {
		t.Fatal("broker 3 has no mark of the strict mode")
	}
	disk.Add("write recovery-point-*: ENOSPC")
	caching := "true"
	if _, err := kadm.NewClient(c.client()).AlterTopicConfigs(within(t, 20*time.Second), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "write.caching", Value: &caching}}, "t"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the mark to be written in vain, again and again", func() bool { return disk.Hits() > 4 })
	if !marked() {
		t.Fatal("the mark is gone, though the disk is full: the test shows nothing")
	}
	disk.Clear()
	c.produce(cl, 0, 5, 10)
	if marked() {
		t.Error("broker 3 replicates in the cached mode, and its disk says that it is strict")
	}
	c.read(0, 10)
}
