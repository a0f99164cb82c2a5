package broker_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fetchAs asks one broker for a partition from an offset, as a consumer in a rack.
func (r *running) fetchAs(rack string, id [16]byte, from int64, wait int32) kmsg.FetchResponseTopicPartition {
	r.t.Helper()
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.Rack, req.SessionEpoch = 13, wait, 1, 1<<20, rack, -1
	ft := kmsg.NewFetchRequestTopic()
	ft.TopicID = id
	fp := kmsg.NewFetchRequestTopicPartition()
	fp.FetchOffset, fp.PartitionMaxBytes, fp.CurrentLeaderEpoch, fp.LastFetchedEpoch = from, 1<<20, -1, -1
	ft.Partitions = append(ft.Partitions, fp)
	req.Topics = append(req.Topics, ft)
	return ask[*kmsg.FetchResponse](r, req).Topics[0].Partitions[0]
}

// TestConsumersReadFromTheirRack lets leaders send consumers to a follower in their rack (KIP-392), and the follower serve them.
func TestConsumersReadFromTheirRack(t *testing.T) {
	selector := "replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector"
	all := []*running{clustered(t, 1, t.TempDir(), selector, "broker.rack=rack-1")}
	for id := 2; id <= 3; id++ {
		all = append(all, clustered(t, id, t.TempDir(), selector, fmt.Sprint("broker.rack=rack-", id), "join="+all[0].PeerAddress()))
	}
	for _, b := range all {
		b.serves()
	}
	if err := all[0].create("orders", 1, 3); err != nil {
		t.Fatal(err)
	}
	m := all[0].metadata("orders").Topics[0]
	leader := m.Partitions[0].Leader
	follower := leader%3 + 1
	rack, far := fmt.Sprint("rack-", follower), fmt.Sprint("rack-", leader)
	if err := all[0].client(kgo.DefaultProduceTopic("orders")).ProduceSync(within(t, 30*time.Second), kgo.StringRecord("a"), kgo.StringRecord("b")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	l, f := all[leader-1], all[follower-1]
	awaitFact(t, "the leader to send a consumer to its rack", func() bool {
		p := l.fetchAs(rack, m.TopicID, 0, 0)
		return p.ErrorCode == 0 && p.PreferredReadReplica == follower && len(p.RecordBatches) == 0 && p.HighWatermark == 2
	})
	if p := l.fetchAs(far, m.TopicID, 0, 0); p.PreferredReadReplica != -1 || len(p.RecordBatches) == 0 {
		t.Errorf("a consumer in the leader's rack gets %+v", p)
	}
	if p := l.fetchAs("elsewhere", m.TopicID, 0, 0); p.PreferredReadReplica != -1 || len(p.RecordBatches) == 0 {
		t.Errorf("a consumer in no broker's rack gets %+v", p)
	}
	if p := f.fetchAs("", m.TopicID, 0, 0); !errors.Is(kerr.ErrorForCode(p.ErrorCode), kerr.NotLeaderForPartition) {
		t.Errorf("a follower serves a consumer without a rack: %+v", p)
	}
	awaitFact(t, "the follower to serve what is committed", func() bool {
		p := f.fetchAs(rack, m.TopicID, 0, 0)
		return p.ErrorCode == 0 && p.HighWatermark == 2 && len(p.RecordBatches) > 0 && p.PreferredReadReplica == -1
	})
	if p := f.fetchAs(rack, m.TopicID, 9, 0); !errors.Is(kerr.ErrorForCode(p.ErrorCode), kerr.OffsetOutOfRange) {
		t.Errorf("beyond the follower's log: %+v", p)
	}

	// A long poll at the follower ends when the high watermark comes there.
	got := make(chan kmsg.FetchResponseTopicPartition, 1)
	go func() { got <- f.fetchAs(rack, m.TopicID, 2, 25_000) }()
	if err := l.client(kgo.DefaultProduceTopic("orders")).ProduceSync(within(t, 30*time.Second), kgo.StringRecord("c")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if p := <-got; p.ErrorCode != 0 || p.HighWatermark != 3 || len(p.RecordBatches) == 0 {
		t.Errorf("the long poll brought %+v", p)
	}

	// An unmodified client follows.
	var seen fetchedFrom
	cl := l.client(kgo.ConsumeTopics("orders"), kgo.Rack(rack), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.WithHooks(&seen))
	read := 0
	for ctx := within(t, 30*time.Second); read < 3; {
		fs := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("%d of 3 records are read", read)
		}
		read += fs.NumRecords()
	}
	awaitFact(t, "the client to ask the follower", func() bool { return seen.has(follower) })
}

// fetchedFrom are the brokers that have answered a client's fetches.
type fetchedFrom struct {
	mu   sync.Mutex
	from map[int32]bool
}

// OnBrokerE2E implements kgo.HookBrokerE2E.
func (f *fetchedFrom) OnBrokerE2E(meta kgo.BrokerMetadata, key int16, _ kgo.BrokerE2E) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if key == 1 {
		if f.from == nil {
			f.from = map[int32]bool{}
		}
		f.from[meta.NodeID] = true
	}
}

func (f *fetchedFrom) has(id int32) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.from[id]
}
