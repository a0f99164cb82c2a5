package main

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/troupe-broker/troupe/bench/chaos/check"
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

// TestKilledBrokerKeepsWhatItAcknowledged kills a broker that is alone, under load; topics come and go meanwhile.
func TestKilledBrokerKeepsWhatItAcknowledged(t *testing.T) {
	play(t, "-brokers=1", "-partitions=2", "-nemeses=kill-all,kill-twice", fmt.Sprint("-seconds=", fromEnv(t, "TROUPE_TEST_KILL_SECONDS", 12)))
}

// TestFaultsTakeNothingFromACluster lets every fault come over three brokers, of whom two were upgraded (to the same binary, unless somebody names an older one to
// begin with): whatever was acknowledged is on all three in the end, byte by byte.
func TestFaultsTakeNothingFromACluster(t *testing.T) {
	older, ok := os.LookupEnv("TROUPE_TEST_OLDER")
	if !ok {
		older = troupe
	}
	play(t, "-another="+older, "-nemeses="+strings.Join(withoutTestBuild(), ","), fmt.Sprint("-seconds=", fromEnv(t, "TROUPE_TEST_CLUSTER_SECONDS", 15)))
}

// TestRollingRestartFailsNoWrite restarts three brokers one after another under load, when `troupe roll` says so: clients try again, and no record is refused or
// left without an answer.
func TestRollingRestartFailsNoWrite(t *testing.T) {
	var report strings.Builder
	o, err := parseOptions([]string{"-troupe=" + troupe, "-nemeses=" + rollName, "-seconds=5", "-enough=100"}, &report)
	if err != nil {
		t.Fatal(err)
	}
	lib, err := o.library(t.Context(), &printer{Writer: &report})
	if err != nil {
		t.Fatal(err)
	}
	if lib == nil {
		o.clients = []string{franzGo}
	}
	dir := t.TempDir()
	r := o.once(t.Context(), lib, testSeed(t), filepath.Join(dir, "run"))
	t.Log(report.String() + r.lines())
	if r.failed() || r.unknown > 0 {
		t.Errorf("%d records were not acknowledged\n%s", r.unknown, r.story())
	}
	if len(r.faults) != 1 || len(strings.Fields(r.faults[0].Text)) != 4 {
		t.Errorf("not each of three brokers was restarted: %v", r.faults)
	}
}

// TestPowerLossTakesNothingThatWasSynced lets brokers lose what their disks had not been told to keep, and their clocks go wrong. The seed is one whose schedule
// takes the power from all of them: what one alone has lost, the others give back.
func TestPowerLossTakesNothingThatWasSynced(t *testing.T) {
	args := []string{"-nemeses=power-loss,power-loss-all,pause-power,clock-jump,clock-drift", fmt.Sprint("-seconds=", fromEnv(t, "TROUPE_TEST_POWER_SECONDS", 12))}
	o, err := parseOptions(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	seed, all := testSeed(t), func(s step) bool { return s.nemesis == "power-loss-all" }
	for steps, _ := o.plan(seed); !slices.ContainsFunc(steps, all); steps, _ = o.plan(seed) {
		seed++
	}
	play(t, append(args, fmt.Sprint("-seed=", seed))...)
}

// withoutTestBuild names the faults of the product's own binary. Damage is for longer runs: its repair may take a minute.
func withoutTestBuild() (names []string) {
	for _, f := range nemeses() {
		if f.needs&testBuild == 0 && f.name != bitFlipName && f.name != bitRotName {
			names = append(names, f.name)
		}
	}
	return names
}

func TestEachRunIsDealtWhatItsBuildBears(t *testing.T) {
	o := options{nemeses: nemesisNames(), brokers: 3}
	count := map[need]int{}
	for seed := range uint64(12) {
		names, with := o.deal(seed)
		count[with]++
		for name, want := range map[string]bool{"kill-leader": true, "partition": true, "power-loss": with&testBuild != 0, "power-loss-all": with&strict != 0, diskFullName: with&smallDisks != 0} {
			if got := slices.Contains(names, name); got != want {
				t.Errorf("seed %d, %b: %s is there: %v", seed, with, name, got)
			}
		}
	}
	if count[smallDisks] != 8 || count[testBuild] != 2 || count[testBuild|strict] != 2 {
		t.Errorf("of twelve runs: %v", count)
	}
	o.nemeses = []string{"power-loss-all"}
	if names, with := o.deal(1); len(names) != 1 || with != testBuild|strict {
		t.Errorf("a fault of the test build alone: %v, %b", names, with)
	}
	o = options{nemeses: nemesisNames(), brokers: 3, another: "older"}
	if o.nemeses, _ = o.fit(); slices.Contains(o.nemeses, "power-loss") || slices.Contains(o.nemeses, bitRotName) || !slices.Contains(o.nemeses, "partition") {
		t.Errorf("beside another binary: %v", o.nemeses)
	}
	o = options{nemeses: nemesisNames(), brokers: 1}
	var left []string
	o.nemeses, left = o.fit()
	for _, name := range []string{"partition", "churn", "bit-flip"} {
		if slices.Contains(o.nemeses, name) || !slices.ContainsFunc(left, func(s string) bool { return strings.HasPrefix(s, name+" (") }) {
			t.Errorf("a broker alone is dealt %s; left out: %v", name, left)
		}
	}
}

func TestPaperNamesTheFaultsThatThereAre(t *testing.T) {
	text, err := os.ReadFile("../../docs/chaos.md")
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| ") {
			for i, word := range strings.Split(line, "`") {
				if i%2 == 1 {
					named = append(named, word)
				}
			}
		}
	}
	want := nemesisNames()
	slices.Sort(named)
	slices.Sort(want)
	if !slices.Equal(named, want) {
		t.Errorf("the table names %v, and there are %v", named, want)
	}
}

func TestHelpNamesEveryFault(t *testing.T) {
	text := usage()
	for _, f := range nemeses() {
		if !strings.Contains(text, "  "+f.name+" ") || f.does == "" {
			t.Errorf("nothing is said of %s", f.name)
		}
	}
	if note := (others | smallDisks).note(); note != " (takes several brokers, root)" {
		t.Errorf("the note is %q", note)
	}
}

func TestPageShowsWhatHappened(t *testing.T) {
	events := []check.Event{
		{Kind: check.Leader, TP: "t-0", T1: 100_000, Broker: 2, Text: "leader 2"},
		{Kind: check.Leader, TP: "t-0", T1: 900_000, Broker: 1, Epoch: 1, Text: "leader 1"},
		{Kind: check.Send, Worker: "franz0", TP: "t-0", T0: 1, T1: 400_000, Outcome: check.OK},
		{Kind: check.Fault, Worker: "kill-leader", T0: 500_000, T1: 800_000, Text: "broker 2 <b>"},
		{Kind: check.Usage, Worker: "broker-1", T1: 300_000, Load: &check.Load{Anon: 30 << 20, Goroutines: 7}},
		{Kind: check.Usage, Worker: "broker-1", T1: 1_000_000, Load: &check.Load{Anon: 15 << 20, Goroutines: 5}},
		{Kind: check.Final, TP: "t-0"},
	}
	r := result{seed: 3, length: time.Second, violations: check.All(events)}
	r.measure(events, 0, 1_000_000)
	var page strings.Builder
	if err := r.draw(&page, events); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"seed 3", "FAILED", "lost t-0: record franz0/0", `<rect class="fault" x="640" y="0" width="300" height="13"><title>0.5 to 0.8 s, kill-leader: broker 2 &lt;b&gt;`,
		`<rect class="b1" x="240" y="0" width="800"`, `<rect class="b0" x="1040" y="0" width="100"`, "440.0,0.0 1140.0,45.0",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, foreign := range []string{"http:", "https:", "src=", "@import"} {
		if strings.Contains(page.String(), foreign) {
			t.Errorf("the page needs something else: %q", foreign)
		}
	}
	if t.Failed() {
		t.Log(page.String())
	}
}

func testSeed(t *testing.T) uint64 {
	t.Helper()
	return uint64(fromEnv(t, "TROUPE_TEST_SEED", int(time.Now().UnixNano())))
}

// play is the command, with the binary of the tests. A run is judged; how fast the machine is, is not.
func play(t *testing.T, args ...string) {
	t.Helper()
	args = append([]string{"-troupe=" + troupe, "-enough=100", "-dir=" + t.TempDir(), fmt.Sprint("-seed=", testSeed(t))}, args...)
	var report strings.Builder
	o, err := parseOptions(args, &report)
	if err != nil {
		t.Fatal(err)
	}
	err = o.run(t.Context(), &report)
	t.Log(report.String())
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheSeedDecidesTheSchedule(t *testing.T) {
	count, besides := map[string]int{}, 0
	for seed := range uint64(100) {
		steps := schedule(seed, nemesisNames(), 12, time.Minute)
		if !reflect.DeepEqual(steps, schedule(seed, nemesisNames(), 12, time.Minute)) {
			t.Errorf("seed %d has two schedules", seed)
		}
		if len(steps) < 4 {
			t.Errorf("seed %d has only %d faults", seed, len(steps))
		}
		for _, s := range steps {
			count[s.nemesis]++
			if s.beside != "" {
				besides++
			}
			if s.beside == s.nemesis || s.beside == "pause" {
				t.Errorf("seed %d: %v", seed, s)
			}
			if s.at+s.hold > time.Minute || s.partition < 0 || s.partition >= 12 {
				t.Errorf("seed %d: %v at %v", seed, s, s.at)
			}
		}
	}
	if besides < 200 {
		t.Errorf("only %d faults came beside others in 100 runs", besides)
	}
	for _, name := range nemesisNames() {
		if count[name] < 10 {
			t.Errorf("%s came only %d times in 100 runs", name, count[name])
		}
	}
}

func TestValuesAreRecognised(t *testing.T) {
	for _, n := range []int64{0, 1, 25, 1499, 100_000} {
		v := value("w1", "t-0", n, 500)
		if r := recognise(v, "t-0", 7); r.Worker != "w1" || r.Number != n || r.Offset != 7 || r.CRC != crc32.ChecksumIEEE(v) {
			t.Errorf("value %d reads as %+v", n, r)
		}
		if r := recognise(v, "t-1", 7); r.Worker != "" {
			t.Errorf("a record of another partition is recognised as %+v", r)
		}
	}
	if r := recognise([]byte("hello"), "t-0", 0); r.Worker != "" {
		t.Errorf("a strange value is recognised as %+v", r)
	}
}

func TestGapsLieBetweenAcknowledgements(t *testing.T) {
	sends := func(times ...int64) (events []check.Event) {
		for _, at := range times {
			events = append(events, check.Event{Kind: check.Send, Worker: "franz0", TP: "t-0", T1: at, Outcome: check.OK})
		}
		return events
	}
	for _, c := range []struct {
		times []int64
		want  gap
	}{
		{[]int64{10, 20, 70, 80}, gap{20, 70}},
		{[]int64{80, 10, 20, 70}, gap{20, 70}},
		{[]int64{90}, gap{}},
		{[]int64{10, 20, 300}, gap{20, 100}}, // settled after the load
	} {
		var r result
		if r.measure(sends(c.times...), 5, 100); r.gaps["t-0"] != c.want {
			t.Errorf("acknowledged at %v: %v, want %v", c.times, r.gaps["t-0"], c.want)
		}
	}
}

func TestProgressIsWhatBeganAfterwards(t *testing.T) {
	const since = 1_000_000
	send := func(tp string, t0, t1 int64, o check.Outcome) check.Event {
		return check.Event{Kind: check.Send, TP: tp, T0: t0, T1: t1, Outcome: o}
	}
	p := progressSince([]check.Event{
		send("t-0", since-1, since+1, check.OK), send("t-0", since+5, since+900, check.OK), send("t-0", since, since+300, check.OK), send("t-0", since, since+2, check.Info),
		send("t-1", since-9, since-1, check.OK),
		{Kind: check.Commit, Group: "g", TP: "t-0", T0: since, T1: since + 6_000_000, Outcome: check.OK},
	}, since)
	if len(p) != 3 || p["t-0"] != 300*time.Microsecond || p["group g on t-0"] != 6*time.Second || p["t-1"] <= progressMax || p.worst() != 6*time.Second {
		t.Errorf("progress is %v", p)
	}
	if missed := p.missed(); missed != "group g on t-0 (6.0 s), t-1 (5.0 s)" {
		t.Errorf("missed: %s", missed)
	}
	r, total := result{progress: p, gaps: map[string]gap{}, notes: []string{"t-1 is still damaged"}, damaged: 1}, result{}
	if lines := r.lines(); !strings.Contains(lines, "no progress within 5s of the end of all faults: group g on t-0 (6.0 s), t-1 (5.0 s)\n  t-1 is still damaged\n") {
		t.Errorf("the run's lines are\n%s", lines)
	}
	for _, one := range []result{r, {progress: progress{"t-0": progressMax}}, r} {
		total.add(one)
	}
	if sum := total.sum(); !strings.HasSuffix(sum, "; runs without progress within 5s: 2, with damage that stayed: 2") {
		t.Errorf("the sum is %q", sum)
	}
}

// Of a run that failed a person wants to know what is wrong, what happened around it, and where to look.
func TestTheStoryOfAFailedRunHasATimeline(t *testing.T) {
	events := []check.Event{
		{Kind: check.Send, Worker: "franz0", TP: "t-0", T0: 1_000_000, T1: 2_000_000, Outcome: check.OK},
		{Kind: check.Send, Worker: "librd0", TP: "t-1", T0: 1_000_000, T1: 2_500_000, Outcome: check.Info, Text: "timed out"},
		{Kind: check.Leader, TP: "t-0", T1: 1_500_000, Text: "leader 2"},
		{Kind: check.Leader, TP: "t-1", T1: 1_600_000, Text: "leader 3"},
		{Kind: check.Fault, Worker: "kill-leader", T0: 1_400_000, T1: 3_000_000, Text: "broker 1"},
		{Kind: check.Fatal, Worker: "broker-1", T0: 1_450_000, T1: 1_450_000, Text: "it ended by itself"},
		{Kind: check.Final, TP: "t-0"},
		{Kind: check.Final, TP: "t-1"},
	}
	r := result{seed: 7, dir: "/runs/seed-7", length: time.Second, violations: check.All(events)}
	r.measure(events, 0, 3_000_000)
	if !r.failed() {
		t.Error("a run that lost a record has passed")
	}
	if lines := r.lines(); !strings.Contains(lines, "FAILED") || !strings.Contains(lines, "kill-leader 1") || !strings.Contains(lines, "1, librd: timed out") {
		t.Errorf("the run's lines are\n%s", lines)
	}
	story, from := r.story(), 0
	for _, want := range []string{
		"record franz0/0, acknowledged at offset 0, is not in the log", "timeline", "1.400  kill-leader: broker 1, until 3.000", "1.450  !! fatal: broker-1", "1.500  t-0 leader 2",
		"2.000  !! lost t-0", "/runs/seed-7/history",
	} {
		at := strings.Index(story[from:], want)
		if at < 0 {
			t.Fatalf("the story has no %q where it belongs:\n%s", want, story)
		}
		from += at
	}
	if strings.Contains(story, "t-1 leader") {
		t.Errorf("the story tells of a partition with whom nothing is wrong:\n%s", story)
	}
}

func TestWhatPassesIsNotFinal(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{kerr.OffsetOutOfRange, true},
		{fmt.Errorf("fetch: %w", kerr.OffsetOutOfRange), true},
		{&kgo.ErrDataLoss{Topic: "t"}, true},
		{kerr.NotLeaderForPartition, false},
		{&kgo.ErrFirstReadEOF{}, false},
		{io.ErrUnexpectedEOF, false},
	} {
		if got := final(c.err); got != c.want {
			t.Errorf("%v is final: %v", c.err, got)
		}
	}
}

func TestTheCommandRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, args := range [][]string{{"-nemeses=kill-leader,flood"}, {"-clients=sarama"}, {"-brokers=2"}, {"-seconds=1"}, {"-brokers=1", "-another=older"}, {"now"}} {
		if _, err := parseOptions(args, io.Discard); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
}
