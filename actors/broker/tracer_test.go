package broker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// createTopic creates a topic and fails the test if that fails.
func (r *running) createTopic(name string, partitions int32, configs ...string) {
	r.t.Helper()
	var values map[string]*string
	for i := 0; i < len(configs); i += 2 {
		if values == nil {
			values = make(map[string]*string)
		}
		values[configs[i]] = new(configs[i+1])
	}
	adm := kadm.NewClient(r.client())
	resp, err := adm.CreateTopic(within(r.t, 10*time.Second), partitions, 1, values, name)
	if err != nil {
		r.t.Fatalf("create %s: %v (%s)", name, err, resp.ErrMessage)
	}
}

// consume reads n records of a partition from its start.
func (r *running) consume(topic string, partition int32, n int, opts ...kgo.Opt) []*kgo.Record {
	r.t.Helper()
	opts = append(opts, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().AtStart()}}))
	cl := r.client(opts...)
	ctx := within(r.t, 20*time.Second)
	var out []*kgo.Record
	for len(out) < n {
		f := cl.PollFetches(ctx)
		if err := f.Err(); err != nil {
			r.t.Fatalf("after %d of %d records: %v", len(out), n, err)
		}
		out = append(out, f.Records()...)
	}
	cl.Close()
	return out
}

func TestWhatIsProducedIsReadAgainAfterARestart(t *testing.T) {
	r := start(t)
	r.createTopic("orders", 3)
	for _, acks := range []kgo.Acks{kgo.NoAck(), kgo.LeaderAck(), kgo.AllISRAcks()} {
		opts := []kgo.Opt{kgo.RequiredAcks(acks), kgo.RecordPartitioner(kgo.ManualPartitioner())}
		if acks != kgo.AllISRAcks() {
			opts = append(opts, kgo.DisableIdempotentWrite())
		}
		cl := r.client(opts...)
		for i := range 100 {
			rec := &kgo.Record{Topic: "orders", Partition: int32(i % 3), Key: []byte("k"), Value: fmt.Appendf(nil, "%v-%d", acks, i)}
			if err := cl.ProduceSync(within(t, 10*time.Second), rec).FirstErr(); err != nil {
				t.Fatalf("acks %v, record %d: %v", acks, i, err)
			}
		}
		cl.Close()
	}
	check := func(r *running) {
		t.Helper()
		total := 0
		for p := range int32(3) {
			n := map[int32]int{0: 102, 1: 99, 2: 99}[p]
			for i, rec := range r.consume("orders", p, n) {
				if rec.Offset != int64(i) {
					t.Fatalf("partition %d: record %d has offset %d", p, i, rec.Offset)
				}
			}
			total += n
		}
		if total != 300 {
			t.Errorf("read %d records, want 300", total)
		}
	}
	check(r)
	r.stop()
	check(startIn(t, r.dir))
}
