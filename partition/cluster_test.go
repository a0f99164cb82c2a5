package partition_test

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire/ident"
)

var (
	seedsFlag = flag.Int("partition.seeds", 2000, "how many random clusters of machines to run")
	seedFlag  = flag.Uint64("partition.seed", 0, "run this one only, and print what happens")
)

// TestNoCommittedRecordIsLost lets three to five machines replicate one partition under
// an honest little controller, over connections that break, on disks that lose what was
// not flushed. After every step it checks the invariants 1 to 16 of replication; when
// the faults are over, everybody must agree.
//
//	go test ./partition -run NoCommitted -partition.seeds=100000
//	go test ./partition -run NoCommitted -partition.seed=4711 -v
func TestNoCommittedRecordIsLost(t *testing.T) {
	if *seedFlag != 0 {
		c := newCluster(*seedFlag)
		c.verbose = t.Logf
		if err := c.run(); err != nil {
			t.Fatalf("seed %d: %v", *seedFlag, err)
		}
		return
	}
	seen := map[string]int{}
	for seed := uint64(1); seed <= uint64(*seedsFlag); seed++ {
		c := newCluster(seed)
		if err := c.run(); err != nil {
			t.Fatalf("seed %d: %v\nsee what happened: go test ./partition -run NoCommitted -partition.seed=%d -v", seed, err, seed)
		}
		for k, n := range c.seen {
			seen[k] += n
		}
	}
	if *seedsFlag < 2000 {
		return
	}
	// What no run comes to is not tested.
	for _, k := range []string{
		"acked", "duplicate", "elected from ISR", "elected from ELR", "declared loss", "truncating", "starting-anew", "diverged",
		"isr-shrinks", "isr-expands", "refused proposal", "stale-ask", "stale-answer", "stale-flush", "stale-become", "stale-progress",
		"power loss", "killed", "sync-hung", "resigned", "cannot resign", "offline", "marked offline", "leader offline", "early ask", "early progress", "rebuilt producers", "truncation refused",
		"strict-confirmed", "strict cleared", "offset not available", "log-start", "deferred become", "append failed", "converged", "marked full", "full leader replaced", "full member dropped", "room", "unfenced",
	} {
		if seen[k] == 0 {
			t.Errorf("no seed came to %q", k)
		}
	}
	t.Log(seen)
}

// TestASeedRunsTheSameTwice: nothing in a machine depends on anything but its commands.
func TestASeedRunsTheSameTwice(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		a, b := newCluster(seed), newCluster(seed)
		a.traced, b.traced = true, true
		errA, errB := a.run(), b.run()
		if a.trace.Sum64() != b.trace.Sum64() || fmt.Sprint(errA) != fmt.Sprint(errB) {
			t.Fatalf("seed %d ran in two ways", seed)
		}
	}
}

// cluster is the world of one partition.
type cluster struct {
	seed    uint64
	rand    *rand.Rand
	verbose func(string, ...any)
	traced  bool
	trace   interface {
		Write([]byte) (int, error)
		Sum64() uint64
	}
	seen map[string]int

	now        partition.Now
	nodes      []*node
	conns      []*conn
	control    controller
	config     partition.Config
	generation ident.Generation // of the whole cluster; a process has its own counter, which changes nothing
	contents   uint64
	requests   ident.RequestID
	producers  []*producerClient
	ghost      ghost
	calm       bool // faults are over
	trims      bool
	slow       ident.BrokerID // the disk of this broker hangs for long
	err        error
}

// batch is a batch with its content.
type batch struct {
	info      partition.BatchInfo
	base, end ident.Offset
	epoch     ident.LeaderEpoch
	content   uint64
}

func newCluster(seed uint64) *cluster {
	c := &cluster{seed: seed, rand: rand.New(rand.NewPCG(seed, 4)), trace: fnv.New64a(), seen: map[string]int{}}
	c.config = testConfig
	n := 3 + c.rand.IntN(5)/2
	c.config.MinISR = int32(1 + c.rand.IntN(min(n, 3)))
	c.config.LagNanos = 1000 * millisecond
	c.config.AskBackoffNanos = 320 * millisecond
	c.config.ProposeRetryNanos = 200 * millisecond
	c.config.FullNanos = 150 * millisecond
	c.config.AskBytesMax = int32(100 + 100*c.rand.IntN(4))
	c.config.ProduceWaitersMax = 20
	if c.rand.IntN(4) == 0 {
		c.config.FlushMessages = 2
	}
	c.trims = c.rand.IntN(3) > 0
	c.slow = ident.BrokerID(c.rand.IntN(4 * n))
	c.now = partition.Now{Mono: 1000 * millisecond, Wall: 1_000_000}
	c.control.start(c, n)
	for id := range n {
		c.nodes = append(c.nodes, &node{c: c, id: ident.BrokerID(id + 1)})
	}
	for range 2 {
		c.producers = append(c.producers, &producerClient{id: ident.ProducerID(len(c.producers) + 1), base: ident.NoOffset})
	}
	for _, x := range c.nodes {
		x.boot(false)
	}
	return c
}

func (c *cluster) say(format string, a ...any) {
	if !c.traced && c.verbose == nil {
		return
	}
	line := fmt.Sprintf(format, a...)
	_, _ = c.trace.Write([]byte(line))
	if c.verbose != nil {
		c.verbose("%s", line)
	}
}

func (c *cluster) fail(format string, a ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, a...)
	}
}

func (c *cluster) chance(percent int) bool { return c.rand.IntN(100) < percent }

func (c *cluster) node(id ident.BrokerID) *node { return c.nodes[id-1] }

func (c *cluster) run() (err error) {
	defer func() {
		if p := recover(); p != nil && c.verbose == nil {
			err = fmt.Errorf("panic: %v", p)
		} else if p != nil {
			panic(p)
		}
	}()
	for range 200 + c.rand.IntN(400) {
		c.step()
		if c.err != nil {
			return c.err
		}
	}
	c.settle()
	return c.err
}

// step is one event somewhere.
func (c *cluster) step() {
	x := c.nodes[c.rand.IntN(len(c.nodes))]
	switch n := c.rand.IntN(1000); {
	case n < 370:
		c.deliver()
	case n < 470:
		c.someNode((*node).hearMetadata)
	case n < 510:
		if !c.chance(50) || !c.control.takeMark() {
			c.control.take()
		}
	case n < 620:
		c.someNode((*node).flush)
	case n < 660:
		c.someNode((*node).finishCut)
	case n < 780:
		c.produce()
	case n < 820:
		x.read()
	case n < 900:
		c.tick(ident.Instant(c.rand.IntN(150)) * millisecond)
	case n < 925:
		c.connect()
	case n < 937:
		c.breakConn()
	case n < 952:
		x.crash()
	case n < 975:
		if !x.up {
			x.boot(true)
		}
	case n < 982:
		c.control.notice(x.id)
	case n < 988:
		c.control.rebalance(x.id)
	case n < 991:
		c.control.switchMode()
	case n < 992:
		x.goOffline()
	case n < 994:
		x.full = !x.full
	case n < 996:
		x.deleteRecords()
	default:
		c.replay()
	}
	c.checkAll()
}

// someNode lets the first broker do something that has it to do, from a random one on.
func (c *cluster) someNode(do func(*node) bool) {
	first := c.rand.IntN(len(c.nodes))
	for i := range c.nodes {
		if do(c.nodes[(first+i)%len(c.nodes)]) {
			return
		}
	}
}

// tick moves the clocks of all.
func (c *cluster) tick(by ident.Instant) {
	c.now.Mono += by
	c.now.Wall += ident.Millis(by / millisecond)
	for _, x := range c.nodes {
		if x.up && (c.calm || c.chance(80)) {
			x.turn(nil)
		}
	}
}

// settle ends the faults and lets everybody do what is to be done. Then all replicas
// must be the same, in sync, and everything in them committed.
func (c *cluster) settle() {
	c.calm = true
	for _, x := range c.nodes {
		if x.offline {
			x.crash()
		}
		if !x.up {
			x.boot(true)
		}
		x.full = false
		if !c.control.registered[x.id-1] {
			c.control.unfence(x.id)
		}
	}
	c.control.ready = true
	for range 50 { // five seconds: whoever may join an ISR joins soon
		for range 40 {
			c.deliver()
			c.control.takeMark()
			c.control.take()
			for _, x := range c.nodes {
				x.hearMetadata()
				x.flush()
				x.finishCut()
			}
			c.connect()
		}
		c.tick(100 * millisecond)
		c.checkAll()
		if c.err != nil {
			return
		}
		if c.converged() == "" {
			c.seen["converged"]++
			c.checkProducers()
			return
		}
	}
	c.fail("the faults are over, and still %s", c.converged())
}

// converged says what is missing.
func (c *cluster) converged() string {
	if c.control.leader == ident.NoBroker {
		return "nobody leads"
	}
	l := c.node(c.control.leader)
	if l.m.Role() != partition.Leading {
		return fmt.Sprintf("broker %d does not know that it leads", l.id)
	}
	want := l.m.Offsets()
	if want.HighWatermark != want.End {
		return fmt.Sprintf("the leader's high watermark is %d, its end %d", want.HighWatermark, want.End)
	}
	if len(c.control.isr) != len(c.nodes) {
		return fmt.Sprintf("the ISR is %v", c.control.isr)
	}
	for _, x := range c.nodes {
		o := x.m.Offsets()
		if o.End != want.End || o.HighWatermark != want.HighWatermark || o.LogStart < want.LogStart {
			return fmt.Sprintf("broker %d is at %+v, the leader at %+v", x.id, o, want)
		}
	}
	return ""
}

// producerClient writes batches in order and repeats each until it is acknowledged.
type producerClient struct {
	id      ident.ProducerID
	next    ident.Sequence
	content uint64 // of the batch under way; 0: none
	count   int32
	waiting ident.RequestID
	at      ident.BrokerID
	base    ident.Offset
}

// produce sends a batch of some client to somebody who leads, or thinks so.
func (c *cluster) produce() {
	leaders := c.leaders()
	if len(leaders) == 0 {
		return
	}
	x := leaders[c.rand.IntN(len(leaders))]
	c.requests++
	app := &partition.Append{
		Request: c.requests, Acks: -1, Deadline: c.now.Mono + ident.Instant(200+c.rand.IntN(2000))*millisecond, LogAppendTime: ident.NoTimestamp,
		Batch: partition.BatchInfo{Bytes: 100, LastOffsetDelta: int32(c.rand.IntN(3)), ProducerID: -1, BaseSequence: -1, ProducerEpoch: -1},
	}
	switch c.rand.IntN(3) {
	case 0:
		app.Acks = int16(c.rand.IntN(2)) - 1
		c.contents++
		x.append(app, c.contents, nil)
	default:
		p := c.producers[c.rand.IntN(len(c.producers))]
		if p.waiting != 0 && c.node(p.at).up && !c.chance(10) {
			return // it still waits there; seldom it loses its patience
		}
		if p.content == 0 {
			c.contents++
			p.content, p.count = c.contents, app.Batch.LastOffsetDelta
		}
		app.Batch.LastOffsetDelta = p.count
		app.Batch.ProducerID, app.Batch.ProducerEpoch, app.Batch.BaseSequence = p.id, 0, p.next
		p.waiting, p.at = app.Request, x.id
		x.append(app, p.content, p)
	}
}

func (c *cluster) leaders() []*node {
	var l []*node
	for _, x := range c.nodes {
		if x.up && x.m.Role() == partition.Leading {
			l = append(l, x)
		}
	}
	return l
}

func drawLog(log []batch) string {
	var b strings.Builder
	for i := range log {
		fmt.Fprintf(&b, " %d-%d@%d:%d", log[i].base, log[i].end, log[i].epoch, log[i].content)
	}
	return b.String()
}
