package broker

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

const (
	// evictionAge is how long a fetch session must have existed, or not been used, before another may take its slot.
	evictionAge = ident.Instant(120e9)
	// sessionPartitionsMax bounds the partitions of one session. A reader of more is served without a session.
	sessionPartitionsMax = 20_000
	// cachedPartitionsMax bounds the partitions of all sessions: the slots alone would not bound the memory.
	cachedPartitionsMax = 200_000
	// The epochs of a request that names no session.
	epochFull  = 0
	epochFinal = -1
)

// fetchSessions remembers what clients fetch, so that they need not say it again with every request (KIP-227). It is shared by all connections: a
// client may go on with a session on another one.
type fetchSessions struct {
	random func() uint32

	mu         sync.Mutex
	slots      int
	byID       map[int32]*fetchSession
	partitions int // of all sessions

	evictions atomic.Int64
}

// fetchSession is one client's memory. It is guarded by the lock of the cache; an operation that uses it keeps pointers to its partitions, which live on
// when the session is evicted.
type fetchSession struct {
	id      int32
	epoch   int32 // that the next request has
	byTopic bool  // partitions are named by topic id
	created ident.Instant
	used    ident.Instant
	parts   map[partitionKey]*cachedPartition
	ring    cachedPartition // sentinel of the list, in the order in which they are served
}

type partitionKey struct {
	name      string // empty when the topic is named by id
	id        ident.TopicID
	partition int32
}

// cachedPartition is what a session knows of a partition: what the client asked, and what it was told last.
type cachedPartition struct {
	key           partitionKey
	name          []byte // key.name, for answers
	wanted        wire.FetchPartition
	highWatermark ident.Offset
	logStart      ident.Offset
	forgotten     bool
	next, prev    *cachedPartition
}

func newFetchSessions(slots int, random func() uint32) *fetchSessions {
	return &fetchSessions{slots: slots, random: random, byID: make(map[int32]*fetchSession)}
}

// resize changes the number of slots. Sessions above it are evicted as others are wanted.
func (c *fetchSessions) resize(slots int) {
	c.mu.Lock()
	c.slots = slots
	c.mu.Unlock()
}

// open finds the session of a request, updates it, and calls visit for each of its partitions in the order in which they are to be served. Without a
// session, nil is returned and the request's own partitions count. A code refuses the request.
func (c *fetchSessions) open(r *wire.FetchRequest, now ident.Instant, visit func(*cachedPartition)) (*fetchSession, wire.ErrorCode) {
	if r.SessionEpoch == epochFull || r.SessionEpoch == epochFinal {
		if r.SessionID != 0 {
			c.mu.Lock()
			c.remove(c.byID[r.SessionID])
			c.mu.Unlock()
		}
		return nil, wire.NoError
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.byID[r.SessionID]
	switch {
	case s == nil:
		return nil, wire.FetchSessionIDNotFound
	case s.epoch != r.SessionEpoch:
		return nil, wire.InvalidFetchSessionEpoch
	case s.byTopic != (r.Version >= fetchTopicIDs):
		return nil, wire.FetchSessionTopicIDError
	}
	c.update(s, r)
	if len(s.parts) == 0 {
		c.remove(s)
		return nil, wire.NoError
	}
	s.epoch = nextEpoch(s.epoch)
	s.used = now
	for p := s.ring.next; p != &s.ring; p = p.next {
		visit(p)
	}
	return s, wire.NoError
}

// fetchTopicIDs is the first version of Fetch that names topics by id (KIP-516).
const fetchTopicIDs = 13

func nextEpoch(e int32) int32 {
	if e == math.MaxInt32 {
		return 1
	}
	return e + 1
}

// update takes the request's changes into the session.
func (c *fetchSessions) update(s *fetchSession, r *wire.FetchRequest) {
	for it := r.Partitions(); it.Next(); {
		if p, ok := s.parts[partitionKey{string(it.TopicName), it.TopicID, it.Partition}]; ok {
			p.wanted = it.FetchPartition
			continue
		}
		if len(s.parts) >= sessionPartitionsMax || c.partitions >= cachedPartitionsMax {
			continue // the client hears nothing of it, and asks again in a full request when it misses it
		}
		c.partitions++
		s.add(&it)
	}
	for it := r.Forgotten(); it.Next(); {
		if p, ok := s.parts[partitionKey{string(it.TopicName), it.TopicID, it.Partition}]; ok {
			delete(s.parts, p.key)
			p.unlink()
			p.forgotten = true
			c.partitions--
		}
	}
}

// add remembers a partition at the end of the order.
func (s *fetchSession) add(it *wire.FetchIterator) *cachedPartition {
	name := string(it.TopicName)
	p := &cachedPartition{
		key: partitionKey{name, it.TopicID, it.Partition}, name: []byte(name), wanted: it.FetchPartition,
		highWatermark: ident.NoOffset, logStart: ident.NoOffset,
	}
	s.parts[p.key] = p
	p.link(&s.ring)
	return p
}

// link puts p before at, which is the end of the list when at is its sentinel.
func (p *cachedPartition) link(at *cachedPartition) {
	p.prev, p.next = at.prev, at
	at.prev.next = p
	at.prev = p
}

func (p *cachedPartition) unlink() {
	p.prev.next, p.next.prev = p.next, p.prev
	p.prev, p.next = nil, nil
}

// create makes a session of a full request that was just served, and returns its id, 0 when there is no room.
func (c *fetchSessions) create(r *wire.FetchRequest, parts handler.FetchParts, now ident.Instant) int32 {
	if r.PartitionCount > sessionPartitionsMax {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.room(r.PartitionCount, now) {
		return 0
	}
	s := &fetchSession{epoch: 1, byTopic: r.Version >= fetchTopicIDs, created: now, used: now, parts: make(map[partitionKey]*cachedPartition, r.PartitionCount)}
	s.ring.next, s.ring.prev = &s.ring, &s.ring
	i := 0
	for it := r.Partitions(); it.Next(); i++ {
		if _, twice := s.parts[partitionKey{string(it.TopicName), it.TopicID, it.Partition}]; twice {
			continue
		}
		s.add(&it).told(parts.Part(i))
	}
	for s.id == 0 || c.byID[s.id] != nil {
		s.id = int32(c.random() & math.MaxInt32)
	}
	c.byID[s.id] = s
	c.partitions += len(s.parts)
	return s.id
}

// told notes what the client hears of a partition. After an error it will hear of it again, whatever happens.
func (p *cachedPartition) told(f *handler.Fetched) {
	p.highWatermark, p.logStart = f.HighWatermark, f.LogStart
	if f.Code != wire.NoError {
		p.highWatermark = ident.NoOffset
	}
}

// news says whether an incremental answer has to mention the partition.
func (p *cachedPartition) news(f *handler.Fetched) bool {
	return f.Size > 0 || f.Code != wire.NoError || f.Diverging.Known || f.Elsewhere || f.HighWatermark != p.highWatermark || f.LogStart != p.logStart
}

// answered notes what an incremental answer says: partitions that brought records go to the end of the order, so that those behind them get their turn.
// mention is called with the index of each part to be mentioned.
func (c *fetchSessions) answered(s *fetchSession, cached []*cachedPartition, parts handler.FetchParts, mention func(i int)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, p := range cached {
		f := parts.Part(i)
		if !p.news(f) {
			continue
		}
		mention(i)
		p.told(f)
		if f.Size > 0 && !p.forgotten {
			p.unlink()
			p.link(&s.ring)
		}
	}
}

// room makes room for a session of n partitions, if need be and if possible.
func (c *fetchSessions) room(n int, now ident.Instant) bool {
	if c.slots <= 0 {
		return false
	}
	for len(c.byID) >= c.slots || c.partitions+n > cachedPartitionsMax {
		victim := c.victim(n, now)
		if victim == nil {
			return false
		}
		c.remove(victim)
		c.evictions.Add(1)
	}
	return true
}

// victim picks the session that has to make room for one of n partitions: the one unused for longest, if that is long; else, of those that have existed
// for long, one that is smaller. It looks at all: it runs only when the cache is full.
func (c *fetchSessions) victim(n int, now ident.Instant) *fetchSession {
	var idle, small *fetchSession
	for _, s := range c.byID {
		if now-s.used > evictionAge && (idle == nil || s.used < idle.used || s.used == idle.used && s.id < idle.id) {
			idle = s
		}
		if now-s.created > evictionAge && len(s.parts) < n && (small == nil || len(s.parts) < len(small.parts) || len(s.parts) == len(small.parts) && s.id < small.id) {
			small = s
		}
	}
	if idle != nil {
		return idle
	}
	return small
}

// remove forgets a session; nil is no session.
func (c *fetchSessions) remove(s *fetchSession) {
	if s == nil {
		return
	}
	delete(c.byID, s.id)
	c.partitions -= len(s.parts)
}

// fetchSessionUse is a reading for metrics.
type fetchSessionUse struct{ Sessions, Partitions int }

func (c *fetchSessions) use() fetchSessionUse {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fetchSessionUse{Sessions: len(c.byID), Partitions: c.partitions}
}
