package broker_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// sets changes configs of a resource; a value "" deletes one.
func (r *running) sets(kind kmsg.ConfigResourceType, name string, configs map[string]string) {
	r.t.Helper()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	res := kmsg.NewIncrementalAlterConfigsRequestResource()
	res.ResourceType, res.ResourceName = kind, name
	for key, value := range configs {
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		if c.Name = key; value == "" {
			c.Op = kmsg.IncrementalAlterConfigOpDelete
		} else {
			c.Value = new(value)
		}
		res.Configs = append(res.Configs, c)
	}
	req.Resources = append(req.Resources, res)
	if resp := ask[*kmsg.IncrementalAlterConfigsResponse](r, req); resp.Resources[0].ErrorCode != 0 {
		r.t.Fatalf("%s: %+v", name, resp.Resources[0])
	}
}

// A replica that is being added copies at the rate that the leader, or the follower, is allowed, and those in sync are never held up by it.
func TestAMoveCanBeThrottled(t *testing.T) {
	for side, replicas := range map[string]string{"leader": "0:1,0:2,0:3", "follower": "*"} {
		t.Run(side, func(t *testing.T) {
			t.Parallel()
			c := startReplicas(t, "min.insync.replicas=2")
			c.placed("t", 1, 2)
			cl := c.client(kgo.DefaultProduceTopic("t"), kgo.ProducerBatchCompression(kgo.NoCompression()))
			write := func(n int) {
				for range n {
					if err := cl.ProduceSync(within(t, 30*time.Second), &kgo.Record{Value: bytes.Repeat([]byte("x"), 500_000)}).FirstErr(); err != nil {
						t.Fatal(err)
					}
				}
			}
			write(12)
			first := c.running[0]
			for _, id := range []string{"1", "2", "3"} {
				first.sets(kmsg.ConfigResourceTypeBroker, id, map[string]string{side + ".replication.throttled.rate": "1000"})
			}
			first.sets(kmsg.ConfigResourceTypeTopic, "t", map[string]string{side + ".replication.throttled.replicas": replicas})
			if code := first.move("t", 0, []int32{2, 3}); code != 0 {
				t.Fatalf("the move: %v", code)
			}
			// Broker 2 is in sync: with a minimum of two every write needs it, and at a thousand bytes a second each would take minutes.
			write(6)
			if p := first.metadata("t").Topics[0].Partitions[0]; first.moving("t", 0) == nil || len(p.ISR) != 2 || slices.Contains(p.ISR, 3) {
				t.Fatalf("9 MB were copied at 1000 bytes a second: %+v", p)
			}
			for _, id := range []string{"1", "2", "3"} {
				first.sets(kmsg.ConfigResourceTypeBroker, id, map[string]string{side + ".replication.throttled.rate": ""})
			}
			awaitFact(t, "the move to end", func() bool { return first.moving("t", 0) == nil })
		})
	}
}
