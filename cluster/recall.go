package cluster

import (
	"slices"

	"github.com/troupe-broker/troupe/wire/ident"
)

// recallTicks is for how many election timeouts a voter hears of no leader before it asks whether it still has its vote.
const recallTicks = 3

// recallWaitMs is how long a voter may park what it is asked meanwhile: it has an answer, or it has not.
const recallWaitMs = 200

// recall is how a voter finds out that its vote was taken away. Raft does not tell it: from the change on, the leader sends it nothing. Its own letters are
// dropped by those who know of the change, so it disturbs no election, and would wait for a leader for ever.
//
// So a voter that hears of no leader for long pulls what others have committed, as an observer does, and throws it away, unless it says that the vote is gone.
// Even then it goes on answering those who do not know yet that the change is committed: they may need its vote, to elect the one who tells them. It becomes
// an observer when a majority of the new voters has that on disk. Then no election needs it any more, in whatever order the others are started again.
type recall struct {
	alone int       // ticks without a leader
	asker *Observer // pulls; nil: nothing is doubtful
	out   ObserverOut
	sure  []ident.BrokerID // voters of the new set who know of it for good
}

// tickRecall begins to ask, goes on asking, or ends it.
func (c *Controller) tickRecall(now Now, out *Out) {
	r := &c.recall
	votes := isVoter(c.image, c.options.Node)
	switch {
	case votes && c.leader != 0:
		*r = recall{}
		return
	case votes && r.alone < recallTicks*c.options.ElectionTicks:
		r.alone++
		return
	case r.asker == nil:
		r.asker = &Observer{
			options: ObserverOptions{Broker: c.options.Broker, Cluster: c.image.clusterID, WaitMs: recallWaitMs}.withDefaults(),
			image:   c.image, leader: ident.NoBroker, seeds: c.seeds,
		}
		r.asker.learnVoters()
	}
	r.asker.Tick(now, &r.out)
	c.askAround(out)
}

// askAround sends what the asker wants sent, and says why it gives up for good; nothing else of what it wants is done. This voter does not stop: others may
// need its vote.
func (c *Controller) askAround(out *Out) {
	if c.recall.out.Ask != nil {
		out.Ask = c.recall.out.Ask
	}
	for _, n := range c.recall.out.Note {
		if n.Kind == NoteFailed {
			out.Note = append(out.Note, Note{Kind: NoteDropped, Node: c.options.Node, Text: "asking others whether this voter still has its vote: " + n.Text})
		}
	}
	c.recall.out.Reset()
}

// recalled takes the answer to a pull.
func (c *Controller) recalled(now Now, cmd *Pulled, out *Out) {
	r := &c.recall
	if c.failed != "" || r.asker == nil || cmd.Pull == 0 || cmd.Pull != r.asker.asked {
		return
	}
	from := r.asker.to
	r.asker.Step(now, cmd, &r.out)
	body, ok := cmd.Reply.Body.(*PullReply)
	if ok && cmd.Reply.Err == nil && !isVoter(r.asker.image, c.options.Node) {
		c.sureOf(now, from, body, out)
	}
	c.askAround(out)
}

// sureOf counts a voter of the new set that knows of it, and asks the next one.
func (c *Controller) sureOf(now Now, from ident.BrokerID, body *PullReply, out *Out) {
	r := &c.recall
	voters := r.asker.image.voters
	if body.Committed >= r.asker.image.index && !slices.Contains(r.sure, from) && slices.ContainsFunc(voters, func(v Voter) bool { return v.Broker == from }) {
		r.sure = append(r.sure, from)
	}
	known := 0
	for _, v := range voters {
		if slices.Contains(r.sure, v.Broker) {
			known++
		}
	}
	if known > len(voters)/2 {
		c.retire(r.asker.image, out)
		return
	}
	// The voters stand before the others whom an observer would ask. One that is asked again may know of a newer change.
	at, list := 0, r.asker.voters
	if i := slices.Index(list, from); i >= 0 && i+1 < len(list) && slices.ContainsFunc(voters, func(v Voter) bool { return v.Broker == list[i+1] }) {
		at = i + 1
	}
	r.asker.asked, r.asker.at = 0, at
	r.asker.ask(now, &r.out)
}

// retire ends the life of a voter: its broker goes on as an observer, from an image that does not name it. Term and vote stay: should it get a vote again, it
// is bound by what it promised. What it holds beyond the image is dropped. Of that, what is committed was stored by enough of the others: a majority of the
// former voters without one of them meets every majority of those who are left.
func (c *Controller) retire(m *Image, out *Out) {
	st := c.rn.BasicStatus()
	term, vote := st.GetTerm(), st.GetVote()
	if m.term > term {
		term, vote = m.term, 0
	}
	c.saved++
	out.Reseat = reseat(c.saved, encodeHardState(term, vote, m.index), m, &out.Persist)
	c.saves = append(c.saves, savedState{id: c.saved})
	c.failed = "its vote was taken away"
	c.depose(out)
	c.recall = recall{}
	out.Note = append(out.Note, Note{Kind: NoteRetired, Node: c.options.Node, Broker: c.options.Broker, Index: m.index})
}

// Reseat ends a machine whose broker got a vote, or lost it. Once Save is on disk, the shell makes the other machine of Durable, and gives it a Start with the
// image that is published. The old one asks for nothing any more.
type Reseat struct {
	Save    uint64
	Durable Durable
}

// reseat keeps an image as all there is, so that whoever starts from the raft log sees by the voters in its snapshot which machine it is to make.
func reseat(id uint64, hard []byte, m *Image, to *[]Save) *Reseat {
	d := Durable{HardState: hard, Snapshot: &Snapshot{Index: m.index, Term: m.term, Data: EncodeSnapshot(m)}}
	*to = append(*to, Save{ID: id, HardState: hard, Snapshot: d.Snapshot, CompactTo: m.index, Reset: true, Sync: true})
	return &Reseat{Save: id, Durable: d}
}
