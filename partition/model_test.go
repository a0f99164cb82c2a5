package partition_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// TestMain gives rapid more runs than its default; the flag still overrides it.
func TestMain(t *testing.M) {
	if err := flag.Set("rapid.checks", "300"); err != nil {
		panic(err)
	}
	t.Run()
}

// TestMachineAgreesWithItsTwin steps random commands into the machine and into a
// naive twin of it, and compares what both say. rapid shrinks what differs and
// prints how to run it again.
func TestMachineAgreesWithItsTwin(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rt)
		m.step("become")
		for range rapid.IntRange(50, 300).Draw(rt, "steps") {
			m.step(rapid.SampledFrom(modelOps).Draw(rt, "op"))
		}
		for k, n := range m.seen {
			seen[k] += n
		}
	})
	// A state that no run reaches is a state that this test does not test.
	for _, k := range []string{
		"append NONE", "append duplicate", "append REQUEST_TIMED_OUT", "append NOT_LEADER_OR_FOLLOWER", "append NOT_ENOUGH_REPLICAS",
		"append NOT_ENOUGH_REPLICAS_AFTER_APPEND", "append OUT_OF_ORDER_SEQUENCE_NUMBER", "append INVALID_PRODUCER_EPOCH",
		"append KAFKA_STORAGE_ERROR", "fetch NONE", "fetch parked", "fetch woken", "fetch diverging", "fetch OFFSET_OUT_OF_RANGE",
		"fetch FENCED_LEADER_EPOCH", "fetch UNKNOWN_LEADER_EPOCH", "delete-records NONE", "delete-records OFFSET_OUT_OF_RANGE",
		"list-offsets OFFSET_NOT_AVAILABLE", "propose", "ask counts", "ask with nothing, below our log start", "ask refused", "strict-cleared", "strict-cleared late",
		"strict-confirmed", "cached again before strict was confirmed",
	} {
		if seen[k] == 0 {
			t.Errorf("no run came to %q", k)
		}
	}
}

var modelOps = []string{
	"append", "append", "append", "append", "append", "flushed", "flushed", "progress", "ask", "ask", "ask", "disconnected", "fetch", "fetch",
	"unpark", "become", "caching", "isr", "delete-records", "trim", "list-offsets", "epoch-end", "tick", "strict-cleared", "rare",
}

type model struct {
	rt      *rapid.T
	m       *partition.Machine
	w       *twin
	now     partition.Now
	out     partition.Out
	config  partition.Config
	request ident.RequestID
	strict  bool
	seen    map[string]int

	proposed   bool // the twin had a proposal out after the last step, based on
	proposedAt ident.PartitionEpoch
}

func newModel(rt *rapid.T) *model {
	c := testConfig
	c.MinISR = int32(rapid.IntRange(1, 3).Draw(rt, "min-isr"))
	return &model{
		rt: rt, config: c, seen: map[string]int{},
		m: partition.New(partition.Options{Broker: 1, Log: partition.LogState{Generation: 1}, Config: c}),
		w: &twin{leader: ident.NoBroker, epoch: ident.NoLeaderEpoch, generation: 1, confirmAt: -1, minISR: int(c.MinISR)},
	}
}

func (m *model) draw(name string, from, to int) int { return rapid.IntRange(from, to).Draw(m.rt, name) }

// rarely draws 1 once in nine times, and else 0. rapid draws the ends of a range, and what
// is small, much more often than the rest.
func (m *model) rarely(name string) int {
	if m.draw(name, 0, 8) == 5 {
		return 1
	}
	return 0
}

// offset draws an offset of some interest.
func (m *model) offset(name string) ident.Offset {
	at := []ident.Offset{m.w.start, m.w.hw, m.w.flushed, m.w.end}[m.draw(name, 0, 3)]
	if at == m.w.end && len(m.w.batches) > 0 && m.draw(name+" kind", 0, 2) == 0 {
		at = m.w.batches[m.draw(name+" batch", 0, len(m.w.batches)-1)].end()
	}
	return max(0, at+ident.Offset(m.draw(name+" off", -1, 1)))
}

// boundary draws the end of a batch, or 0.
func (m *model) boundary(name string) ident.Offset {
	n := len(m.w.batches)
	i := m.draw(name, max(0, n-4), n)
	if i == 0 {
		return 0
	}
	return m.w.batches[i-1].end()
}

func (m *model) step(op string) {
	m.out.Reset()
	m.w.replies, m.w.marks = nil, nil
	m.request++
	parked, unsure := len(m.w.fetches), m.w.strict && m.w.marked && !m.w.holds
	m.do(op)
	m.compare(op)
	if op == "fetch" && len(m.w.fetches) > parked {
		m.seen["fetch parked"]++
	}
	if op != "fetch" && op != "unpark" && len(m.w.fetches) < parked && m.w.leading {
		m.seen["fetch woken"]++
	}
	if len(m.out.Propose) > 0 {
		m.seen["propose"]++
	}
	if unsure && m.w.clearing {
		m.seen["cached again before strict was confirmed"]++
	}
}

func (m *model) do(op string) {
	switch op {
	case "append":
		m.append()
	case "flushed":
		c := &partition.Flushed{Generation: ident.Generation(m.draw("generation", 0, 1)), End: m.boundary("end")}
		m.m.Step(m.now, c, &m.out)
		m.w.flush(c)
	case "progress":
		c := &partition.Progress{
			Broker: ident.BrokerID(m.draw("broker", 2, 4)), BrokerEpoch: ident.BrokerEpoch(m.rarely("broker-epoch")),
			Report: partition.Report{
				LeaderEpoch: m.m.LeaderEpoch() - ident.LeaderEpoch(m.rarely("epoch")),
				Generation:  ident.Generation(1 + m.rarely("generation")), End: m.boundary("end"),
			},
		}
		c.Flushed = min(c.End, m.boundary("flushed"))
		m.m.Step(m.now, c, &m.out)
		m.w.progress(c)
	case "ask":
		m.ask()
	case "disconnected":
		c := &partition.Disconnected{Broker: ident.BrokerID(m.draw("broker", 2, 4))}
		registered := slices.ContainsFunc(m.w.replicas, func(r partition.Replica) bool { return r.Broker == c.Broker && r.BrokerEpoch == 0 })
		m.m.Step(m.now, c, &m.out)
		if m.w.leading && registered {
			m.w.leave(c.Broker)
		}
	case "fetch":
		c := &partition.Fetch{
			Request: m.request, From: m.offset("from"), After: m.offset("after"), BytesMin: int32(m.draw("min", 0, 400)), BytesMax: 77,
			Park: m.draw("park", 0, 3) > 0, CurrentLeaderEpoch: m.epoch("epoch"), LastFetchedEpoch: m.epoch("last"),
		}
		m.m.Step(m.now, c, &m.out)
		m.w.fetch(c)
	case "unpark":
		if len(m.w.fetches) == 0 {
			return
		}
		i := m.draw("which", 0, len(m.w.fetches)-1)
		f := m.w.fetches[i]
		m.w.fetches = slices.Delete(m.w.fetches, i, i+1)
		m.m.Step(m.now, &partition.Unpark{Request: f.Request}, &m.out)
		m.w.answer(&f.Fetch)
	case "become":
		if m.draw("caching", 0, 3) == 0 {
			m.strict = !m.strict
		}
		leader := ident.BrokerID(1 + m.rarely("leader"))
		m.become(leader, m.w.epoch+ident.LeaderEpoch(max(0, m.draw("epoch", -1, 2))), m.w.partitionEpoch+1)
	case "caching": // by itself: the leader, and what waits for it, stay
		m.strict = !m.w.strict
		m.become(m.w.leader, m.w.epoch+1, m.w.partitionEpoch+1)
	case "isr":
		if m.w.epoch >= 0 {
			m.become(m.w.leader, m.w.epoch, m.w.partitionEpoch+ident.PartitionEpoch(m.draw("partition epoch", 0, 1)))
		}
	case "delete-records":
		c := &partition.DeleteRecords{Request: m.request, Before: m.offset("before")}
		if m.draw("all", 0, 2) == 0 {
			c.Before = -1
		}
		m.m.Step(m.now, c, &m.out)
		m.w.deleteRecords(c)
	case "trim":
		if o := m.offset("start"); o > m.w.start && o <= m.w.hw && !m.w.stopped {
			m.m.Step(m.now, &partition.Trim{Start: o}, &m.out)
			m.w.moveStart(o)
		}
	case "list-offsets":
		c := &partition.ListOffsets{
			Request: m.request, Timestamp: ident.Millis(m.draw("timestamp", -2, 0)), CurrentLeaderEpoch: m.epoch("epoch"),
			Isolation: partition.Isolation(m.draw("isolation", 0, 1)),
		}
		m.m.Step(m.now, c, &m.out)
		m.w.listOffsets(c)
	case "epoch-end":
		c := &partition.EpochEnd{Request: m.request, Epoch: m.epoch("of"), CurrentLeaderEpoch: ident.NoLeaderEpoch}
		m.m.Step(m.now, c, &m.out)
		a := partition.EpochEndReply{Epoch: -1, End: -1}
		code := m.w.code(-1)
		if code == wire.NoError {
			a.Epoch, a.End = m.w.epochEnd(c.Epoch)
		}
		m.w.reply(c.Request, partition.ReplyEpochEnd, code).EpochEnd = a
	case "tick":
		m.now.Mono += ident.Instant(m.draw("time", 0, 60))
		m.m.Tick(m.now, &m.out)
		m.w.tick(m.now.Mono)
	case "strict-cleared":
		c := &partition.StrictCleared{LeaderEpoch: m.w.epoch - ident.LeaderEpoch(m.draw("late", 0, 1))}
		m.m.Step(m.now, c, &m.out)
		if m.w.cleared(c.LeaderEpoch) {
			m.seen["strict-cleared"]++
		} else if m.w.clearing {
			m.seen["strict-cleared late"]++
		}
	case "rare":
		// After a stop there is little to see: it is one of the draws that are not likely.
		if m.draw("stop", 0, 20) == 17 && !m.w.stopped {
			m.m.Step(m.now, &partition.Stop{Code: wire.KafkaStorageError}, &m.out)
			m.w.leading, m.w.stopped = false, true
			m.w.settle()
		}
	}
}

// ask lets a follower ask, mostly with a log that is a prefix of the leader's.
func (m *model) ask() {
	c := &partition.Ask{
		Request: m.request, Broker: ident.BrokerID(m.draw("broker", 2, 4)), BrokerEpoch: ident.BrokerEpoch(m.rarely("broker-epoch")),
		Inquiry: partition.Inquiry{
			LeaderEpoch: m.m.LeaderEpoch() - ident.LeaderEpoch(m.rarely("epoch")),
			Generation:  ident.Generation(1 + m.rarely("generation")), LogEnd: m.boundary("end"), LastBatchEpoch: ident.NoLeaderEpoch,
			BytesMax: 99,
		},
	}
	if m.draw("nothing", 0, 3) == 3 {
		c.LogEnd = 0
	}
	c.From, c.Flushed = c.LogEnd, min(c.LogEnd, m.boundary("flushed"))
	if c.LogEnd > 0 {
		c.LastBatchEpoch = m.w.epochOf(c.LogEnd - 1)
	}
	if m.draw("parted", 0, 5) == 0 {
		c.LastBatchEpoch = max(-1, c.LastBatchEpoch+ident.LeaderEpoch(m.draw("by", -2, 2)))
	}
	m.m.Step(m.now, c, &m.out)
	if m.w.ask(c) {
		m.seen["ask counts"]++
		if c.LogEnd < m.w.start {
			m.seen["ask with nothing, below our log start"]++
		}
	} else {
		m.seen["ask refused"]++
	}
}

// epoch draws an epoch near the current one, often none.
func (m *model) epoch(name string) ident.LeaderEpoch {
	if m.draw(name+" checked", 0, 2) > 0 {
		return ident.NoLeaderEpoch
	}
	return max(-1, m.w.epoch+ident.LeaderEpoch(m.draw(name, -3, 1)))
}

func (m *model) append() {
	c := &partition.Append{
		Request: m.request, Acks: int16(m.draw("acks", -1, 1)), Deadline: m.now.Mono + ident.Instant(m.draw("timeout", 0, 100)),
		LogAppendTime: ident.NoTimestamp,
		Batch: partition.BatchInfo{
			Bytes: int32(m.draw("bytes", 61, 200)), LastOffsetDelta: int32(m.draw("count", 0, 3)), ProducerID: ident.ProducerID(m.draw("pid", -1, 2)),
		},
	}
	if c.Batch.ProducerID >= 0 {
		m.sequence(&c.Batch)
	}
	fail := m.rarely("fail") == 1
	m.m.Step(m.now, c, &m.out)
	written := m.w.append(c, fail)
	if got := len(m.out.Persist) > 0; got != written {
		m.rt.Fatalf("the machine writes the batch: %v, its twin: %v", got, written)
	}
	switch {
	case !written:
	case fail:
		m.m.Step(m.now, &partition.AppendFailed{Code: wire.KafkaStorageError}, &m.out)
	default:
		m.m.Step(m.now, &partition.Appended{}, &m.out)
	}
}

// sequence makes the batch the producer's next one, a repetition of an earlier one,
// or something out of order.
func (m *model) sequence(b *partition.BatchInfo) {
	var mine []*twinBatch
	for i := range m.w.batches {
		if m.w.batches[i].info.ProducerID == b.ProducerID {
			mine = append(mine, &m.w.batches[i])
		}
	}
	if len(mine) == 0 {
		b.BaseSequence = ident.Sequence(m.draw("first", 0, 2)) * (1<<30 - 1)
		if m.draw("near the wrap", 0, 1) == 1 {
			b.BaseSequence = 1<<31 - 1 - ident.Sequence(m.draw("distance", 0, 4))
		}
		return
	}
	last := mine[len(mine)-1].info
	switch m.draw("kind", 0, 9) {
	case 0: // repeat one of the last seven
		old := mine[max(0, len(mine)-1-m.draw("back", 0, 6))].info
		b.ProducerEpoch, b.BaseSequence, b.LastOffsetDelta = old.ProducerEpoch, old.BaseSequence, old.LastOffsetDelta
	case 1: // repeat the last
		b.ProducerEpoch, b.BaseSequence, b.LastOffsetDelta = last.ProducerEpoch, last.BaseSequence, last.LastOffsetDelta
	case 2: // a gap, or a step back
		b.ProducerEpoch = last.ProducerEpoch
		b.BaseSequence = ident.Sequence((int64(last.BaseSequence) + int64(m.draw("gap", 0, 9))) % (1 << 31))
	case 3: // another epoch
		b.ProducerEpoch = max(0, last.ProducerEpoch+ident.ProducerEpoch(m.draw("pepoch", -1, 1)))
		b.BaseSequence = ident.Sequence(m.draw("seq", 0, 1))
	default:
		b.ProducerEpoch = last.ProducerEpoch
		b.BaseSequence = ident.Sequence((int64(last.BaseSequence) + int64(last.LastOffsetDelta) + 1) % (1 << 31))
	}
}

func (m *model) become(leader ident.BrokerID, epoch ident.LeaderEpoch, partitionEpoch ident.PartitionEpoch) {
	if epoch < 0 {
		epoch = 0
	}
	if epoch == m.w.epoch {
		leader, m.strict = m.w.leader, m.w.strict
	}
	c := &partition.Become{Leader: leader, LeaderEpoch: epoch, PartitionEpoch: partitionEpoch, Strict: m.strict}
	for id := ident.BrokerID(1); id <= ident.BrokerID(max(int(leader), m.draw("replicas", 1, 3))); id++ {
		c.Replicas = append(c.Replicas, partition.Replica{Broker: id, BrokerEpoch: ident.BrokerEpoch(m.rarely("registration"))})
		if id == leader || m.draw("member", 0, 2) > 0 {
			c.ISR = append(c.ISR, id)
		}
	}
	m.m.Step(m.now, c, &m.out)
	m.w.become(c)
}

// compare holds the machine against its twin.
func (m *model) compare(op string) {
	if err := m.m.Check(); err != nil {
		m.rt.Fatalf("after %s: %v", op, err)
	}
	// What followers are answered is the cluster's test.
	m.out.Reply = slices.DeleteFunc(m.out.Reply, func(r partition.Reply) bool { return r.Kind == partition.ReplyAsk })
	got, want := draw(m.out.Reply), draw(m.w.replies)
	if !slices.Equal(got, want) {
		m.rt.Fatalf("%s is answered\n %q, the twin says\n %q", op, got, want)
	}
	o, w := m.m.Offsets(), m.w
	if proposed := w.proposed && !m.proposed || w.proposed && w.partitionEpoch != m.proposedAt; proposed != (len(m.out.Propose) == 1) {
		m.rt.Fatalf("after %s: %d proposals, the twin wants %v added", op, len(m.out.Propose), w.pending)
	} else if proposed {
		isr := slices.Sorted(slices.Values(slices.Concat(w.isr, w.pending)))
		if p := m.out.Propose[0]; !slices.EqualFunc(p.ISR, isr, func(r partition.Replica, id ident.BrokerID) bool { return r.Broker == id }) ||
			p.PartitionEpoch != w.partitionEpoch || p.LeaderEpoch != w.epoch {
			m.rt.Fatalf("after %s: %v, the twin wants %v", op, p, isr)
		}
	}
	m.proposed, m.proposedAt = w.proposed, w.partitionEpoch
	if o != (partition.Offsets{LogStart: w.start, LastStable: w.hw, HighWatermark: w.hw, End: w.end, Flushed: w.flushed}) {
		m.rt.Fatalf("after %s: offsets %+v, the twin has start %d hw %d end %d flushed %d", op, o, w.start, w.hw, w.end, w.flushed)
	}
	if w.leading && (w.strict || w.clearing) && w.flushed < w.end && op == "append" && len(m.out.Persist) > 0 && !m.out.Flush && m.failedNothing() {
		m.rt.Fatalf("an append that only a flush can acknowledge asked for none")
	}
	for i := range m.out.Reply {
		r := &m.out.Reply[i]
		kind := [...]string{"", "append", "fetch", "delete-records", "list-offsets", "epoch-end", "producers"}[r.Kind]
		m.seen[fmt.Sprint(kind, " ", r.Code)]++
		if r.Append.Duplicate {
			m.seen["append duplicate"]++
		}
		if r.Fetch.Diverging {
			m.seen["fetch diverging"]++
		}
	}
	var marks []partition.WriteKind
	for i := range m.out.Persist {
		switch k := m.out.Persist[i].Kind; k {
		case partition.WriteStrictConfirmed:
			m.seen["strict-confirmed"]++
			marks = append(marks, k)
		case partition.WriteStrictCleared:
			marks = append(marks, k)
		default:
		}
	}
	if !slices.Equal(marks, w.marks) {
		m.rt.Fatalf("after %s: the strict mark is written %v, the twin wants %v", op, marks, w.marks)
	}
}

// failedNothing tells whether no write of this turn failed.
func (m *model) failedNothing() bool {
	return !slices.ContainsFunc(m.out.Reply, func(r partition.Reply) bool { return r.Code == wire.KafkaStorageError })
}

// draw draws replies in the order of their requests: machine and twin need not
// answer in the same order within one turn.
func draw(replies []partition.Reply) []string {
	s := make([]string, len(replies))
	for i := range replies {
		s[i] = replies[i].String()
	}
	slices.Sort(s)
	return s
}
