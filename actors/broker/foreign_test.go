package broker_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
)

// lines is what a broker has logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) has(words string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), words)
}

func TestMembersOfTwoClustersKeepApart(t *testing.T) {
	log := &lines{}
	first := clustered(t, 1, t.TempDir(), "bootstrap.expect=1")
	first.serves()
	second := clusteredWith(t, zerolog.New(log), 2, t.TempDir(), "bootstrap.expect=1")
	second.serves()
	if first.ClusterID() == second.ClusterID() {
		t.Fatal("two brokers that founded alone are one cluster")
	}
	dir := second.dir
	second.stop()
	again := clusteredWith(t, zerolog.New(log), 2, dir, "bootstrap.expect=-1", "join="+first.PeerAddress())
	again.serves()
	awaitFact(t, "the other cluster to be refused", func() bool { return log.has("TRP-4204") })
	if n := len(again.brokers()); n != 1 {
		t.Errorf("it tells of %d brokers", n)
	}
	if n := len(first.brokers()); n != 1 {
		t.Errorf("the other one tells of %d brokers", n)
	}
}
