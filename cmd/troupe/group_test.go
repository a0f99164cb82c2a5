package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// member joins a group, waits until it has partitions, and commits what it read, except for the last record of each.
func member(t *testing.T, p *process, group, topic string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	base := []kgo.Opt{
		kgo.SeedBrokers(p.addr()), kgo.ClientID("tester"), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100 * time.Millisecond),
	}
	client, err := kgo.NewClient(append(base, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	fetches := client.PollFetches(bounded(t, 30*time.Second))
	if err := fetches.Err(); err != nil {
		t.Fatal(err)
	}
	offsets := map[string]map[int32]kgo.EpochOffset{topic: {}}
	fetches.EachRecord(func(r *kgo.Record) {
		offsets[topic][r.Partition] = kgo.EpochOffset{Epoch: r.LeaderEpoch, Offset: r.Offset}
	})
	var failed error
	client.CommitOffsetsSync(bounded(t, 30*time.Second), offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
		failed = err
		if err == nil {
			failed = kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode)
		}
	})
	if failed != nil {
		t.Fatal(failed)
	}
	return client
}

// described runs `troupe group describe -o json`.
func described(t *testing.T, p *process, args ...string) describedGroup {
	t.Helper()
	var groups []describedGroup
	out := p.cli(t, "", append([]string{"group", "describe", "-o", "json", "--monitor", p.Metrics}, args...)...)
	if err := json.Unmarshal([]byte(out), &groups); err != nil || len(groups) != 1 {
		t.Fatalf("describe: %v\n%s", err, out)
	}
	return groups[0]
}

func TestGroupsAreListedDescribedResetAndDeleted(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "data"))
	p.cli(t, "", "topic", "create", "orders")
	old := time.Now().Add(-time.Hour).UnixMilli()
	var lines strings.Builder
	for i := range 10 {
		fmt.Fprintf(&lines, `{"value":"%d","timestamp":%d}`+"\n", i, old+int64(i)*60_000)
	}
	p.cli(t, lines.String(), "produce", "orders", "--format", "json")

	for _, c := range []struct {
		group, kind string
		opts        []kgo.Opt
	}{
		{"classic-readers", "classic", []kgo.Opt{kgo.Balancers(kgo.RangeBalancer())}},
		{"new-readers", "consumer", []kgo.Opt{kgo.Balancers(kgo.RangeBalancer()), kgo.ServerSideBalancer()}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			client := member(t, p, c.group, "orders", c.opts...)
			if out := p.cli(t, "", "group", "list", "--type", c.kind, "--state", "Stable"); !strings.Contains(out, c.group) {
				t.Errorf("it is not listed:\n%s", out)
			}
			if out := p.cli(t, "", "group", "list", "--state", "Empty"); strings.Contains(out, c.group) {
				t.Errorf("it is listed as empty:\n%s", out)
			}
			g := described(t, p, c.group, "--members", "--offsets", "--state")
			if g.Type != c.kind || g.State != "Stable" || g.Assignor != "range" || g.MemberCount != 1 || len(g.Members) != 1 || len(g.Offsets) != 1 {
				t.Fatalf("described as %+v", g)
			}
			if m := g.Members[0]; m.Client != "tester" || !slices.Equal(m.Assigned, []string{"orders:0"}) || !slices.Equal(m.Topics, []string{"orders"}) {
				t.Errorf("its member is %+v", m)
			}
			o := g.Offsets[0]
			if o.Committed == nil || *o.Committed != 9 || o.Lag == nil || *o.Lag != 1 || *o.End != 10 || o.Client != "tester" {
				t.Errorf("its offset is %+v", o)
			}
			// The unread record has a timestamp 51 minutes ago.
			if o.LagSeconds == nil || *o.LagSeconds < 50*60 || *o.LagSeconds > 55*60 || g.LagSeconds == nil || *g.LagSeconds != *o.LagSeconds {
				t.Errorf("the lag is %v and %v seconds", o.LagSeconds, g.LagSeconds)
			}

			busy := troupe(t, "", []string{"TROUPE_BOOTSTRAP=" + p.addr()}, "group", "reset", c.group, "--all-topics", "--to-earliest", "--execute")
			if busy.code != exitFailed || !strings.Contains(busy.err, "stop its consumers first: tester on 127.0.0.1") {
				t.Errorf("a reset of a group with members: exit %d\n%s", busy.code, busy.err)
			}
			busy = troupe(t, "", []string{"TROUPE_BOOTSTRAP=" + p.addr()}, "group", "delete", c.group, "--yes")
			if busy.code != exitFailed || !strings.Contains(busy.err, "NON_EMPTY_GROUP") {
				t.Errorf("a deletion of a group with members: exit %d\n%s", busy.code, busy.err)
			}
			busy = troupe(t, "", []string{"TROUPE_BOOTSTRAP=" + p.addr()}, "group", "delete-offsets", c.group, "--topic", "orders")
			if busy.code != exitFailed || !strings.Contains(busy.err, "GROUP_SUBSCRIBED_TO_TOPIC") {
				t.Errorf("a deletion of offsets that are in use: exit %d\n%s", busy.code, busy.err)
			}
			client.Close()
			p.resets(t, c.group, old)
		})
	}
	p.stop(t)
}

// resets moves the offsets of an empty group in each way, and deletes it.
func (p *process) resets(t *testing.T, group string, old int64) {
	t.Helper()
	committed := func() int64 {
		g := described(t, p, group)
		if g.State != "Empty" || len(g.Offsets) != 1 || g.Offsets[0].Committed == nil {
			t.Fatalf("described as %+v", g)
		}
		return *g.Offsets[0].Committed
	}
	file := filepath.Join(t.TempDir(), "offsets.csv")
	if err := os.WriteFile(file, []byte(group+",orders,0,4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := time.UnixMilli(old + 3*60_000).UTC().Format(time.RFC3339Nano)
	for _, c := range []struct {
		args []string
		want int64
	}{
		{[]string{"--to-earliest", "--all-topics"}, 0},
		{[]string{"--to-offset", "5", "--topic", "orders:0"}, 5},
		{[]string{"--shift-by", "-2", "--topic", "orders"}, 3},
		{[]string{"--to-latest", "--topic", "orders"}, 10},
		{[]string{"--to-datetime", at, "--topic", "orders"}, 3},
		{[]string{"--by-duration", "PT54M30S", "--topic", "orders"}, 6},
		{[]string{"--to-current", "--all-topics"}, 6},
		{[]string{"--from-file", file}, 4},
	} {
		before := committed()
		dry := p.cli(t, "", append([]string{"group", "reset", group, "-o", "json"}, c.args...)...)
		if now := committed(); now != before {
			t.Errorf("%q: without --execute it moved from %d to %d", c.args, before, now)
		}
		var rows []resetRow
		if err := json.Unmarshal([]byte(dry), &rows); err != nil || len(rows) != 1 || rows[0].New != c.want || rows[0].Old == nil || *rows[0].Old != before {
			t.Errorf("%q: it would do %s, want %d", c.args, dry, c.want)
		}
		if out := p.cli(t, "", append([]string{"group", "reset", group, "--execute", "--export"}, c.args...)...); out != fmt.Sprintf("orders,0,%d\n", c.want) {
			t.Errorf("%q: exported %q, want offset %d", c.args, out, c.want)
		}
		if now := committed(); now != c.want {
			t.Errorf("%q: committed %d, want %d", c.args, now, c.want)
		}
	}
	if out := p.cli(t, "", "group", "delete-offsets", group, "--topic", "orders:0"); !strings.Contains(out, "deleted") {
		t.Errorf("delete-offsets: %s", out)
	}
	if out := p.cli(t, "", "group", "reset", group, "--topic", "orders", "--to-offset", "2", "--execute"); !strings.Contains(out, "reset") {
		t.Errorf("a reset of a group without commits: %s", out)
	}
	if out := p.cli(t, "", "group", "delete", group, "--yes"); !strings.Contains(out, "deleted") {
		t.Errorf("delete: %s", out)
	}
	gone := troupe(t, "", []string{"TROUPE_BOOTSTRAP=" + p.addr()}, "group", "describe", group)
	if gone.code != exitFailed || !strings.Contains(gone.err, "TRP-1106") {
		t.Errorf("after its deletion: exit %d\n%s%s", gone.code, gone.out, gone.err)
	}
}

// What a monitor tells of jumps is shown, and that it is not the coordinator's; one that is not there is not missed.
func TestJumpsAreToldByTheMonitor(t *testing.T) {
	monitor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/groups" || r.URL.Query().Get("group") != "a/b" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(`{"group":"a/b","state":"Empty","type":"classic","offsets":[
			{"topic":"orders","partition":1,"offset":40,"jump":{"from":10,"to":40,"records":30,"at":"2026-01-31T12:00:00Z","reason":"no committed offset"}},
			{"topic":"orders","partition":0,"offset":7}]}`))
	}))
	defer monitor.Close()
	address := strings.TrimPrefix(monitor.URL, "http://")
	for _, c := range []struct{ group, monitor, want, notAsked string }{
		{"a/b", address, "skipped 30 records (10 to 39) at 2026-01-31T12:00:00Z: no committed offset", ""},
		{"other", address, "", "what the group skipped is told by the monitor of broker 2, its coordinator (--monitor); " + address + " is another broker's"},
		{"a/b", "127.0.0.1:1", "", ""},
		{"a/b", "", "", ""},
		{"a/b", "no host", "", ""},
	} {
		g := describedGroup{Group: c.group, Coordinator: 2, Offsets: []describedOffset{{Topic: "orders"}, {Topic: "orders", Partition: 1}}}
		g.fillJumps(t.Context(), c.monitor)
		got := ""
		if g.Offsets[1].Jump != nil {
			got = g.Offsets[1].Jump.String()
		}
		if got != c.want || g.Offsets[0].Jump != nil {
			t.Errorf("%+v: %q", c, got)
		}
		var text strings.Builder
		g.text(&text, describeParts{state: true, offsets: true})
		if g.NotAsked != c.notAsked || !strings.Contains(text.String(), c.notAsked) {
			t.Errorf("%+v: %q\n%s", c, g.NotAsked, text.String())
		}
		if strings.Contains(text.String(), "- s") {
			t.Errorf("a lag of no known seconds:\n%s", text.String())
		}
	}
}

func TestDescribeShowsWhatAGroupJumpedOver(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "data"))
	p.cli(t, "", "topic", "create", "orders")
	p.cli(t, "one\ntwo\nthree\n", "produce", "orders")
	client, err := kgo.NewClient(kgo.SeedBrokers(p.addr()), kgo.ConsumerGroup("late"), kgo.ConsumeTopics("orders"), kgo.ConsumeStartOffset(kgo.NewOffset().AtEnd()),
		kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for got := 0; got == 0; { // it finds the end at a moment of its own
		p.cli(t, "more\n", "produce", "orders")
		soon := bounded(t, time.Second)
		got = client.PollFetches(soon).NumRecords()
	}
	if err := client.CommitUncommittedOffsets(bounded(t, 10*time.Second)); err != nil {
		t.Fatal(err)
	}
	out := p.cli(t, "", "group", "describe", "late", "--monitor", p.Metrics)
	if !strings.Contains(out, "orders-0 skipped ") || !strings.Contains(out, ": no committed offset") {
		t.Errorf("nothing of a jump:\n%s", out)
	}
	p.stop(t)
}
