package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/bench/peer"
)

var troupe string // the binary, built by TestMain

func TestMain(m *testing.M) {
	if addr, ok := os.LookupEnv("TROUPE_TEST_SWARM"); ok {
		os.Exit(swarmChild(addr))
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "troupe-chaos-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() {
			if err := os.RemoveAll(dir); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}()
		if troupe, err = Build(context.Background(), dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// fromEnv reads a number that makes a test longer.
func fromEnv(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text, ok := os.LookupEnv(name)
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is not a number of at least 1", name, text)
	}
	return n
}

func startBroker(t *testing.T, settings ...string) *Broker {
	t.Helper()
	b, err := NewBroker(troupe, t.TempDir(), settings...)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Kill(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the broker's log ends with:\n%s", peer.Tail(b.Log, 60))
		}
	})
	return b
}

func newClient(t *testing.T, addr string) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RetryTimeout(30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func TestKilledBrokerKeepsWhatItAcknowledged(t *testing.T) {
	loops := fromEnv(t, "TROUPE_TEST_KILL_LOOPS", 10)
	seed := uint64(time.Now().UnixNano())
	if n := fromEnv(t, "TROUPE_TEST_SEED", 1); n > 1 {
		seed = uint64(n)
	}
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("%d loops, TROUPE_TEST_SEED=%d", loops, seed)

	b := startBroker(t, "log.segment.bytes=1048576") // many rolls
	client := newClient(t, b.Addr)
	admin := kadm.NewClient(client)
	topics := []string{"synced", "cached"}
	const partitions, writersEach = 2, 2
	for _, topic := range topics {
		caching := strconv.FormatBool(topic == "cached")
		if _, err := admin.CreateTopic(t.Context(), partitions, 1, map[string]*string{"write.caching": &caching}, topic); err != nil {
			t.Fatal(err)
		}
	}
	writers := map[string]*Writer{}
	for _, topic := range topics {
		for i := range partitions * writersEach {
			w := &Writer{Name: fmt.Sprintf("%s-w%d", topic, i), Place: Place{topic, int32(i % partitions)}, Pause: time.Millisecond}
			writers[w.Name] = w
		}
	}
	writing, stopWriting := context.WithCancel(t.Context())
	defer stopWriting()
	var running sync.WaitGroup
	results := make(chan error, len(writers))
	for _, w := range writers {
		running.Go(func() { results <- w.Run(writing, b.Addr) })
	}

	reader := History{}
	shelf := &topicShelf{client: client, admin: admin}
	var slowest time.Duration
	for loop := range loops {
		time.Sleep(time.Duration(200+random.IntN(600)) * time.Millisecond)
		shelf.change(t, loop)
		acked := snapshot(writers)
		if err := b.Kill(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := b.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		slowest = max(slowest, time.Since(began))
		history, err := Read(t.Context(), b.Addr, topics, writers)
		if err != nil {
			t.Fatalf("loop %d: %v", loop, err)
		}
		if err := history.Check(acked, writers); err != nil {
			t.Fatalf("loop %d:\n%v", loop, err)
		}
		if err := history.Extends(reader); err != nil {
			t.Fatalf("loop %d:\n%v", loop, err)
		}
		reader = history
		shelf.check(t, loop)
	}

	stopWriting()
	running.Wait()
	for range writers {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if err := b.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	history, err := Read(t.Context(), b.Addr, topics, writers)
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
	if sent < 100*loops {
		t.Errorf("only %d records in %d loops: the kills hit an idle broker", sent, loops)
	}
	t.Logf("%d kills, %d records acknowledged and found, slowest start %v", loops, sent, slowest.Round(time.Millisecond))
}

func snapshot(writers map[string]*Writer) map[string][]int64 {
	acked := map[string][]int64{}
	for name, w := range writers {
		acked[name] = w.Acked()
	}
	return acked
}

// topicShelf creates and deletes a topic around each kill, and remembers what the controller answered.
type topicShelf struct {
	client *kgo.Client
	admin  *kadm.Client
	there  []string
	gone   []string
}

func (s *topicShelf) change(t *testing.T, loop int) {
	t.Helper()
	name := fmt.Sprintf("shelf-%d", loop)
	if _, err := s.admin.CreateTopic(t.Context(), 1, 1, nil, name); err != nil {
		t.Fatalf("loop %d: create %s: %v", loop, name, err)
	}
	s.there = append(s.there, name)
	if loop%2 == 1 {
		if _, err := s.admin.DeleteTopic(t.Context(), s.there[0]); err != nil {
			t.Fatalf("loop %d: delete %s: %v", loop, s.there[0], err)
		}
		s.gone, s.there = append(s.gone, s.there[0]), s.there[1:]
	}
}

func (s *topicShelf) check(t *testing.T, loop int) {
	t.Helper()
	// Asked directly: the admin client answers from what it knew before the kill.
	metadata, err := kmsg.NewPtrMetadataRequest().RequestWith(t.Context(), s.client)
	if err != nil {
		t.Fatalf("loop %d: list topics: %v", loop, err)
	}
	topics := map[string]bool{}
	for _, topic := range metadata.Topics {
		topics[*topic.Topic] = true
	}
	for _, name := range s.there {
		if !topics[name] {
			t.Errorf("loop %d: topic %s was created and is gone", loop, name)
		}
	}
	for _, name := range s.gone {
		if topics[name] {
			t.Errorf("loop %d: topic %s was deleted and is back", loop, name)
		}
	}
}
