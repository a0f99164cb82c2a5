package cluster

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// pump carries out what Raft has ready until nothing is. Order matters in one place: a changed role is noticed before entries are applied, so that a
// deposed leader answers nobody as if it had won.
func (c *Controller) pump(now Now, out *Out) {
	for c.failed == "" && (c.settle || c.rn.HasReady()) {
		if c.settle {
			c.reconcile(now, out)
			continue
		}
		rd := c.rn.Ready()
		c.noticeRole(out)
		for _, m := range rd.Messages {
			switch m.GetTo() {
			case raft.LocalAppendThread:
				c.save(m, rd.MustSync, out)
			case raft.LocalApplyThread:
				c.apply(now, m, out)
			default:
				c.send(m, out)
			}
		}
	}
	c.wakePulls(out)
	for _, text := range c.notes.notes {
		out.Note = append(out.Note, Note{Kind: NoteRaft, Node: c.options.Node, Text: text})
	}
	c.notes.notes = c.notes.notes[:0]
}

// noticeRole compares Raft's role with the one known.
func (c *Controller) noticeRole(out *Out) {
	st := c.rn.BasicStatus()
	leader, term := ident.NodeID(st.Lead), st.GetTerm()
	if c.role == raft.StateLeader && (st.RaftState != raft.StateLeader || term != c.term) {
		c.depose(out)
	}
	if leader != c.leader && st.RaftState != raft.StateLeader {
		out.Note = append(out.Note, Note{Kind: NoteLeaderChanged, Node: leader, Term: term})
	}
	c.role, c.leader, c.term = st.RaftState, leader, term
}

// depose answers everybody who waits: what was proposed may still be committed by the next controller, or not.
func (c *Controller) depose(out *Out) {
	if c.active {
		out.Note = append(out.Note, Note{Kind: NoteDeposed, Node: c.options.Node, Term: c.term})
	}
	for _, w := range c.waiting {
		out.Reply = append(out.Reply, Reply{Request: w.reply.Request, Err: refuse(wire.NotController, "this broker stopped being the controller before the change was committed; it may or may not take effect")})
	}
	c.active, c.settle, c.next, c.queue, c.waiting, c.changing = false, false, nil, nil, nil, 0
	clear(c.sessions)
	clear(c.voters)
}

// save turns Raft's append message into a Save.
func (c *Controller) save(m *pb.Message, sync bool, out *Out) {
	c.saved++
	st := savedState{id: c.saved, entries: m.GetEntries(), responses: m.GetResponses()}
	s := Save{ID: c.saved, Sync: sync}
	if m.Term != nil {
		st.hard = &pb.HardState{Term: new(m.GetTerm()), Vote: new(m.GetVote()), Commit: new(m.GetCommit())}
		s.HardState = encodeHardState(m.GetTerm(), m.GetVote(), m.GetCommit())
	}
	if snap := m.GetSnapshot(); snap != nil {
		image, err := DecodeSnapshot(snap.GetData())
		if err == nil && (image.index != snap.GetMetadata().GetIndex() || image.term != snap.GetMetadata().GetTerm()) {
			err = fmt.Errorf("%w: it holds index %d and was sent as %d", ErrMalformed, image.index, snap.GetMetadata().GetIndex())
		}
		if err != nil {
			c.fail(out, fmt.Sprintf("the snapshot sent by the controller cannot be used: %v", err))
			return
		}
		st.restored = image
		s.Snapshot = &Snapshot{Index: image.index, Term: image.term, Data: snap.GetData()}
		s.Reset, s.Sync, s.CompactTo = true, true, image.index
		c.last = image.index
	}
	for _, e := range m.GetEntries() {
		s.Entries = append(s.Entries, encodeEntry(e))
		c.last = e.GetIndex()
	}
	c.saves = append(c.saves, st)
	out.Persist = append(out.Persist, s)
}

// persisted tells the memory log what is on disk, and lets go what waited for it.
func (c *Controller) persisted(p *Persisted, out *Out) {
	for c.failed == "" && len(c.saves) > 0 && c.saves[0].id <= p.Save {
		s := c.saves[0]
		c.saves[0] = savedState{}
		c.saves = c.saves[1:]
		if s.hard != nil {
			c.log.hard = s.hard
		}
		if s.restored != nil {
			c.restore(s.restored, out)
		}
		c.log.append(s.entries)
		if s.made > 0 {
			c.log.compact(s.compactTo)
		}
		for _, m := range s.responses {
			if m.GetTo() != uint64(c.options.Node) {
				c.send(m, out)
				continue
			}
			c.stepLocal(m)
		}
		if c.unsafe.index > 0 && s.id >= c.unsafe.save {
			c.unsafe = unsafeChange{}
			c.release(out)
		}
	}
}

// stepLocal hands Raft an answer of its own storage.
func (c *Controller) stepLocal(m *pb.Message) {
	err := c.rn.Step(m)
	if errors.Is(err, raft.ErrStepPeerNotFound) && !isVoter(c.image, c.options.Node) {
		return // its own vote or acknowledgement, which counts no more
	}
	if err != nil {
		panic(fmt.Sprintf("cluster: Raft refuses the answer of its own storage: %v", err))
	}
}

// restore takes a snapshot from the leader in the place of everything.
func (c *Controller) restore(m *Image, out *Out) {
	delta := diff(c.image, m)
	c.log.reset(m)
	c.image, c.snapshot, c.bytes = m, m.index, 0
	out.Commit = append(out.Commit, Committed{Image: m, Delta: delta})
	out.Note = append(out.Note, Note{Kind: NoteRestored, Node: c.options.Node, Index: m.index, Term: m.term})
}

// apply replays committed entries.
func (c *Controller) apply(now Now, m *pb.Message, out *Out) {
	for _, e := range m.GetEntries() {
		if err := c.applyEntry(e, out); err != nil {
			c.fail(out, fmt.Sprintf("metadata log index %d: %v", e.GetIndex(), err))
			return
		}
		c.release(out)
		if c.role == raft.StateLeader && !c.active && e.GetTerm() == c.term {
			c.activate(now, out)
		}
	}
	for _, r := range m.GetResponses() {
		c.stepLocal(r)
	}
	c.maybeSnapshot(out)
}

// applyEntry makes the next committed image, or takes it from the queue where the leader has already made it.
func (c *Controller) applyEntry(e *pb.Entry, out *Out) error {
	if e.GetIndex() != c.image.index+1 {
		panic(fmt.Sprintf("cluster: index %d is applied after %d", e.GetIndex(), c.image.index))
	}
	image, delta, err := c.committed(e)
	if err != nil {
		return err
	}
	c.image = image
	c.bytes += int64(len(e.GetData()))
	if c.active {
		noteDelta(delta, out)
	}
	out.Commit = append(out.Commit, Committed{Image: image, Delta: delta})
	if e.GetType() == pb.EntryConfChangeV2 {
		return c.votersChanged(e, out)
	}
	return nil
}

func (c *Controller) committed(e *pb.Entry) (*Image, *Delta, error) {
	if len(c.queue) > 0 {
		p := c.queue[0]
		if p.index != e.GetIndex() || p.term != e.GetTerm() || p.change != (e.GetType() == pb.EntryConfChangeV2) {
			panic(fmt.Sprintf("cluster: index %d of term %d is committed where %d of term %d was proposed", e.GetIndex(), e.GetTerm(), p.index, p.term))
		}
		c.queue[0] = proposal{}
		c.queue = c.queue[1:]
		return p.image, p.delta, nil
	}
	return replayEntry(c.image, e)
}

// release lets go the replies whose index is committed, and will be known to be after a restart.
func (c *Controller) release(out *Out) {
	n := 0
	for n < len(c.waiting) && c.waiting[n].index <= c.tellable() {
		out.Reply = append(out.Reply, c.waiting[n].reply)
		n++
	}
	c.waiting = c.waiting[n:]
}

// expireWaiters answers whoever waited past its deadline.
func (c *Controller) expireWaiters(now Now, out *Out) {
	kept := c.waiting[:0]
	for _, w := range c.waiting {
		if w.deadline == 0 || now.Mono < w.deadline {
			kept = append(kept, w)
			continue
		}
		out.Reply = append(out.Reply, Reply{Request: w.reply.Request, Err: refuse(wire.RequestTimedOut, "the change was not committed in time; it may still take effect")})
	}
	clear(c.waiting[len(kept):])
	c.waiting = kept
}

// activate makes the leader the controller: everything its predecessors committed is applied now.
func (c *Controller) activate(now Now, out *Out) {
	c.active, c.settle, c.next = true, true, c.image
	c.checked, c.since, c.balanced, c.votersAt = now.Mono, now.Mono, now.Mono, c.image.index
	for b := range c.image.Brokers() {
		c.sessions[b.ID] = session{heard: now.Mono, wall: ident.NoTimestamp, level: ident.NoTimestamp}
	}
	c.succeed()
	out.Note = append(out.Note, Note{Kind: NoteElected, Node: c.options.Node, Term: c.term, Index: c.image.index})
}

// maybeSnapshot makes a snapshot when enough was applied since the last.
func (c *Controller) maybeSnapshot(out *Out) {
	if c.bytes < c.options.SnapshotBytes || !isVoter(c.image, c.options.Node) { // one that does not name this voter would end its life at the next start
		return
	}
	c.saved++
	cut := c.log.keepFrom(c.image.index, c.options.KeepBytes)
	out.Persist = append(out.Persist, Save{
		ID:        c.saved,
		Snapshot:  &Snapshot{Index: c.image.index, Term: c.image.term, Image: c.image},
		CompactTo: cut,
		Sync:      true,
	})
	c.saves = append(c.saves, savedState{id: c.saved, made: c.image.index, compactTo: cut})
	c.snapshot, c.bytes = c.image.index, 0
	out.Note = append(out.Note, Note{Kind: NoteSnapshot, Node: c.options.Node, Index: c.image.index, Term: c.image.term})
}

// send turns a Raft message into a letter.
func (c *Controller) send(m *pb.Message, out *Out) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("cluster: Raft made a message that cannot be written: %v", err))
	}
	out.Send = append(out.Send, Letter{To: ident.NodeID(m.GetTo()), Data: data, Snapshot: m.GetType() == pb.MsgSnap})
}

// receive takes a letter from another voter. Only what voters tell each other is let in: Raft trusts its local messages blindly. A voter that
// hears of no leader listens to those that it does not know, too: one that was added while it was away may lead, and has to bring it up to date.
func (c *Controller) receive(now Now, cmd *Receive, out *Out) {
	if c.failed != "" {
		return
	}
	m := &pb.Message{}
	drop := func(why string) {
		out.Note = append(out.Note, Note{Kind: NoteDropped, Node: ident.NodeID(m.GetFrom()), Text: why})
	}
	if err := proto.Unmarshal(cmd.Data, m); err != nil {
		// The library varies the text of its errors from run to run; a machine must not.
		drop(fmt.Sprintf("a letter of %d bytes that is no Raft message", len(cmd.Data)))
		return
	}
	from := ident.NodeID(m.GetFrom())
	switch {
	case m.GetTo() != uint64(c.options.Node):
		drop(fmt.Sprintf("a letter to node %v", ident.NodeID(m.GetTo())))
		return
	case from == c.options.Node || from == 0:
		drop("a letter from no other voter")
		return
	case !isVoter(c.image, from) && c.leader != 0 && c.leader != from:
		drop("a letter from no voter that is known here")
		return
	}
	if !betweenVoters(m.GetType()) {
		drop(fmt.Sprintf("a letter of type %v", m.GetType()))
		return
	}
	if err := c.rn.Step(m); errors.Is(err, raft.ErrStepPeerNotFound) {
		return // an answer of one that was removed meanwhile
	} else if err != nil {
		drop(err.Error())
		return
	}
	switch {
	case m.GetTerm() != c.term:
	case c.role == raft.StateLeader && (m.GetType() == pb.MsgAppResp || m.GetType() == pb.MsgHeartbeatResp):
		c.heardVoter(now, from)
	case c.role != raft.StateLeader && from == c.leader:
		c.heardLeader(now)
	}
}

// betweenVoters tells whether voters send each other messages of a type. Proposals are not among them: only the leader makes records.
func betweenVoters(t pb.MessageType) bool {
	switch t {
	case pb.MsgApp, pb.MsgAppResp, pb.MsgHeartbeat, pb.MsgHeartbeatResp, pb.MsgSnap, pb.MsgVote, pb.MsgVoteResp, pb.MsgPreVote, pb.MsgPreVoteResp, pb.MsgTimeoutNow:
		return true
	default:
		return false
	}
}

func (c *Controller) snapshotSent(cmd *SnapshotSent) {
	status := raft.SnapshotFinish
	if cmd.Failed {
		status = raft.SnapshotFailure
	}
	c.rn.ReportSnapshot(uint64(cmd.Node), status)
}
