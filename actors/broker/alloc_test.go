package broker_test

import (
	"io"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/actors/broker"
)

// TestASteadyRequestAllocatesNothing counts the allocations of a whole broker per request: socket, session, partition, log, flusher. The client's side
// allocates nothing by itself.
func TestASteadyRequestAllocatesNothing(t *testing.T) {
	if broker.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	r := start(t, append(quick, "log.retention.check.interval.ms=3600000")...)
	r.createTopic("cached", 1, "write.caching", "true")
	r.createTopic("synced", 1)
	r.createTopic("small", 1, "write.caching", "true")
	filler := r.raw()
	filler.fill("small", 0, 20, 1000)
	for _, topic := range []string{"cached", "synced"} {
		for range 20 {
			if p := filler.produced(produce(9, -1, topic, 0, benchBatch(64<<10))); p.ErrorCode != 0 {
				t.Fatal(p.ErrorCode)
			}
		}
	}
	m := r.raw().joinAlone("steady")
	for _, tc := range []struct {
		name  string
		frame []byte
	}{
		{"heartbeat", frame(1, m)},
		{"produce 1 KiB, acks=1", frame(1, produce(9, 1, "cached", 0, benchBatch(1<<10)))},
		{"produce 64 KiB, acks=1", frame(1, produce(9, 1, "cached", 0, benchBatch(64<<10)))},
		{"produce 1 KiB, acks=all, synced", frame(1, produce(9, -1, "synced", 0, benchBatch(1<<10)))},
		{"fetch 64 KiB", frame(1, fetchOf("cached", 64<<10))},
		{"fetch 4 KiB", frame(1, fetchOf("small", 4<<10))},
	} {
		c := r.raw()
		buf := make([]byte, 4<<20)
		once := func() {
			if _, err := c.Write(tc.frame); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(c, buf[:4]); err != nil {
				t.Fatal(err)
			}
			n := int(buf[0])<<24 | int(buf[1])<<16 | int(buf[2])<<8 | int(buf[3])
			if _, err := io.ReadFull(c, buf[4:4+n]); err != nil {
				t.Fatal(err)
			}
		}
		for range 200 {
			once()
		}
		// What else runs in the process only adds: the lowest of three counts is the request's own.
		n := testing.AllocsPerRun(500, once)
		for range 2 {
			n = min(n, testing.AllocsPerRun(500, once))
		}
		if n > 0.5 {
			t.Errorf("%s: %.2f allocations a request", tc.name, n)
		} else {
			t.Logf("%s: %.3f allocations a request", tc.name, n)
		}
	}
}

func fetchOf(topic string, bytesMax int32) *kmsg.FetchRequest {
	req := fetch(11, topic, 0, 0)
	req.Topics[0].Partitions[0].PartitionMaxBytes = bytesMax
	return req
}
