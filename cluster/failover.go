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
	if others := len(c.image.voters) - 1; c.quick.tick%others == c.turn() && st.RaftState != raft.StateCandidate {
		c.campaign(out)
	}
}

// resign hands the lead over. Raft brings the other up to date first, and goes on with this one if that takes an election timeout.
func (c *Controller) resign() {
	if c.failed != "" || c.role != raft.StateLeader {
		return
	}
	best, most := ident.NodeID(0), uint64(0)
	for _, v := range c.image.voters {
		if match := c.matched(v.Node); v.Node != c.options.Node && match > most {
			best, most = v.Node, match
		}
	}
	if best != 0 {
		c.rn.TransferLeader(uint64(best))
	}
}

// inTouch tells whether a majority of the voters answered within an election timeout. A leader that was not is perhaps none any more, and extends nobody's
// lease.
func (c *Controller) inTouch(now Now) bool {
	heard, bound := 0, ident.Instant(int64(c.options.ElectionTicks)*c.options.TickMs)*millisecond
	for _, v := range c.image.voters {
		if v.Node == c.options.Node || now.Mono-max(c.voters[v.Node].heard, c.since) <= bound {
			heard++
		}
	}
	return heard > len(c.image.voters)/2
}
