package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The built binary, a real socket, a real client.
func TestRecordsSurviveAStopAndAKill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := start(t, dir)
	cluster := p.Cluster
	p.cli(t, "", "topic", "create", "orders", "--partitions", "3")

	client, err := kgo.NewClient(kgo.SeedBrokers(p.addr()), kgo.DefaultProduceTopic("orders"), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	want := map[string]bool{}
	for i := range 300 {
		value := fmt.Sprintf("order %d", i)
		want[value] = true
		r := &kgo.Record{Partition: int32(i % 3), Key: []byte("k"), Value: []byte(value), Headers: []kgo.RecordHeader{{Key: "n", Value: []byte{byte(i)}}}}
		client.Produce(bounded(t, time.Minute), r, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Errorf("produce: %v", err)
			}
		})
	}
	if err := client.Flush(bounded(t, time.Minute)); err != nil {
		t.Fatal(err)
	}

	for _, killed := range []bool{false, true} {
		if killed {
			p.kill(t)
		} else {
			p.stop(t)
		}
		p = start(t, dir)
		if p.Cluster != cluster {
			t.Errorf("killed %v: the cluster was %s and is %s", killed, cluster, p.Cluster)
		}
		found := map[string]bool{}
		for line := range strings.Lines(p.cli(t, "", "consume", "orders")) {
			found[strings.TrimSuffix(line, "\n")] = true
		}
		if len(found) != len(want) {
			t.Errorf("killed %v: %d records were written, and %d are read", killed, len(want), len(found))
		}
		for value := range want {
			if !found[value] {
				t.Errorf("killed %v: %q is gone", killed, value)
			}
		}
	}
	p.stop(t)
}

// What a person sees who follows the README.
func TestGoldenSession(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "data"))
	var b strings.Builder
	say := func(stdin string, args ...string) {
		r := troupe(t, stdin, nil, append(append([]string{}, args...), "--bootstrap", p.addr())...)
		if stdin != "" {
			fmt.Fprintf(&b, "$ printf %q | ", stdin)
		} else {
			b.WriteString("$ ")
		}
		fmt.Fprintf(&b, "troupe %s\n%s%s[exit %d]\n\n", strings.Join(args, " "), r.out, r.err, r.code)
	}
	say("", "topic", "list")
	say("", "topic", "create", "orders", "--partitions", "3", "--config", "retention.ms=86400000")
	say("", "topic", "create", "orders")
	say("", "topic", "create", "orders", "--if-not-exists")
	say("", "topic", "create", "other", "--replication-factor", "3")
	say("", "topic", "create", "other", "--config", "no.such.key=1")
	say("", "topic", "create", "other", "--config", "cleanup.policy=compress")
	say("", "topic", "create", "other", "--partitions", "0")
	say("", "topic", "create", "maybe", "--dry-run")
	say("", "topic", "list")
	say("C-14:paid\nC-15:open\n", "produce", "orders", "--key-separator", ":", "-H", "source=test")
	say("{\"key\":\"C-14\",\"value\":\"shipped\",\"timestamp\":1700000000000}\n", "produce", "orders", "--format", "json", "-z", "zstd")
	say("x\n", "produce", "orders", "--partition", "7")
	say("", "topic", "create", "loose") // nobody knows when a record with acks 0 is there, so its topic is not looked at
	say("x\n", "produce", "loose", "--acks", "0")
	say("", "consume", "orders", "--partition", "1", "--format", "%p@%o %k %v %h\\n")
	say("", "consume", "orders", "--partition", "1", "--from", "-1", "-o", "json")
	say("", "consume", "orders", "--partition", "1", "--from", "5")
	say("", "consume", "orders", "--partition", "9")
	say("", "consume", "nothing")
	say("", "topic", "describe", "orders")
	say("", "topic", "describe", "orders", "-o", "json")
	say("", "topic", "describe", "nothing")
	say("", "topic", "alter", "orders", "--partitions", "4", "--config", "segment.ms=3600000", "--delete-config", "retention.ms")
	say("", "topic", "alter", "orders", "--partitions", "2")
	say("", "config", "describe", "topic", "orders")
	say("", "config", "alter", "topic", "orders", "--set", "retention.ms=many")
	say("", "config", "alter", "topic", "orders", "--set", "max.message.bytes=2000000", "--dry-run")
	say("", "config", "alter", "broker", "default", "--set", "log.retention.ms=7200000")
	say("", "config", "describe", "broker", "default")
	say("", "config", "describe", "broker", "7")
	say("", "topic", "delete", "orders", "--yes")
	say("", "topic", "delete", "orders", "--yes")
	say("", "topic", "list", "-o", "yaml")

	text := b.String()
	for pattern, replacement := range map[string]string{
		regexp.QuoteMeta(p.addr()):             "BROKER",
		`("id": |id:? +)"?[A-Za-z0-9_-]{22}"?`: "${1}ID",
		`"timestamp":1[78]\d{11}`:              `"timestamp":NOW`,
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, replacement)
	}
	golden(t, "session", text)
	p.stop(t)
}

func TestATopicIsCopiedThroughAPipe(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "data"))
	for _, topic := range []string{"from", "to"} {
		p.cli(t, "", "topic", "create", topic, "--partitions", "2")
	}
	p.cli(t, `{"key":"a","value":"1","headers":[{"key":"h","value":"x"}],"timestamp":1700000000000,"partition":1}`+"\n"+
		`{"key_base64":"/wA=","value":null,"timestamp":1700000000001,"partition":0}`+"\n"+
		`{"value":"","timestamp":1700000000002,"partition":1}`+"\n", "produce", "from", "--format", "json")
	p.cli(t, p.cli(t, "", "consume", "from", "-o", "json"), "produce", "to", "--format", "json")
	lines := func(topic string) map[string]bool {
		set := map[string]bool{}
		for line := range strings.Lines(p.cli(t, "", "consume", topic, "-o", "json")) {
			set[strings.Replace(line, `"topic":"`+topic+`"`, `"topic":""`, 1)] = true
		}
		return set
	}
	from, to := lines("from"), lines("to")
	if len(from) != 3 {
		t.Fatalf("%d records, want 3: %v", len(from), from)
	}
	for line := range from {
		if !to[line] {
			t.Errorf("the copy lacks %s", line)
		}
	}
	p.stop(t)
}

func TestFollowingDeliversWhatComesAndEndsWithASignal(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "data"))
	p.cli(t, "", "topic", "create", "t")
	follower, out := launchCLI(t, "consume", "t", "--follow", "--bootstrap", p.addr())
	for _, word := range []string{"one", "two"} {
		p.cli(t, word+"\n", "produce", "t")
		if line, err := out.ReadString('\n'); err != nil || line != word+"\n" {
			t.Fatalf("got %q, %v; want %s", line, err, word)
		}
	}
	if err := follower.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := follower.Wait(); err != nil {
		t.Errorf("an interrupted follower is done, not failed: %v", err)
	}
	p.stop(t)
}

func TestFollowingEndsWithItsTopic(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "data"))
	p.cli(t, "", "topic", "create", "t")
	follower, out := launchCLI(t, "consume", "t", "--follow", "--bootstrap", p.addr())
	p.cli(t, "one\n", "produce", "t")
	if line, err := out.ReadString('\n'); err != nil || line != "one\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	p.cli(t, "", "topic", "delete", "t", "--yes")
	if err := follower.Wait(); follower.ProcessState.ExitCode() != exitFailed {
		t.Errorf("the topic is deleted, and its follower ends with %v", err)
	}
	p.stop(t)
}

// What is before a damaged batch is printed; the client finds the damage first, the broker when it has looked.
func TestReadingEndsAtADamagedBatch(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := start(t, dir)
	p.cli(t, "", "topic", "create", "big")
	for _, value := range []string{"first", "second", "third"} {
		p.cli(t, value+"\n", "produce", "big")
	}
	patch(t, filepath.Join(dir, "big-0", "00000000000000000000.log"), func(all []byte) (int, []byte) { return bytes.Index(all, []byte("second")), []byte("S") })
	for _, looked := range []bool{false, true} {
		r := troupe(t, "", nil, "consume", "big", "--bootstrap", p.addr())
		const want = "troupe: TRP-2103: read big-0: the batch at offset 1 does not pass its checksum\n  hint: `troupe partition verify big:0`"
		if r.out != "first\n" || r.code != exitFailed || !strings.HasPrefix(r.err, want) {
			t.Errorf("looked: %v: exit %d, %q, %q", looked, r.code, r.out, r.err)
		}
		if r := troupe(t, "", nil, "partition", "verify", "big", "--bootstrap", p.addr()); !strings.Contains(r.out, "damaged: offsets 1 to 1") {
			t.Errorf("the check: %q, %q", r.out, r.err)
		}
	}
	p.stop(t)
}

func TestMonitorOfARunningBroker(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "data"))
	p.cli(t, "", "topic", "create", "t")
	p.cli(t, "one\ntwo\n", "produce", "t")
	if status, body := get(t, "http://"+p.Metrics+"/readyz"); status != http.StatusOK {
		t.Errorf("readyz: %d %q", status, body)
	}
	status, body := get(t, "http://"+p.Metrics+"/metrics")
	if status != http.StatusOK {
		t.Errorf("metrics: %d", status)
	}
	for _, name := range []string{"troupe_", "go_goroutines", "process_open_fds"} {
		if !strings.Contains(body, "\n"+name) {
			t.Errorf("there is no metric %s…", name)
		}
	}
	p.stop(t)
}

func TestStartsThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "troupe.yaml")
	if err := os.WriteFile(file, []byte("num.partitions: 3\nlog.retension.ms: 1000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	running := start(t, filepath.Join(dir, "data"))
	for _, c := range []struct {
		name string
		args []string
		exit int
		want []string
	}{
		{"an unknown key", []string{"--config", file}, exitUsage, []string{"TRP-1004", file + ":2:1", "log.retention.ms", "log.retension.ms: 1000"}},
		{"every interface", []string{"--listen", "0.0.0.0:0"}, exitUsage, []string{"TRP-1007", "--advertise"}},
		{"a cluster", []string{"--join", "10.0.0.1:9093"}, exitUsage, []string{"TRP-1007", "--join", "--peer-listen"}},
		{"three brokers", []string{"--bootstrap-expect", "3", "--peer-listen", "127.0.0.1:0"}, exitUsage, []string{"TRP-1007", "--bootstrap-expect", "--broker-id N"}},
		{"two brokers", []string{"--bootstrap-expect", "2"}, exitUsage, []string{"TRP-1002", "--bootstrap-expect", "1, 3 or 5"}},
		{"a peer port without keys", []string{"--peer-listen", "10.0.0.1:9093"}, exitUsage, []string{"TRP-1007", "--peer-listen 10.0.0.1:9093 --insecure"}},
		{"a peer port everywhere", []string{"--peer-listen", "0.0.0.0:9093", "--insecure"}, exitUsage, []string{"TRP-1007", "--peer-advertise HOST:9093"}},
		{"a peer port in use", []string{"--listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "other"), "-X", "metrics.listen=", "--peer-listen", running.addr()}, exitFailed, []string{"TRP-1009", running.addr()}},
		{"an address in use", []string{"--listen", running.addr(), "--data-dir", filepath.Join(dir, "other"), "-X", "metrics.listen="}, exitFailed, []string{"TRP-1009", running.addr()}},
		{"another broker at both addresses", []string{"--listen", running.addr(), "--data-dir", filepath.Join(dir, "other"), "-X", "metrics.listen=" + running.Metrics}, exitFailed, []string{"TRP-1009", running.addr(), "is another broker running?"}},
		{"a monitor's address in use", []string{"--listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "other"), "-X", "metrics.listen=" + running.Metrics}, exitFailed, []string{"TRP-1009", running.Metrics}},
		{"another broker's directory", []string{"--listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "data"), "-X", "metrics.listen="}, exitFailed, []string{"TRP-2001"}},
		{"a file for a directory", []string{"--listen", "127.0.0.1:0", "--data-dir", file, "-X", "metrics.listen="}, exitFailed, []string{"TRP-2012"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, out := launch(t, c.args...)
			if line, err := out.ReadString('\n'); err == nil {
				t.Errorf("it said %q", line)
			}
			if code := p.wait(t); code != c.exit {
				t.Errorf("exit %d, want %d", code, c.exit)
			}
			for _, want := range c.want {
				// With -o json the error is an object, whose strings are quoted.
				quoted, err := json.Marshal(want)
				if err != nil {
					t.Fatal(err)
				}
				if log := p.log(t); !strings.Contains(log, strings.Trim(string(quoted), `"`)) {
					t.Errorf("it does not say %q:\n%s", want, log)
				}
			}
		})
	}
	running.stop(t)
}

func TestDumpReadsWhatABrokerWrote(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := start(t, dir)
	p.cli(t, "", "topic", "create", "orders", "--config", "retention.ms=86400000")
	p.cli(t, strings.Repeat("again and ", 100)+"\n", "produce", "orders", "-z", "lz4")
	p.stop(t)
	for _, c := range []struct {
		path string
		want []string
	}{
		{"orders-0", []string{"lz4", "true", "topic_id"}},
		{"raft", []string{"TopicRecord", "orders", "Name:retention.ms Value:86400000", "RegisterBrokerRecord"}},
		{".", []string{"cluster.id", p.Cluster, "orders"}},
	} {
		r := troupe(t, "", nil, "dump", "--check", filepath.Join(dir, c.path))
		if r.code != exitDone {
			t.Errorf("%s: exit %d\n%s", c.path, r.code, r.err)
		}
		for _, want := range c.want {
			if !strings.Contains(r.out, want) {
				t.Errorf("%s: there is no %q in\n%s", c.path, want, r.out)
			}
		}
	}
}

func TestExtensionActorsRunAndTheirBugsHarmNobody(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p, out := launch(t, "--listen", "127.0.0.1:0", "--data-dir", dir, "-X", "metrics.listen=", "-X", "actors.enabled=observer.nobody")
	if line, err := out.ReadString('\n'); err == nil {
		t.Errorf("it said %q", line)
	}
	if code := p.wait(t); code != exitUsage || !strings.Contains(p.log(t), "TRP-5001") || !strings.Contains(p.log(t), "flag -X") {
		t.Errorf("an unknown actor: exit %d\n%s", code, p.log(t))
	}

	p = start(t, dir, "-X", "actors.enabled=observer.topichits", "-X", "actors.observer.topichits.panic.after=1")
	p.cli(t, "", "topic", "create", "t")
	p.cli(t, "one\n", "produce", "t")
	counted := func() bool {
		_, body := get(t, "http://"+p.Metrics+"/metrics")
		return strings.Contains(body, `troupe_actor_panics_total{kind="observer.topichits"} 1`)
	}
	for deadline := time.Now().Add(10 * time.Second); !counted(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the actor did not panic, or nobody counted it")
		}
	}
	p.cli(t, "two\n", "produce", "t")
	if out := p.cli(t, "", "consume", "t"); out != "one\ntwo\n" {
		t.Errorf("read %q", out)
	}
	p.stop(t)
}

func TestOneBrokerMeansWhatTheClusterFlagsSayOfIt(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "data"), "--broker-id", "7", "--rack", "left", "--bootstrap-expect", "1")
	if p.Broker != 7 {
		t.Errorf("the broker is %d, want 7", p.Broker)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(p.addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Ping(bounded(t, 10*time.Second)); err != nil {
		t.Fatal(err)
	}
	if out := p.cli(t, "", "config", "describe", "broker", "7"); !strings.Contains(out, "broker.rack") || !strings.Contains(out, "left") {
		t.Errorf("the broker does not describe its rack:\n%s", out)
	}
	p.stop(t)
}

func TestASecondSignalEndsAtOnce(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "data"))
	client, err := kgo.NewClient(kgo.SeedBrokers(p.addr()), kgo.DefaultProduceTopic("t"), kgo.AllowAutoTopicCreation())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(bounded(t, 10*time.Second), kgo.StringRecord("x")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	p.signal(t, syscall.SIGTERM)
	// The broker may be done before the second signal comes; both ends are right.
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	if code := p.wait(t); code != exitInterrupted && code != exitDone {
		t.Errorf("exit %d, want %d or %d", code, exitInterrupted, exitDone)
	}
}

func TestStartIsQuickAndIdlingIsSmall(t *testing.T) {
	const (
		newDirectory = 5 * time.Second // until a record was written and read
		idleKiB      = 25 << 10
	)
	dir := filepath.Join(t.TempDir(), "data")
	p := start(t, dir)
	idle := p.status(t, "RssAnon")
	p.cli(t, "", "topic", "create", "t")
	p.cli(t, "x\n", "produce", "t")
	if out := p.cli(t, "", "consume", "t"); out != "x\n" {
		t.Errorf("read %q", out)
	}
	first := time.Since(p.began)
	p.stop(t)

	again := start(t, dir)
	ready := time.Since(again.began)
	again.stop(t)
	t.Logf("new directory: record written and read after %v; existing directory: ready after %v; idle: %d KiB of its own", first.Round(time.Millisecond), ready.Round(time.Millisecond), idle)
	if first > newDirectory {
		t.Errorf("the first record took %v, more than %v", first, newDirectory)
	}
	if idle > idleKiB {
		t.Errorf("an idle broker has %d KiB of its own, more than %d", idle, idleKiB)
	}
}

// There are no transactions yet: a client that wants one is told at once, with words.
func TestTransactionsAreRefused(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "data"))
	client, err := kgo.NewClient(kgo.SeedBrokers(p.addr()), kgo.TransactionalID("x"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err = client.BeginTransaction(); err == nil {
		err = client.ProduceSync(bounded(t, 10*time.Second), &kgo.Record{Topic: "t", Value: []byte("x")}).FirstErr()
	}
	if err == nil {
		t.Error("a transactional record was taken")
	}
	if errors.Is(err, kerr.UnknownServerError) {
		t.Errorf("the refusal has no words: %v", err)
	}
	p.stop(t)
}
