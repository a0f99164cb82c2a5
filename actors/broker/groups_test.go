package broker_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// quick are the configs with which a group of a test does not wait for more members.
var quick = []string{"group.initial.rebalance.delay.ms=0", "offsets.topic.num.partitions=3", "group.min.session.timeout.ms=100"}

// produced writes n records to each of so many partitions of a topic.
func (r *running) produceTo(topic string, partitions, n int) {
	r.t.Helper()
	cl := r.client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for p := range partitions {
		for i := range n {
			rec := &kgo.Record{Topic: topic, Partition: int32(p), Value: fmt.Appendf(nil, "%d-%d", p, i)}
			if err := cl.ProduceSync(within(r.t, 10*time.Second), rec).FirstErr(); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

// member is a group consumer of a test.
type member struct {
	cl   *kgo.Client
	mu   sync.Mutex
	got  []string
	stop context.CancelFunc
	done chan struct{}
}

// join starts a member that notes what it reads.
func (r *running) join(group, topic string, opts ...kgo.Opt) *member {
	r.t.Helper()
	m := &member{done: make(chan struct{})}
	m.cl = r.client(append([]kgo.Opt{
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.HeartbeatInterval(100 * time.Millisecond),
		kgo.AutoCommitInterval(100 * time.Millisecond),
	}, opts...)...)
	ctx, cancel := context.WithCancel(context.Background())
	m.stop = cancel
	go func() {
		defer close(m.done)
		for {
			fetches := m.cl.PollFetches(ctx)
			if fetches.IsClientClosed() || ctx.Err() != nil {
				return
			}
			m.mu.Lock()
			fetches.EachRecord(func(rec *kgo.Record) { m.got = append(m.got, string(rec.Value)) })
			m.mu.Unlock()
		}
	}()
	r.t.Cleanup(m.leave)
	return m
}

// leave leaves the group and waits.
func (m *member) leave() {
	m.stop()
	<-m.done
	m.cl.Close()
}

func (m *member) seen() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.got)
}

// committed are the offsets of a group for a topic.
func (r *running) committed(group, topic string) map[int32]int64 {
	r.t.Helper()
	resp, err := r.admin().FetchOffsets(within(r.t, 10*time.Second), group)
	if err != nil {
		r.t.Fatal(err)
	}
	out := map[int32]int64{}
	resp.Each(func(o kadm.OffsetResponse) {
		if o.Err == nil && o.Topic == topic {
			out[o.Partition] = o.At
		}
	})
	return out
}

func TestAGroupConsumesCommitsAndKeepsItsOffsetsOverARestart(t *testing.T) {
	dir := t.TempDir()
	r := startIn(t, dir, quick...)
	r.createTopic("orders", 4)
	r.produceTo("orders", 4, 5)
	a, b := r.join("readers", "orders"), r.join("readers", "orders")
	eventually(t, "both members together have read everything", func() bool { return len(a.seen())+len(b.seen()) >= 20 })
	eventually(t, "everything is committed", func() bool {
		c := r.committed("readers", "orders")
		return c[0] == 5 && c[1] == 5 && c[2] == 5 && c[3] == 5
	})
	eventually(t, "the group is stable", func() bool {
		described, err := r.admin().DescribeGroups(within(t, 10*time.Second), "readers")
		return err == nil && described["readers"].State == "Stable" && len(described["readers"].Members) == 2
	})
	a.leave()
	b.leave()
	r.stop()

	r = startIn(t, dir, quick...)
	if c := r.committed("readers", "orders"); c[0] != 5 || c[3] != 5 {
		t.Fatalf("after the restart: %v", c)
	}
	r.produceTo("orders", 4, 1)
	again := r.join("readers", "orders")
	eventually(t, "the new records are read", func() bool { return len(again.seen()) >= 4 })
	if n := len(again.seen()); n != 4 {
		t.Errorf("%d records were read, 4 were new", n)
	}
}

func TestMembersComeAndGo(t *testing.T) {
	r := start(t, quick...)
	r.createTopic("busy", 6)
	r.produceTo("busy", 6, 2)
	var members []*member
	for range 3 {
		members = append(members, r.join("crowd", "busy"))
	}
	assigned := func(want int) func() bool {
		return func() bool {
			described, err := r.admin().DescribeGroups(within(t, 10*time.Second), "crowd")
			if err != nil {
				return false
			}
			g := described["crowd"]
			return g.State == "Stable" && len(g.Members) == want && len(g.AssignedPartitions()["busy"]) == 6
		}
	}
	eventually(t, "three members share the partitions", assigned(3))
	members[1].leave()
	eventually(t, "two members share them", assigned(2))
	eventually(t, "everything was read", func() bool {
		total := 0
		for _, m := range members {
			total += len(m.seen())
		}
		return total >= 12
	})
	members[0].leave()
	members[2].leave()
	eventually(t, "the group is empty", func() bool {
		described, err := r.admin().DescribeGroups(within(t, 10*time.Second), "crowd")
		return err == nil && described["crowd"].State == "Empty"
	})
}

func TestGroupsAreAdministered(t *testing.T) {
	r := start(t, quick...)
	r.createTopic("work", 2)
	r.produceTo("work", 2, 10)
	admin := r.admin()
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{Topic: "work", Partition: 0, At: 4, LeaderEpoch: -1, Metadata: "note"})
	offsets.Add(kadm.Offset{Topic: "work", Partition: 1, At: 7, LeaderEpoch: -1})
	if err := admin.CommitAllOffsets(within(t, 10*time.Second), "simple", offsets); err != nil {
		t.Fatal(err)
	}
	listed, err := admin.ListGroups(within(t, 10*time.Second))
	if err != nil || len(listed) != 1 || listed["simple"].State != "Empty" {
		t.Errorf("listed: %+v, %v", listed, err)
	}
	lags, err := admin.Lag(within(t, 10*time.Second), "simple")
	if err != nil || lags["simple"].Lag.Total() != 6+3 {
		t.Errorf("lag: %+v, %v", lags, err)
	}
	var gone kadm.TopicsSet
	gone.Add("work", 1)
	if resp, err := admin.DeleteOffsets(within(t, 10*time.Second), "simple", gone); err != nil || resp.Error() != nil {
		t.Errorf("delete offsets: %v, %v", err, resp.Error())
	}
	if c := r.committed("simple", "work"); len(c) != 1 || c[0] != 4 {
		t.Errorf("left: %v", c)
	}
	m := r.join("taken", "work")
	eventually(t, "the member has read", func() bool { return len(m.seen()) == 20 })
	if resp, err := admin.DeleteGroups(within(t, 10*time.Second), "simple", "taken", "unknown"); err != nil || resp["simple"].Err != nil ||
		resp["taken"].Err == nil || !strings.Contains(resp["taken"].Err.Error(), "NON_EMPTY_GROUP") || !strings.Contains(resp["unknown"].Err.Error(), "GROUP_ID_NOT_FOUND") {
		t.Errorf("delete groups: %+v, %v", resp, err)
	}
	if c := r.committed("simple", "work"); len(c) != 0 {
		t.Errorf("the deleted group has offsets: %v", c)
	}
}

func TestOffsetsOfADeletedTopicAreGone(t *testing.T) {
	r := start(t, quick...)
	for range 2 {
		r.createTopic("brief", 1)
		if c := r.committed("g", "brief"); len(c) != 0 {
			t.Fatalf("a new topic has committed offsets: %v", c)
		}
		r.produceTo("brief", 1, 3)
		var offsets kadm.Offsets
		offsets.Add(kadm.Offset{Topic: "brief", At: 2, LeaderEpoch: -1})
		if err := r.admin().CommitAllOffsets(within(t, 10*time.Second), "g", offsets); err != nil {
			t.Fatal(err)
		}
		r.deleteTopic("brief")
	}
}

func TestKcatConsumesInAGroup(t *testing.T) {
	kcat, err := exec.LookPath("kcat")
	if err != nil {
		t.Skip("kcat is not installed")
	}
	r := start(t, quick...)
	r.createTopic("cats", 3)
	r.produceTo("cats", 3, 4)
	read := func() string {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, kcat, "-b", r.addr, "-X", "auto.offset.reset=earliest", "-X", "session.timeout.ms=6000", "-e", "-q", "-G", "cats-group", "cats")
		out, err := cmd.CombinedOutput()
		if err != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Fatalf("kcat: %v\n%s", err, out)
		}
		return string(out)
	}
	if n := strings.Count(read(), "-"); n != 12 {
		t.Errorf("kcat read %d records, want 12", n)
	}
	if c := r.committed("cats-group", "cats"); c[0] != 4 || c[1] != 4 || c[2] != 4 {
		t.Errorf("committed: %v", c)
	}
}
