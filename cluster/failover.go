package cluster

import (
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"

	"github.com/troupe-broker/troupe/wire/ident"
)

// leaderLost lets the voters look for another leader at once when the process of the present one is gone: nobody has to wait for an election timeout, and
// nothing is loaded anew, because each voter's image is at hand. It forgets the leader, so that it grants pre-votes, and campaigns in turn with the others:
// each voter has its tick, so that two rarely ask at the same time.
func (c *Controller) leaderLost(broker ident.BrokerID, out *Out) {
	if c.failed != "" || !c.started || c.leader == 0 || c.leader == c.options.Node {
		return
	}
	if !slices.ContainsFunc(c.image.voters, func(v Voter) bool { return v.Node == c.leader && v.Broker == broker }) {
		return
	}
	if err := c.rn.ForgetLeader(); err != nil {
		out.Note = append(out.Note, Note{Kind: NoteDropped, Text: fmt.Sprintf("forgetting the leader: %v", err)})
		return
	}
	c.quick = quickCampaign{lost: c.leader, left: 2 * c.options.ElectionTicks}
	if c.turn() == 0 {
		c.campaign(out)
	}
}

// quickCampaign is a search for a leader out of turn.
type quickCampaign struct {
	lost ident.NodeID // who led
	left int          // ticks until Raft's own timeouts take over; 0: no search
	tick int
}

// turn is this voter's place among those that are left.
func (c *Controller) turn() int {
	turn := 0
	for _, v := range c.image.voters {
		if v.Node < c.options.Node && v.Node != c.quick.lost {
			turn++
		}
	}
	return turn
}

// tickCampaign goes on with the search.
func (c *Controller) tickCampaign(out *Out) {
	if c.quick.left == 0 {
		return
	}
	st := c.rn.BasicStatus()
	if st.Lead != raft.None || st.RaftState == raft.StateLeader {
		c.quick = quickCampaign{}
		return
	}
	c.quick.left--
	c.quick.tick++
	others := max(len(c.image.voters)-1, 1) // the lost one may have been removed meanwhile
	if c.quick.tick%others == c.turn() && st.RaftState != raft.StateCandidate && isVoter(c.image, c.options.Node) {
		c.campaign(out)
	}
}

// resign hands the lead over to the voter that has most of the log, among those that answer, and rather to one whose broker does not stop as well. Raft brings
// it up to date first, and goes on with this one if that takes an election timeout. Nobody answers: nothing happens.
func (c *Controller) resign(now Now) {
	if c.failed != "" || c.role != raft.StateLeader {
		return
	}
	best, most, stays := ident.NodeID(0), uint64(0), false
	for _, v := range c.image.voters {
		if v.Node == c.options.Node || !c.answers(now, v.Node) {
			continue
		}
		b, ok := c.image.Broker(v.Broker)
		match, active := c.matched(v.Node), ok && b.active()
		if best == 0 || active && !stays || active == stays && match > most {
			best, most, stays = v.Node, match, active
		}
	}
	if best != 0 {
		c.rn.TransferLeader(uint64(best))
	}
}

// HandingOver tells whether this controller has resigned and its successor is being brought up to date. It ends, with a successor or without, within an
// election timeout.
func (c *Controller) HandingOver() bool {
	return c.failed == "" && c.role == raft.StateLeader && c.rn.BasicStatus().LeadTransferee != 0
}

// answers tells whether another voter answered within an election timeout. That it led shortly before is no answer.
func (c *Controller) answers(now Now, node ident.NodeID) bool {
	clock, ok := c.voters[node]
	return ok && clock.fetched != ident.NoTimestamp && now.Mono-clock.heard <= c.electionTimeout()
}

// heardLeader notes that the leader spoke. A voter that follows remembers it of nobody else.
func (c *Controller) heardLeader(now Now) {
	clear(c.voters)
	c.voters[c.leader] = voterClock{fetched: ident.NoTimestamp, caughtUp: ident.NoTimestamp, heard: now.Mono}
}

func (c *Controller) electionTimeout() ident.Instant {
	return ident.Instant(int64(c.options.ElectionTicks)*c.options.TickMs) * millisecond
}

// inTouch tells whether a majority of the voters answered within an election timeout. A leader that was not is perhaps none any more, and extends nobody's
// lease.
func (c *Controller) inTouch(now Now) bool { return c.heardWithin(now, c.electionTimeout()) }

// inCloseTouch tells whether a majority answered of late. The broker that this controller lives in hears from it even when nobody else does, and whoever
// succeeds it counts its silence from its last letter: it may be sure of nothing for longer than that.
func (c *Controller) inCloseTouch(now Now) bool {
	return c.heardWithin(now, ident.Instant(int64(2*c.options.HeartbeatTicks)*c.options.TickMs)*millisecond)
}

func (c *Controller) heardWithin(now Now, bound ident.Instant) bool {
	heard := 0
	for _, v := range c.image.voters {
		if v.Node == c.options.Node || now.Mono-max(c.voters[v.Node].heard, c.since) <= bound {
			heard++
		}
	}
	return heard > len(c.image.voters)/2
}
