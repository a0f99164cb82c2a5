package broker_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/actors/broker"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// replicas are a cluster of three brokers in this process, with sockets on the loopback, at the same addresses in each of their lives.
type replicas struct {
	t       testing.TB
	pairs   []string
	dirs    [3]string
	peers   [3]string
	clients [3]string
	running [3]*running
	disks   [3]store.FS // of each; nil: the real one
}

// portsGiven counts the ports that freePort has tried.
var portsGiven atomic.Int32

// freePort finds a port of the loopback that is free for TCP and UDP. It gives none twice, and none that the kernel gives to a connection meanwhile.
func freePort(t testing.TB) string {
	t.Helper()
	for range 1000 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(15_000+(os.Getpid()*97+int(portsGiven.Add(1)))%15_000))
		if l, u, err := broker.ListenPeers(address); err == nil {
			if err := errors.Join(l.Close(), u.Close()); err != nil {
				t.Fatal(err)
			}
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

// startReplicas founds a cluster of three brokers and waits until all serve. pairs are configs of each.
func startReplicas(t testing.TB, pairs ...string) *replicas {
	t.Helper()
	return startReplicasOn(t, [3]store.FS{}, pairs...)
}

// startReplicasOn does so on these disks.
func startReplicasOn(t testing.TB, disks [3]store.FS, pairs ...string) *replicas {
	t.Helper()
	c := &replicas{t: t, pairs: pairs, disks: disks}
	for i := range c.dirs {
		c.dirs[i], c.peers[i], c.clients[i] = t.TempDir(), freePort(t), freePort(t)
	}
	for i := range c.dirs {
		c.begin(i)
	}
	for i := range c.dirs {
		c.serving(i)
	}
	return c
}

// begin starts a broker and does not wait.
func (c *replicas) begin(i int) {
	c.t.Helper()
	all := append([]string{
		"log.dir=" + c.dirs[i], "listeners=PLAINTEXT://" + c.clients[i], fmt.Sprint("broker.id=", i+1), "peer.listen=" + c.peers[i],
		"join=" + strings.Join(c.peers[:], ","), "bootstrap.expect=3", "offsets.topic.num.partitions=3",
	}, c.pairs...)
	var set []config.Entry
	for _, p := range all {
		name, value, _ := strings.Cut(p, "=")
		set = append(set, config.Entry{Name: name, Value: value})
	}
	log := zerolog.New(zerolog.NewTestWriter(c.t)).Level(zerolog.ErrorLevel).With().Int("on", i+1).Logger()
	if os.Getenv("TROUPE_TEST_LOG") != "" {
		log = log.Level(zerolog.DebugLevel).With().Timestamp().Logger()
	}
	sys := runtime.NewSystem(runtime.Options{Log: log, OnBug: func(b *runtime.Blame) { c.t.Errorf("a bug: %v\n%s", b, b.Stack) }})
	disk := c.disks[i]
	if disk == nil {
		disk = store.OS()
	}
	b, err := broker.Start(broker.Options{Static: config.SetOf(set...)}, broker.World{
		FS: disk, System: sys, Rand: rand.Reader, Log: log, BuildVersion: "test", Listen: broker.ListenTCP, ListenPeers: broker.ListenPeers,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	r := &running{Broker: b, t: c.t, dir: c.dirs[i], sys: sys, addr: c.clients[i]}
	c.running[i] = r
	c.t.Cleanup(func() {
		r.harmed = true // who is alone at the end can tell no controller that it leaves
		r.stop()
	})
}

// serving waits until a broker serves.
func (c *replicas) serving(i int) {
	c.t.Helper()
	select {
	case <-c.running[i].Serving():
	case <-time.After(30 * time.Second):
		c.t.Fatalf("broker %d does not serve after 30 s", i+1)
	}
}

// client makes a franz-go client of all of them.
func (c *replicas) client(opts ...kgo.Opt) *kgo.Client {
	c.t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.clients[:]...), kgo.MetadataMinAge(50 * time.Millisecond)}, opts...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(cl.Close)
	return cl
}

// create makes a topic on all three.
func (c *replicas) create(name string, partitions int32, configs map[string]*string) {
	c.t.Helper()
	admin := kadm.NewClient(c.client())
	r, err := admin.CreateTopic(within(c.t, 20*time.Second), partitions, 3, configs, name)
	if err != nil || r.Err != nil {
		c.t.Fatal(err, r.Err)
	}
}

// leader is the broker that leads a partition, from 0.
func (c *replicas) leader(topic string, partition int32) int {
	c.t.Helper()
	admin := kadm.NewClient(c.client())
	for ctx := within(c.t, 20*time.Second); ; {
		m, err := admin.Metadata(ctx, topic)
		if err != nil {
			c.t.Fatal(err)
		}
		if p, ok := m.Topics[topic].Partitions[partition]; ok && p.Leader > 0 && c.running[p.Leader-1] != nil {
			return int(p.Leader - 1)
		}
	}
}

// whole waits until all replicas of a topic are in sync.
func (c *replicas) whole(topic string) {
	c.t.Helper()
	admin := kadm.NewClient(c.client())
	var last kadm.Metadata
	for ctx := within(c.t, 40*time.Second); ctx.Err() == nil; {
		m, err := admin.Metadata(ctx, topic)
		if err != nil {
			break
		}
		last = m
		whole := true
		for _, p := range m.Topics[topic].Partitions {
			whole = whole && len(p.ISR) == 3 && p.Leader > 0
		}
		if whole {
			return
		}
	}
	c.t.Fatalf("the replicas of %s are not in sync: %+v", topic, last.Topics[topic].Partitions)
}

// counts waits until a metric of Kafka's ReplicaManager has this sum over all brokers that run.
func (c *replicas) counts(name string, want int64) {
	c.t.Helper()
	pattern := regexp.MustCompile(`(?m)^kafka_server_replicamanager_` + name + ` (\d+)$`)
	eventually(c.t, fmt.Sprintf("%s is %d", name, want), func() bool {
		sum := int64(0)
		for _, r := range c.running {
			if r == nil {
				continue
			}
			page := httptest.NewRecorder()
			r.MetricsHandler().ServeHTTP(page, httptest.NewRequestWithContext(c.t.Context(), http.MethodGet, "/metrics", http.NoBody))
			m := pattern.FindSubmatch(page.Body.Bytes())
			if m == nil {
				c.t.Fatalf("no metric %s", name)
			}
			n, err := strconv.ParseInt(string(m[1]), 10, 64)
			if err != nil {
				c.t.Fatal(err)
			}
			sum += n
		}
		return sum == want
	})
}

// stop stops a broker.
func (c *replicas) stop(i int) {
	c.t.Helper()
	c.running[i].stop()
	c.running[i] = nil
}

// stopAll stops all brokers. The last cannot tell a controller that it leaves.
func (c *replicas) stopAll() {
	c.t.Helper()
	for i, r := range c.running {
		if r != nil {
			r.harmed = true
			c.stop(i)
		}
	}
}

// again starts a broker again and waits until it serves.
func (c *replicas) again(i int) {
	c.t.Helper()
	c.begin(i)
	c.serving(i)
}

// batches reads what a replica has on disk, segment after segment. The broker has to be stopped.
func (c *replicas) batches(i int, topic string, partition int) []byte {
	c.t.Helper()
	files, err := filepath.Glob(filepath.Join(c.dirs[i], fmt.Sprintf("%s-%d", topic, partition), "*.log"))
	if err != nil || len(files) == 0 {
		c.t.Fatal("no segments", err)
	}
	slices.Sort(files)
	var all []byte
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			c.t.Fatal(err)
		}
		for len(b) > 0 {
			v, rest, err := record.Split(b)
			if err != nil {
				break // space that was reserved
			}
			all, b = append(all, v...), rest
		}
	}
	return all
}

// equal stops all brokers and compares the replicas of a topic.
func (c *replicas) equal(topic string, partitions int) {
	c.t.Helper()
	c.whole(topic)
	c.stopAll()
	for p := range partitions {
		first := c.batches(0, topic, p)
		for i := 1; i < 3; i++ {
			if b := c.batches(i, topic, p); !bytes.Equal(b, first) {
				c.t.Errorf("%s-%d: broker %d has %d bytes of batches, broker 1 has %d, and they differ", topic, p, i+1, len(b), len(first))
			}
		}
	}
}

// produce writes records with acks=all, one after the other.
func (c *replicas) produce(cl *kgo.Client, partition int32, from, to int) {
	c.t.Helper()
	for i := from; i < to; i++ {
		r := &kgo.Record{Topic: "t", Partition: partition, Value: fmt.Appendf(nil, "record %d", i)}
		if err := cl.ProduceSync(within(c.t, 30*time.Second), r).FirstErr(); err != nil {
			c.t.Fatalf("record %d: %v", i, err)
		}
	}
}

// read reads so many records of a partition.
func (c *replicas) read(partition int32, n int) {
	c.t.Helper()
	cl := c.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {partition: kgo.NewOffset().At(0)}}))
	ctx := within(c.t, 30*time.Second)
	for i := 0; i < n; {
		fetched := cl.PollFetches(ctx)
		if err := fetched.Err(); err != nil {
			c.t.Fatal(err)
		}
		fetched.EachRecord(func(r *kgo.Record) {
			if want := fmt.Sprintf("record %d", i); string(r.Value) != want || r.Offset != int64(i) {
				c.t.Fatalf("offset %d: %q, want %q at %d", r.Offset, r.Value, want, i)
			}
			i++
		})
	}
}

func modes(t *testing.T, run func(t *testing.T, configs map[string]*string)) {
	t.Helper()
	for _, caching := range []string{"false", "true"} {
		t.Run("write.caching="+caching, func(t *testing.T) {
			two := "2"
			run(t, map[string]*string{"write.caching": &caching, "min.insync.replicas": &two})
		})
	}
}

func TestAStoppedLeaderIsReplacedAndCatchesUp(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, configs map[string]*string) {
		t.Helper()
		c := startReplicas(t)
		c.create("t", 3, configs)
		cl := c.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
		for p := range int32(3) {
			c.produce(cl, p, 0, 20)
			c.read(p, 20)
		}
		gone := c.leader("t", 0)
		c.stop(gone)
		for p := range int32(3) {
			c.produce(cl, p, 20, 40)
			c.read(p, 40)
		}
		c.counts("underreplicatedpartitions", 3)
		c.counts("atminisrpartitioncount", 3)
		c.counts("underminisrpartitioncount", 0)
		c.counts("leadercount", 3)
		c.again(gone)
		c.whole("t")
		c.counts("underreplicatedpartitions", 0)
		c.counts("atminisrpartitioncount", 0)
		c.counts("partitioncount", 9)
		for p := range int32(3) {
			c.produce(cl, p, 40, 50)
			c.read(p, 50)
		}
		c.equal("t", 3)
	})
}

// forge appends a record that was never replicated to the log of a stopped broker, as its last leadership might have.
func (c *replicas) forge(i int, tp ident.TopicPartition) {
	c.t.Helper()
	d, opened, err := store.OpenDirectory(store.DirectoryOptions{
		FS: store.OS(), Path: c.dirs[i], Broker: ident.BrokerID(i + 1), Rand: rand.Reader, Generations: &store.Generations{},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	at := slices.IndexFunc(opened.Logs, func(l store.LogDir) bool { return l.Partition == tp })
	l, _, err := d.OpenLog(tp, opened.Logs[at].Topic, store.DefaultLogConfig(), store.LogHooks{}, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	b := record.NewBuilder()
	b.Append(1, nil, []byte("nobody else has this"))
	bytes, err := b.Finish(nil)
	if err != nil {
		c.t.Fatal(err)
	}
	v, _, err := record.Split(bytes)
	if err != nil {
		c.t.Fatal(err)
	}
	v.SetBaseOffset(l.End())
	v.SetLeaderEpoch(l.LastEpoch())
	if err := l.Append(v, 0); err != nil {
		c.t.Fatal(err)
	}
	if err := l.Close(true); err != nil {
		c.t.Fatal(err)
	}
	if err := d.Close(true, opened.CleanEpoch); err != nil {
		c.t.Fatal(err)
	}
}

func TestAReplicaThatPartedTruncates(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, configs map[string]*string) {
		t.Helper()
		c := startReplicas(t)
		c.create("t", 1, configs)
		cl := c.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
		c.produce(cl, 0, 0, 20)
		gone := c.leader("t", 0)
		c.stop(gone)
		c.forge(gone, ident.TopicPartition{Topic: "t"})
		c.produce(cl, 0, 20, 25)
		c.again(gone)
		c.whole("t")
		c.produce(cl, 0, 25, 30)
		c.read(0, 30)
		c.equal("t", 1)
	})
}

// TestGroupsFollowTheirCoordinator: offsets that were committed at one coordinator are there at the next.
func TestGroupsFollowTheirCoordinator(t *testing.T) {
	t.Parallel()
	c := startReplicas(t)
	c.create("t", 1, nil)
	var admin *kadm.Client                           // another one after each stop: it asks the coordinator that it knows for as long as nobody answers there
	groups := []string{"a", "b", "c", "d", "e", "f"} // of all three partitions of the offsets topic
	commit := func(at int64) {
		t.Helper()
		for _, g := range groups {
			o := kadm.Offsets{}
			o.AddOffset("t", 0, at, -1)
			eventually(t, fmt.Sprintf("group %s commits %d", g, at), func() bool {
				r, err := admin.CommitOffsets(within(t, 5*time.Second), g, o)
				return err == nil && r.Error() == nil
			})
		}
	}
	committed := func(at int64) {
		t.Helper()
		for _, g := range groups {
			eventually(t, fmt.Sprintf("group %s is at %d", g, at), func() bool {
				r, err := admin.FetchOffsets(within(t, 5*time.Second), g)
				if err != nil || r.Error() != nil {
					return false
				}
				o, ok := r.Lookup("t", 0)
				if !ok || o.At != at {
					t.Fatalf("group %s: %+v, want %d", g, o, at)
				}
				return true
			})
		}
	}
	admin = kadm.NewClient(c.client())
	commit(7)
	committed(7)
	for gone := range 3 {
		c.whole("__consumer_offsets")
		c.stop(gone)
		admin = kadm.NewClient(c.client())
		committed(int64(gone) + 7)
		commit(int64(gone) + 8)
		committed(int64(gone) + 8)
		c.again(gone)
	}
}

// TestReplicasTellHowTheyCameOutOfARecovery: when all brokers have lost what proves that their page caches are whole, a strict partition is led by one that has
// everything up to its durable mark, and a cached one by the one that reaches farthest.
func TestReplicasTellHowTheyCameOutOfARecovery(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, configs map[string]*string) {
		t.Helper()
		c := startReplicas(t)
		c.create("t", 1, configs)
		cl := c.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
		c.produce(cl, 0, 0, 20)
		c.whole("t")
		c.stopAll()
		for _, dir := range c.dirs {
			for _, name := range []string{".kafka_cleanshutdown", "control-block"} {
				if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
			}
		}
		for i := range c.dirs {
			c.begin(i)
		}
		for i := range c.dirs {
			c.serving(i)
		}
		c.whole("t")
		c.produce(c.client(kgo.RecordPartitioner(kgo.ManualPartitioner())), 0, 20, 25)
		c.read(0, 25)
		c.equal("t", 1)
	})
}

// TestAFollowerSendsClientsToTheLeader: with its address, where the version of the request has a place for it (KIP-951).
func TestAFollowerSendsClientsToTheLeader(t *testing.T) {
	t.Parallel()
	c := startReplicas(t)
	c.create("t", 1, nil)
	cl := c.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	c.produce(cl, 0, 0, 1)
	topics, err := kadm.NewClient(cl).ListTopics(within(t, 10*time.Second), "t")
	if err != nil {
		t.Fatal(err)
	}
	id, leader := topics["t"].ID, topics["t"].Partitions[0].Leader
	follower := cl.Broker(int(leader)%3 + 1)
	led := func(what string, code int16, hinted int32, endpoints int, node func() (int32, string, int32)) {
		t.Helper()
		if code != kerr.NotLeaderForPartition.Code || hinted != leader || endpoints != 1 {
			t.Fatalf("%s: error %d, leader %d of %d endpoints; want NOT_LEADER_OR_FOLLOWER and leader %d", what, code, hinted, endpoints, leader)
		}
		if n, host, port := node(); n != leader || fmt.Sprintf("%s:%d", host, port) != c.clients[leader-1] {
			t.Errorf("%s: broker %d is said to be at %s:%d, want %s", what, n, host, port, c.clients[leader-1])
		}
	}

	write := kmsg.NewPtrProduceRequest()
	write.Acks, write.TimeoutMillis = -1, 10_000
	wt, wp := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
	wt.Topic, wt.TopicID, wp.Records = "t", id, batch("x")
	wt.Partitions = append(wt.Partitions, wp)
	write.Topics = append(write.Topics, wt)
	answer, err := follower.Request(within(t, 10*time.Second), write)
	if err != nil {
		t.Fatal(err)
	}
	wrote := answer.(*kmsg.ProduceResponse)
	p := &wrote.Topics[0].Partitions[0]
	led("Produce", p.ErrorCode, p.CurrentLeader.LeaderID, len(wrote.Brokers), func() (int32, string, int32) {
		return wrote.Brokers[0].NodeID, wrote.Brokers[0].Host, wrote.Brokers[0].Port
	})

	read := kmsg.NewPtrFetchRequest()
	read.MaxBytes = 1 << 20
	rt, rp := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	rt.Topic, rt.TopicID, rp.PartitionMaxBytes = "t", id, 1<<20
	rt.Partitions = append(rt.Partitions, rp)
	read.Topics = append(read.Topics, rt)
	if answer, err = follower.Request(within(t, 10*time.Second), read); err != nil {
		t.Fatal(err)
	}
	got := answer.(*kmsg.FetchResponse)
	r := &got.Topics[0].Partitions[0]
	led("Fetch", r.ErrorCode, r.CurrentLeader.LeaderID, len(got.Brokers), func() (int32, string, int32) {
		return got.Brokers[0].NodeID, got.Brokers[0].Host, got.Brokers[0].Port
	})
}
