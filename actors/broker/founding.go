package broker

import (
	"fmt"
	"slices"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// joinedCluster tells that the directory belongs to the cluster from now on, or why not.
type joinedCluster struct {
	id  ident.ClusterID
	err error
}

// Bytes implements runtime.Message.
func (*joinedCluster) Bytes() int { return 0 }

// found gives the machine of a founding a command, and does what it asks, in the order it states.
func (c *controllerActor) found(t *runtime.Turn, cmd cluster.FoundingCommand) {
	var out cluster.FoundingOut
	c.founding.Step(cmd, &out)
	if out.Promise != nil {
		c.promise(t, out.Promise)
	}
	if out.Announce != nil {
		c.announce(t)
	}
	switch {
	case out.Found != nil:
		c.enter(t, out.Found.ClusterID)
	case out.Join != "":
		c.durable = cluster.Durable{}
		c.enter(t, out.Join)
	}
	if out.Waits != "" {
		c.log.Info().Msg(out.Waits)
	}
}

// promise writes a promise down.
func (c *controllerActor) promise(t *runtime.Turn, p *cluster.Promise) {
	d, err := cluster.Genesis(*p)
	if err != nil {
		panic("broker: a promise that founds nothing: " + err.Error())
	}
	c.durable = d
	c.saving++
	c.persist(t, []cluster.Save{{ID: c.saving, HardState: d.HardState, Snapshot: d.Snapshot, Reset: true, Sync: true}})
}

// announcement is what this broker tells of itself now.
func (c *controllerActor) announcement() cluster.Announcement {
	if c.founding != nil {
		return c.founding.Announcement()
	}
	id := &c.shared.identity
	return cluster.Announcement{Broker: id.Broker, Node: id.Node, Directory: id.Directory, Cluster: c.shared.clusterID()}
}

// announce tells everybody to whom a link is open.
func (c *controllerActor) announce(t *runtime.Turn) {
	for b := range c.known.addresses {
		c.announceTo(t, b)
	}
}

func (c *controllerActor) announceTo(t *runtime.Turn, to ident.BrokerID) {
	a := c.announcement()
	c.shared.links.send(t, to, peer.Control, &linkMessage{&peer.Announcement{Body: cluster.EncodeAnnouncement(a)}}) // else: when there is a link
}

// met greets a broker that can be spoken with from now on.
func (c *controllerActor) met(t *runtime.Turn, l *linkInfo) {
	if l.founding {
		c.announceTo(t, l.peer.Broker)
	}
}

// enter makes the directory one of the cluster.
func (c *controllerActor) enter(t *runtime.Turn, id ident.ClusterID) {
	self := t.Self()
	_ = t.Send(c.writer, &joinCluster{id: id, done: func(err error) { _ = self.Post(&joinedCluster{id: id, err: err}) }}) // the broker stops
}

// joined begins the life of a voter, or of an observer.
func (c *controllerActor) joined(t *runtime.Turn, m *joinedCluster) {
	s := c.shared
	err := m.err
	voter := c.durable.Snapshot != nil
	if err == nil && voter {
		c.options.Durable = c.durable
		c.voter, err = cluster.New(c.options)
		c.options.Durable, c.durable = cluster.Durable{}, cluster.Durable{}
	} else if err == nil {
		c.observer, err = cluster.NewObserver(cluster.ObserverOptions{Broker: s.identity.Broker, Cluster: m.id, Voters: slices.Clone(c.seeds), SnapshotBytes: c.options.SnapshotBytes})
	}
	if err != nil {
		_ = t.Send(s.root, &metadataLost{reason: err}) // Root is gone only when the broker stops
		return
	}
	c.founding = nil
	s.cluster.Store(&m.id)
	s.links.become(s.self())
	_ = t.Send(s.gossip, &tellOthers{}) // gone only when the broker stops
	if voter {
		c.log.Info().Str("cluster", string(m.id)).Int("voters", len(c.voter.Image().Voters())).Msg("the cluster is founded; waiting for a controller to be elected")
		c.step(t, &cluster.Start{})
		return
	}
	c.log.Info().Str("cluster", string(m.id)).Msg("joining the cluster as an observer; waiting for its metadata")
	c.observe(t, &cluster.Start{})
}

// sit decides what part a broker has in the quorum, by what its directory holds. fresh tells that the raft log was never written to, peers that others can
// be reached.
func sit(o cluster.Options, f cluster.FoundingOptions, fresh, peers bool) (s seat, err error) {
	watch := cluster.ObserverOptions{Broker: o.Broker, Cluster: f.Self.Cluster, SnapshotBytes: o.SnapshotBytes}
	if fresh {
		switch {
		case f.Self.Cluster == "":
			s.founding, err = cluster.NewFounding(f)
		case peers: // it was killed before it had heard anything
			s.observer, err = cluster.NewObserver(watch)
		default:
			err = fmt.Errorf("%s: the directory belongs to cluster %s, but its metadata log is missing or empty; restore the directory from a backup, or start with an empty one", codeMetadataLost, f.Self.Cluster)
		}
		return s, err
	}
	p, _, err := cluster.PromiseOf(o.Durable)
	if err != nil {
		return s, err
	}
	votes := slices.ContainsFunc(p.Voters, func(v cluster.Voter) bool { return v.Node == o.Node })
	switch {
	case !peers && (len(p.Voters) > 1 || !votes && f.Self.Cluster != ""):
		err = fmt.Errorf("%s: the directory belongs to cluster %s with %d voters; this broker needs --peer-listen and --join to reach them", codeAlone, p.ClusterID, len(p.Voters))
	case f.Self.Cluster == "" && len(p.Voters) > 1:
		f.Durable = o.Durable
		s.founding, err = cluster.NewFounding(f)
	case !votes && f.Self.Cluster != "":
		watch.Durable = o.Durable
		s.observer, err = cluster.NewObserver(watch)
	default:
		s.voter, err = cluster.New(o)
	}
	return s, err
}
