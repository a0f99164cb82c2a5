package cluster

import (
	"errors"
	"fmt"
	"math"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Controller is one voter of the metadata quorum; at any time at most one of them is the controller of the cluster. See the package comment.
// It is used by one goroutine at a time.
type Controller struct {
	options Options
	rn      *raft.RawNode
	log     *raftLog
	notes   *raftLogger
	failed  string // why the machine has stopped; empty: it has not
	started bool

	image    *Image       // newest committed; image.index is Raft's applied index
	snapshot uint64       // index of the newest snapshot made or received
	bytes    int64        // of entries applied since then
	saves    []savedState // in order, not yet Persisted
	saved    uint64       // id of the newest save handed out
	last     uint64       // index of the newest entry of this log, on disk or not; ≥ image.index

	// What this node knows of the quorum, to tell changes.
	leader ident.NodeID
	term   uint64
	role   raft.StateType

	// Of the leader. active turns true once the first entry of its own term is applied.
	active  bool
	settle  bool       // just became active: what changed while nobody led is looked at before the next command
	next    *Image     // image with everything proposed; next.index ≥ image.index
	queue   []proposal // proposed and not committed: indexes image.index+1 … next.index
	waiting []waiter   // replies held back, by index
	// Of changes of the voters: the newest that was proposed, and the newest that was applied, or else all that was when this node became the controller.
	changing, votersAt uint64

	sessions map[ident.BrokerID]session  // of registered brokers; read by key only
	since    ident.Instant               // when this node became the controller
	checked  ident.Instant               // when sessions were last checked
	voters   map[ident.NodeID]voterClock // when each voter answered; read by key only
	balanced ident.Instant               // when leaders were last compared with the preferred ones
	balances balancing

	// Of every voter.
	omens map[ident.BrokerID]omen // signs of death of registered brokers; read by key only
	quick quickCampaign

	parked  []*Pull // of observers, until there is more to tell
	serving served
	unsafe  unsafeChange
	recall  recall
	seeds   []ident.BrokerID // whom gossip shows
}

// proposal is one batch on its way, already applied to the speculative image.
type proposal struct {
	index, term uint64
	change      bool // of the voters
	image       *Image
	delta       *Delta
}

// waiter is a reply that may leave once index is committed.
type waiter struct {
	index    uint64
	deadline ident.Instant
	reply    Reply
}

// savedState is what the memory log learns when a save is on disk.
type savedState struct {
	id        uint64
	hard      *pb.HardState
	entries   []*pb.Entry
	restored  *Image // from the leader
	made      uint64 // index of a snapshot made here
	compactTo uint64
	responses []*pb.Message
}

// voterClock is when a voter last answered, and last held everything.
type voterClock struct {
	fetched, caughtUp ident.Millis
	heard             ident.Instant
}

// New builds a controller from what its raft log holds. It fails when that is empty, damaged, of a newer version, or does not name Options.Node as
// a voter: such a broker must not vote.
func New(o Options) (*Controller, error) {
	o = o.withDefaults()
	c := &Controller{options: o, log: &raftLog{}, notes: &raftLogger{}, sessions: map[ident.BrokerID]session{}, voters: map[ident.NodeID]voterClock{}, omens: map[ident.BrokerID]omen{}}
	m, err := c.log.load(o.Durable)
	if err != nil {
		return nil, err
	}
	c.options.Durable = Durable{}
	c.balances = balancingOf(config.Stack{Static: o.Static})
	if !isVoter(m, o.Node) {
		return nil, fmt.Errorf("TRP-4003: node %v is not among the voters of the raft log at index %d; a voter without its log is a new node", o.Node, m.index)
	}
	c.image, c.snapshot, c.last = m, m.index, c.log.last()
	c.log.image = func() *Image { return c.image }
	c.rn, err = raft.NewRawNode(&raft.Config{
		ID:                        uint64(o.Node),
		ElectionTick:              o.ElectionTicks,
		HeartbeatTick:             o.HeartbeatTicks,
		Storage:                   c.log,
		Applied:                   m.index,
		AsyncStorageWrites:        true,
		MaxSizePerMsg:             1 << 20,
		MaxCommittedSizePerReady:  math.MaxUint64,
		MaxUncommittedEntriesSize: uint64(o.UncommittedBytes),
		MaxInflightMsgs:           256,
		CheckQuorum:               true,
		PreVote:                   true,
		DisableProposalForwarding: true,
		StepDownOnRemoval:         true,
		Logger:                    c.notes,
	})
	if err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	c.term = c.log.hard.GetTerm()
	return c, nil
}

func isVoter(m *Image, node ident.NodeID) bool {
	for _, v := range m.voters {
		if v.Node == node {
			return true
		}
	}
	return false
}

// Image is the newest committed image.
func (c *Controller) Image() *Image { return c.image }

// Leading tells whether this voter is the controller and may act.
func (c *Controller) Leading() bool { return c.active }

// Leader is the broker of the controller, as far as this voter knows; ident.NoBroker: it knows of none. Whoever has a command for the controller sends it
// there.
func (c *Controller) Leader() ident.BrokerID {
	for _, v := range c.image.voters {
		if v.Node == c.leader && c.failed == "" {
			return v.Broker
		}
	}
	return ident.NoBroker
}

// Step carries out one command and appends what must be done to out.
func (c *Controller) Step(now Now, cmd Command, out *Out) {
	switch cmd := cmd.(type) {
	case *Start:
		c.start(cmd, out)
	case *Persisted:
		c.persisted(cmd, out)
	case *PersistFailed:
		c.fail(out, fmt.Sprintf("save %d of the raft log failed: %s", cmd.Save, cmd.Reason))
	case *Receive:
		c.receive(now, cmd, out)
	case *Unreachable:
		c.rn.ReportUnreachable(uint64(cmd.Node))
	case *SnapshotSent:
		c.snapshotSent(cmd)
	case *CreateTopics:
		c.ask(&cmd.Ask, out, func() decision { return c.createTopics(cmd) })
	case *DeleteTopics:
		c.ask(&cmd.Ask, out, func() decision { return c.deleteTopics(cmd) })
	case *CreatePartitions:
		c.ask(&cmd.Ask, out, func() decision { return c.createPartitions(cmd) })
	case *AlterConfigs:
		c.ask(&cmd.Ask, out, func() decision { return c.alterConfigs(cmd) })
	case *IncrementalAlterConfigs:
		c.ask(&cmd.Ask, out, func() decision { return c.incrementalAlterConfigs(cmd) })
	case *RegisterBroker:
		c.ask(&cmd.Ask, out, func() decision { return c.registerBroker(now, cmd) })
	case *Heartbeat:
		c.ask(&cmd.Ask, out, func() decision { return c.heartbeat(now, cmd) })
	case *Verified:
		c.ask(&cmd.Ask, out, func() decision { return c.verified(cmd) })
	case *MarkReplicas:
		c.ask(&cmd.Ask, out, func() decision { return c.markReplicas(cmd) })
	case *ChangeISR:
		c.ask(&cmd.Ask, out, func() decision { return c.changeISR(cmd) })
	case *ElectLeaders:
		c.ask(&cmd.Ask, out, func() decision { return c.electLeaders(cmd) })
	case *AlterReassignments:
		c.ask(&cmd.Ask, out, func() decision { return c.alterReassignments(cmd) })
	case *UnregisterBroker:
		c.ask(&cmd.Ask, out, func() decision { return c.unregisterBroker(now, cmd) })
	case *Pull:
		c.pull(cmd, out)
	case *GossipHint:
		c.gossipHint(cmd)
	case *Resign:
		c.resign(now)
	case *LinkDown:
		c.linkDown(now, cmd, out)
	case *AllocateProducerIDs:
		c.ask(&cmd.Ask, out, func() decision { return c.allocateProducerIDs(cmd) })
	case *UpdateFeatures:
		c.ask(&cmd.Ask, out, func() decision { return c.updateFeatures(cmd) })
	case *DescribeQuorum:
		c.ask(&cmd.Ask, out, func() decision { return c.describeQuorum(now) })
	case *AddVoter:
		c.ask(&cmd.Ask, out, func() decision { return c.addVoter(now, cmd) })
	case *RemoveVoter:
		c.ask(&cmd.Ask, out, func() decision { return c.removeVoter(now, cmd) })
	case *Pulled:
		c.recalled(now, cmd, out)
	case *Seeds:
		c.seeds = cmd.Voters
	default:
		panic(fmt.Sprintf("cluster: no rule for a %T", cmd))
	}
	c.pump(now, out)
}

// Tick lets Options.TickMs of time pass: elections, heartbeats between voters, sessions of brokers, deadlines.
func (c *Controller) Tick(now Now, out *Out) {
	if c.failed != "" || !c.started {
		return
	}
	c.rn.Tick()
	c.tickCampaign(out)
	c.expireWaiters(now, out)
	c.checkSessions(now, out)
	c.balance(now, out)
	c.dropOmens(now)
	c.tickPulls(now, out)
	c.tickRecall(now, out)
	c.pump(now, out)
}

// start publishes the image of the snapshot, and lets a lone voter campaign at once.
func (c *Controller) start(cmd *Start, out *Out) {
	if c.started {
		panic("cluster: started twice")
	}
	c.started = true
	cmd.publish(c.image, &out.Commit)
	if len(c.image.voters) == 1 {
		c.campaign(out)
	}
}

func (c *Controller) campaign(out *Out) {
	if err := c.rn.Campaign(); err != nil {
		out.Note = append(out.Note, Note{Kind: NoteDropped, Text: fmt.Sprintf("campaign: %v", err)})
	}
}

// fail stops the machine for good.
func (c *Controller) fail(out *Out, reason string) {
	if c.failed != "" {
		return
	}
	c.failed = reason
	c.depose(out)
	out.Note = append(out.Note, Note{Kind: NoteFailed, Node: c.options.Node, Text: reason})
}

// decision is what a command led to: records to propose with the reply to hold back until they are committed, or a refusal.
type decision struct {
	records []Record
	change  *pb.ConfChangeV2 // of the voters, with the records
	body    ReplyBody
	err     *Error
	read    bool // the reply rests on nothing that was proposed: it may leave at once
}

func refused(err *Error) decision { return decision{err: err} }

// ask lets the controller decide on a command, and everybody else refuse it.
func (c *Controller) ask(a *Ask, out *Out, decide func() decision) {
	if !c.active {
		out.Reply = append(out.Reply, Reply{Request: a.Request, Err: c.notController()})
		return
	}
	d := decide()
	reply := Reply{Request: a.Request, Err: d.err, Body: d.body}
	if d.err != nil {
		reply.Body = nil
		out.Reply = append(out.Reply, reply)
		return
	}
	if len(d.records) > 0 {
		if err := c.proposeChange(d.records, d.change); err != nil {
			out.Reply = append(out.Reply, Reply{Request: a.Request, Err: err})
			return
		}
	} else if d.read || len(c.queue) == 0 {
		out.Reply = append(out.Reply, reply)
		return
	}
	// Without records of its own the answer still rests on what was proposed before: if that is lost, so is the reason for the answer.
	c.waiting = append(c.waiting, waiter{index: c.next.index, deadline: a.Deadline, reply: reply})
}

func (c *Controller) notController() *Error {
	if c.failed != "" {
		return refuse(wire.NotController, "this controller has stopped: %s", c.failed)
	}
	if c.leader != 0 && c.leader != c.options.Node {
		for _, v := range c.image.voters {
			if v.Node == c.leader {
				return refuse(wire.NotController, "broker %d is the controller", v.Broker)
			}
		}
	}
	return refuse(wire.NotController, "no controller is elected yet; try again")
}

// propose makes one entry of the records and applies it to the speculative image. Only the leader appends to its log, so the entry's index is known.
func (c *Controller) propose(records []Record) *Error { return c.proposeChange(records, nil) }

// proposeChange is propose with what Raft has to know of the records: that they change the voters.
func (c *Controller) proposeChange(records []Record, change *pb.ConfChangeV2) *Error {
	data := EncodeBatch(records)
	index := c.last + 1
	image, delta, err := c.next.Apply(index, c.term, records)
	if err != nil {
		panic(fmt.Sprintf("cluster: the controller proposes what contradicts its own image: %v", err))
	}
	if change != nil {
		change.Context = data
		err := c.rn.ProposeConfChange(change)
		if err == nil {
			c.changing = index
		}
		return c.proposed(proposal{index: index, term: c.term, image: image, delta: delta, change: true}, err)
	}
	return c.proposed(proposal{index: index, term: c.term, image: image, delta: delta}, c.rn.Propose(data))
}

// proposed takes what Raft says to a proposal.
func (c *Controller) proposed(p proposal, err error) *Error {
	if err != nil {
		if errors.Is(err, raft.ErrProposalDropped) && c.rn.BasicStatus().LeadTransferee != 0 {
			return refuse(wire.NotController, "this controller is handing over to another; try again")
		}
		if errors.Is(err, raft.ErrProposalDropped) {
			return refuse(wire.ThrottlingQuotaExceeded, "more than %d bytes of metadata wait to be committed; try again later", c.options.UncommittedBytes)
		}
		panic(fmt.Sprintf("cluster: Raft refuses a proposal of its leader: %v", err))
	}
	c.queue = append(c.queue, p)
	c.next, c.last = p.image, p.index
	return nil
}

// stack returns the layers by which the controller judges a topic. A broker's own dynamic values are no part: one decision holds for all brokers.
func (c *Controller) stack(m *Image, topic string) config.Stack {
	return m.Stack(topic, ident.NoBroker, c.options.Static)
}
