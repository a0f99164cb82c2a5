package partition_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// node is one broker: a machine, its shell and its disk.
type node struct {
	c   *cluster
	id  ident.BrokerID
	up  bool
	m   *partition.Machine
	out partition.Out

	// What is stored. The rest of log, above flushed, is in the page cache.
	start, end, flushed ident.Offset
	log                 []batch
	epochs              []partition.EpochStart
	checkpoint          ident.Offset // of the high watermark
	marked              bool         // "strict, confirmed"
	lossy               bool         // something was lost and the controller does not know yet
	offline             bool         // the replica is out of service, the broker lives
	full                bool         // its disk has no room

	generation  ident.Generation
	brokerEpoch ident.BrokerEpoch
	heard       int // metadata records
	registered  int // the first of them
	syncing     *partition.Flushed
	dirty       bool
	cut         *partition.Write
	clearing    ident.LeaderEpoch // StrictCleared is to come; -1: none
	pending     *partition.Proposal
	high        ident.Offset // before the turn

	acks     map[ident.RequestID]*waiter
	asks     map[ident.RequestID]*peerAsk
	writing  batch
	answer   *partition.Answered
	contents []uint64
}

// waiter is a client whose batch is in the log.
type waiter struct {
	p       *producerClient
	content uint64
	acks    int16
	count   int32
}

// peerAsk is an ask that is to be answered.
type peerAsk struct {
	on *conn
	partition.Inquiry
}

// boot starts the broker on what its disk has, and registers it.
func (x *node) boot(again bool) {
	c := x.c
	c.generation++
	x.generation = c.generation
	x.up, x.syncing, x.dirty, x.cut, x.clearing, x.pending = true, nil, x.end > x.flushed, nil, -1, nil
	x.offline = false
	x.acks, x.asks = map[ident.RequestID]*waiter{}, map[ident.RequestID]*peerAsk{}
	producers := partition.NewProducers(c.config.ProducersMax)
	x.replay(producers)
	x.m = partition.New(partition.Options{
		Broker: x.id, Config: c.config, Producers: producers,
		Log: partition.LogState{
			Start: x.start, End: x.end, Flushed: x.flushed, Generation: x.generation, HighWatermark: x.checkpoint,
			Epochs: slices.Clone(x.epochs), StrictConfirmed: x.marked,
		},
	})
	x.high = x.m.Offsets().HighWatermark
	x.heard = 0
	defer func() { x.registered = x.heard }()
	if again {
		// Nothing is done before the broker's own registration is replayed.
		x.heard = c.control.register(x.id, !x.lossy)
	}
	x.brokerEpoch = c.control.replicas[x.id-1].BrokerEpoch
	c.say("boot %d log [%d,%d) flushed %d", x.id, x.start, x.end, x.flushed)
}

func (x *node) replay(p *partition.Producers) {
	for i := range x.log {
		p.Replay(x.log[i].base, x.log[i].info, x.c.now.Wall)
	}
}

// crash ends the process, and perhaps the power with it.
func (x *node) crash() {
	c := x.c
	if !x.up {
		return
	}
	o := x.m.Offsets()
	x.checkpoint = ident.Offset(c.rand.Int64N(int64(o.HighWatermark) + 1))
	x.up = false
	if x.cut != nil && c.chance(50) {
		x.doCut()
	}
	if c.chance(50) {
		c.seen["killed"]++
		c.say("kill %d", x.id)
	} else {
		c.seen["power loss"]++
		keep := len(x.log)
		for keep > 0 && x.log[keep-1].end > x.flushed && c.chance(60) {
			keep--
		}
		x.log = x.log[:keep]
		if keep > 0 {
			x.end = x.log[keep-1].end
		} else {
			x.end = x.start
		}
		x.end = max(x.end, x.flushed)
		x.rebuildEpochs()
		x.lossy = x.lossy || !x.marked
		c.say("power loss %d, log ends at %d", x.id, x.end)
	}
	for _, k := range c.conns {
		if k.from == x.id || k.to == x.id {
			k.open = false
		}
	}
}

// goOffline takes the replica out of service, for an error of its disk: what it has
// written may be there at the next start or not. The controller is told until it hears.
func (x *node) goOffline() {
	c := x.c
	if !x.up || x.offline {
		return
	}
	c.seen["offline"]++
	if x.cut != nil && c.chance(50) {
		x.doCut()
	}
	x.offline, x.cut, x.syncing, x.dirty, x.clearing = true, nil, nil, false, -1
	x.step(&partition.Stop{Code: wire.KafkaStorageError})
	x.tellOffline()
}

func (x *node) tellOffline() {
	x.c.control.marks = append(x.c.control.marks, mark{broker: x.id, epoch: x.brokerEpoch, offline: true})
}

// rebuildEpochs makes the epoch file anew, which recovery does from the batches.
func (x *node) rebuildEpochs() {
	x.epochs = slices.DeleteFunc(x.epochs, func(e partition.EpochStart) bool { return e.Start >= x.end })
}

func (x *node) more(y *node) bool {
	last := func(n *node) ident.LeaderEpoch {
		if len(n.log) == 0 {
			return -1
		}
		return n.log[len(n.log)-1].epoch
	}
	if a, b := last(x), last(y); a != b {
		return a > b
	}
	return x.end > y.end
}

// turn lets the machine do something and carries out what it asks.
func (x *node) turn(cmd partition.Command) {
	x.out.Reset()
	if cmd == nil {
		x.m.Tick(x.c.now, &x.out)
	} else {
		x.m.Step(x.c.now, cmd, &x.out)
	}
	for i := 0; i < len(x.out.Persist); i++ {
		x.persist(x.out.Persist[i])
	}
	x.dirty = x.dirty || x.out.Flush
	if x.c.traced || x.c.verbose != nil {
		x.c.say("%d %s -> %v %v: %v %v %v %v %v", x.id, drawCommand(cmd), x.m.Role(), x.m.Offsets(),
			x.out.Persist, x.out.Reply, x.out.Ask, x.out.Report, x.out.Watermark)
	}
	x.observe()
	x.carryOut()
	if err := x.m.Check(); err != nil {
		x.c.fail("broker %d after %s: %v", x.id, drawCommand(cmd), err)
	}
	x.checkTurn()
}

func drawCommand(cmd partition.Command) string {
	if t, ok := cmd.(*partition.Truncated); ok { // has a pointer
		return fmt.Sprintf("Truncated %d %d", t.Generation, t.End)
	}
	return strings.ReplaceAll(fmt.Sprintf("%T%+v", cmd, cmd), " Directory:AAAAAAAAAAAAAAAAAAAAAA", "")
}

func (x *node) step(c partition.Command) { x.turn(c) }

func (x *node) persist(w partition.Write) {
	m, now := x.m, x.c.now
	switch w.Kind {
	case partition.WriteBatch:
		if x.full || x.c.chance(2) && !x.c.calm {
			m.Step(now, &partition.AppendFailed{Code: wire.KafkaStorageError, Full: x.full}, &x.out)
			return
		}
		b := x.writing
		b.base, b.epoch = w.Offset, w.LeaderEpoch
		b.end = b.base + ident.Offset(b.info.LastOffsetDelta) + 1
		x.c.checkWriter(x, w.LeaderEpoch)
		x.put(b)
		m.Step(now, &partition.Appended{}, &x.out)
	case partition.WriteReplica:
		n := len(x.answer.Batches)
		fail := x.full || x.c.chance(2) && !x.c.calm
		if fail {
			x.c.seen["append failed"]++
			n = x.c.rand.IntN(n)
		}
		for i := range n {
			if x.c.chance(10) { // a segment ends here
				x.c.checkRemembered(x, i)
			}
			b := &x.answer.Batches[i]
			x.put(batch{info: b.BatchInfo, base: b.Base, end: b.Base + ident.Offset(b.LastOffsetDelta) + 1, epoch: b.LeaderEpoch, content: x.contents[i]})
		}
		if fail {
			m.Step(now, &partition.AppendFailed{Code: wire.KafkaStorageError, Written: n, Full: x.full}, &x.out)
			return
		}
		m.Step(now, &partition.Appended{}, &x.out)
	case partition.WriteEpoch:
		x.assign(w.LeaderEpoch, w.Offset)
	case partition.WriteEpochsCut:
		x.epochs = slices.DeleteFunc(x.epochs, func(e partition.EpochStart) bool { return e.Start >= max(w.Offset, x.end) })
	case partition.WriteStart:
		x.setStart(w.Offset)
	case partition.WriteStrictConfirmed:
		x.marked, x.clearing = true, -1
	case partition.WriteStrictCleared:
		x.clearing = w.LeaderEpoch
	case partition.WriteRoom:
		m.Step(now, &partition.Looked{Room: !x.full}, &x.out)
	case partition.WriteTruncate, partition.WriteRestart:
		x.cut = &w
	}
}

func (x *node) put(b batch) {
	if b.base < x.end {
		x.c.fail("broker %d writes at %d, its log ends at %d", x.id, b.base, x.end)
	}
	if n := len(x.epochs); n > 0 && x.epochs[n-1].Epoch > b.epoch {
		x.c.fail("broker %d writes epoch %d after epoch %d", x.id, b.epoch, x.epochs[n-1].Epoch)
	}
	x.assign(b.epoch, x.end)
	x.log = append(x.log, b)
	x.end = b.end
}

func (x *node) assign(e ident.LeaderEpoch, start ident.Offset) {
	if n := len(x.epochs); n > 0 && x.epochs[n-1].Epoch == e {
		return
	}
	for n := len(x.epochs); n > 0 && x.epochs[n-1].Start >= start; n = len(x.epochs) {
		x.epochs = x.epochs[:n-1]
	}
	x.epochs = append(x.epochs, partition.EpochStart{Epoch: e, Start: start})
}

func (x *node) setStart(o ident.Offset) {
	x.start, x.flushed = o, max(x.flushed, o)
	x.log = slices.DeleteFunc(x.log, func(b batch) bool { return b.end <= o })
	n := 0
	for n+1 < len(x.epochs) && x.epochs[n+1].Start <= o {
		n++
	}
	x.epochs = slices.Delete(x.epochs, 0, n)
	if len(x.epochs) > 0 {
		x.epochs[0].Start = max(x.epochs[0].Start, o)
	}
}

// flush begins or ends a round of the flusher.
func (x *node) flush() bool {
	if !x.up || x.offline {
		return false
	}
	if x.clearing >= 0 && x.c.chance(50) {
		e := x.clearing
		x.marked, x.clearing = false, -1
		x.c.seen["strict cleared"]++
		x.step(&partition.StrictCleared{LeaderEpoch: e})
		return true
	}
	if x.syncing == nil {
		if x.dirty && x.cut == nil {
			x.dirty = false
			x.syncing = &partition.Flushed{Generation: x.generation, End: x.end}
			return true
		}
		return false
	}
	if x.id == x.c.slow && !x.c.calm && x.c.chance(97) {
		return false
	}
	f := x.syncing
	x.syncing = nil
	if f.Generation == x.generation && x.cut == nil {
		x.flushed = max(x.flushed, f.End)
	}
	x.step(f)
	return true
}

// finishCut does a truncation that is under way.
func (x *node) finishCut() bool {
	if !x.up || x.cut == nil {
		return false
	}
	if x.c.chance(10) && !x.c.calm {
		x.cut = nil
		x.c.seen["truncation refused"]++
		x.step(&partition.TruncateFailed{})
		return true
	}
	rebuild := x.cut.Rebuild
	x.doCut()
	t := &partition.Truncated{Generation: x.generation, End: x.end, Flushed: x.flushed}
	if rebuild {
		x.c.seen["rebuilt producers"]++
		t.Producers = partition.NewProducers(x.c.config.ProducersMax)
		x.replay(t.Producers)
	}
	x.step(t)
	return true
}

func (x *node) doCut() {
	w := x.cut
	x.cut = nil
	x.c.generation++
	x.generation = x.c.generation
	x.checkpoint = min(x.checkpoint, w.Offset)
	if w.Kind == partition.WriteRestart {
		x.log, x.epochs = nil, nil
		x.start, x.end, x.flushed, x.checkpoint = w.Offset, w.Offset, w.Offset, w.Offset
		return
	}
	x.log = slices.DeleteFunc(x.log, func(b batch) bool { return b.end > w.Offset })
	x.end = w.Offset
	// A cut inside of a batch takes the whole batch.
	if n := len(x.log); n > 0 && x.log[n-1].end < x.end && w.Offset > x.start {
		x.end = max(x.log[n-1].end, x.start)
	} else if n == 0 {
		x.end = x.start
	}
	x.flushed = min(x.flushed, x.end)
	x.epochs = slices.DeleteFunc(x.epochs, func(e partition.EpochStart) bool { return e.Start >= x.end })
}

// hearMetadata replays the next metadata record.
func (x *node) hearMetadata() bool {
	k := &x.c.control
	if !x.up || x.heard >= len(k.records) {
		return false
	}
	if x.heard > x.registered && x.c.chance(3) {
		again := k.records[x.registered+x.c.rand.IntN(x.heard-x.registered)]
		x.step(&again)
		return true
	}
	r := k.records[x.heard]
	x.heard++
	if x.cut != nil {
		x.c.seen["deferred become"]++
	}
	if x.pending != nil && r.PartitionEpoch > x.pending.PartitionEpoch {
		x.pending = nil
	}
	x.step(&r)
	return true
}

// append steps a client's batch.
func (x *node) append(a *partition.Append, content uint64, p *producerClient) {
	x.writing = batch{info: a.Batch, content: content}
	x.acks[a.Request] = &waiter{p: p, content: content, acks: a.Acks, count: a.Batch.LastOffsetDelta}
	x.step(a)
}

// read lets a consumer fetch and ask for the end.
func (x *node) read() {
	if !x.up || x.m.Role() != partition.Leading {
		return
	}
	o := x.m.Offsets()
	x.c.requests++
	x.step(&partition.Fetch{
		Request: x.c.requests, From: o.LogStart, BytesMax: 1 << 20, CurrentLeaderEpoch: ident.NoLeaderEpoch, LastFetchedEpoch: ident.NoLeaderEpoch,
	})
	x.c.requests++
	x.step(&partition.ListOffsets{Request: x.c.requests, Timestamp: partition.LatestTimestamp, CurrentLeaderEpoch: ident.NoLeaderEpoch})
}

func (x *node) deleteRecords() {
	if !x.up || !x.c.trims || x.m.Role() != partition.Leading {
		return
	}
	o := x.m.Offsets()
	if n := o.HighWatermark - o.LogStart; n > 0 {
		x.c.requests++
		before := o.LogStart + 1 + ident.Offset(x.c.rand.Int64N(int64(n)))
		x.step(&partition.DeleteRecords{Request: x.c.requests, Before: before})
	}
}

// carryOut sends what the machine wants sent.
func (x *node) carryOut() {
	c := x.c
	for _, k := range x.out.Condition {
		x.c.control.marks = append(x.c.control.marks, mark{broker: x.id, epoch: x.brokerEpoch, full: k.Full})
	}
	for i := range x.out.Propose {
		p := x.out.Propose[i]
		if !p.Resign { // which is never pending
			x.pending = &p
		}
		if c.calm || c.chance(80) { // else lost on the way
			c.control.proposals = append(c.control.proposals, p)
			c.control.proposers = append(c.control.proposers, x.id)
		}
	}
	for i := range x.out.Reply {
		x.reply(&x.out.Reply[i])
	}
	for _, q := range x.out.Ask {
		c.send(x, x.leaderOf(q.LeaderEpoch), false, q)
	}
	for _, w := range x.out.Withdraw {
		c.send(x, x.leaderOf(w.LeaderEpoch), false, w)
	}
	for _, r := range x.out.Report {
		c.send(x, x.leaderOf(r.LeaderEpoch), true, r)
	}
	for _, w := range x.out.Watermark {
		c.send(x, w.Broker, true, w)
	}
	for _, n := range x.out.Note {
		c.seen[n.Kind.String()]++
	}
}

func (x *node) leaderOf(e ident.LeaderEpoch) ident.BrokerID {
	for i := range x.c.control.records {
		if r := &x.c.control.records[i]; r.LeaderEpoch == e {
			return r.Leader
		}
	}
	return ident.NoBroker
}

// reply answers clients and followers.
func (x *node) reply(r *partition.Reply) {
	c := x.c
	switch r.Kind {
	case partition.ReplyAppend:
		w := x.acks[r.Request]
		delete(x.acks, r.Request)
		if w == nil {
			c.fail("broker %d answers request %d twice", x.id, r.Request)
			return
		}
		if r.Code == wire.NoError && w.acks == -1 {
			c.acked(x, w, r.Append.BaseOffset)
		}
		if w.p != nil && w.p.content == w.content && w.p.waiting == r.Request {
			w.p.waiting = 0
		}
		if w.p != nil && w.p.content == w.content && r.Code == wire.NoError {
			if r.Append.Duplicate {
				c.seen["duplicate"]++
			}
			w.p.next, w.p.content, w.p.waiting = w.p.next.Add(w.count+1), 0, 0
		}
	case partition.ReplyAsk:
		a := x.asks[r.Request]
		delete(x.asks, r.Request)
		if a == nil {
			c.fail("broker %d answers ask %d twice", x.id, r.Request)
			return
		}
		if r.Silent || !a.on.open {
			return
		}
		a.on.back = append(a.on.back, x.answerOf(a, r))
	case partition.ReplyFetch:
		if r.Code == wire.NoError {
			c.read(x, r.Fetch.From, r.Fetch.UpTo)
		}
	case partition.ReplyListOffsets:
		switch r.Code {
		case wire.OffsetNotAvailable:
			c.seen["offset not available"]++
		case wire.NoError:
			c.listed(x, r.ListOffsets.Offset)
		default:
		}
	default:
	}
}

// payload is an answer with the contents of its batches.
type payload struct {
	partition.Answered
	contents []uint64
}

// answerOf reads what the machine allows.
func (x *node) answerOf(a *peerAsk, r *partition.Reply) *payload {
	p := &payload{Answered: partition.Answered{
		LeaderEpoch: a.LeaderEpoch, Generation: a.Generation, Code: r.Code, From: a.From,
		HighWatermark: r.Fetch.HighWatermark, LogStart: r.Fetch.LogStart,
		Diverging: r.Fetch.Diverging, DivergingEpoch: r.Fetch.DivergingEpoch, DivergingEnd: r.Fetch.DivergingEnd,
	}}
	if r.Code != wire.NoError {
		return p
	}
	left := r.Fetch.BytesMax
	for i := range x.log {
		b := &x.log[i]
		if b.end <= r.Fetch.From || b.end > r.Fetch.UpTo {
			continue
		}
		if left -= b.info.Bytes; left < 0 && len(p.Batches) > 0 {
			break
		}
		p.Batches = append(p.Batches, partition.ReplicaBatch{BatchInfo: b.info, Base: b.base, LeaderEpoch: b.epoch})
		p.contents = append(p.contents, b.content)
	}
	return p
}
