package broker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestEverythingAtOnceLosesAndRepeatsNothing runs producers, readers, topics that come and go, configs that change, connections that break and scrapes
// together for a while; then every acknowledged record must be there once, each producer's in its order.
func TestEverythingAtOnceLosesAndRepeatsNothing(t *testing.T) {
	r := start(t, "log.retention.check.interval.ms=50")
	const partitions, producers = 3, 4
	r.createTopic("kept", partitions, "segment.bytes", "1048576")
	r.createTopic("cached", partitions, "segment.bytes", "1048576", "write.caching", "true")
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	var group sync.WaitGroup
	acked := map[string][producers][]int{"kept": {}, "cached": {}}
	var mu sync.Mutex
	for _, topic := range []string{"kept", "cached"} {
		for producer := range producers {
			group.Go(func() {
				cl := r.client(kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(time.Duration(producer)*time.Millisecond))
				for i := 0; ctx.Err() == nil; i++ {
					rec := &kgo.Record{Partition: int32(producer % partitions), Key: fmt.Append(nil, producer), Value: fmt.Append(nil, i, " ", string(make([]byte, rand.IntN(5000))))}
					if err := cl.ProduceSync(t.Context(), rec).FirstErr(); err != nil {
						t.Errorf("producer %d of %s: %v", producer, topic, err)
						return
					}
					mu.Lock()
					all := acked[topic]
					all[producer] = append(all[producer], i)
					acked[topic] = all
					mu.Unlock()
				}
			})
		}
		group.Go(func() {
			cl := r.client(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond))
			for ctx.Err() == nil {
				for _, e := range cl.PollFetches(ctx).Errors() {
					if ctx.Err() == nil {
						t.Errorf("reader of %s: %v", topic, e.Err)
					}
				}
			}
		})
	}
	group.Go(func() {
		adm := kadm.NewClient(r.client())
		for i := 0; ctx.Err() == nil; i++ {
			name := fmt.Sprintf("passing-%d", i%3)
			if _, err := adm.CreateTopic(t.Context(), 2, 1, nil, name); err != nil {
				t.Errorf("create %s: %v", name, err)
			}
			value := fmt.Sprint(900_000 + i)
			if _, err := adm.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &value}}, "kept"); err != nil {
				t.Errorf("alter: %v", err)
			}
			if _, err := adm.DeleteTopic(t.Context(), name); err != nil {
				t.Errorf("delete %s: %v", name, err)
			}
		}
	})
	group.Go(func() {
		for ctx.Err() == nil {
			c := r.raw()
			req := fetch(11, "kept", rand.Int32N(partitions), 0)
			req.Topics[0].Partitions[0].PartitionMaxBytes = 10 << 20
			c.send(req)
			c.send(produce(9, 1, "passing-0", 0, batch("x")))
			time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
			if err := c.Close(); err != nil { // in the middle of the answer
				t.Error(err)
			}
		}
	})
	group.Go(func() {
		for ctx.Err() == nil {
			r.MetricsHandler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil))
			time.Sleep(20 * time.Millisecond)
		}
	})
	group.Wait()
	for topic, all := range acked {
		total := 0
		for _, values := range all {
			total += len(values)
		}
		next, read := [producers]int{}, 0
		for p := range int32(partitions) {
			want := 0
			for producer := range producers {
				if producer%partitions == int(p) {
					want += len(all[producer])
				}
			}
			if want == 0 {
				continue
			}
			for _, rec := range r.consume(topic, p, want) {
				var producer, i int
				if _, err := fmt.Sscan(string(rec.Key), &producer); err != nil {
					t.Fatal(err)
				}
				if _, err := fmt.Sscan(string(rec.Value), &i); err != nil {
					t.Fatal(err)
				}
				if next[producer] != i {
					t.Fatalf("%s-%d at %d: producer %d's record %d, want %d", topic, p, rec.Offset, producer, i, next[producer])
				}
				next[producer]++
				read++
			}
		}
		if read != total {
			t.Errorf("%s: %d records read, %d acknowledged", topic, read, total)
		}
		t.Logf("%s: %d records", topic, read)
	}
}
