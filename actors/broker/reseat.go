package broker

import (
	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
)

// reseat lets an observer that got a vote go on as a voter, and a voter that lost its vote as an observer, from what the raft log keeps now. Clients notice
// nothing: what is published stays, and commands find the controller as before.
func (c *controllerActor) reseat(t *runtime.Turn) {
	start := &cluster.Start{Published: c.image()}
	durable := c.reseating.Durable
	c.reseating = nil
	var err error
	if c.observer != nil {
		c.options.Durable = durable
		c.voter, err = cluster.New(c.options)
		c.options.Durable = cluster.Durable{}
		if err == nil {
			c.observer = nil
			c.log.Info().Int("voters", len(c.voter.Image().Voters())).Msg("this broker has a vote in the metadata quorum now")
			c.step(t, start)
		}
	} else {
		c.observer, err = cluster.NewObserver(c.watching(durable))
		if err == nil {
			c.voter = nil
			c.log.Info().Msg("this broker's vote in the metadata quorum was taken away; it follows as an observer")
			c.observe(t, start)
		}
	}
	if err != nil {
		_ = t.Send(c.shared.root, &metadataLost{reason: err}) // Root is gone only when the broker stops
	}
}

// watching is what an observer is told at birth.
func (c *controllerActor) watching(d cluster.Durable) cluster.ObserverOptions {
	id := &c.shared.identity
	return cluster.ObserverOptions{
		Broker: id.Broker, Node: id.Node, Cluster: c.shared.clusterID(), Voters: c.known.members(c.shared.clusterID()), Durable: d, SnapshotBytes: c.options.SnapshotBytes,
	}
}

// noteVoters tells who votes from now on.
func (c *controllerActor) noteVoters(n cluster.Note) {
	level := zerolog.DebugLevel
	if c.leads() {
		level = zerolog.InfoLevel
	}
	c.log.WithLevel(level).Int("voters", n.Count).Uint64("offset", n.Index).Str("who", n.Text).Msg("the voters of the metadata quorum are others now")
}
