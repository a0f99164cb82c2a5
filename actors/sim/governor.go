package sim

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// governor changes who votes in the metadata quorum, as an administrator does who replaces machines: one voter at a time, never fewer than two. It is refused
// often, since whom it means may be down, or behind, or just being changed; what it is told as done stays done like everything else.
type governor struct {
	*client
	busy  bool
	until ident.Instant // it leaves the voters alone after that
}

func newGovernor(c *client) *governor {
	describe := int16(kmsg.DescribeQuorum)
	c.versions[describe] = 2 // the first that names directories
	return &governor{client: c}
}

func (g *governor) begin()     { g.until = g.now() + ident.Instant(g.run.plan.Duration) }
func (g *governor) lost()      { g.busy = false }
func (g *governor) finish()    {}
func (g *governor) done() bool { return !g.busy }

func (g *governor) connected() {
	g.busy = false
	connection := g.connection
	var again func()
	again = func() {
		if g.end == nil || g.connection != connection || g.now() > g.until {
			return
		}
		if !g.busy {
			g.look()
		}
		g.after(g.pause(), again)
	}
	again()
}

func (g *governor) request(req kmsg.Request, answer func(kmsg.Response)) {
	g.busy = true
	g.ask(req, func(resp kmsg.Response, err error) {
		g.busy = false
		if err == nil {
			answer(resp)
		}
	})
}

// look asks who votes, and changes that.
func (g *governor) look() {
	req := kmsg.NewPtrDescribeQuorumRequest()
	t := kmsg.NewDescribeQuorumRequestTopic()
	t.Topic = "__cluster_metadata"
	t.Partitions = append(t.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
	req.Topics = append(req.Topics, t)
	g.request(req, func(resp kmsg.Response) {
		quorum := resp.(*kmsg.DescribeQuorumResponse)
		if quorum.ErrorCode != 0 || len(quorum.Topics) == 0 || g.now() > g.until {
			return
		}
		p := &quorum.Topics[0].Partitions[0]
		switch {
		case len(p.Observers) > 0 && (len(p.CurrentVoters) < 3 || chance(g.rand, 50)):
			g.add(&p.Observers[g.rand.IntN(len(p.Observers))])
		case len(p.CurrentVoters) > 2:
			g.remove(&p.CurrentVoters[g.rand.IntN(len(p.CurrentVoters))])
		}
	})
}

// changed are the answers that a change of the voters may get.
var changed = []wire.ErrorCode{wire.NoError, wire.RequestTimedOut, wire.NotController, wire.DuplicateVoter, wire.InvalidVoterKey, wire.VoterNotFound}

func (g *governor) add(who *kmsg.DescribeQuorumResponseTopicPartitionReplicaState) {
	req := kmsg.NewPtrAddRaftVoterRequest()
	req.VoterID, req.VoterDirectoryID, req.TimeoutMillis = who.ReplicaID, who.ReplicaDirectoryID, int32(g.plan.Patience.Milliseconds())
	g.request(req, func(resp kmsg.Response) {
		g.run.allow(g.name, "AddRaftVoter", resp.(*kmsg.AddRaftVoterResponse).ErrorCode, changed...)
	})
}

func (g *governor) remove(who *kmsg.DescribeQuorumResponseTopicPartitionReplicaState) {
	req := kmsg.NewPtrRemoveRaftVoterRequest()
	req.VoterID, req.VoterDirectoryID = who.ReplicaID, who.ReplicaDirectoryID
	g.request(req, func(resp kmsg.Response) {
		g.run.allow(g.name, "RemoveRaftVoter", resp.(*kmsg.RemoveRaftVoterResponse).ErrorCode, changed...)
	})
}
