package cluster

import (
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Pull asks a voter for committed entries, as observers do. Any voter answers, whether it leads or not: what it has applied is committed for ever, so an
// observer never has to take anything back. A pull that finds nothing new is parked until there is something, or until its deadline has passed; then the
// answer is empty, which says that the voter lives.
type Pull struct {
	Ask
	Broker  ident.BrokerID  // who observes; its newer pull ends an older one that is still parked
	Cluster ident.ClusterID // empty: the observer knows none yet
	From    uint64          // the first index wanted; 1: everything
	Term    uint64          // of the entry before From; 0: not known
	// SnapshotIndex and Offset go on with a snapshot that did not fit into one answer.
	SnapshotIndex uint64
	Offset        int64
	BytesMax      int32 // of entries or of a piece of a snapshot; one entry comes all the same, unless it is too large for any answer
}

// PullReply answers Pull with entries, or with a piece of a snapshot, or with neither.
type PullReply struct {
	Entries   []Entry        // From, From+1, …, all of them committed
	Snapshot  *SnapshotPiece // From is older than what the voter still has
	Committed uint64         // newest index the voter has applied
	Leader    ident.BrokerID // the controller, as far as the voter knows; ident.NoBroker: none
	Term      uint64         // the voter's
}

// SnapshotPiece is a part of a snapshot. Another index than that of the piece before means that the snapshot begins anew, with another one.
type SnapshotPiece struct {
	Index, Term uint64
	Total       int64 // bytes of the whole
	Offset      int64 // of Data in it
	Data        []byte
}

func (*Pull) command()        {}
func (*PullReply) replyBody() {}

// pullBytesMax bounds one answer, whatever the observer asks for.
const pullBytesMax = 1 << 20

// servedTicks is how long an encoded snapshot is kept for whoever is in the middle of it.
const servedTicks = 100

// served is the snapshot that observers are being sent.
type served struct {
	snapshot *Snapshot
	idle     int // ticks since somebody asked for it
}

// pull answers an observer, or parks it.
func (c *Controller) pull(cmd *Pull, out *Out) {
	if c.answerPull(cmd, out) {
		return
	}
	for i, old := range c.parked {
		if old.Broker == cmd.Broker {
			out.Reply = append(out.Reply, Reply{Request: old.Request, Body: c.emptyPull()})
			c.parked[i] = cmd
			return
		}
	}
	c.parked = append(c.parked, cmd)
}

// answerPull answers an observer, unless it has to wait.
func (c *Controller) answerPull(cmd *Pull, out *Out) bool {
	body, err := c.pulled(cmd)
	switch {
	case err != nil:
		out.Reply = append(out.Reply, Reply{Request: cmd.Request, Err: err})
	case body != nil:
		out.Reply = append(out.Reply, Reply{Request: cmd.Request, Body: body})
	}
	return err != nil || body != nil
}

// pulled looks for what an observer wants; nothing means that it has to wait.
func (c *Controller) pulled(cmd *Pull) (*PullReply, *Error) {
	switch {
	case c.failed != "":
		return nil, refuse(wire.NotController, "this voter has stopped: %s", c.failed)
	case !isVoter(c.image, c.options.Node):
		return nil, refuse(wire.NotController, "the vote of broker %d was taken away", c.options.Broker)
	case cmd.Cluster != "" && cmd.Cluster != c.image.clusterID:
		return nil, refuse(wire.InconsistentClusterID, "this is cluster %q, not %q", c.image.clusterID, cmd.Cluster)
	case cmd.From == 0:
		return nil, refuse(wire.InvalidRequest, "entries are numbered from 1")
	case cmd.From > c.tellable():
		return nil, nil // it has all, or this voter lags behind it
	}
	bytesMax := int64(min(max(cmd.BytesMax, 1), pullBytesMax))
	reply := c.emptyPull()
	if cmd.From <= c.log.base.GetIndex() || cmd.SnapshotIndex != 0 && c.serving.snapshot != nil && cmd.SnapshotIndex == c.serving.snapshot.Index {
		if reply.Snapshot = c.piece(cmd, bytesMax); reply.Snapshot == nil {
			return nil, nil
		}
		return reply, nil
	}
	if before, err := c.log.Term(cmd.From - 1); cmd.Term != 0 && (err != nil || before != cmd.Term) {
		return nil, refuse(wire.InconsistentClusterID, "entry %d has term %d here and term %d there: the two logs are of different histories", cmd.From-1, before, cmd.Term)
	}
	for i := cmd.From; i <= min(c.tellable(), c.log.last()); i++ {
		e := encodeEntry(c.log.ents[i-c.log.base.GetIndex()-1])
		if len(e.Data) > pullBytesMax {
			if i == cmd.From {
				// An entry comes whole or not at all; a snapshot that has it comes in pieces.
				if reply.Snapshot = c.piece(cmd, bytesMax); reply.Snapshot == nil {
					return nil, nil
				}
			}
			break
		}
		if bytesMax -= int64(len(e.Data)); bytesMax < 0 && len(reply.Entries) > 0 {
			break
		}
		reply.Entries = append(reply.Entries, e)
	}
	return reply, nil
}

func (c *Controller) emptyPull() *PullReply {
	return &PullReply{Committed: c.tellable(), Leader: c.Leader(), Term: c.term}
}

// piece cuts the part of a snapshot that an observer asks for. One that is not of the snapshot at hand begins with the first piece of the newest; nil: that
// cannot be told yet.
func (c *Controller) piece(cmd *Pull, bytesMax int64) *SnapshotPiece {
	s := c.serving.snapshot
	offset := cmd.Offset
	if s == nil || cmd.SnapshotIndex != s.Index {
		offset = 0
		if s == nil || s.Index < max(c.log.base.GetIndex(), cmd.From) {
			if c.unsafe.index > 0 {
				return nil // it would tell of a change that may be forgotten; the observer waits for the disk
			}
			s = &Snapshot{Index: c.image.index, Term: c.image.term, Data: EncodeSnapshot(c.image)}
		}
	}
	c.serving = served{snapshot: s}
	total := int64(len(s.Data))
	if offset < 0 || offset > total {
		offset = 0
	}
	return &SnapshotPiece{Index: s.Index, Term: s.Term, Total: total, Offset: offset, Data: s.Data[offset:min(offset+bytesMax, total)]}
}

// wakePulls answers the observers for whom something is there now.
func (c *Controller) wakePulls(out *Out) {
	kept := c.parked[:0]
	for _, cmd := range c.parked {
		if cmd.From > c.tellable() && c.failed == "" || !c.answerPull(cmd, out) {
			kept = append(kept, cmd)
		}
	}
	clear(c.parked[len(kept):])
	c.parked = kept
}

// tickPulls answers the observers that have waited long enough, and forgets a snapshot that nobody asks for.
func (c *Controller) tickPulls(now Now, out *Out) {
	kept := c.parked[:0]
	for _, cmd := range c.parked {
		if cmd.Deadline == 0 || now.Mono < cmd.Deadline {
			kept = append(kept, cmd)
			continue
		}
		out.Reply = append(out.Reply, Reply{Request: cmd.Request, Body: c.emptyPull()})
	}
	clear(c.parked[len(kept):])
	c.parked = kept
	if c.serving.idle++; c.serving.idle > servedTicks {
		c.serving = served{}
	}
}
