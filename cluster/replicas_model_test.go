package cluster

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"testing"
	"testing/cryptotest"

	"github.com/troupe-broker/troupe/wire/ident"
)

// The model below plays whole brokers against real controllers: leaders that append, commit and propose by the images they have replayed, followers that
// truncate, copy and report, processes that die with and without what they had written. It keeps the ghost log of what was committed, and holds it against
// the metadata after every step.

// stage is the model's world.
type stage struct {
	*world
	puppets []*puppet
	ghost   [][]ghostEntry // committed, by partition
	uncl    []ident.LeaderEpoch
	served  []service                           // by partition
	targets [stagePartitions][][]ident.BrokerID // of moves that were asked for
	seen    *Image                              // newest committed image that was checked
	looked  int                                 // images that were
	mail    []func()
	ids     int
	quiet   bool // nobody does anything harmful any more
	replies map[ident.RequestID]func(Reply)
}

const stagePartitions = 3

func newStage(t testing.TB, seed int64, brokers int) *stage {
	t.Helper()
	rng := rand.New(rand.NewSource(seed))
	w := newWorld(t, 3, Options{SessionMs: 1500, SuspectMs: 400, SnapshotBytes: 20_000, KeepBytes: 5000}, rng)
	s := &stage{world: w, ghost: make([][]ghostEntry, stagePartitions), uncl: make([]ident.LeaderEpoch, stagePartitions), served: make([]service, stagePartitions), replies: map[ident.RequestID]func(Reply){}}
	for i := range brokers {
		p := &puppet{id: ident.BrokerID(i + 1), up: true, run: 1, copies: make([]copyOfLog, stagePartitions)}
		for j := range p.copies {
			p.copies[j] = copyOfLog{following: -1, leading: -1}
		}
		s.puppets = append(s.puppets, p)
	}
	for _, n := range w.nodes {
		n.start()
	}
	for _, p := range s.puppets {
		p.epoch = w.join(int(p.id), p.run, "")
		p.last = p.epoch
	}
	cmd := &CreateTopics{}
	topic := NewTopic{Name: "t", ID: ident.TopicID{7}, Partitions: -1, ReplicationFactor: -1}
	minISR := fmt.Sprint(1 + rng.Intn(3))
	topic.Configs = []ConfigValue{{Name: "min.insync.replicas", Value: &minISR}}
	for i := range stagePartitions {
		a := Assignment{Partition: int32(i)}
		for j := range 3 {
			a.Brokers = append(a.Brokers, ident.BrokerID((i+j)%brokers+1))
		}
		topic.Assignment = append(topic.Assignment, a)
	}
	cmd.Topics = []NewTopic{topic}
	if r := w.ask(w.await(), &cmd.Ask, cmd); r.Err != nil {
		t.Fatal(r.Err)
	}
	raise := &UpdateFeatures{Updates: []FeatureUpdate{{Name: PeerVersion, Level: fullSince, Kind: Upgrade}}}
	if r := w.ask(w.await(), &raise.Ask, raise); r.Err != nil {
		t.Fatal(r.Err)
	}
	s.check()
	if rng.Intn(6) == 0 { // all are killed before any has made its directories
		for _, p := range s.puppets {
			s.end(p, 1)
		}
		reached["killed at once"]++
	}
	w.lossPct = rng.Intn(5)
	return s
}

// tell hands a command to a random voter that is up; then runs when the answer comes.
func (s *stage) tell(a *Ask, cmd Command, then func(Reply)) {
	s.t.Helper()
	n := s.controller()
	if n == nil || s.rng.Intn(8) == 0 {
		n = s.nodes[s.rng.Intn(len(s.nodes))]
	}
	if n.c == nil {
		return
	}
	s.requests++
	a.Request = s.requests
	s.replies[a.Request] = then
	n.step(cmd)
	s.check()
}

// collect gives answers to whoever asked, in the order of the requests: an answer may end a run, and that draws from the seed.
func (s *stage) collect() {
	for _, id := range slices.Sorted(maps.Keys(s.replies)) {
		if r, ok := s.world.replies[id]; ok {
			then := s.replies[id]
			delete(s.replies, id)
			then(r)
		}
	}
}

func (s *stage) partition(m *Image, i int) *Partition {
	t, _ := m.Topic("t")
	return t.Partitions[i]
}

// act lets one broker do one thing.
func (s *stage) act(p *puppet) {
	s.t.Helper()
	if !p.up {
		if s.rng.Intn(6) == 0 {
			s.boot(p)
		}
		return
	}
	switch s.rng.Intn(16) {
	case 0, 1, 2:
		s.replay(p)
	case 3, 4:
		s.pulse(p)
	case 5, 6, 7:
		s.lead(p, s.rng.Intn(stagePartitions))
	case 8, 9, 10, 11:
		s.follow(p, s.rng.Intn(stagePartitions))
	case 12:
		s.judge(p)
	case 13:
		if s.rng.Intn(8) == 0 {
			s.die(p)
		}
	case 14:
		s.tellMarks(p)
	case 15:
		if s.rng.Intn(12) == 0 {
			s.harm(p, s.rng.Intn(stagePartitions))
		}
	}
}

// replay takes a newer image from any voter.
func (s *stage) replay(p *puppet) {
	s.t.Helper()
	n := s.nodes[s.rng.Intn(len(s.nodes))]
	if n.image == nil || p.image != nil && n.image.Index() <= p.image.Index() {
		return
	}
	if _, ok := n.image.Topic("t"); !ok {
		return
	}
	p.image = n.image
	for i := range p.copies {
		c, part := &p.copies[i], s.partition(p.image, i)
		if !part.HasReplica(p.id) { // moved away, with all that is kept of it
			*c = copyOfLog{following: -1, leading: -1}
			continue
		}
		c.made = c.made || p.registeredIn(p.image)
		if c.pending != nil && part.Epoch > c.proposed {
			c.pending = nil
		}
		mine := p.registeredIn(p.image) && part.Leader == p.id && c.mark != MarkOffline
		switch {
		case mine && c.leading != part.LeaderEpoch:
			if part.LeaderEpoch >= s.uncl[i] && !s.holds(p.id, i) {
				s.t.Fatalf("partition %d: broker %d leads and has %v of %v committed: %s", i, p.id, c.log, s.ghost[i], describePartition(part))
			}
			c.leading, c.start, c.acks, c.pending, c.hw = part.LeaderEpoch, len(c.log), map[run]int{}, nil, 0
			reached["elections"]++
			s.serves(part, i)
		case !mine:
			c.leading, c.pending = -1, nil
		}
	}
}

// pulse registers or sends a heartbeat.
func (s *stage) pulse(p *puppet) {
	if p.epoch == 0 {
		s.register(p)
		return
	}
	if s.confess(p) {
		return
	}
	hb := &Heartbeat{Broker: p.id, Epoch: p.epoch, Arrived: s.now.Mono, WantFence: !s.quiet && s.rng.Intn(40) == 0, WantShutdown: p.leaves}
	if p.image != nil {
		hb.Applied = p.image.Index()
	}
	defer s.heard(p)
	s.tell(&hb.Ask, hb, func(r Reply) {
		if body, ok := r.Body.(*HeartbeatReply); ok && body.ShouldShutDown && p.up && p.epoch == hb.Epoch {
			s.end(p, 0)
			reached["stops in order"]++
		}
	})
}

func (s *stage) register(p *puppet) {
	cmd := registration(int(p.id), p.run, "")
	cmd.CleanEpoch = p.clean
	topic := HeldTopic{Topic: ident.TopicID{7}}
	for i, c := range p.copies {
		switch {
		case !c.made:
		case c.late:
			topic.Whole = append(topic.Whole, int32(i))
		case c.unverified:
			topic.Unverified = append(topic.Unverified, int32(i))
		case !c.lossy:
			topic.Whole = append(topic.Whole, int32(i))
		}
	}
	cmd.Held = []Held{{Directory: cmd.Directories[0], Topics: []HeldTopic{topic}}}
	for run := range p.run {
		cmd.Runs = append(cmd.Runs, Incarnation{run, byte(p.id)})
	}
	asked := p.run
	s.tell(&cmd.Ask, cmd, func(r Reply) {
		if r.Err != nil || !p.up || p.run != asked {
			return
		}
		p.epoch = r.Body.(*RegisterBrokerReply).Epoch
		p.last, p.clean = p.epoch, 0
	})
}

// confess tells of what was named as whole and is not; before that is heard a broker does not ask to be unfenced.
func (s *stage) confess(p *puppet) bool {
	cmd := &Verified{Broker: p.id, Epoch: p.epoch}
	var late []*copyOfLog
	for i := range p.copies {
		if c := &p.copies[i]; c.late {
			late = append(late, c)
			cmd.Replicas = append(cmd.Replicas, Verdict{ReplicaRef: ReplicaRef{Topic: ident.TopicID{7}, Partition: int32(i)}, LastEpoch: c.lastEpoch(), End: ident.Offset(len(c.log))})
		}
	}
	if len(late) == 0 {
		return false
	}
	asked := p.run
	s.tell(&cmd.Ask, cmd, func(r Reply) {
		if r.Err == nil && p.up && p.run == asked {
			reached["found late"]++
			for _, c := range late {
				c.late, c.flushed = false, len(c.log) // only then the broker is ready
			}
		}
	})
	return true
}

// judge ends recoveries, also of replicas of which the image does not ask, or not any more, and tells of those of which it does when they are as durable as
// they were found.
func (s *stage) judge(p *puppet) {
	if p.image == nil || !p.registeredIn(p.image) {
		return
	}
	cmd := &Verified{Broker: p.id, Epoch: p.epoch}
	for i := range p.copies {
		c := &p.copies[i]
		asked := slices.Contains(s.partition(p.image, i).Unverified, p.id)
		if c.unverified || asked {
			c.unverified, c.flushed = false, len(c.log)
		}
		if !asked {
			continue
		}
		v := Verdict{ReplicaRef: ReplicaRef{Topic: ident.TopicID{7}, Partition: int32(i)}, Whole: !c.lossy, LastEpoch: c.lastEpoch(), End: ident.Offset(len(c.log))}
		cmd.Replicas = append(cmd.Replicas, v)
	}
	if len(cmd.Replicas) > 0 {
		s.tell(&cmd.Ask, cmd, func(Reply) {})
	}
}

// lead lets a leader append, sync, commit and propose, as its image has it.
func (s *stage) lead(p *puppet, i int) {
	s.t.Helper()
	c := &p.copies[i]
	if c.leading < 0 {
		return
	}
	part := s.partition(p.image, i)
	switch s.rng.Intn(6) {
	case 5:
		if s.rng.Intn(4) == 0 && !s.quiet {
			s.resign(p, i)
		}
	case 0, 1:
		if s.quiet || c.full {
			return
		}
		s.ids++
		c.log = append(c.log, ghostEntry{c.leading, s.ids})
	case 2:
		c.flushed = len(c.log)
	case 3:
		s.commit(p, i)
	case 4:
		s.propose(p, i, part)
	}
}

// commit advances the high watermark: with a large enough ISR, over it and what is pending.
func (s *stage) commit(p *puppet, i int) {
	s.t.Helper()
	c, part := &p.copies[i], s.partition(p.image, i)
	if len(part.ISR) < int(part.MinISR) || s.uncl[i] > c.leading {
		return
	}
	hw := c.flushed
	for _, b := range part.ISR {
		if b != p.id {
			hw = min(hw, c.acks[runOf(p.image, b)])
		}
	}
	for _, m := range c.pending {
		if m.Broker != p.id {
			hw = min(hw, c.acks[run{m.Broker, m.Epoch}])
		}
	}
	if hw <= c.hw {
		return
	}
	c.hw = hw
	for o := range hw {
		if o < len(s.ghost[i]) {
			if s.ghost[i][o] != c.log[o] {
				s.t.Fatalf("partition %d offset %d: broker %d commits %v where %v was committed", i, o, p.id, c.log[o], s.ghost[i][o])
			}
			continue
		}
		s.ghost[i] = append(s.ghost[i], c.log[o])
		reached["committed"]++
	}
	s.checkSets(s.seen, i)
}

// propose asks for another ISR, or for the pending one again.
func (s *stage) propose(p *puppet, i int, part *Partition) {
	c := &p.copies[i]
	if c.pending == nil {
		isr := slices.Clone(part.ISR)
		for _, b := range part.Replicas {
			end, told := c.acks[runOf(p.image, b)]
			in := slices.Contains(isr, b)
			switch {
			case !in && told && end >= max(c.start, c.hw) && !slices.Contains(part.Full, b):
				isr = append(isr, b)
			case in && b != p.id && !s.quiet && s.rng.Intn(6) == 0:
				isr = without(isr, b)
			}
		}
		if slices.Equal(isr, part.ISR) {
			return
		}
		for _, b := range isr {
			m := Member{Broker: b, Directory: voterOf(int(b)).Directory}
			if broker, ok := p.image.Broker(b); ok {
				m.Epoch = broker.Epoch
			}
			c.pending = append(c.pending, m)
		}
		c.proposed = part.Epoch
	}
	cmd := &ChangeISR{Broker: p.id, Epoch: p.epoch, Partitions: []ISRChange{{
		Topic: ident.TopicID{7}, Partition: int32(i), LeaderEpoch: c.leading, PartitionEpoch: c.proposed, ISR: c.pending,
	}}}
	s.tell(&cmd.Ask, cmd, func(Reply) { reached["proposals"]++ })
}

// follow copies from the leader that the broker's image names, if that one leads the same epoch, and reports.
func (s *stage) follow(p *puppet, i int) {
	if p.image == nil || !p.registeredIn(p.image) {
		return
	}
	part, c := s.partition(p.image, i), &p.copies[i]
	if c.unverified || c.late || c.mark == MarkOffline || part.Leader == ident.NoBroker || part.Leader == p.id || !part.HasReplica(p.id) {
		return
	}
	l := s.puppets[part.Leader-1]
	from := &l.copies[i]
	if !l.up || from.leading != part.LeaderEpoch {
		return
	}
	if c.following != from.leading {
		same := 0
		for same < min(len(c.log), len(from.log)) && c.log[same] == from.log[same] {
			same++
		}
		c.log, c.following = slices.Clone(c.log[:same]), from.leading
		c.flushed = min(c.flushed, same)
	}
	for range 1 + s.rng.Intn(4) {
		if len(c.log) < len(from.log) && !c.full {
			c.log = append(c.log, from.log[len(c.log)])
		}
	}
	if s.rng.Intn(2) == 0 {
		c.flushed = len(c.log)
	}
	flushed, epoch, brokerEpoch := c.flushed, from.leading, p.epoch
	s.mail = append(s.mail, func() {
		if !l.up || l.image == nil || from.leading != epoch {
			return
		}
		if r := runOf(l.image, p.id); r.epoch == brokerEpoch {
			from.acks[r] = max(from.acks[r], flushed)
		}
	})
}

// die ends a run.
func (s *stage) die(p *puppet) {
	s.end(p, s.rng.Intn(5))
	if s.rng.Intn(3) == 0 {
		s.mourn(p)
	}
}

// end ends a run in order (0), killed (1), by a power loss (2, 3), or with a disk that loses what it had acknowledged (4). Whatever it was, directories may
// be gone afterwards.
func (s *stage) end(p *puppet, kind int) {
	p.up, p.leaves, p.image = false, false, nil
	p.clean = 0
	for i := range p.copies {
		c := &p.copies[i]
		switch kind {
		case 0:
			c.flushed = len(c.log)
			if p.epoch != 0 {
				p.clean = p.last
			}
		case 1: // killed: the page cache lives
		case 2, 3:
			c.log = c.log[:c.flushed]
		case 4:
			if n := s.rng.Intn(c.flushed + 1); n < c.flushed {
				c.log, c.flushed, c.lossy = c.log[:n], n, true
				reached["lossy"]++
			} else {
				c.log = c.log[:c.flushed]
			}
		}
		if c.made && !s.quiet && s.rng.Intn(10) == 0 {
			c.lossy = c.lossy || c.flushed > 0
			c.log, c.flushed, c.made = nil, 0, false
			reached["vanished"]++
		}
		c.leading, c.pending, c.following = -1, nil, -1
		if c.mark == MarkOffline {
			p.clean = 0 // nor does one with a replica that was not closed
		}
		c.mark, c.marked, c.toldFull, c.told = MarkSound, MarkSound, false, nil
	}
	if p.clean != 0 && slices.ContainsFunc(p.copies, func(c copyOfLog) bool { return c.made && (c.lossy || c.unverified) }) {
		p.clean = 0 // a stop with replicas in recovery leaves no marker
	}
	p.epoch = 0
}

// mourn lets voters hear of a death.
func (s *stage) mourn(p *puppet) {
	for _, n := range s.nodes {
		if n.c == nil || s.rng.Intn(4) == 0 {
			continue
		}
		b, ok := n.c.Image().Broker(p.id)
		if !ok {
			continue
		}
		if s.rng.Intn(2) == 0 {
			n.step(&GossipHint{Broker: p.id, Incarnation: b.Incarnation})
		} else {
			n.step(&LinkDown{Broker: p.id, Epoch: b.Epoch, Refused: true})
		}
		s.check()
	}
}

func (s *stage) boot(p *puppet) {
	p.up = true
	p.run++
	for i := range p.copies {
		c := &p.copies[i]
		if c.late = false; p.clean == 0 {
			c.unverified = c.made && s.rng.Intn(3) == 0
			c.late = c.made && c.lossy && !c.unverified && s.rng.Intn(2) == 0
		}
	}
}

// whole clears the mark of a loss once a replica has joined an ISR again: from then on it has everything.
func (s *stage) whole() {
	for _, p := range s.puppets {
		for i := range p.copies {
			if c := &p.copies[i]; c.lossy && p.epoch != 0 && p.registeredIn(s.newest()) && s.partition(s.newest(), i).InSync(p.id) {
				c.lossy = false
			}
		}
	}
}

// round is one step of everybody.
func (s *stage) round() {
	s.t.Helper()
	s.fault(s.rng)
	for range 6 {
		s.act(s.puppets[s.rng.Intn(len(s.puppets))])
		s.check()
	}
	if s.rng.Intn(25) == 0 {
		s.operate()
	}
	for len(s.mail) > 0 && s.rng.Intn(3) > 0 {
		k := s.rng.Intn(len(s.mail))
		if s.rng.Intn(10) > 0 {
			s.mail[k]()
		}
		s.mail = slices.Delete(s.mail, k, k+1)
	}
	for range s.rng.Intn(30) {
		if !s.turn() {
			break
		}
		s.check()
	}
	if s.rng.Intn(2) == 0 {
		s.time()
	}
	s.collect()
	s.whole()
}

func (s *stage) time() {
	s.t.Helper()
	s.now.Mono += 100 * millisecond
	s.now.Wall += 100
	for _, n := range s.nodes {
		if n.c != nil {
			n.tick()
			s.check()
		}
	}
}

// calm ends all faults and waits until every partition is whole again.
func (s *stage) calm() {
	s.t.Helper()
	s.heal()
	s.quiet = true
	for _, p := range s.puppets {
		if !p.up {
			s.boot(p)
		}
	}
	for range 400 {
		for s.turn() {
			s.check()
		}
		s.time()
		s.collect()
		for _, p := range s.puppets {
			if !p.up {
				s.boot(p)
			}
			if slices.ContainsFunc(p.copies, func(c copyOfLog) bool { return c.mark == MarkOffline }) {
				s.end(p, 1) // somebody has looked after the disk
				s.boot(p)
			}
			for i := range p.copies {
				p.copies[i].full = false
			}
			s.replay(p)
			s.pulse(p)
			s.tellMarks(p)
			s.judge(p)
			for i := range p.copies {
				s.follow(p, i)
				for range 4 {
					s.lead(p, i)
				}
			}
		}
		for _, deliver := range s.mail {
			deliver()
		}
		s.mail = nil
		s.whole()
	}
	for i := range stagePartitions {
		part := s.partition(s.seen, i)
		waits := len(except(part.Target(), part.Damaged)) == 0 && len(except(part.Target(), part.ISR)) == 0 // the move, until one of those who stay is mended
		if part.Leader == ident.NoBroker || len(part.ISR) < min(2, len(part.Replicas)) || len(part.Unverified) > 0 || part.Reassigning() && !waits {
			s.t.Fatalf("partition %d does not recover: %s", i, describePartition(part))
		}
	}
}

// TestNothingCommittedIsLostByTheController runs many brokers through crashes, losses, cuts and elections. What was committed stays with everybody who may
// lead, unless the metadata say that something may be lost; and in the end every partition is well.
func TestNothingCommittedIsLostByTheController(t *testing.T) {
	clear(reached)
	for seed := range int64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, uint64(seed)+1)
			s := newStage(t, seed, 3+int(seed%3))
			for range 400 {
				s.round()
			}
			s.calm()
		})
	}
	for _, what := range []string{"committed", "proposals", "lossy", "elections", "declared losses", "stops", "compared", "configs", "asked elections", "stops in order", "resigned", "cannot resign", "offline", "damaged", "full", "marked", "vanished", "killed at once", "found late", "moves", "moves done", "moves cancelled"} {
		if reached[what] == 0 {
			t.Errorf("never happened: %s", what)
		}
	}
	t.Log(reached)
}
