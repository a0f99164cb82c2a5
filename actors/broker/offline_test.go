package broker_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/troupe-broker/troupe/store"
)

// writers write to each partition of t, one record after the other, and remember what was acknowledged.
type writers struct {
	c      *replicas
	cancel context.CancelFunc
	done   sync.WaitGroup
	mu     sync.Mutex
	acked  [][]string // by partition and offset; "": nothing was acknowledged there
}

// write starts them.
func (c *replicas) write(partitions int) *writers { return c.writeSized(partitions, 0) }

// writeSized starts them with records of so many bytes at least.
func (c *replicas) writeSized(partitions, bytes int) *writers {
	pad := strings.Repeat(".", bytes)
	w := &writers{c: c, acked: make([][]string, partitions)}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	cl := c.client(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	for p := range partitions {
		w.done.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				value := fmt.Sprint("record ", p, " ", i, pad)
				r := &kgo.Record{Topic: "t", Partition: int32(p), Value: []byte(value)}
				if err := cl.ProduceSync(ctx, r).FirstErr(); err == nil {
					w.note(p, r.Offset, value)
				}
			}
		})
	}
	c.t.Cleanup(func() {
		cancel()
		w.done.Wait()
	})
	return w
}

func (w *writers) note(p int, offset int64, value string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for int64(len(w.acked[p])) <= offset {
		w.acked[p] = append(w.acked[p], "")
	}
	w.acked[p][offset] = value
}

func (w *writers) count(p int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acked[p])
}

// more waits until each partition has taken more records.
func (w *writers) more() {
	w.c.t.Helper()
	for p := range w.acked {
		n := w.count(p)
		awaitFact(w.c.t, fmt.Sprintf("partition %d to take records", p), func() bool { return w.count(p) >= n+20 })
	}
}

// check ends the writers and reads everything: what was acknowledged is there, once.
func (w *writers) check() {
	w.c.t.Helper()
	w.cancel()
	w.done.Wait()
	for p, acked := range w.acked {
		cl := w.c.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {int32(p): kgo.NewOffset().At(0)}}))
		seen := map[string]int64{}
		ctx := within(w.c.t, 30*time.Second)
		for next := int64(0); next < int64(len(acked)); {
			fetched := cl.PollFetches(ctx)
			if err := fetched.Err(); err != nil {
				w.c.t.Fatalf("partition %d at %d of %d: %v", p, next, len(acked), err)
			}
			fetched.EachRecord(func(r *kgo.Record) {
				next = r.Offset + 1
				if at, twice := seen[string(r.Value)]; twice {
					w.c.t.Errorf("partition %d: %q is at %d and at %d", p, r.Value, at, r.Offset)
				}
				seen[string(r.Value)] = r.Offset
				if r.Offset < int64(len(acked)) && acked[r.Offset] != "" && acked[r.Offset] != string(r.Value) {
					w.c.t.Errorf("partition %d: %q was acknowledged at %d, where %q is", p, acked[r.Offset], r.Offset, r.Value)
				}
			})
		}
	}
}

// state is a partition of t as one broker tells of it.
func (c *replicas) state(at int, partition int32) kadm.PartitionDetail {
	c.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.clients[at]), kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		c.t.Fatal(err)
	}
	defer cl.Close()
	m, err := kadm.NewClient(cl).Metadata(within(c.t, 10*time.Second), "t")
	if err != nil {
		c.t.Fatal(err)
	}
	return m.Topics["t"].Partitions[partition]
}

// cut makes the file of a replica shorter than its mapping, time and again until a write has met that: a memory fault takes the replica out of service.
func (c *replicas) cut(i, partition int, gone func() bool) {
	c.t.Helper()
	name := filepath.Join(c.dirs[i], fmt.Sprint("t-", partition), "00000000000000000000.log")
	awaitFact(c.t, "the replica to be out of service", func() bool {
		if err := os.Truncate(name, 0); err != nil {
			c.t.Fatal(err)
		}
		return gone()
	})
}

var patient = "replica.lag.time.max.ms=600000" // whatever happens, no clock of a follower has run out

func TestAReplicaOutOfServiceLeavesItsPlaceToOthers(t *testing.T) {
	t.Parallel()
	c := startReplicas(t, patient)
	cached, two := "true", "2"
	c.create("t", 6, map[string]*string{"write.caching": &cached, "min.insync.replicas": &two})
	w := c.write(6)
	w.more()
	bad := c.leader("t", 0)
	other := (bad + 1) % 3
	c.cut(bad, 0, func() bool { return c.state(other, 0).Leader != int32(bad+1) })
	w.more()
	if s := c.state(other, 0); len(s.ISR) != 2 || len(s.OfflineReplicas) != 1 || s.OfflineReplicas[0] != int32(bad+1) {
		t.Errorf("the leader's replica is out of service: %+v", s)
	}
	// A follower on a third broker: its partition goes on with two.
	follower := 0
	for p := range int32(6) {
		if p != 0 && c.state(other, p).Leader != int32(bad+1) {
			follower = int(p)
		}
	}
	c.cut(bad, follower, func() bool { return len(c.state(other, int32(follower)).ISR) == 2 })
	w.more()
	// The broker lives and leads what it can.
	led := false
	for p := range int32(6) {
		led = led || c.state(other, p).Leader == int32(bad+1)
	}
	if !led || !c.running[bad].Ready() {
		t.Errorf("two replicas are out of service, and the broker leads: %v, is ready: %v", led, c.running[bad].Ready())
	}
	c.running[bad].harmed = true
	c.stop(bad)
	if err := os.Remove(filepath.Join(c.dirs[bad], "control-block")); err != nil { // the files are not what it says
		t.Fatal(err)
	}
	c.again(bad)
	c.whole("t")
	w.check()
	c.equal("t", 6)
}

func TestALeaderWhoseDirectoryDiesIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, configs map[string]*string) {
		t.Helper()
		disks, faults := faultyDisks()
		// Neither the session nor a clock runs out.
		c := startReplicasOn(t, disks, patient, "broker.session.timeout.ms=600000")
		c.create("t", 3, configs)
		w := c.write(3)
		w.more()
		bad := c.leader("t", 0)
		other := (bad + 1) % 3
		c.running[bad].harmed = true
		faults[bad].Add("any *.log: EIO")
		faults[bad].Add("syncfs *: EIO")
		select {
		case <-c.running[bad].Failed():
		case <-time.After(20 * time.Second):
			t.Fatal("the only directory is lost, but the broker goes on")
		}
		c.stop(bad) // a process without a directory ends
		for p := range int32(3) {
			awaitFact(t, "another leader", func() bool {
				s := c.state(other, p)
				return s.Leader > 0 && s.Leader != int32(bad+1) && len(s.ISR) == 2
			})
		}
		w.more()
		faults[bad].Clear()
		c.again(bad)
		c.whole("t")
		w.more()
		w.check()
		c.equal("t", 3)
	})
}

// hangs are the syncs of a topic's files that do not return.
type hangs struct {
	mu   sync.Mutex
	gate chan struct{} // nil: none
}

func (h *hangs) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gate = make(chan struct{})
}

func (h *hangs) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gate != nil {
		close(h.gate)
		h.gate = nil
	}
}

func (h *hangs) wait() {
	h.mu.Lock()
	gate := h.gate
	h.mu.Unlock()
	if gate != nil {
		<-gate
	}
}

type hangingFS struct {
	store.FS
	hangs *hangs
}

type hangingFile struct {
	store.File
	hangs *hangs
}

func (f hangingFS) OpenFile(name string, flag int, perm fs.FileMode) (store.File, error) {
	file, err := f.FS.OpenFile(name, flag, perm)
	if err == nil && strings.Contains(name, "/t-") && strings.HasSuffix(name, ".log") {
		return hangingFile{file, f.hangs}, nil
	}
	return file, err
}

// Sync implements store.File.
func (f hangingFile) Sync() error {
	f.hangs.wait()
	return f.File.Sync()
}

func TestALeaderWhoseSyncHangsIsReplaced(t *testing.T) {
	t.Parallel()
	var disks [3]store.FS
	var hang [3]hangs
	for i := range disks {
		disks[i] = hangingFS{store.OS(), &hang[i]}
	}
	c := startReplicasOn(t, disks, "replica.lag.time.max.ms=2000")
	for i := range hang {
		t.Cleanup(hang[i].end)
	}
	strict, two := "false", "2"
	c.create("t", 1, map[string]*string{"write.caching": &strict, "min.insync.replicas": &two})
	w := c.write(1)
	w.more()
	bad := c.leader("t", 0)
	hang[bad].begin()
	awaitFact(t, "another leader", func() bool {
		s := c.state((bad+1)%3, 0)
		return s.Leader > 0 && s.Leader != int32(bad+1) && len(s.ISR) == 2
	})
	w.more()
	hang[bad].end()
	c.whole("t")
	w.more()
	w.check()
	c.equal("t", 1)
}

func TestADamagedLeaderLeadsOnlyWhereNobodyElseCan(t *testing.T) {
	t.Parallel()
	c := startColdReplicas(t, patient)
	w := c.steady("t")
	w.produce(40)
	bad := c.leader("t", 0)
	flip(t, filepath.Join(c.dirs[bad], "t-0", "00000000000000000000.log"), 250_000) // in the batch at offset 2
	w.read("t")                                                                     // what this one cannot answer, the next one does
	if s := c.state((bad+1)%3, 0); s.Leader == int32(bad+1) || len(s.ISR) != 3 || len(s.OfflineReplicas) != 0 {
		t.Errorf("the leader found that it is damaged: %+v", s)
	}
	w.produce(5)
}
