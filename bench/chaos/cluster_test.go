package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/troupe-broker/troupe/bench/peer"
)

// TestKilledLeadersLoseNothing kills leaders of three brokers under load, now and then all three at once, and pauses one: whatever was acknowledged is there on the next leader at once, and on all three, byte
// by byte, in the end.
func TestKilledLeadersLoseNothing(t *testing.T) {
	loops := fromEnv(t, "TROUPE_TEST_CLUSTER_LOOPS", 4)
	seed := uint64(time.Now().UnixNano())
	if n := fromEnv(t, "TROUPE_TEST_SEED", 1); n > 1 {
		seed = uint64(n)
	}
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("%d loops, TROUPE_TEST_SEED=%d", loops, seed)

	c, err := NewCluster(troupe, t.TempDir(), "log.segment.bytes=1048576")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Kill(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			for i, b := range c.Brokers {
				t.Logf("the log of broker %d ends with:\n%s", i+1, peer.Tail(b.Log, 40))
			}
		}
	})
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(c.Addrs, ",")...), kgo.RetryTimeout(30*time.Second), kgo.MetadataMinAge(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	admin := kadm.NewClient(client)
	topics := []string{"synced", "cached"}
	const partitions, replicas = 3, 3
	writers := map[string]*Writer{}
	for _, topic := range topics {
		caching, two := strconv.FormatBool(topic == "cached"), "2"
		if _, err := admin.CreateTopic(t.Context(), partitions, replicas, map[string]*string{"write.caching": &caching, "min.insync.replicas": &two}, topic); err != nil {
			t.Fatal(err)
		}
		for i := range partitions {
			w := &Writer{Name: fmt.Sprintf("%s-w%d", topic, i), Place: Place{topic, int32(i)}, Pause: 2 * time.Millisecond}
			writers[w.Name] = w
		}
	}
	writing, stopWriting := context.WithCancel(t.Context())
	defer stopWriting()
	var running sync.WaitGroup
	results := make(chan error, len(writers))
	for _, w := range writers {
		running.Go(func() { results <- w.Run(writing, c.Addrs) })
	}

	reader := History{}
	for loop := range loops {
		time.Sleep(time.Duration(200+random.IntN(600)) * time.Millisecond)
		// A member that was killed is taken back into the ISR when it has caught up; before, a second death could leave nobody.
		if err := AwaitInSync(t.Context(), admin, replicas, topics...); err != nil {
			t.Fatalf("loop %d: %v", loop, err)
		}
		victim, err := Leader(t.Context(), admin, Place{topics[loop%len(topics)], int32(random.IntN(partitions))})
		if err != nil || victim < 0 {
			t.Fatalf("loop %d: no leader: %v", loop, err)
		}
		acked := snapshot(writers)
		all := loop%4 == 3
		kill, start := c.Brokers[victim].Kill, c.Brokers[victim].Start
		switch {
		case all:
			kill, start = c.Kill, c.Start
		case loop%8 == 5: // only in long runs: clients wait for it
			kill, start = c.Brokers[victim].Pause, func(context.Context) error { return c.Brokers[victim].Resume() }
		}
		if err := kill(); err != nil {
			t.Fatal(err)
		}
		if all {
			if err := start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		history, err := ReadSoon(t.Context(), c.Addrs, topics, writers)
		if err != nil {
			t.Fatalf("loop %d, without broker %d: %v", loop, victim+1, err)
		}
		if err := history.Check(acked, writers); err != nil {
			t.Fatalf("loop %d, without broker %d:\n%v", loop, victim+1, err)
		}
		if err := history.Extends(reader); err != nil {
			t.Fatalf("loop %d, without broker %d:\n%v", loop, victim+1, err)
		}
		reader = history
		if all {
			continue
		}
		if err := start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	stopWriting()
	running.Wait()
	for range writers {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if err := AwaitInSync(t.Context(), admin, replicas, topics...); err != nil {
		t.Fatal(err)
	}
	history, err := ReadSoon(t.Context(), c.Addrs, topics, writers)
	if err != nil {
		t.Fatal(err)
	}
	if err := history.Check(snapshot(writers), writers); err != nil {
		t.Error(err)
	}
	if err := history.Extends(reader); err != nil {
		t.Error(err)
	}
	sent := 0
	for name, w := range writers {
		for n, offset := range w.Acked() {
			sent++
			if offset == unknown {
				t.Errorf("record %d of %s was never settled", n, name)
			}
		}
	}
	if history.Records() != sent {
		t.Errorf("%d records were sent, and %d are in the log", sent, history.Records())
	}
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, topic := range topics {
		for p := range int32(partitions) {
			if err := c.Differ(Place{topic, p}); err != nil {
				t.Error(err)
			}
		}
	}
	t.Logf("%d kills, %d records acknowledged and found", loops, sent)
}
