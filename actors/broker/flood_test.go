package broker_test

import (
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func heapNow() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// reading is the value of a metric without labels.
func reading(r *running, name string) float64 {
	for line := range strings.Lines(scrape(r)) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			if err == nil {
				return v
			}
		}
	}
	r.t.Fatal("no metric " + name)
	return 0
}

// allTopics asks for the metadata of everything, in few bytes.
func allTopics(n int) []byte {
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 12
	var b []byte
	for i := range n {
		b = append(b, frame(int32(i), req)...)
	}
	return b
}

func TestAFloodOfShortQuestionsDoesNotHoldAllTheirLongAnswers(t *testing.T) {
	r := start(t)
	r.createTopic("wide", 1000)
	c := r.raw()
	const questions = 2000 // with answers of some 25 KB
	before := heapNow()
	go func() {
		_, _ = c.Write(allTopics(questions)) // ends with the connection
	}()
	time.Sleep(time.Second)
	if held := heapNow() - before; held > 32<<20 {
		t.Errorf("a client that reads nothing makes the broker hold %d MiB", held>>20)
	}
	if got := reading(r, "troupe_request_memory_bytes"); got < 1<<20 {
		t.Errorf("the answers that wait are not on the account of the pool: %v bytes", got)
	}
	for i := range int32(questions) { // and all answers come when it reads
		if id, _, err := c.answer(); err != nil || id != i {
			t.Fatalf("answer %d: id %d, %v", i, id, err)
		}
	}
	eventually(t, "the account is settled", func() bool { return reading(r, "troupe_request_memory_bytes") < 64<<10 })
}

func TestAPeerThatIsGoneIsNotKeptForTheWaitItAskedFor(t *testing.T) {
	r := start(t, "connections.max.idle.ms=20000") // nobody is idle for so long here; peers are looked at ten times as often
	r.createTopic("quiet", 1)
	c := r.raw()
	req := fetch(11, "quiet", 0, 0)
	req.MaxWaitMillis, req.MinBytes = 1<<31-1, 1 // 24 days
	c.send(req)
	for range 3 { // are not begun, so that the connection is not read
		time.Sleep(100 * time.Millisecond)
		if _, err := c.Write(allTopics(1)); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(100 * time.Millisecond)
	before := reading(r, "troupe_connections")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the connection is gone", func() bool { return reading(r, "troupe_connections") == before-1 })
}
