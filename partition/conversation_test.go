package partition_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// TestConversations plays the scripts of testdata: a command above the line, below
// it what the machine asked of its shell, in the order of the duties, and last the
// machine's offsets.
//
// go test ./partition -run Conversations -rewrite
//
// writes the answers anew. Commit such a diff only when you can say for each changed
// line why the new answer is the right one: the transcripts are the specification.
func TestConversations(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < 10 {
		t.Fatalf("%d conversations in testdata, there should be more", len(paths))
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			var c conversation
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				t.Helper()
				return c.play(t, d)
			})
		})
	}
}

// conversation is one machine, a clock and the last bundle.
type conversation struct {
	m       *partition.Machine
	options partition.Options
	now     partition.Now
	out     partition.Out
	d       *datadriven.TestData
}

// defaults of the settings; a script changes them with new and configure.
var testConfig = partition.Config{
	MinISR:               1,
	DeleteRecords:        true,
	FlushMessages:        1 << 62,
	ProducerExpirationMs: 86400000,
	ProducerCheckNanos:   600000 * millisecond,
	ProducersMax:         100,
	ProduceWaitersMax:    100,
	FetchWaitersMax:      100,
	AskBytesMax:          1000,
	AskBackoffNanos:      3200 * millisecond,
}

const millisecond = 1000000

func (c *conversation) play(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	a := args{t: t, d: d, used: map[string]bool{}}
	c.out.Reset()
	c.d = d
	panicked := c.do(&a)
	a.allUsed()
	if panicked != "" {
		return "panic: " + panicked + "\n"
	}
	if err := c.m.Check(); err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	return c.transcript()
}

// do carries out one line of the script. It returns the message of a panic.
func (c *conversation) do(a *args) (panicked string) {
	defer func() {
		if p := recover(); p != nil {
			panicked = fmt.Sprint(p)
		}
	}()
	switch verb := a.d.Cmd; verb {
	case "new":
		c.open(a)
	case "become":
		c.step(a.become())
	case "configure":
		c.options.Config = a.config(c.options.Config)
		c.step(&partition.Configure{Config: c.options.Config})
	case "append":
		c.append(a)
	case "looked":
		c.step(&partition.Looked{Room: a.has("room")})
	case "flushed":
		c.step(&partition.Flushed{Generation: ident.Generation(a.num("generation", 1)), End: ident.Offset(a.num("end", 0))})
	case "progress", "ask", "withdraw", "answered", "watermark", "connected", "disconnected", "truncated", "truncate-failed":
		c.replicate(a)
	case "fetch":
		c.step(&partition.Fetch{
			Request: a.request(), From: ident.Offset(a.num("from", 0)), After: ident.Offset(a.num("after", -1)),
			BytesMin: int32(a.num("min", 1)), BytesMax: int32(a.num("max", 1000)), Park: a.has("park"),
			Isolation: partition.Isolation(a.num("isolation", 0)), CurrentLeaderEpoch: ident.LeaderEpoch(a.num("epoch", -1)),
			LastFetchedEpoch: ident.LeaderEpoch(a.num("last-epoch", -1)),
			AnyReplica:       a.has("any"), Near: a.near(),
		})
	case "unpark":
		c.step(&partition.Unpark{Request: a.request()})
	case "rolled":
		c.step(&partition.Rolled{Base: ident.Offset(a.num("base", 0))})
	case "delete-records":
		d := &partition.DeleteRecords{Request: a.request(), Before: ident.Offset(a.num("before", -1))}
		if ms := a.num("timeout", 0); ms > 0 {
			d.Deadline = c.now.Mono + ident.Instant(ms*millisecond)
		}
		c.step(d)
	case "trim":
		c.step(&partition.Trim{Start: ident.Offset(a.num("start", 0))})
	case "list-offsets":
		c.step(&partition.ListOffsets{
			Request: a.request(), Timestamp: ident.Millis(a.num("timestamp", -1)),
			Isolation: partition.Isolation(a.num("isolation", 0)), CurrentLeaderEpoch: ident.LeaderEpoch(a.num("epoch", -1)),
		})
	case "epoch-end":
		c.step(&partition.EpochEnd{
			Request: a.request(), Epoch: ident.LeaderEpoch(a.num("of", 0)), CurrentLeaderEpoch: ident.LeaderEpoch(a.num("epoch", -1)),
		})
	case "describe-producers":
		c.step(&partition.DescribeProducers{Request: a.request()})
	case "strict-cleared":
		c.step(&partition.StrictCleared{LeaderEpoch: ident.LeaderEpoch(a.num("epoch", int64(c.m.LeaderEpoch())))})
	case "replication": // drawn with the transcript
	case "stop":
		c.step(&partition.Stop{Code: a.code("code")})
	case "tick":
		// Both clocks move; the wall clock can be moved alone.
		c.now.Mono += ident.Instant(a.num("ms", 0) * millisecond)
		c.now.Wall += ident.Millis(a.num("ms", 0) + a.num("wall", 0))
		c.m.Tick(c.now, &c.out)
	default:
		a.t.Fatalf("%s: unknown verb %q", a.d.Pos, verb)
	}
	return ""
}

// replicate does what one broker tells another.
func (c *conversation) replicate(a *args) {
	broker, brokerEpoch := ident.BrokerID(a.num("broker", 0)), ident.BrokerEpoch(a.num("broker-epoch", 100))
	epoch, generation := ident.LeaderEpoch(a.num("epoch", int64(c.m.LeaderEpoch()))), ident.Generation(a.num("generation", 1))
	end := ident.Offset(a.num("end", 0))
	high, start := ident.Offset(a.num("hw", 0)), ident.Offset(a.num("start", 0))
	switch a.d.Cmd {
	case "progress":
		c.step(&partition.Progress{Broker: broker, BrokerEpoch: brokerEpoch, Report: partition.Report{
			LeaderEpoch: epoch, Generation: generation, End: end, Flushed: ident.Offset(a.num("flushed", int64(end))), LogStart: start,
		}})
	case "ask":
		last := ident.NoLeaderEpoch
		if end > 0 {
			last = c.m.EpochOf(end - 1)
		}
		c.step(&partition.Ask{Request: a.request(), Broker: broker, BrokerEpoch: brokerEpoch, Inquiry: partition.Inquiry{
			LeaderEpoch: epoch, Generation: generation, From: ident.Offset(a.num("from", int64(end))), LogEnd: end,
			Flushed:        ident.Offset(a.num("flushed", int64(end))),
			LastBatchEpoch: ident.LeaderEpoch(a.num("last-epoch", int64(last))), BytesMax: int32(a.num("max", 1000)),
		}})
	case "withdraw":
		c.step(&partition.Withdraw{Broker: broker, BrokerEpoch: brokerEpoch, Withdrawal: partition.Withdrawal{LeaderEpoch: epoch, Generation: generation}})
	case "answered":
		c.answered(a, &partition.Answered{
			LeaderEpoch: epoch, Generation: generation, From: ident.Offset(a.num("from", int64(c.m.Offsets().End))),
			Code: a.code("code"), HighWatermark: high, LogStart: start,
			Diverging: a.has("diverging-end"), DivergingEpoch: ident.LeaderEpoch(a.num("diverging-epoch", -1)),
			DivergingEnd: ident.Offset(a.num("diverging-end", -1)),
		})
	case "watermark":
		c.step(&partition.Watermark{LeaderEpoch: epoch, Generation: generation, HighWatermark: high, LogStart: start})
	case "connected":
		c.step(&partition.Connected{Broker: broker, Control: a.has("control")})
	case "disconnected":
		c.step(&partition.Disconnected{Broker: broker, BrokerEpoch: brokerEpoch, Own: a.has("own")})
	case "truncated":
		t := &partition.Truncated{Generation: generation, End: end, Flushed: ident.Offset(a.num("flushed", int64(min(end, c.m.Offsets().Flushed))))}
		if a.d.Input != "" {
			t.Producers = partition.NewProducers(c.options.Config.ProducersMax)
			for line := range strings.Lines(a.d.Input) {
				c.recover(a, t.Producers, strings.TrimSpace(line))
			}
		}
		c.step(t)
	case "truncate-failed":
		c.step(&partition.TruncateFailed{})
	}
}

// answered steps an answer with the batches below it, and plays the shell's part in
// writing them, fail=CODE written=N: only the first N.
func (c *conversation) answered(a *args, answer *partition.Answered) {
	for line := range strings.Lines(a.d.Input) {
		b := partition.ReplicaBatch{BatchInfo: partition.BatchInfo{Bytes: 100, MaxTimestamp: 5000, ProducerID: -1, BaseSequence: -1}}
		var count int32
		n, _ := fmt.Sscanf(strings.TrimSpace(line), "batch base=%d count=%d epoch=%d pid=%d pepoch=%d seq=%d",
			&b.Base, &count, &b.LeaderEpoch, &b.ProducerID, &b.ProducerEpoch, &b.BaseSequence)
		if n != 3 && n != 6 {
			a.t.Fatalf("%s: %q is no batch", a.d.Pos, line)
		}
		b.LastOffsetDelta = count - 1
		answer.Batches = append(answer.Batches, b)
	}
	c.step(answer)
	fail, written, full := a.code("fail"), int(a.num("written", 0)), a.has("full")
	if !slices.ContainsFunc(c.out.Persist, func(w partition.Write) bool { return w.Kind == partition.WriteReplica }) {
		return
	}
	if fail != wire.NoError {
		c.step(&partition.AppendFailed{Code: fail, Written: written, Full: full})
		return
	}
	c.step(&partition.Appended{})
}

func (c *conversation) step(cmd partition.Command) { c.m.Step(c.now, cmd, &c.out) }

// append steps a batch and plays the shell's part in writing it, fail=CODE: without
// luck, full: for want of space, hold: not at all.
func (c *conversation) append(a *args) {
	count := a.num("count", 1)
	c.step(&partition.Append{
		Request: a.request(), Acks: int16(a.num("acks", -1)),
		Deadline:      c.now.Mono + ident.Instant(a.num("timeout", 1000)*millisecond),
		LogAppendTime: ident.Millis(a.num("time", -1)),
		Batch: partition.BatchInfo{
			Bytes: int32(a.num("bytes", 100)), LastOffsetDelta: int32(count - 1), MaxTimestamp: ident.Millis(a.num("timestamp", 5000)),
			ProducerID: ident.ProducerID(a.num("pid", -1)), ProducerEpoch: ident.ProducerEpoch(a.num("pepoch", 0)),
			BaseSequence: ident.Sequence(a.num("seq", -1)), Transactional: a.has("transactional"), Control: a.has("control"),
		},
	})
	fail, hold, full := a.code("fail"), a.has("hold"), a.has("full")
	if len(c.out.Persist) == 0 || hold {
		return
	}
	if fail != wire.NoError {
		c.step(&partition.AppendFailed{Code: fail, Full: full})
		return
	}
	c.step(&partition.Appended{})
}

// open makes a machine, as after a restart.
func (c *conversation) open(a *args) {
	c.now = partition.Now{Mono: 1000 * millisecond, Wall: 1000000}
	log := partition.LogState{
		Start: ident.Offset(a.num("start", 0)), End: ident.Offset(a.num("end", 0)),
		Generation: 1, HighWatermark: ident.Offset(a.num("hw", 0)), StrictConfirmed: a.has("strict-confirmed"),
	}
	log.Flushed = ident.Offset(a.num("flushed", int64(log.End)))
	for _, pair := range a.list("epochs") {
		var e partition.EpochStart
		if _, err := fmt.Sscanf(pair, "%d@%d", &e.Epoch, &e.Start); err != nil {
			a.t.Fatalf("%s: epochs=%q is not epoch@start", a.d.Pos, pair)
		}
		log.Epochs = append(log.Epochs, e)
	}
	c.options = partition.Options{Broker: 1, Log: log, Config: a.config(testConfig)}
	c.options.Producers = partition.NewProducers(c.options.Config.ProducersMax)
	for line := range strings.Lines(a.d.Input) {
		c.recover(a, c.options.Producers, strings.TrimSpace(line))
	}
	c.m = partition.New(c.options)
}

// recover plays recovery: a snapshot entry or a batch found in the log.
func (c *conversation) recover(a *args, into *partition.Producers, line string) {
	var e record.ProducerEntry
	var count int32
	if n, _ := fmt.Sscanf(line, "snapshot pid=%d epoch=%d seq=%d offset=%d", &e.ProducerID, &e.ProducerEpoch, &e.LastSequence, &e.LastOffset); n == 4 {
		e.CoordinatorEpoch, e.CurrentTxnFirstOffset, e.Timestamp = -1, -1, 5000
		into.Load([]record.ProducerEntry{e}, c.now.Wall)
		return
	}
	b := partition.BatchInfo{Bytes: 100, MaxTimestamp: 5000}
	if n, _ := fmt.Sscanf(line, "batch base=%d count=%d pid=%d epoch=%d seq=%d", &e.LastOffset, &count, &b.ProducerID, &b.ProducerEpoch, &b.BaseSequence); n != 5 {
		if n, _ := fmt.Sscanf(line, "marker base=%d pid=%d epoch=%d", &e.LastOffset, &b.ProducerID, &b.ProducerEpoch); n != 3 {
			a.t.Fatalf("%s: %q is no batch, marker or snapshot", a.d.Pos, line)
		}
		b.Control, b.Transactional, b.BaseSequence, count = true, true, -1, 1
	}
	b.LastOffsetDelta = count - 1
	into.Replay(e.LastOffset, b, c.now.Wall)
}

// transcript draws the bundle and the offsets.
func (c *conversation) transcript() string {
	var b strings.Builder
	for _, w := range c.out.Persist {
		fmt.Fprintln(&b, w)
	}
	if c.out.Flush {
		fmt.Fprintln(&b, "flush")
	}
	for _, p := range c.out.Propose {
		fmt.Fprintln(&b, p)
	}
	for _, k := range c.out.Condition {
		fmt.Fprintln(&b, k)
	}
	for _, r := range c.out.Reply {
		fmt.Fprintln(&b, r)
	}
	for _, i := range c.out.Ask {
		fmt.Fprintln(&b, i)
	}
	for _, w := range c.out.Withdraw {
		fmt.Fprintln(&b, w)
	}
	for _, r := range c.out.Report {
		fmt.Fprintln(&b, r)
	}
	for _, w := range c.out.Watermark {
		fmt.Fprintln(&b, w)
	}
	for _, a := range c.out.Arm {
		fmt.Fprintf(&b, "arm %v +%dms\n", a.Key, (a.At-c.now.Mono)/millisecond)
	}
	for _, n := range c.out.Note {
		fmt.Fprintln(&b, n)
	}
	if c.d.Cmd == "replication" {
		fmt.Fprintf(&b, "%+v\n", c.m.Replication())
	}
	o := c.m.Offsets()
	fmt.Fprintf(&b, "%v: start=%d hw=%d flushed=%d end=%d\n", c.m.Role(), o.LogStart, o.HighWatermark, o.Flushed, o.End)
	return b.String()
}

// args reads the arguments of one line and fails on what it does not know.
type args struct {
	t    *testing.T
	d    *datadriven.TestData
	used map[string]bool
}

func (a *args) find(key string) (datadriven.CmdArg, bool) {
	a.used[key] = true
	for _, arg := range a.d.CmdArgs {
		if arg.Key == key {
			return arg, true
		}
	}
	return datadriven.CmdArg{}, false
}

func (a *args) has(key string) bool { _, ok := a.find(key); return ok }

func (a *args) list(key string) []string {
	arg, _ := a.find(key)
	return arg.Vals
}

func (a *args) num(key string, otherwise int64) int64 {
	arg, ok := a.find(key)
	if !ok {
		return otherwise
	}
	var n int64
	if _, err := fmt.Sscanf(strings.Join(arg.Vals, ""), "%d", &n); err != nil {
		a.t.Fatalf("%s: %s is not a number", a.d.Pos, arg)
	}
	return n
}

func (a *args) request() ident.RequestID { return ident.RequestID(a.num("request", 0)) }

// near is who is near a reader.
func (a *args) near() (brokers []ident.BrokerID) {
	for _, b := range a.list("near") {
		n, err := strconv.Atoi(b)
		if err != nil {
			a.t.Fatalf("%s: near=%s", a.d.Pos, b)
		}
		brokers = append(brokers, ident.BrokerID(n))
	}
	return brokers
}

func (a *args) code(key string) wire.ErrorCode {
	arg, ok := a.find(key)
	if !ok {
		return wire.NoError
	}
	for c := wire.ErrorCode(1); c.Known(); c++ {
		if c.String() == arg.Vals[0] {
			return c
		}
	}
	a.t.Fatalf("%s: %s is no error code", a.d.Pos, arg)
	return wire.NoError
}

func (a *args) config(c partition.Config) partition.Config {
	c.MinISR = int32(a.num("min-isr", int64(c.MinISR)))
	c.DeleteRecords = c.DeleteRecords && !a.has("compacted")
	c.FlushMessages = a.num("flush-messages", c.FlushMessages)
	c.FlushNanos = a.num("flush-ms", c.FlushNanos/millisecond) * millisecond
	c.ProducersMax = int(a.num("producers-max", int64(c.ProducersMax)))
	c.ProduceWaitersMax = int(a.num("produces-max", int64(c.ProduceWaitersMax)))
	c.FetchWaitersMax = int(a.num("fetches-max", int64(c.FetchWaitersMax)))
	c.LagNanos = a.num("lag-ms", c.LagNanos/millisecond) * millisecond
	c.ProposeRetryNanos = a.num("propose-ms", c.ProposeRetryNanos/millisecond) * millisecond
	c.FullNanos = a.num("full-ms", c.FullNanos/millisecond) * millisecond
	c.ProducerExpirationMs = a.num("expiration-ms", c.ProducerExpirationMs)
	return c
}

// become reads a metadata record. Brokers are 1 (this one), 2, 3; every broker epoch
// is 100 unless epoch-of-2=… says otherwise; full, damaged and barred list brokers.
func (a *args) become() *partition.Become {
	b := &partition.Become{
		Leader: ident.BrokerID(a.num("leader", 1)), LeaderEpoch: ident.LeaderEpoch(a.num("epoch", 0)),
		PartitionEpoch: ident.PartitionEpoch(a.num("partition-epoch", a.num("epoch", 0))), Strict: a.has("strict"), MinISR: int32(a.num("min", 0)),
	}
	replicas := a.list("replicas")
	if replicas == nil {
		replicas = []string{"1"}
	}
	for _, s := range replicas {
		r := partition.Replica{BrokerEpoch: 100}
		if _, err := fmt.Sscan(s, &r.Broker); err != nil {
			a.t.Fatalf("%s: replica %q", a.d.Pos, s)
		}
		r.BrokerEpoch = ident.BrokerEpoch(a.num("epoch-of-"+s, 100))
		b.Replicas = append(b.Replicas, r)
	}
	isr := a.list("isr")
	if isr == nil {
		isr = replicas
	}
	for _, s := range isr {
		var id ident.BrokerID
		if _, err := fmt.Sscan(s, &id); err != nil {
			a.t.Fatalf("%s: isr %q", a.d.Pos, s)
		}
		b.ISR = append(b.ISR, id)
	}
	for _, s := range a.list("full") {
		var id ident.BrokerID
		if _, err := fmt.Sscan(s, &id); err != nil {
			a.t.Fatalf("%s: full %q", a.d.Pos, s)
		}
		b.Full = append(b.Full, id)
	}
	for _, s := range a.list("barred") {
		var id ident.BrokerID
		if _, err := fmt.Sscan(s, &id); err != nil {
			a.t.Fatalf("%s: barred %q", a.d.Pos, s)
		}
		b.Barred = append(b.Barred, id)
	}
	for _, s := range a.list("damaged") {
		var id ident.BrokerID
		if _, err := fmt.Sscan(s, &id); err != nil {
			a.t.Fatalf("%s: damaged %q", a.d.Pos, s)
		}
		b.Damaged = append(b.Damaged, id)
	}
	return b
}

func (a *args) allUsed() {
	for _, arg := range a.d.CmdArgs {
		if !a.used[arg.Key] {
			a.t.Fatalf("%s: %s does not know %s", a.d.Pos, a.d.Cmd, arg)
		}
	}
}
