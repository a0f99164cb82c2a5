package broker_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/actors/broker"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/store"
)

// clustered starts a broker with a peer port in this process. It does not wait until it serves.
func clustered(t testing.TB, id int, dir string, pairs ...string) *running {
	t.Helper()
	log := zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.ErrorLevel).With().Int("broker", id).Logger()
	if os.Getenv("TROUPE_TEST_LOG") != "" {
		log = log.Level(zerolog.DebugLevel).With().Timestamp().Logger()
	}
	return clusteredWith(t, log, id, dir, pairs...)
}

func clusteredWith(t testing.TB, log zerolog.Logger, id int, dir string, pairs ...string) *running {
	t.Helper()
	all := append([]string{
		"log.dir=" + dir, "listeners=PLAINTEXT://127.0.0.1:0", fmt.Sprint("node.id=", id), "peer.listen=127.0.0.1:0", "bootstrap.expect=3", "offsets.topic.num.partitions=3",
	}, pairs...)
	var entries []config.Entry
	for _, p := range all {
		name, value, _ := strings.Cut(p, "=")
		entries = append(entries, config.Entry{Name: name, Value: value})
	}
	sys := runtime.NewSystem(runtime.Options{Log: log, OnBug: func(b *runtime.Blame) { t.Errorf("a bug: %v\n%s", b, b.Stack) }})
	b, err := broker.Start(broker.Options{Static: config.SetOf(entries...)}, broker.World{
		FS: store.OS(), System: sys, Rand: rand.Reader, Log: log, BuildVersion: "test", Listen: broker.ListenTCP, ListenPeers: broker.ListenPeers,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &running{Broker: b, t: t, dir: dir, sys: sys, addr: b.Addresses()[0].String()}
	t.Cleanup(func() {
		if !r.stopped {
			r.crash() // who is alone at the end can tell no controller that it leaves
		}
	})
	return r
}

// serves waits until a broker serves.
func (r *running) serves() {
	r.t.Helper()
	select {
	case <-r.Serving():
	case <-time.After(30 * time.Second):
		r.t.Fatal("the broker does not serve after 30 s")
	}
}

// crash ends a broker without a goodbye.
func (r *running) crash() {
	r.t.Helper()
	r.stopped = true
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := r.sys.Shutdown(ctx); err != nil {
		r.t.Errorf("shutdown: %v", err)
	}
}

// trio starts three brokers that found a cluster.
func trio(t testing.TB, pairs ...string) []*running {
	t.Helper()
	brokers := []*running{clustered(t, 1, t.TempDir(), pairs...)}
	for id := 2; id <= 3; id++ {
		brokers = append(brokers, clustered(t, id, t.TempDir(), append([]string{"join=" + brokers[0].PeerAddress()}, pairs...)...))
	}
	for _, b := range brokers {
		b.serves()
	}
	return brokers
}

// ask sends a request to this broker and no other.
func ask[R any](r *running, req kmsg.Request) R {
	r.t.Helper()
	resp, err := r.client().SeedBrokers()[0].Request(within(r.t, 30*time.Second), req)
	if err != nil {
		r.t.Fatalf("%T: %v", req, err)
	}
	return resp.(R)
}

// quorum is what a broker tells of the metadata quorum.
func (r *running) quorum() *kmsg.DescribeQuorumResponseTopicPartition {
	r.t.Helper()
	req := kmsg.NewPtrDescribeQuorumRequest()
	topic := kmsg.NewDescribeQuorumRequestTopic()
	topic.Topic = "__cluster_metadata"
	topic.Partitions = append(topic.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
	req.Topics = append(req.Topics, topic)
	resp := ask[*kmsg.DescribeQuorumResponse](r, req)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		r.t.Fatalf("quorum: %v", err)
	}
	return &resp.Topics[0].Partitions[0]
}

// create makes a topic through this broker and returns the code.
func (r *running) create(topic string, partitions int32, factor int16) error {
	r.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 20_000
	nt := kmsg.NewCreateTopicsRequestTopic()
	nt.Topic, nt.NumPartitions, nt.ReplicationFactor = topic, partitions, factor
	req.Topics = append(req.Topics, nt)
	return kerr.ErrorForCode(ask[*kmsg.CreateTopicsResponse](r, req).Topics[0].ErrorCode)
}

func (r *running) metadata(topics ...string) *kmsg.MetadataResponse {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	for _, name := range topics {
		mt := kmsg.NewMetadataRequestTopic()
		mt.Topic = new(name)
		req.Topics = append(req.Topics, mt)
	}
	return ask[*kmsg.MetadataResponse](r, req)
}

// brokers are the ids that a broker tells clients of.
func (r *running) brokers() []int32 {
	var out []int32
	for _, b := range r.metadata().Brokers {
		out = append(out, b.NodeID)
	}
	return out
}

func TestThreeBrokersBecomeOneCluster(t *testing.T) {
	all := trio(t)
	for _, b := range all {
		if b.ClusterID() == "" || b.ClusterID() != all[0].ClusterID() {
			t.Fatalf("clusters %q and %q", b.ClusterID(), all[0].ClusterID())
		}
		q := b.quorum()
		if len(q.CurrentVoters) != 3 || len(q.Observers) != 0 || q.LeaderID < 1 || q.LeaderID > 3 {
			t.Errorf("the quorum is %+v", q)
		}
	}
	// What a broker that is not the controller says it has made exists there when it says so.
	leader := all[0].quorum().LeaderID
	other := all[leader%3]
	if err := other.create("orders", 6, 3); err != nil {
		t.Fatal(err)
	}
	m := other.metadata("orders")
	if len(m.Topics[0].Partitions) != 6 || m.Topics[0].ErrorCode != 0 {
		t.Fatalf("the broker that made the topic tells of %+v", m.Topics[0])
	}
	leaders := map[int32]int{}
	for _, p := range m.Topics[0].Partitions {
		leaders[p.Leader]++
		if len(p.Replicas) != 3 || len(p.ISR) != 3 || len(p.OfflineReplicas) != 0 {
			t.Errorf("partition %+v", p)
		}
	}
	if len(leaders) != 3 || leaders[1] != 2 {
		t.Errorf("leaders %v", leaders)
	}
	if err := other.create("orders", 1, 1); !errors.Is(err, kerr.TopicAlreadyExists) {
		t.Errorf("a topic is made twice: %v", err)
	}
}

func TestAnotherControllerFollowsADeadOne(t *testing.T) {
	all := trio(t)
	if err := all[0].create("before", 3, 3); err != nil {
		t.Fatal(err)
	}
	first := all[0].quorum()
	dead := all[first.LeaderID-1]
	left := slices.DeleteFunc(slices.Clone(all), func(b *running) bool { return b == dead })
	dead.crash()
	for i, b := range left {
		if err := b.create(fmt.Sprint("after-", i), 1, 2); err != nil {
			t.Fatal(err)
		}
		q := b.quorum()
		if q.LeaderID == first.LeaderID || q.LeaderEpoch <= first.LeaderEpoch {
			t.Errorf("broker %d of epoch %d follows broker %d of epoch %d", q.LeaderID, q.LeaderEpoch, first.LeaderID, first.LeaderEpoch)
		}
	}
	// The dead one is fenced: clients hear of it no more, and it leads nothing.
	awaitFact(t, "the dead broker to be fenced", func() bool { return len(left[0].brokers()) == 2 && len(left[1].brokers()) == 2 })
	for _, p := range left[1].metadata("before").Topics[0].Partitions {
		if p.Leader == first.LeaderID || slices.Contains(p.ISR, first.LeaderID) || !slices.Contains(p.OfflineReplicas, first.LeaderID) {
			t.Errorf("partition %+v", p)
		}
	}
}

func TestAFourthBrokerObserves(t *testing.T) {
	t.Parallel()
	all := trio(t)
	if err := all[1].create("orders", 3, 3); err != nil {
		t.Fatal(err)
	}
	fourth := clustered(t, 4, t.TempDir(), "bootstrap.expect=-1", "join="+all[2].PeerAddress())
	fourth.serves()
	if fourth.ClusterID() != all[0].ClusterID() {
		t.Fatalf("it is in cluster %q", fourth.ClusterID())
	}
	if m := fourth.metadata("orders"); len(m.Topics[0].Partitions) != 3 || len(m.Brokers) != 4 {
		t.Errorf("the newcomer tells of %+v", m)
	}
	if err := fourth.create("mine", 1, 1); err != nil {
		t.Fatal(err)
	}
	q := fourth.quorum()
	if len(q.CurrentVoters) != 3 || len(q.Observers) != 1 || q.Observers[0].ReplicaID != 4 {
		t.Errorf("the quorum is %+v", q)
	}
	// It follows the next controller as well.
	all[q.LeaderID-1].crash()
	if err := fourth.create("later", 1, 1); err != nil {
		t.Fatal(err)
	}
	if m := fourth.metadata("later"); m.Topics[0].ErrorCode != 0 {
		t.Errorf("the observer tells of %+v", m.Topics[0])
	}
}

func TestAnObserverGoesOnWithWhatItKept(t *testing.T) {
	t.Parallel()
	all := trio(t)
	dir := t.TempDir()
	fourth := clustered(t, 4, dir, "bootstrap.expect=-1", "join="+all[0].PeerAddress())
	fourth.serves()
	if err := fourth.create("orders", 1, 1); err != nil {
		t.Fatal(err)
	}
	fourth.stop()
	if err := all[0].create("meanwhile", 1, 1); err != nil {
		t.Fatal(err)
	}
	again := clustered(t, 4, dir, "bootstrap.expect=-1", "join="+all[2].PeerAddress())
	again.serves()
	for _, topic := range []string{"orders", "meanwhile"} {
		if m := again.metadata(topic); m.Topics[0].ErrorCode != 0 {
			t.Errorf("it came back and tells of %+v", m.Topics[0])
		}
	}
}

func TestABrokerThatLeavesGivesItsLeadershipsAway(t *testing.T) {
	t.Parallel()
	all := trio(t)
	if err := all[0].create("orders", 6, 3); err != nil {
		t.Fatal(err)
	}
	id := all[0].quorum().LeaderID // of all brokers the one that has the controller
	all[id-1].stop()
	left := all[id%3]
	awaitFact(t, "the broker to be out of sight", func() bool { return len(left.brokers()) == 2 })
	for _, p := range left.metadata("orders").Topics[0].Partitions {
		if p.Leader == id || p.Leader < 0 || slices.Contains(p.ISR, id) {
			t.Errorf("broker %d has left, and a partition is %+v", id, p)
		}
	}
}

// A controller that stopped in order was missed only when its connections had ended. Now another one has been elected before it goes, in the next term, which
// the one that goes has lived to see.
func TestAControllerThatStopsIsFollowedBeforeItGoes(t *testing.T) {
	var logs [3]bytes.Buffer
	var all []*running
	var join []string
	for i := range logs {
		all = append(all, clusteredWith(t, zerolog.New(zerolog.SyncWriter(&logs[i])), i+1, t.TempDir(), join...))
		join = []string{"join=" + all[0].PeerAddress()}
	}
	for _, b := range all {
		b.serves()
	}
	before := all[0].quorum()
	all[before.LeaderID-1].stop()
	told := logs[before.LeaderID-1].String()
	if want := fmt.Sprintf(`"epoch":%d,"peer":`, before.LeaderEpoch+1); !strings.Contains(told, want) || !strings.Contains(told, "another broker is the controller") {
		t.Errorf("the controller that stopped knows of no successor in epoch %d:\n%s", before.LeaderEpoch+1, told)
	}
	left := all[before.LeaderID%3]
	if now := left.quorum(); now.LeaderEpoch != before.LeaderEpoch+1 || now.LeaderID == before.LeaderID {
		t.Errorf("broker %d of epoch %d follows broker %d of epoch %d", now.LeaderID, now.LeaderEpoch, before.LeaderID, before.LeaderEpoch)
	}
}

func TestALoneBrokerTakesOthersIn(t *testing.T) {
	t.Parallel()
	first := clustered(t, 1, t.TempDir(), "bootstrap.expect=1")
	first.serves()
	if err := first.create("orders", 1, 1); err != nil {
		t.Fatal(err)
	}
	second := clustered(t, 2, t.TempDir(), "bootstrap.expect=-1", "join="+first.PeerAddress())
	second.serves()
	if err := second.create("both", 2, 2); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first one to tell of both", func() bool {
		m := first.metadata("both")
		return m.Topics[0].ErrorCode == 0 && len(m.Brokers) == 2
	})
	if q := second.quorum(); len(q.CurrentVoters) != 1 || len(q.Observers) != 1 {
		t.Errorf("the quorum is %+v", q)
	}
}

func TestOneBrokerOfAClusterSaysThatItHasTheController(t *testing.T) {
	t.Parallel()
	all := trio(t)
	leader := all[0].quorum().LeaderID
	for i, b := range all {
		want := "kafka_controller_kafkacontroller_activecontrollercount 0"
		if int32(i+1) == leader {
			want = "kafka_controller_kafkacontroller_activecontrollercount 1"
		}
		page := httptest.NewRecorder()
		b.MetricsHandler().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if !strings.Contains(page.Body.String(), want) || !strings.Contains(page.Body.String(), "kafka_controller_kafkacontroller_offlinepartitionscount 0") {
			t.Errorf("broker %d, the controller is %d: no %q", i+1, leader, want)
		}
	}
}

func TestABrokerWithoutALeaseDoesNotSpeakAlone(t *testing.T) {
	all := trio(t, "broker.session.timeout.ms=1500", "broker.heartbeat.interval.ms=200")
	if err := all[0].create("orders", 3, 3); err != nil {
		t.Fatal(err)
	}
	last := all[0]
	partition := int32(slices.IndexFunc(last.metadata("orders").Topics[0].Partitions, func(p kmsg.MetadataResponseTopicPartition) bool { return p.Leader == 1 }))
	cl := last.client(kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite(), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RecordRetries(0), kgo.UnknownTopicRetries(0))
	produce := func() error {
		return cl.ProduceSync(within(t, 20*time.Second), &kgo.Record{Topic: "orders", Partition: partition, Value: []byte("x")}).FirstErr()
	}
	if err := produce(); err != nil {
		t.Fatalf("a write with acks=1: %v", err)
	}
	all[1].crash()
	all[2].crash()
	awaitFact(t, "acks=1 to be refused", func() bool { return errors.Is(produce(), kerr.NotLeaderForPartition) })
}

// awaitFact waits for a fact by asking for it again and again.
func awaitFact(t testing.TB, what string, is func() bool) {
	t.Helper()
	for ctx := within(t, 30*time.Second); !is(); {
		if ctx.Err() != nil {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
