package broker_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestAnOlderCopyOfADataDirectoryIsNotElected: every log in it is sound and reaches as far as its marks, and the machine has not been started anew. Only that the
// broker has had a run since, of which the copy does not know, tells that acknowledged records are missing; and the other replica is away.
func TestAnOlderCopyOfADataDirectoryIsNotElected(t *testing.T) {
	t.Parallel()
	c := startReplicas(t, "broker.session.timeout.ms=2000", "broker.heartbeat.interval.ms=200", "min.insync.replicas=2")
	c.place("t", 1, 1, 3)
	cl := c.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	c.produce(cl, 0, 0, 20)
	c.stop(0)
	older := filepath.Join(t.TempDir(), "older")
	if err := errors.Join(os.CopyFS(older, os.DirFS(c.dirs[0])), os.Remove(filepath.Join(older, ".kafka_cleanshutdown"))); err != nil {
		t.Fatal(err)
	}
	c.again(0)
	eventually(t, "broker 1 to be in sync", func() bool { return len(c.partitions(1)[0].ISR) == 2 })
	c.produce(cl, 0, 20, 40)
	c.stopAll()
	if err := errors.Join(os.RemoveAll(c.dirs[0]), os.Rename(older, c.dirs[0])); err != nil {
		t.Fatal(err)
	}
	c.begin(0)
	c.begin(1)
	c.serving(0)
	c.serving(1)
	eventually(t, "broker 3 to lead no more", func() bool { return c.partitions(1)[0].Leader != 3 })
	if p := c.partitions(1)[0]; p.Leader != -1 {
		t.Errorf("broker 1 came back without its last records, and leads: %+v", p)
	}
	c.again(2)
	c.read(0, 40)
	eventually(t, "both replicas to be in sync", func() bool { return len(c.partitions(1)[0].ISR) == 2 })
}
