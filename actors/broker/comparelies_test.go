package broker

import (
	"crypto/rand"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
	"github.com/troupe-broker/troupe/wire/record"
)

// comparer is a partition that follows broker 1, which is nowhere, in epoch 1, with records that are all committed. It does in one turn what a test wants, which
// says what the leader answers.
type comparer struct {
	t        *testing.T
	p        *partitionActor
	ref      *runtime.Ref
	records  []byte
	over     chan *scrubbed
	compared chan *compared
}

// comparing is done in one turn.
type comparerDoes struct {
	run  func(*runtime.Turn)
	done chan struct{}
}

func (*comparerDoes) Bytes() int { return 0 }

// Turn implements runtime.Behaviour.
func (c *comparer) Turn(t *runtime.Turn, batch []runtime.Message) {
	for _, m := range batch {
		switch m := m.(type) {
		case *comparerDoes:
			m.run(t)
			close(m.done)
		case *scrubbed:
			c.over <- m
		case *compared:
			c.compared <- m
		}
	}
}

func (c *comparer) does(run func(*runtime.Turn)) {
	c.t.Helper()
	m := &comparerDoes{run, make(chan struct{})}
	if err := c.ref.Post(m); err != nil {
		c.t.Fatal(err)
	}
	<-m.done
}

// newComparer makes one with four records, each a batch.
func newComparer(t *testing.T, level int16) *comparer {
	t.Helper()
	sd := newSide(t, sideOptions{self: identityOf(2, 20)})
	sd.finalise(level)
	s := sd.shared
	s.links, s.identity.Broker = sd.links, 2
	d, _, err := store.OpenDirectory(store.DirectoryOptions{
		FS: storetest.NewDisk(1).FS(), Path: "/data", Broker: 2, Rand: rand.Reader, Generations: &store.Generations{}, Parallel: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	tp, id := ident.TopicPartition{Topic: "orders"}, ident.TopicID{1}
	file, _, err := d.OpenLog(tp, id, store.DefaultLogConfig(), store.LogHooks{}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	c := &comparer{t: t, over: make(chan *scrubbed, 16), compared: make(chan *compared, 16)}
	for o := range ident.Offset(4) {
		b := batchOf(t, o, 100)
		c.records = append(c.records, b...)
		if err := file.Append(b, 1000); err != nil {
			t.Fatal(err)
		}
	}
	if c.ref, err = s.system.Spawn(nil, cast("partition", "orders-0", c)); err != nil {
		t.Fatal(err)
	}
	rules := record.DefaultRules()
	c.p = &partitionActor{shared: s, replica: &replica{tp: tp, id: id, dir: &dataDir{store: d}, ref: c.ref}, settings: topicSettings{log: store.DefaultLogConfig(), rules: &rules}, log: zerolog.Nop(), file: file}
	c.p.machine = partition.New(partition.Options{Broker: 2, Config: c.p.settings.machine, Log: partition.LogState{
		End: 4, Flushed: 4, HighWatermark: 4, Generation: file.Generation(), Epochs: []partition.EpochStart{{Epoch: 1}},
	}})
	c.lead(1, 1)
	return c
}

// lead lets a broker lead in an epoch.
func (c *comparer) lead(broker ident.BrokerID, epoch ident.LeaderEpoch) {
	c.p.become = &partition.Become{
		Leader: broker, LeaderEpoch: epoch, PartitionEpoch: ident.PartitionEpoch(epoch), Replicas: []partition.Replica{{Broker: 1}, {Broker: 2}, {Broker: 3}}, ISR: []ident.BrokerID{1, 2, 3},
	}
	c.p.machine.Step(partition.Now{}, c.p.become, &c.p.out)
}

// begin brings all records, as the scrub has read them.
func (c *comparer) begin() *replicaCheck {
	c.t.Helper()
	check := &replicaCheck{number: 1, generation: c.p.file.Generation()}
	c.does(func(t *runtime.Turn) {
		c.p.checking = check
		piece := &scrubPiece{replica: c.p.replica, scrubber: c.ref, number: 1, shared: c.p.shared}
		(&pieceRead{piece: piece, bytes: slices.Clone(c.records), end: 4, next: 4, generation: c.p.file.Generation()}).take(c.p, t)
	})
	return check
}

// honest is the answer of a leader that has the same.
func (c *comparer) honest() peer.DigestAnswer {
	return peer.DigestAnswer{LeaderEpoch: 1, Ticket: c.p.comparing.ticket, Next: 4, High: 4, Bytes: int32(len(c.records)), Digest: digestOf(c.records, 0, 4)}
}

// finished is what the scrubber heard in the end. It hears it in a turn of its own, after the one that tells it.
func (c *comparer) finished(name string) *scrubbed {
	c.t.Helper()
	select {
	case m := <-c.over:
		return m
	case <-time.After(10 * time.Second):
		c.t.Fatalf("%s: the scrub does not go on", name)
		return nil
	}
}

// A leader may answer anything. A follower believes it nothing but that its records are other ones, and the scrub goes on; where nothing was compared, the check
// says so.
func TestALeaderThatAnswersWronglyIsNotBelieved(t *testing.T) {
	c := newComparer(t, peer.VersionMax)
	for name, x := range map[string]struct {
		lie      func(*peer.DigestAnswer)
		why      string
		compared int64
	}{
		"the truth":                 {func(*peer.DigestAnswer) {}, "", 4},
		"more than was asked for":   {func(a *peer.DigestAnswer) { a.Next, a.High = 1<<60, 1<<60 }, "", 4},
		"nothing":                   {func(a *peer.DigestAnswer) { a.Next = 0 }, notSame, 0},
		"what lies below":           {func(a *peer.DigestAnswer) { a.Next = -1 << 63 }, notSame, 0},
		"less than no bytes":        {func(a *peer.DigestAnswer) { a.Bytes = -1 }, notSame, 0},
		"more bytes than there are": {func(a *peer.DigestAnswer) { a.Bytes = math.MaxInt32 }, "", 4},
		"what is not committed":     {func(a *peer.DigestAnswer) { a.High = 3 }, notSteady, 0},
		"of another epoch":          {func(a *peer.DigestAnswer) { a.LeaderEpoch = 2 }, notSteady, 0},
		"a damaged leader":          {func(a *peer.DigestAnswer) { a.Result, a.Next = wire.CorruptMessage, 0 }, notSound, 0},
		"one that leads no longer":  {func(a *peer.DigestAnswer) { a.Result, a.Next = wire.NotLeaderOrFollower, 0 }, notSteady, 0},
		"out of a range that it has": {
			func(a *peer.DigestAnswer) { a.Result, a.Next = wire.OffsetOutOfRange, 0 }, notSteady, 0,
		},
		"retention was there first": {func(a *peer.DigestAnswer) { a.Result, a.Next, a.Start = wire.OffsetOutOfRange, 0, 4 }, "", 0},
		"a log that begins behind what is committed": {
			func(a *peer.DigestAnswer) { a.Result, a.Next, a.Start = wire.OffsetOutOfRange, 0, 1<<60 }, notSame, 0,
		},
	} {
		check := c.begin()
		c.does(func(t *runtime.Turn) {
			late := c.honest()
			late.Ticket--
			(&digestGiven{late}).take(c.p, t) // of an ask that nobody waits for
			if c.p.comparing.piece == nil {
				c.t.Errorf("%s: another ask's answer was taken", name)
			}
			a := c.honest()
			x.lie(&a)
			(&digestGiven{a}).take(c.p, t)
		})
		m := c.finished(name)
		if most := int64(repairBytes + c.p.settings.rules.MaxMessageBytes); m.remote > most { // the scrub pauses for as long as it takes to read so much
			t.Errorf("%s: the leader is said to have read %d bytes for this, of %d at most", name, m.remote, most)
		}
		if check.why != x.why || check.compared != x.compared || check.differs.count() != 0 || m.next != 4 || m.remote < 0 {
			t.Errorf("%s: %+v, %+v", name, check, m)
		}
	}
}

// A digest that is another one is looked into, record by record: it alone is no difference.
func TestADigestAloneIsNoDifference(t *testing.T) {
	c := newComparer(t, peer.VersionMax)
	batch := func(o ident.Offset) []byte { return batchOf(t, o, 100) }
	join := func(list ...[]byte) []byte { return slices.Concat(list...) }
	turned := slices.Clone(c.records)
	turned[len(turned)-1] ^= 1
	other := join(batch(0), batchOf(t, 1, 99), batch(2), batch(3))
	one := []difference{{store.OffsetRange{From: 1, To: 2}, differsRecord}}
	for name, x := range map[string]struct {
		payload  []byte
		lie      func(*peer.RangeAnswer)
		why      string
		differs  []difference
		compared int64
	}{
		"the same records":         {payload: c.records, compared: 4},
		"another record":           {payload: other, differs: one, compared: 4},
		"what came damaged":        {payload: turned, why: notSame},
		"noise":                    {payload: []byte("noise"), why: notSame},
		"batches that do not rise": {payload: join(batch(0), batch(2), batch(1), batch(3)), why: notSame},
		"a batch twice":            {payload: join(batch(0), batch(1), batch(1), batch(2), batch(3)), why: notSame},
		"of another epoch":         {payload: other, lie: func(a *peer.RangeAnswer) { a.LeaderEpoch = 2 }, why: notSteady},
		"what is not committed":    {payload: other, lie: func(a *peer.RangeAnswer) { a.High = 3 }, why: notSteady},
		"nothing":                  {payload: nil, lie: func(a *peer.RangeAnswer) { a.Next = 0 }, why: notSame},
		"a damaged leader":         {payload: nil, lie: func(a *peer.RangeAnswer) { a.Result = wire.CorruptMessage }, why: notSound},
	} {
		check := c.begin()
		asked := false
		c.does(func(t *runtime.Turn) {
			a := c.honest()
			a.Digest[0] ^= 1
			(&digestGiven{a}).take(c.p, t)
			(&digestGiven{a}).take(c.p, t) // once more: nobody waits for it
			if c.p.comparing.next != 4 || len(c.over) != 0 {
				c.t.Errorf("%s: the records are not asked for", name)
			}
			r := &peer.RangeAnswer{LeaderEpoch: 1, Ticket: c.p.comparing.ticket, Next: 4, High: 4, Payload: x.payload}
			if x.lie != nil {
				x.lie(r)
			}
			if !c.p.tookRecords(t, r) {
				c.t.Errorf("%s: nobody wants the answer", name)
			}
			asked = c.p.comparing.piece != nil
		})
		if asked {
			m := <-c.compared
			c.does(func(t *runtime.Turn) { m.take(c.p, t) })
		}
		c.finished(name)
		if check.why != x.why || check.compared != x.compared || !slices.Equal(check.differs.list, x.differs) {
			t.Errorf("%s: %+v", name, check)
		}
	}
}

// The log is cut and written anew between the read of a piece and its comparison: what was read is in no log any more.
func TestWhatWasReadBeforeTheLogWasCutIsNotCompared(t *testing.T) {
	c := newComparer(t, peer.VersionMax)
	before := c.p.file.Generation()
	if _, err := c.p.file.Truncate(2, 1000); err != nil {
		t.Fatal(err)
	}
	if c.p.file.Generation() == before {
		t.Fatal("the log was not cut")
	}
	for _, m := range []*pieceRead{{bytes: c.records, end: 4}, {}} { // nothing is left of what was cut while it was read
		check := &replicaCheck{number: 1}
		c.does(func(t *runtime.Turn) {
			c.p.checking = check
			m.piece, m.next, m.generation = &scrubPiece{replica: c.p.replica, scrubber: c.ref, number: 1, shared: c.p.shared}, 4, before
			m.take(c.p, t)
		})
		c.finished("a log that was cut")
		if check.why != notSteady || check.compared != 0 {
			t.Errorf("%d bytes: %+v", len(m.bytes), check)
		}
	}
}

// A cluster that has not finalised the version with digests compares nothing, asks nobody, and says so.
func TestNothingIsComparedBeforeTheClusterHasFinalisedIt(t *testing.T) {
	for level := int16(1); level <= int16(peer.CodeDigestAsk.Since()); level++ {
		c := newComparer(t, level)
		check := c.begin()
		asks, silent := c.p.comparing.piece != nil, strings.Contains(check.why, "brokers compare from 3 on")
		if wanted := level >= int16(peer.CodeDigestAsk.Since()); asks != wanted || silent == wanted {
			t.Errorf("level %d: asks %v, %q", level, asks, check.why)
		}
	}
}
