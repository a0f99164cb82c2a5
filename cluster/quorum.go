package cluster

import (
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"

	"github.com/troupe-broker/troupe/wire/ident"
)

// describeQuorum tells what the leader knows of the voters.
func (c *Controller) describeQuorum(now Now) decision {
	st := c.rn.BasicStatus()
	reply := &DescribeQuorumReply{Leader: c.options.Broker, LeaderNode: c.options.Node, Term: st.GetTerm(), Committed: st.GetCommit()}
	for _, v := range c.image.voters {
		s := VoterState{Voter: v, LogEnd: c.matched(v.Node), LastFetch: -1, LastCaughtUp: -1}
		if v.Node == c.options.Node {
			s.LogEnd, s.LastFetch, s.LastCaughtUp = c.last, now.Wall, now.Wall
		} else if clock, ok := c.voters[v.Node]; ok {
			s.LastFetch, s.LastCaughtUp = clock.fetched, clock.caughtUp
		}
		reply.Voters = append(reply.Voters, s)
	}
	for b := range c.image.Brokers() {
		if slices.ContainsFunc(c.image.voters, func(v Voter) bool { return v.Broker == b.ID && slices.Contains(b.Directories, v.Directory) }) {
			continue
		}
		// Observers pull from any voter. What they have comes with their heartbeats.
		s := VoterState{Voter: Voter{Broker: b.ID, Directory: onlyDirectory(b.Directories)}, LastFetch: -1, LastCaughtUp: -1}
		if heard := c.sessions[b.ID]; heard.alive {
			s.LogEnd, s.LastFetch, s.LastCaughtUp = heard.applied, heard.wall, heard.level
		}
		reply.Observers = append(reply.Observers, s)
	}
	return decision{body: reply, read: true}
}

// heardVoter notes that a voter answered, and whether it now holds everything.
func (c *Controller) heardVoter(now Now, from ident.NodeID) {
	clock, ok := c.voters[from]
	if !ok {
		clock = voterClock{fetched: ident.NoTimestamp, caughtUp: ident.NoTimestamp}
	}
	clock.fetched, clock.heard = now.Wall, now.Mono
	if c.matched(from) >= c.last {
		clock.caughtUp = now.Wall
	}
	c.voters[from] = clock
}

// matched is the last entry that the leader knows a voter to hold.
func (c *Controller) matched(node ident.NodeID) uint64 {
	match := uint64(0)
	c.rn.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
		if ident.NodeID(id) == node {
			match = p.Match
		}
	})
	return match
}
