package partition_test

import (
	"slices"

	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// twin is the replica machine once more, with no thought for cost: it keeps every
// batch ever written and every report, and works each answer out from them anew. It
// shares no code with the machine.
type twin struct {
	leading, stopped bool
	leader           ident.BrokerID
	epoch            ident.LeaderEpoch
	partitionEpoch   ident.PartitionEpoch
	epochStart       ident.Offset
	led              ident.Offset // log end when the leadership began: sizes are known from here
	strict           bool
	marked           bool // the strict mark is, or may be, on disk
	holds            bool // it was made, and is not to go
	clearing         bool // nothing unflushed counts before it is known to be gone
	confirmAt        ident.Offset

	start, end, flushed, hw ident.Offset
	generation              ident.Generation
	batches                 []twinBatch
	starts                  []partition.EpochStart // of every leadership, empty ones included

	replicas []partition.Replica
	isr      []ident.BrokerID
	pending  []ident.BrokerID
	reports  map[ident.BrokerID]*twinReport
	proposed bool

	expected map[ident.ProducerID]ident.ProducerEpoch // whose first batch was refused for now

	minISR   int
	produces []twinProduce
	fetches  []twinFetch

	replies []partition.Reply
	marks   []partition.WriteKind // what is to be done to the strict mark
}

type twinBatch struct {
	info partition.BatchInfo
	base ident.Offset
}

func (b *twinBatch) end() ident.Offset { return b.base + ident.Offset(b.info.LastOffsetDelta) + 1 }

type twinProduce struct {
	request  ident.RequestID
	base     ident.Offset
	end      ident.Offset
	deadline ident.Instant
	dup      bool
}

// twinReport is what a follower said in this leader epoch.
type twinReport struct {
	generation   ident.Generation
	verified     bool // what follows counts
	end, flushed ident.Offset
	early        *partition.Report // said before the ask of its generation
	asks         bool              // asked since it was last heard of leaving
}

type twinFetch struct {
	partition.Fetch
	counted  bool
	bytesMin int64 // count of all bytes at which it has enough
}

func (w *twin) reply(id ident.RequestID, kind partition.ReplyKind, code wire.ErrorCode) *partition.Reply {
	w.replies = append(w.replies, partition.Reply{Request: id, Kind: kind, Code: code, Leader: w.leader, LeaderEpoch: w.epoch})
	return &w.replies[len(w.replies)-1]
}

func (w *twin) replyAppend(id ident.RequestID, base ident.Offset, dup bool, code wire.ErrorCode) {
	w.reply(id, partition.ReplyAppend, code).Append = partition.AppendReply{
		BaseOffset: base, LogAppendTime: ident.NoTimestamp, LogStart: w.start, Duplicate: dup,
	}
}

// enough tells whether the committed ISR reaches min.insync.replicas.
func (w *twin) enough() bool { return len(w.isr) >= min(w.minISR, len(w.replicas)) }

// settle raises the high watermark and answers whoever can be.
func (w *twin) settle() {
	if w.leading && w.enough() {
		next := w.end
		if w.strict || w.clearing {
			next = w.flushed
		}
		for _, id := range slices.Concat(w.isr, w.pending) {
			if id == 1 {
				continue
			}
			r, ok := w.reports[id]
			switch {
			case !ok || !r.verified:
				next = -1
			case w.strict:
				next = min(next, r.flushed)
			default:
				next = min(next, r.end)
			}
		}
		w.hw = max(w.hw, next)
	}
	w.produces = slices.DeleteFunc(w.produces, func(p twinProduce) bool {
		switch {
		case !w.leading:
			code := wire.NotLeaderOrFollower
			if w.stopped {
				code = wire.KafkaStorageError
			}
			w.replyAppend(p.request, p.base, p.dup, code)
		case !w.enough():
			w.replyAppend(p.request, p.base, p.dup, wire.NotEnoughReplicasAfterAppend)
		case p.end <= w.hw:
			w.replyAppend(p.request, p.base, p.dup, wire.NoError)
		default:
			return false
		}
		return true
	})
	w.fetches = slices.DeleteFunc(w.fetches, func(f twinFetch) bool {
		switch {
		case !w.leading || f.From < w.start || w.satisfied(&f):
			w.answer(&f.Fetch)
			return true
		}
		return false
	})
	w.propose()
}

// propose adds who has caught up, one proposal at a time.
func (w *twin) propose() {
	if !w.leading || w.proposed {
		return
	}
	for _, r := range w.replicas {
		report, ok := w.reports[r.Broker]
		if !ok || !report.verified || !report.asks {
			continue
		}
		reached := report.end
		if w.strict {
			reached = report.flushed
		}
		if !slices.Contains(w.isr, r.Broker) && reached >= w.epochStart && reached >= w.hw {
			w.pending = append(w.pending, r.Broker)
			w.proposed = true
		}
	}
}

// bytes is the count of all bytes written below o since the leadership began; false
// if the machine has no reason to remember it.
func (w *twin) bytes(o ident.Offset) (int64, bool) {
	n, known := int64(0), w.led
	for i := range w.batches {
		b := &w.batches[i]
		if b.base >= w.led && b.end() <= w.hw {
			known = b.end()
		}
		if b.base >= w.led && b.end() <= o {
			n += int64(b.info.Bytes)
		}
	}
	return n, o >= known
}

func (w *twin) satisfied(f *twinFetch) bool {
	if w.hw <= max(f.From, f.After) {
		return false
	}
	n, _ := w.bytes(w.hw)
	return !f.counted || n >= f.bytesMin
}

// code is the refusal of a reader; epoch -1: not checked.
func (w *twin) code(epoch ident.LeaderEpoch) wire.ErrorCode {
	switch {
	case w.stopped:
		return wire.KafkaStorageError
	case w.epoch < 0:
		return wire.NotLeaderOrFollower // nothing is known yet
	case epoch >= 0 && epoch < w.epoch:
		return wire.FencedLeaderEpoch
	case epoch > w.epoch:
		return wire.UnknownLeaderEpoch
	case !w.leading:
		return wire.NotLeaderOrFollower
	}
	return wire.NoError
}

// answer gives a reader what there is now.
func (w *twin) answer(f *partition.Fetch) {
	code := w.code(ident.NoLeaderEpoch)
	if code == wire.NoError && (f.From < w.start || f.From > w.end) {
		code = wire.OffsetOutOfRange
	}
	r := &w.reply(f.Request, partition.ReplyFetch, code).Fetch
	if code != wire.NoError {
		*r = partition.FetchReply{From: -1, UpTo: -1, HighWatermark: -1, LastStable: -1, LogStart: -1, DivergingEpoch: -1, DivergingEnd: -1, Preferred: ident.NoBroker}
		return
	}
	*r = partition.FetchReply{
		From: f.From, UpTo: max(f.From, w.hw), BytesMax: f.BytesMax, HighWatermark: w.hw, LastStable: w.hw, LogStart: w.start,
		DivergingEpoch: -1, DivergingEnd: -1, Preferred: ident.NoBroker,
	}
}

func (w *twin) fetch(f *partition.Fetch) {
	if code := w.code(f.CurrentLeaderEpoch); code != wire.NoError {
		w.reply(f.Request, partition.ReplyFetch, code).Fetch = partition.FetchReply{
			From: -1, UpTo: -1, HighWatermark: -1, LastStable: -1, LogStart: -1, DivergingEpoch: -1, DivergingEnd: -1, Preferred: ident.NoBroker,
		}
		return
	}
	if f.LastFetchedEpoch >= 0 {
		epoch, end := w.epochEnd(f.LastFetchedEpoch)
		if epoch < 0 {
			w.answer(&partition.Fetch{Request: f.Request, From: -1})
			return
		}
		if f.From >= w.start && (epoch < f.LastFetchedEpoch || end < f.From) {
			w.reply(f.Request, partition.ReplyFetch, wire.NoError).Fetch = partition.FetchReply{
				From: f.From, UpTo: f.From, BytesMax: f.BytesMax, HighWatermark: w.hw, LastStable: w.hw, LogStart: w.start,
				Diverging: true, DivergingEpoch: epoch, DivergingEnd: end, Preferred: ident.NoBroker,
			}
			return
		}
	}
	p := twinFetch{Fetch: *f}
	p.After = min(f.After, w.end)
	n, counted := w.bytes(max(p.From, p.After))
	p.counted, p.bytesMin = counted, n+int64(f.BytesMin)
	if f.From < w.start || f.From > w.end || !f.Park || f.BytesMin <= 0 || w.satisfied(&p) {
		w.answer(f)
		return
	}
	w.fetches = append(w.fetches, p)
}

// epochOf is the epoch of an offset: that of the last leadership that began at or
// below it.
func (w *twin) epochOf(o ident.Offset) ident.LeaderEpoch {
	e := ident.NoLeaderEpoch
	for _, s := range w.starts {
		if s.Start <= o {
			e = s.Epoch
		}
	}
	return e
}

// epochEnd looks for the largest epoch up to e that still has an offset, or is the
// current one.
func (w *twin) epochEnd(e ident.LeaderEpoch) (ident.LeaderEpoch, ident.Offset) {
	var known []partition.EpochStart // epochs with offsets in the log, and the last
	for i, s := range w.starts {
		next := w.end
		if i+1 < len(w.starts) {
			next = w.starts[i+1].Start
		}
		begin := max(s.Start, w.start)
		if begin < next || i+1 == len(w.starts) {
			known = append(known, partition.EpochStart{Epoch: s.Epoch, Start: begin})
		}
	}
	if e < 0 || len(known) == 0 || e > known[len(known)-1].Epoch {
		return -1, -1
	}
	if e < known[0].Epoch {
		return e, known[0].Start
	}
	for i := len(known) - 1; ; i-- {
		if known[i].Epoch <= e {
			if i+1 == len(known) {
				return known[i].Epoch, w.end
			}
			return known[i].Epoch, known[i+1].Start
		}
	}
}

// verdict finds a batch among everything its producer ever wrote.
func (w *twin) verdict(b *partition.BatchInfo) (code wire.ErrorCode, original *twinBatch) {
	var mine []*twinBatch
	for i := range w.batches {
		if w.batches[i].info.ProducerID == b.ProducerID {
			mine = append(mine, &w.batches[i])
		}
	}
	if epoch, ok := w.expected[b.ProducerID]; ok && len(mine) == 0 {
		switch {
		case b.ProducerEpoch < epoch:
			return wire.InvalidProducerEpoch, nil
		case b.BaseSequence != 0:
			return wire.OutOfOrderSequenceNumber, nil
		}
	}
	if len(mine) == 0 {
		return wire.NoError, nil
	}
	last := mine[len(mine)-1].info
	if b.ProducerEpoch < last.ProducerEpoch {
		return wire.InvalidProducerEpoch, nil
	}
	want := int64(0)
	if b.ProducerEpoch == last.ProducerEpoch {
		for _, m := range mine[max(0, len(mine)-5):] {
			i := m.info
			if i.ProducerEpoch == b.ProducerEpoch && i.BaseSequence == b.BaseSequence && i.LastOffsetDelta == b.LastOffsetDelta {
				return wire.NoError, m
			}
		}
		want = (int64(last.BaseSequence) + int64(last.LastOffsetDelta) + 1) % (1 << 31)
	}
	if int64(b.BaseSequence) != want {
		return wire.OutOfOrderSequenceNumber, nil
	}
	return wire.NoError, nil
}

// expect remembers a producer of which nothing is known.
func (w *twin) expect(b *partition.BatchInfo) {
	known := slices.ContainsFunc(w.batches, func(t twinBatch) bool { return t.info.ProducerID == b.ProducerID })
	if _, ok := w.expected[b.ProducerID]; ok || known || b.ProducerID < 0 || b.BaseSequence != 0 {
		return
	}
	if w.expected == nil {
		w.expected = make(map[ident.ProducerID]ident.ProducerEpoch)
	}
	w.expected[b.ProducerID] = b.ProducerEpoch
}

// append returns whether the batch is written. fail is the luck of the disk.
func (w *twin) append(c *partition.Append, fail bool) (written bool) {
	code := w.code(ident.NoLeaderEpoch)
	if code == wire.NoError && c.Acks == -1 && !w.enough() {
		code = wire.NotEnoughReplicas
	}
	var original *twinBatch
	if code == wire.NoError && c.Batch.ProducerID >= 0 {
		code, original = w.verdict(&c.Batch)
	}
	if code == wire.NotEnoughReplicas || code == wire.NoError && fail {
		w.expect(&c.Batch)
	}
	if code != wire.NoError {
		w.replyAppend(c.Request, -1, false, code)
		return false
	}
	p := twinProduce{request: c.Request, deadline: c.Deadline}
	if original != nil {
		p.base, p.end, p.dup = original.base, original.end(), true
	} else {
		if fail {
			w.replyAppend(c.Request, -1, false, wire.KafkaStorageError)
			return true
		}
		b := twinBatch{info: c.Batch, base: w.end}
		w.batches = append(w.batches, b)
		w.end = b.end()
		p.base, p.end = b.base, b.end()
	}
	if c.Acks != -1 || p.end <= w.hw {
		// Its own acknowledgement does not wait for the readers.
		w.settle()
		w.replyAppend(p.request, p.base, p.dup, wire.NoError)
		return original == nil
	}
	w.produces = append(w.produces, p)
	w.settle()
	return original == nil
}

func (w *twin) become(c *partition.Become) {
	if !w.stopped && c.LeaderEpoch == w.epoch && c.PartitionEpoch == w.partitionEpoch &&
		slices.EqualFunc(c.Replicas, w.replicas, func(a, b partition.Replica) bool {
			return a.Broker == b.Broker && a.BrokerEpoch >= b.BrokerEpoch
		}) {
		w.register(c.Replicas)
		return
	}
	if w.stopped || c.LeaderEpoch < w.epoch || c.LeaderEpoch == w.epoch && c.PartitionEpoch <= w.partitionEpoch {
		return
	}
	newEpoch := c.LeaderEpoch > w.epoch
	if newEpoch {
		w.reports = map[ident.BrokerID]*twinReport{}
		wasLeading := w.leading
		w.leading = c.Leader == 1
		w.leader, w.epoch, w.strict = c.Leader, c.LeaderEpoch, c.Strict
		switch {
		case !c.Strict:
			w.confirmAt, w.clearing, w.holds = -1, w.marked, false
			if w.marked {
				w.marks = append(w.marks, partition.WriteStrictCleared)
			}
		case !w.holds && w.confirmAt < 0:
			w.confirmAt = w.end
			fallthrough
		default:
			// That somebody began to remove the mark is no word that it is gone: a cached
			// epoch that follows has to wait for its own.
			w.clearing = false
		}
		if w.leading && !wasLeading {
			w.led = w.end
		}
		if w.leading {
			w.epochStart = w.end
			w.starts = append(w.starts, partition.EpochStart{Epoch: w.epoch, Start: w.end})
		}
		w.confirm()
	}
	w.register(c.Replicas)
	w.partitionEpoch, w.isr, w.pending, w.proposed = c.PartitionEpoch, c.ISR, nil, false
	w.settle()
	if newEpoch { // a new epoch ends every wait of a reader
		for i := range w.fetches {
			w.answer(&w.fetches[i].Fetch)
		}
		w.fetches = nil
	}
}

// register makes void what was said under another registration, or by no replica.
func (w *twin) register(replicas []partition.Replica) {
	for _, r := range w.replicas {
		if !slices.Contains(replicas, r) {
			delete(w.reports, r.Broker)
		}
	}
	w.replicas = replicas
}

func (w *twin) confirm() {
	if w.confirmAt >= 0 && w.flushed >= w.confirmAt {
		w.confirmAt, w.marked, w.holds = -1, true, true
		w.marks = append(w.marks, partition.WriteStrictConfirmed)
	}
}

// cleared hears that the mark is gone. Only what the current epoch asked for counts.
func (w *twin) cleared(e ident.LeaderEpoch) (counts bool) {
	if !w.clearing || e != w.epoch {
		return false
	}
	w.clearing, w.marked = false, false
	w.settle()
	return true
}

func (w *twin) flush(c *partition.Flushed) {
	if w.stopped || c.Generation != w.generation {
		return
	}
	w.flushed = max(w.flushed, c.End)
	w.confirm()
	w.settle()
}

// report is the memory of a follower whose words count, nil if they do not.
func (w *twin) report(b ident.BrokerID, be ident.BrokerEpoch, e ident.LeaderEpoch, g ident.Generation) *twinReport {
	i := slices.IndexFunc(w.replicas, func(r partition.Replica) bool { return r.Broker == b && r.BrokerEpoch == be })
	if !w.leading || i < 0 || e != w.epoch {
		return nil
	}
	r := w.reports[b]
	if r == nil {
		r = &twinReport{}
		w.reports[b] = r
	}
	if g < r.generation {
		return nil
	}
	return r
}

func (r *twinReport) take(end, flushed, ours ident.Offset) {
	end = min(end, ours)
	r.end, r.flushed = max(r.end, end), max(r.flushed, min(flushed, end))
}

func (w *twin) progress(c *partition.Progress) {
	r := w.report(c.Broker, c.BrokerEpoch, c.LeaderEpoch, c.Generation)
	switch {
	case r == nil:
		return
	case r.verified && c.Generation == r.generation:
		r.take(c.End, c.Flushed, w.end)
	case r.early == nil || r.early.Generation < c.Generation:
		early := c.Report
		r.early = &early
	case r.early.Generation == c.Generation:
		r.early.End, r.early.Flushed = max(r.early.End, c.End), max(r.early.Flushed, c.Flushed)
	}
	w.settle()
}

func (w *twin) ask(c *partition.Ask) (counts bool) {
	r := w.report(c.Broker, c.BrokerEpoch, c.LeaderEpoch, c.Generation)
	if r == nil || c.LastBatchEpoch > c.LeaderEpoch {
		return false
	}
	if c.Generation > r.generation {
		*r = twinReport{generation: c.Generation, early: r.early, asks: r.asks}
	}
	epoch, end := c.LastBatchEpoch, w.end
	if epoch >= 0 {
		epoch, end = w.epochEnd(epoch)
	}
	// A log without a batch is a prefix of any, and can go on with the first batch here.
	nothing := c.LastBatchEpoch < 0 && w.start < w.end
	if c.LogEnd < w.start && !nothing || epoch != c.LastBatchEpoch || c.LogEnd > end {
		return false
	}
	r.verified, r.asks = true, true
	r.take(c.LogEnd, c.Flushed, w.end)
	if e := r.early; e != nil && e.Generation <= r.generation {
		if e.Generation == r.generation {
			r.take(e.End, e.Flushed, w.end)
		}
		r.early = nil
	}
	w.settle()
	return true
}

func (w *twin) leave(b ident.BrokerID) {
	if r := w.reports[b]; r != nil {
		r.asks = false
	}
}

func (w *twin) moveStart(o ident.Offset) {
	w.start = o
	w.flushed = max(w.flushed, o)
	w.confirm()
	w.settle()
}

func (w *twin) deleteRecords(c *partition.DeleteRecords) {
	before := c.Before
	if before == -1 {
		before = w.hw
	}
	code := w.code(ident.NoLeaderEpoch)
	if code == wire.NoError && before > w.hw {
		code = wire.OffsetOutOfRange
	}
	low := ident.NoOffset
	if code == wire.NoError {
		low = max(w.start, before)
		if before > w.start {
			w.moveStart(before)
		}
	}
	w.reply(c.Request, partition.ReplyDeleteRecords, code).DeleteRecords.LowWatermark = low
}

func (w *twin) listOffsets(c *partition.ListOffsets) {
	a := partition.ListOffsetsReply{UpTo: -1, Offset: -1, LeaderEpoch: -1}
	code := w.code(c.CurrentLeaderEpoch)
	behind := w.hw < w.epochStart
	switch {
	case code != wire.NoError:
	case c.Timestamp == partition.EarliestTimestamp:
		a.Offset, a.LeaderEpoch = w.start, w.epochOf(w.start)
	case c.Timestamp == partition.LatestTimestamp && behind:
		code = wire.OffsetNotAvailable
	case c.Timestamp == partition.LatestTimestamp:
		a.Offset, a.LeaderEpoch = w.hw, w.epochOf(w.hw)
	default:
		a.Search, a.UpTo = true, w.hw
		if behind {
			a.SearchFailed = wire.OffsetNotAvailable
		}
	}
	w.reply(c.Request, partition.ReplyListOffsets, code).ListOffsets = a
}

func (w *twin) tick(now ident.Instant) {
	w.produces = slices.DeleteFunc(w.produces, func(p twinProduce) bool {
		if p.deadline > now {
			return false
		}
		w.replyAppend(p.request, p.base, p.dup, wire.RequestTimedOut)
		return true
	})
}
