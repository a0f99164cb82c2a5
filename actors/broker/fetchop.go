package broker

import (
	"sync"
	"sync/atomic"

	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// readsKept is how many partitions' worth of memory an operation keeps for its next use.
const readsKept = 64

// fetchOp is one Fetch request from its frame to its answer: a read of each partition, which waits there as long as nothing is found, and the sum of what
// they bring.
//
//	asking ── a read comes back, or time is up ──> recalling (those that wait are told to come back) ── all back ──> enough: ready
//	   └──────────────────────── too few bytes: each is asked again for its share of what is missing ──────────────────┘
//
// Each of n reads waits for an n-th of what is missing: as long as none has that much, all together have less than is missing.
type fetchOp struct {
	request
	body      wire.FetchRequest
	reads     []fetchRead
	cached    []*cachedPartition // of the fetch session, one for each read
	session   *fetchSession
	code      wire.ErrorCode // of the request as a whole
	out       atomic.Int32   // reads that are at partitions
	bytes     int64          // in the reads that are back
	bytesMin  int64
	bytesMax  int64
	share     int64 // of what is missing, for each read
	deadline  ident.Instant
	enough    bool // do not wait any more
	someBack  bool // a read came back by itself
	recalled  bool // waiting reads were told to come back
	done      bool
	mentioned []int // reads to be answered
	answer    handler.FetchAnswer
	cuts      []wire.Cut
	near      []ident.BrokerID // brokers in the reader's rack; nil: this one is in it, or nobody asks for another
}

var fetchOps = sync.Pool{New: func() any { return new(fetchOp) }}

// fetchRead is the read of one partition on its way there, and back with what was found. It belongs to whoever it was sent to last.
type fetchRead struct {
	handler.Fetched
	op      *fetchOp
	session *runtime.Ref
	replica *replica
	command partition.Fetch
	region  store.Region
	from    ident.Offset   // where the reader reads
	upTo    ident.Offset   // below which it may read
	most    int            // bytes that it wants
	bad     wire.ErrorCode // what it hears of damage: a follower's is no reason to give up
	first   int            // size of the first batch of the region, when the read is one of several
	several bool
	present bool // region was in memory a moment ago
	at      bool // at the partition
	back    bool // on its way to the session
}

// Bytes implements runtime.Message.
func (*fetchRead) Bytes() int { return 0 }

// Reject implements runtime.Rejecter.
func (r *fetchRead) Reject(err error) {
	if r.back {
		r.op.landed()
		return
	}
	r.Refuse(refusalOf(err))
	r.back = true
	if err := r.session.Post(r); err != nil {
		return // Post has rejected r, which was all there was to do
	}
}

// landed books a read that came back after its session had stopped. The last one lets go of the request.
func (op *fetchOp) landed() {
	if op.out.Add(-1) > 0 {
		return
	}
	for i := range op.reads {
		op.reads[i].region.Release()
	}
	op.frame.chunk.release()
}

// unpark asks a partition to send a waiting read back.
type unpark struct{ command partition.Unpark }

var unparks = sync.Pool{New: func() any { return new(unpark) }}

// Bytes implements runtime.Message.
func (*unpark) Bytes() int { return 0 }

// startFetch begins a Fetch request.
func (s *session) startFetch(t *runtime.Turn, r request, body []byte) (operation, error) {
	op := fetchOps.Get().(*fetchOp)
	op.request = r
	if err := op.body.Decode(r.header.Version, body); err != nil {
		op.request = request{}
		fetchOps.Put(op)
		return nil, err
	}
	settings := s.shared.settings.Load()
	mono, _ := t.Now()
	op.deadline = mono + ident.Instant(max(op.body.MaxWaitMillis, 0))*millisecond
	op.bytesMax = int64(min(max(op.body.MaxBytes, 0), settings.FetchBytesMax))
	op.bytesMin = min(int64(op.body.MinBytes), op.bytesMax)
	op.enough = op.body.MaxWaitMillis <= 0 || op.bytesMin <= 0
	if settings.RackAware {
		op.near = s.shared.nearby(op.near[:0], op.body.RackID)
	}
	s.collect(op, mono)
	if op.code != wire.NoError {
		op.done = true
		return op, nil
	}
	op.send(t, s)
	return op, nil
}

// collect makes a read for each partition of the request, or of its session.
func (s *session) collect(op *fetchOp, now ident.Instant) {
	visit := func(p *cachedPartition) {
		op.cached = append(op.cached, p)
		s.addRead(op, p.name, p.key.id, &p.wanted)
	}
	op.session, op.code = s.shared.fetches.open(&op.body, now, visit)
	if op.code != wire.NoError || op.session != nil {
		return
	}
	for it := op.body.Partitions(); it.Next(); {
		s.addRead(op, it.TopicName, it.TopicID, &it.FetchPartition)
	}
}

// addRead makes the read of one partition. One that cannot be served is back at once, with its refusal.
func (s *session) addRead(op *fetchOp, name []byte, id ident.TopicID, p *wire.FetchPartition) {
	n := len(op.reads)
	op.reads = append(op.reads, fetchRead{op: op, session: s.self})
	r := &op.reads[n]
	r.Name, r.ID, r.Partition = name, id, p.Partition
	if n > 0 {
		before := &op.reads[n-1]
		r.Topic = before.Topic
		if before.ID != id || string(before.Name) != string(name) {
			r.Topic++
		}
	}
	if op.body.ReplicaID >= 0 {
		r.Refuse(wire.ReplicaNotAvailable) // followers replicate over the peer link
		return
	}
	topic := s.shared.topics.Load().find(name, id)
	if topic == nil {
		r.Refuse(unknownTopic(op.body.Version >= fetchTopicIDs))
		return
	}
	replica, missing := topic.replica(p.Partition)
	if replica == nil {
		r.Refuse(missing.code)
		r.Leader, r.LeaderEpoch = missing.leader, missing.epoch
		return
	}
	r.replica = replica
	r.command = partition.Fetch{
		From: p.FetchOffset, BytesMax: min(max(p.MaxBytes, 0), int32(min(op.bytesMax, maxInt32))), Isolation: partition.Isolation(op.body.IsolationLevel),
		CurrentLeaderEpoch: p.CurrentLeaderEpoch, LastFetchedEpoch: p.LastFetchedEpoch,
		AnyReplica: len(op.body.RackID) > 0, Near: op.near,
	}
}

// nearby are the live brokers in a rack; none if this broker is in it.
func (s *shared) nearby(list []ident.BrokerID, rack []byte) []ident.BrokerID {
	if len(rack) == 0 {
		return list
	}
	for b := range s.image.Load().Brokers() {
		switch {
		case b.Rack != string(rack):
		case b.ID == s.identity.Broker:
			return list[:0]
		case !b.Fenced && !b.ShuttingDown:
			list = append(list, b.ID)
		}
	}
	return list
}

// send gives the reads to their partitions.
func (op *fetchOp) send(t *runtime.Turn, s *session) {
	op.enough = op.enough || len(op.reads) == 0
	for i := range op.reads {
		if op.reads[i].Code != wire.NoError {
			op.enough = true // an error is told at once
		}
	}
	op.divide()
	for i := range op.reads {
		if r := &op.reads[i]; r.replica != nil {
			r.several = len(op.reads) > 1
			op.ask(t, s, r)
		}
	}
	if op.out.Load() == 0 {
		op.done = true // nothing to read, or nothing that could be
		return
	}
	if !op.enough {
		s.armFetch(t, op.deadline)
	}
}

// ask sends one read.
func (op *fetchOp) ask(t *runtime.Turn, s *session, r *fetchRead) {
	r.command.Request = s.nextRequest()
	r.command.Park = !op.enough
	r.command.BytesMin = int32(max(1, min(op.share, int64(r.command.BytesMax))))
	r.at, r.back = true, false
	op.out.Add(1)
	_ = t.Send(r.replica.ref, r) // a refusal comes back through Reject
}

// fetched takes in a read that came back.
func (s *session) fetched(r *fetchRead) {
	op := r.op
	r.at = false
	op.out.Add(-1)
	op.bytes += int64(r.region.Len())
	waited := r.command.Park && !op.recalled
	op.someBack = op.someBack || waited
	switch {
	case r.Code != wire.NoError, r.Diverging.Known, r.Elsewhere, op.bytes >= op.bytesMin:
		op.enough = true
	case waited && r.region.Len() == 0:
		op.enough = true // it does not let us wait: too many do
	case r.region.Len() > 0 && r.region.Next() < r.upTo:
		op.enough = true // a segment ends here: waiting does not make the answer longer
	}
}

// goOn decides what follows when reads came back or time is up.
func (op *fetchOp) goOn(t *runtime.Turn, s *session) {
	if op.done {
		return
	}
	if op.out.Load() > 0 {
		if (op.enough || op.someBack) && !op.recalled {
			op.recall(t)
		}
		return
	}
	if mono, _ := t.Now(); op.enough || mono >= op.deadline {
		op.done = true
		return
	}
	op.someBack, op.recalled = false, false
	op.divide()
	for i := range op.reads {
		// What was read will be read again, and more behind it.
		r := &op.reads[i]
		op.bytes -= int64(r.region.Len())
		r.region.Release()
		r.command.After = r.upTo
		op.ask(t, s, r)
	}
	s.armFetch(t, op.deadline)
}

// divide gives each read its share of what is missing.
func (op *fetchOp) divide() {
	n := int64(max(len(op.reads), 1))
	op.share = (op.bytesMin - op.bytes + n - 1) / n
}

// recall tells the reads that wait to come back.
func (op *fetchOp) recall(t *runtime.Turn) {
	op.recalled = true
	for i := range op.reads {
		r := &op.reads[i]
		if !r.at {
			continue
		}
		u := unparks.Get().(*unpark)
		u.command.Request = r.command.Request
		if err := t.Send(r.replica.ref, u); err != nil {
			continue // the partition stops, and sends back what waits there
		}
	}
}

// fetchDue is the end of the longest wait of the fetch that is under way.
func (s *session) fetchDue(t *runtime.Turn) {
	s.fetchArmed = 0
	if len(s.ops) == 0 {
		return
	}
	op, ok := s.ops[0].(*fetchOp)
	if !ok || op.done {
		return
	}
	if mono, _ := t.Now(); mono < op.deadline {
		s.armFetch(t, op.deadline)
		return
	}
	op.enough = true
}

// armFetch sees to it that the session is woken at the deadline, or before: a timer that goes off early is armed again. So a reader that is never kept
// waiting pays for a timer once in a while, not with each request.
func (s *session) armFetch(t *runtime.Turn, deadline ident.Instant) {
	if s.fetchArmed != 0 && s.fetchArmed <= deadline {
		return
	}
	if s.fetchTimer == nil {
		s.fetchTimer = t.NewTimer(signalFetchDue)
	}
	mono, _ := t.Now()
	s.fetchArmed = deadline
	s.fetchTimer.Reset(duration(deadline - mono))
}

func (op *fetchOp) ready() bool { return op.done }

func (op *fetchOp) overlaps() bool { return false }

// hurry implements operation: nobody waits for what may still come.
func (op *fetchOp) hurry(t *runtime.Turn) {
	op.enough = true
	if !op.recalled {
		op.recall(t)
	}
}

// abandon implements operation.
func (op *fetchOp) abandon() bool { return op.out.Load() == 0 }

// encode implements operation.
func (op *fetchOp) encode(s *session) error {
	op.doubt(s.shared)
	op.cut()
	head := handler.FetchHead{Version: op.header.Version, Code: op.code, ReadCommitted: op.body.IsolationLevel == 1}
	op.mentioned = op.mentioned[:0]
	switch {
	case op.code != wire.NoError:
	case op.session != nil:
		head.Session = op.session.id
		s.shared.fetches.answered(op.session, op.cached, allReads{op}, op.mention)
	default:
		for i := range op.reads {
			op.mentioned = append(op.mentioned, i)
		}
		if op.body.Version >= fetchSessionsFrom && op.body.SessionEpoch == epochFull {
			head.Session = s.shared.fetches.create(&op.body, allReads{op}, op.began)
		}
	}
	at, dst := s.beginAnswer(&op.request, 64+96*len(op.mentioned))
	base := at
	dst, op.cuts = op.answer.AppendTo(dst, op.cuts[:0], head, op, s.shared.image.Load(), s.client.Listener)
	regions, next := int64(0), 0
	atOnce := s.out.empty()
	for _, i := range op.mentioned {
		r := &op.reads[i]
		if r.Size == 0 {
			continue
		}
		s.out.place(op.cuts[next].At, r.region, r.present && atOnce)
		r.region = store.Region{}
		regions += int64(r.Size)
		next++
	}
	return s.endAnswer(base, dst, regions)
}

// doubt takes back what ends a reader's way if this broker leads, and is wrong if another does: see certain.
func (op *fetchOp) doubt(s *shared) {
	for i := range op.reads {
		if r := &op.reads[i]; (r.Code == wire.OffsetOutOfRange || r.Diverging.Known) && !s.certain() {
			r.Refuse(wire.NotLeaderOrFollower)
			r.Diverging = wire.EpochEnd{}
			r.Leader, r.LeaderEpoch = ident.NoBroker, ident.NoLeaderEpoch
		}
	}
}

// fetchSessionsFrom is the first version of Fetch with sessions.
const fetchSessionsFrom = 7

func (op *fetchOp) mention(i int) { op.mentioned = append(op.mentioned, i) }

// cut keeps the answer within the limits: the first records whole whatever their size, of later partitions what still fits, at least one batch or none.
func (op *fetchOp) cut() {
	left := op.bytesMax
	some := false
	for i := range op.reads {
		r := &op.reads[i]
		n := int64(r.region.Len())
		r.Size = int(n)
		if n == 0 {
			continue
		}
		if !some {
			some = true
			left -= min(left, n)
			continue
		}
		limit := min(left, int64(r.command.BytesMax))
		switch {
		case int64(r.first) > limit:
			r.region.Release()
			r.Size = 0
		case n > limit:
			r.region = r.region.Slice(0, int(limit))
			r.Size = int(limit)
		}
		left -= int64(r.Size)
	}
}

// Len implements handler.FetchParts: the parts that are answered.
func (op *fetchOp) Len() int { return len(op.mentioned) }

// Part implements handler.FetchParts.
func (op *fetchOp) Part(i int) *handler.Fetched { return &op.reads[op.mentioned[i]].Fetched }

// allReads are the results of all reads, mentioned or not.
type allReads struct{ op *fetchOp }

// Len implements handler.FetchParts.
func (a allReads) Len() int { return len(a.op.reads) }

// Part implements handler.FetchParts.
func (a allReads) Part(i int) *handler.Fetched { return &a.op.reads[i].Fetched }

// recycle implements operation.
func (op *fetchOp) recycle() {
	for i := range op.reads {
		op.reads[i].region.Release()
	}
	op.frame.chunk.release()
	clear(op.reads)
	clear(op.cached)
	*op = fetchOp{
		reads: op.reads[:0], cached: op.cached[:0], mentioned: op.mentioned[:0], answer: op.answer, cuts: op.cuts[:0], near: op.near[:0],
	}
	if cap(op.reads) > readsKept {
		op.reads, op.cached, op.mentioned, op.cuts, op.answer = nil, nil, nil, nil, handler.FetchAnswer{}
	}
	fetchOps.Put(op)
}
