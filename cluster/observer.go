package cluster

import (
	"errors"
	"fmt"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/troupe-broker/troupe/wire/ident"
)

// Observer follows the metadata log of a quorum that this broker has no vote in. It pulls committed entries from one voter at a time and replays them into
// images. What is committed stays so: an observer never takes anything back, and may change to any other voter at any time, in the middle of the log.
//
// The shell steps Start once, sends what Out asks to the broker it names, and steps Pulled with what comes back, or nothing when nothing does: after
// SilenceMs the next voter is asked. It calls Tick every 100 ms or so. What Out.Persist asks may be written at leisure; a restart pulls what is missing.
type Observer struct {
	options ObserverOptions
	image   *Image
	saved   uint64
	bytes   int64 // of entries since the last snapshot

	// What this directory promised when it had a vote before; it keeps that.
	term, vote uint64

	failed string

	voters []ident.BrokerID // to ask, in order: from the image, then from gossip
	seeds  []ident.BrokerID // from gossip
	at     int              // which of them is to be asked
	to     ident.BrokerID   // who is being asked, or was last
	no     int              // refusals in a row
	asked  uint64           // id of the pull under way; 0: none
	asks   uint64
	since  ident.Instant // when it was sent
	pause  ident.Instant // after everybody has refused: not before

	piece  *Snapshot // being received
	total  int64     // bytes of the whole
	leader ident.BrokerID
}

// ObserverOptions is everything an Observer is told at birth. Zero numbers take the defaults written beside them.
type ObserverOptions struct {
	Broker  ident.BrokerID
	Node    ident.NodeID    // by which it would be a voter
	Cluster ident.ClusterID // empty: the broker belongs to none yet
	// Durable is what an earlier run kept; without a snapshot in it everything is pulled.
	Durable Durable
	// Voters are brokers to ask before an image names them: what gossip knows.
	Voters []ident.BrokerID

	SilenceMs     int64 // of a voter, before the next one is asked; 2000
	WaitMs        int64 // how long a voter may park a pull; 1000
	BytesMax      int32 // of one answer; 1 MiB
	SnapshotMax   int64 // bytes of a snapshot that are accepted; 1 GiB
	SnapshotBytes int64 // of entries that call for another snapshot of our own; 20 MiB
}

func (o ObserverOptions) withDefaults() ObserverOptions {
	for _, f := range []struct {
		field *int64
		value int64
	}{{&o.SilenceMs, 2000}, {&o.WaitMs, 1000}, {&o.SnapshotMax, 1 << 30}, {&o.SnapshotBytes, 20 << 20}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	if o.BytesMax == 0 {
		o.BytesMax = pullBytesMax
	}
	return o
}

// ObserverCommand is one input of an Observer. The set is closed.
//
//sumtype:decl
type ObserverCommand interface{ observerCommand() }

// Start is the first command of an observer as well: it publishes the image that an earlier run, or the voter before it, kept.
func (*Start) observerCommand() {}

// Seeds are brokers to ask while no image names the voters, and when none that it names answers. Some may be observers, who refuse.
type Seeds struct{ Voters []ident.BrokerID }

func (*Seeds) observerCommand() {}

// A voter asks them when it doubts its vote.
func (*Seeds) command() {}

// Pulled is the answer to the pull of this id. One that is not awaited any more is ignored.
type Pulled struct {
	Pull  uint64
	Reply Reply
}

func (*Pulled) observerCommand() {}

// A voter that doubts its vote pulls, too.
func (*Pulled) command() {}

// ObserverOut is what one step asks of the shell, in field order.
type ObserverOut struct {
	Persist []Save      // 1. in order; none has to be answered
	Ask     *PullAsk    // 2. to send
	Commit  []Committed // 3. new images, in order
	Note    []Note      // 4. what happened
	Reseat  *Reseat     // 5. this broker has a vote now: after this there is nothing more
}

// Reset empties the bundle and keeps its memory.
func (o *ObserverOut) Reset() {
	clear(o.Persist)
	clear(o.Commit)
	clear(o.Note)
	o.Persist, o.Ask, o.Commit, o.Note, o.Reseat = o.Persist[:0], nil, o.Commit[:0], o.Note[:0], nil
}

// PullAsk is a pull to send to a voter's broker. One that was sent before is not awaited any more.
type PullAsk struct {
	ID     uint64 // for Pulled
	To     ident.BrokerID
	Pull   Pull
	WaitMs int64 // how long the voter may park it: the deadline that goes with it
}

// NewObserver builds an observer from what an earlier run kept. It fails when that is damaged, of a newer version or of another cluster.
func NewObserver(o ObserverOptions) (*Observer, error) {
	o = o.withDefaults()
	c := &Observer{options: o, image: NewImage(), leader: ident.NoBroker, voters: o.Voters, seeds: o.Voters}
	if o.Durable.Snapshot != nil {
		if err := c.load(o.Durable); err != nil {
			return nil, err
		}
	}
	c.options.Durable = Durable{}
	if id := c.image.clusterID; id != "" && o.Cluster != "" && id != o.Cluster {
		return nil, fmt.Errorf("TRP-4001: the metadata log is of cluster %q, the directory of %q", id, o.Cluster)
	}
	return c, nil
}

// load replays what was kept and is known to be committed. A voter that was to become an observer may have kept more.
func (c *Observer) load(d Durable) error {
	kept := &raftLog{}
	m, err := kept.load(d)
	if err != nil {
		return err
	}
	c.image, c.term, c.vote = m, kept.hard.GetTerm(), kept.hard.GetVote()
	for _, e := range kept.ents {
		if e.GetIndex() <= c.image.index {
			continue
		}
		if e.GetIndex() > kept.hard.GetCommit() {
			break
		}
		if c.image, _, err = replayEntry(c.image, e); err != nil {
			return fmt.Errorf("metadata log index %d: %w", e.GetIndex(), err)
		}
	}
	return nil
}

// replayEntry applies one committed entry.
func replayEntry(m *Image, e *pb.Entry) (*Image, *Delta, error) {
	records, err := recordsOf(e)
	if err != nil {
		return nil, nil, err
	}
	return m.Apply(e.GetIndex(), e.GetTerm(), records)
}

// Image is the newest image.
func (c *Observer) Image() *Image { return c.image }

// Leader is the controller, as the voter that was asked last knows; ident.NoBroker: none is known.
func (c *Observer) Leader() ident.BrokerID { return c.leader }

// Step carries out one command and appends what must be done to out.
func (c *Observer) Step(now Now, cmd ObserverCommand, out *ObserverOut) {
	switch cmd := cmd.(type) {
	case *Start:
		cmd.publish(c.image, &out.Commit)
		c.learnVoters()
		c.promote(out)
	case *Seeds:
		if len(cmd.Voters) > 0 {
			c.seeds = cmd.Voters
			c.learnVoters()
		}
	case *Pulled:
		if cmd.Pull == c.asked && c.asked != 0 {
			c.asked = 0
			c.pulled(now, &cmd.Reply, out)
		}
	default:
		panic(fmt.Sprintf("cluster: no rule for a %T", cmd))
	}
	c.ask(now, out)
}

// Tick notices silence.
func (c *Observer) Tick(now Now, out *ObserverOut) {
	if c.asked != 0 && now.Mono-c.since > ident.Instant(c.options.SilenceMs)*millisecond {
		c.asked = 0
		out.Note = append(out.Note, Note{Kind: NoteSilent, Broker: c.to})
		c.at++
	}
	c.ask(now, out)
}

// ask sends the next pull, unless one is under way.
func (c *Observer) ask(now Now, out *ObserverOut) {
	if c.failed != "" || c.asked != 0 || len(c.voters) == 0 || now.Mono < c.pause {
		return
	}
	c.asks++
	c.asked, c.since, c.to = c.asks, now.Mono, c.voters[c.at%len(c.voters)]
	p := Pull{Broker: c.options.Broker, Cluster: c.options.Cluster, From: c.image.index + 1, Term: c.image.term, BytesMax: c.options.BytesMax}
	if c.piece != nil {
		p.SnapshotIndex, p.Offset = c.piece.Index, int64(len(c.piece.Data))
	}
	out.Ask = &PullAsk{ID: c.asked, To: c.to, Pull: p, WaitMs: c.options.WaitMs}
}

// refusalMs is the pause when everybody has refused. A broker that joins a large cluster may have to ask many observers before it meets a voter.
const refusalMs = 500

// pulled takes in an answer.
func (c *Observer) pulled(now Now, reply *Reply, out *ObserverOut) {
	body, ok := reply.Body.(*PullReply)
	if reply.Err != nil || !ok {
		why := "an answer to something else"
		if reply.Err != nil {
			why = reply.Err.Error()
		}
		c.dismiss(now, why, out)
		return
	}
	if c.leader != body.Leader {
		c.leader = body.Leader
		out.Note = append(out.Note, Note{Kind: NoteLeaderChanged, Broker: body.Leader, Term: body.Term})
	}
	before := c.no
	if body.Leader == ident.NoBroker && len(body.Entries) == 0 && body.Snapshot == nil {
		c.at++ // it may be cut off from the others, or have lost its vote without knowing
	}
	if body.Snapshot != nil {
		c.takePiece(now, body.Snapshot, out)
	} else {
		c.piece = nil
		c.takeEntries(now, body.Entries, out)
	}
	if c.no == before {
		c.no = 0
	}
}

// dismiss turns to the next voter.
func (c *Observer) dismiss(now Now, why string, out *ObserverOut) {
	out.Note = append(out.Note, Note{Kind: NoteDropped, Broker: c.to, Text: why})
	c.piece = nil
	c.at++
	if c.no++; c.no >= len(c.voters) {
		c.no, c.pause = 0, now.Mono+refusalMs*millisecond
	}
}

// takeEntries replays committed entries.
func (c *Observer) takeEntries(now Now, entries []Entry, out *ObserverOut) {
	kept, others := 0, false
	for _, e := range entries {
		if e.Index != c.image.index+1 || e.Term < c.image.term {
			c.dismiss(now, fmt.Sprintf("entry %d of term %d does not follow entry %d of term %d", e.Index, e.Term, c.image.index, c.image.term), out)
			break
		}
		decoded, err := decodeEntry(e)
		if err != nil {
			c.dismiss(now, err.Error(), out)
			break
		}
		image, delta, err := replayEntry(c.image, decoded)
		if err != nil {
			c.fail(fmt.Sprintf("metadata log index %d: %v", e.Index, err), out)
			break
		}
		c.image = image
		others = others || delta.Voters || len(delta.Brokers) > 0
		c.bytes += int64(len(e.Data))
		out.Commit = append(out.Commit, Committed{Image: image, Delta: delta})
		kept++
	}
	if kept == 0 {
		return
	}
	if others {
		c.learnVoters()
	}
	c.save(Save{HardState: c.hard(), Entries: entries[:kept]}, out)
	if c.bytes >= c.options.SnapshotBytes {
		c.compact(out)
	}
	c.promote(out)
}

// hard is what is kept beside the image: how far it is, and what this directory promised as a voter.
func (c *Observer) hard() []byte {
	if c.image.term > c.term {
		c.term, c.vote = c.image.term, 0
	}
	return encodeHardState(c.term, c.vote, c.image.index)
}

// promote ends the life of an observer that the image names as a voter. It was one that others counted on from the moment on that the change was committed:
// so from here on it must forget nothing, and its snapshot is the first thing that it keeps as a voter.
func (c *Observer) promote(out *ObserverOut) {
	if c.failed != "" || !isVoter(c.image, c.options.Node) {
		return
	}
	c.saved++
	out.Reseat = reseat(c.saved, c.hard(), c.image, &out.Persist)
	c.failed = "it has a vote now"
	out.Note = append(out.Note, Note{Kind: NotePromoted, Node: c.options.Node, Broker: c.options.Broker, Index: c.image.index})
}

// compact keeps a snapshot in the place of the entries behind it.
func (c *Observer) compact(out *ObserverOut) {
	c.bytes = 0
	c.save(Save{Snapshot: &Snapshot{Index: c.image.index, Term: c.image.term, Image: c.image}, CompactTo: c.image.index, Sync: true}, out)
}

func (c *Observer) save(s Save, out *ObserverOut) {
	c.saved++
	s.ID = c.saved
	out.Persist = append(out.Persist, s)
}

// takePiece adds a piece to the snapshot that is being received, and takes the whole when it is there.
func (c *Observer) takePiece(now Now, s *SnapshotPiece, out *ObserverOut) {
	if c.piece == nil || c.piece.Index != s.Index || c.piece.Term != s.Term || c.total != s.Total {
		c.piece, c.total = &Snapshot{Index: s.Index, Term: s.Term}, s.Total // another one: it begins anew
	}
	have := int64(len(c.piece.Data))
	switch {
	case s.Index <= c.image.index:
		c.dismiss(now, fmt.Sprintf("a snapshot at %d, we are at %d", s.Index, c.image.index), out)
		return
	case s.Total > c.options.SnapshotMax:
		c.dismiss(now, fmt.Sprintf("a snapshot of %d bytes, more than %d", s.Total, c.options.SnapshotMax), out)
		return
	case s.Offset != have || have+int64(len(s.Data)) > s.Total || len(s.Data) == 0:
		c.dismiss(now, fmt.Sprintf("bytes %d to %d of a snapshot of %d, after %d", s.Offset, s.Offset+int64(len(s.Data)), s.Total, have), out)
		return
	}
	if c.piece.Data = append(c.piece.Data, s.Data...); int64(len(c.piece.Data)) < s.Total {
		return
	}
	data := c.piece.Data
	c.piece = nil
	m, err := DecodeSnapshot(data)
	switch {
	case errors.Is(err, ErrNewerVersion) || errors.Is(err, ErrUnknownCode):
		c.fail(fmt.Sprintf("the snapshot at index %d: %v", s.Index, err), out)
		return
	case err == nil && (m.index != s.Index || m.term != s.Term):
		err = fmt.Errorf("%w: it holds index %d and was sent as %d", ErrMalformed, m.index, s.Index)
	case err == nil && c.options.Cluster != "" && m.clusterID != c.options.Cluster:
		err = fmt.Errorf("it is of cluster %q, this broker of %q", m.clusterID, c.options.Cluster)
	}
	if err != nil {
		c.dismiss(now, fmt.Sprintf("the snapshot at index %d: %v", s.Index, err), out)
		return
	}
	delta := diff(c.image, m)
	c.image, c.bytes, c.options.Cluster = m, 0, m.clusterID
	c.learnVoters()
	c.save(Save{HardState: c.hard(), Snapshot: &Snapshot{Index: m.index, Term: m.term, Data: data}, CompactTo: m.index, Reset: true, Sync: true}, out)
	out.Commit = append(out.Commit, Committed{Image: m, Delta: delta})
	out.Note = append(out.Note, Note{Kind: NoteRestored, Broker: c.options.Broker, Index: m.index, Term: m.term})
	c.promote(out)
}

// learnVoters asks whom the image names, going on with the one that is being asked. The other brokers come behind them: all voters may have been replaced while
// this broker was away.
func (c *Observer) learnVoters() {
	asking := ident.NoBroker
	if len(c.voters) > 0 {
		asking = c.voters[c.at%len(c.voters)]
	}
	c.voters, c.at = nil, 0
	add := func(b ident.BrokerID) {
		if b == c.options.Broker || slices.Contains(c.voters, b) {
			return
		}
		if b == asking {
			c.at = len(c.voters)
		}
		c.voters = append(c.voters, b)
	}
	for _, v := range c.image.voters {
		add(v.Broker)
	}
	for b := range c.image.Brokers() {
		add(b.ID)
	}
	for _, b := range c.seeds {
		add(b)
	}
}

// fail stops the observer for good: going on without an entry would make another image than everybody else's.
func (c *Observer) fail(reason string, out *ObserverOut) {
	c.failed = reason
	out.Note = append(out.Note, Note{Kind: NoteFailed, Broker: c.options.Broker, Text: reason})
}
