package broker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
)

// preferred asks for the preferred leader of a partition of t.
func (c *replicas) preferred(at int, partition int32) error {
	c.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.clients[at]))
	if err != nil {
		c.t.Fatal(err)
	}
	defer cl.Close()
	got, err := kadm.NewClient(cl).ElectLeaders(within(c.t, 20*time.Second), kadm.ElectPreferredReplica, kadm.TopicsSet{"t": {partition: {}}})
	if err != nil {
		c.t.Fatal(err)
	}
	return got["t"][partition].Err
}

// faultyDisks are the disks of three brokers, of which each can be made to fail.
func faultyDisks() (disks [3]store.FS, faults [3]*storetest.Injector) {
	for i := range disks {
		faults[i] = storetest.Faults(store.OS())
		disks[i] = faults[i]
	}
	return disks, faults
}

// fill lets a disk have no room for any log to grow; empty ends that.
func fill(disk *storetest.Injector) {
	disk.Add("allocate *.log: ENOSPC")
	disk.Add("open *.log: ENOSPC")
}

// TestAFullDiskCostsNobodyElse fills the disk of one of three brokers under acks=all, while no clock of a follower ever runs out: what it leads is led by others,
// what it follows goes on without it. It gets nothing back before there is room, and all of it afterwards.
func TestAFullDiskCostsNobodyElse(t *testing.T) {
	t.Parallel()
	disks, faults := faultyDisks()
	c := startReplicasOn(t, disks, patient, "auto.leader.rebalance.enable=false")
	two, small := "2", "1048576"
	c.create("t", 3, map[string]*string{"min.insync.replicas": &two, "segment.bytes": &small})
	c.whole("t")
	w := c.writeSized(3, 20_000)
	w.more()
	full := c.leader("t", 0)
	other := (full + 1) % 3
	fill(faults[full])
	for p := range int32(3) {
		awaitFact(t, fmt.Sprintf("partition %d to go on without the full broker", p), func() bool {
			s := c.state(other, p)
			return s.Leader != int32(full+1) && !slices.Contains(s.ISR, int32(full+1)) && len(s.ISR) == 2
		})
	}
	w.more()
	if err := c.preferred(other, 0); !errors.Is(err, kerr.PreferredLeaderNotAvailable) {
		t.Errorf("the full broker may be elected: %v", err)
	}
	if !c.running[full].Ready() {
		t.Error("a full disk takes the broker down")
	}
	faults[full].Clear()
	c.whole("t")
	if err := c.preferred(other, 0); err != nil {
		t.Errorf("there is room again: %v", err)
	}
	awaitFact(t, "the preferred leader", func() bool { return c.leader("t", 0) == full })
	w.more()
	w.check()
	c.equal("t", 3)
}

// TestAFullBrokerLeadsWhereItIsAlone fills the disk of the only replica in sync: it goes on leading, and reads go on; and that of a replica without others.
func TestAFullBrokerLeadsWhereItIsAlone(t *testing.T) {
	t.Parallel()
	disk := storetest.Faults(store.OS())
	c := startReplicasOn(t, [3]store.FS{disk}, patient)
	lone := c.client(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	cl := kadm.NewClient(lone)
	small := "1048576"
	if _, err := cl.CreateTopic(within(t, 20*time.Second), 3, 1, map[string]*string{"segment.bytes": &small}, "t"); err != nil {
		t.Fatal(err)
	}
	mine := int32(-1)
	for p := range int32(3) {
		if c.leader("t", p) == 0 {
			mine = p
		}
	}
	put := func(patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return lone.ProduceSync(ctx, &kgo.Record{Topic: "t", Partition: mine, Value: make([]byte, 60_000)}).FirstErr()
	}
	if err := put(20 * time.Second); err != nil {
		t.Fatal(err)
	}
	fill(disk)
	for put(200*time.Millisecond) == nil {
		continue
	}
	if got := c.leader("t", mine); got != 0 {
		t.Errorf("broker %d leads", got+1)
	}
	reader := c.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {mine: kgo.NewOffset().At(0)}}))
	if f := reader.PollFetches(within(t, 20*time.Second)); f.NumRecords() == 0 {
		t.Errorf("nothing can be read: %v", f.Err())
	}
	disk.Clear()
	if err := put(20 * time.Second); err != nil {
		t.Errorf("there is room again: %v", err)
	}
}
