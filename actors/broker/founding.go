package broker

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rs/zerolog"

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

// lookedAround tells that gossip has tried every address of --join once, and that what it shows since was told before.
type lookedAround struct{}

// Bytes implements runtime.Message.
func (*lookedAround) Bytes() int { return 0 }

// beginFounding lets the machine decide, once this broker has looked around: a cluster that can be seen is in sight before another one is founded.
func (c *controllerActor) beginFounding(t *runtime.Turn) {
	switch {
	case !c.opened || c.founding == nil:
	case c.looked || c.shared.gossip == nil:
		c.found(t, &cluster.Begin{Address: c.address})
	default:
		c.log.Info().Msg("looking for other brokers; waiting until each address of --join was tried once")
	}
}

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
		c.waits = waiting{why: out.Waits, wrong: out.Wrong}
		c.tellWaits(t)
	}
}

// waiting is what a founding waits for.
type waiting struct {
	why   string
	wrong bool // waiting alone does not end it
	told  complaint
}

// tellWaits says what the founding waits for: when that changes, and at growing intervals while it stays.
func (c *controllerActor) tellWaits(t *runtime.Turn) {
	now, _ := t.Now()
	if c.waits.why == "" || !c.waits.told.due(now, c.waits.why) {
		return
	}
	level := zerolog.InfoLevel
	if c.waits.wrong && c.waits.told.lasts(now) {
		level = zerolog.WarnLevel
	}
	c.log.WithLevel(level).Msg(c.waits.why)
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
	for _, b := range slices.Sorted(maps.Keys(c.known.addresses)) { // in an order, so that a simulation is the same each time
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
		w := c.watching(cluster.Durable{})
		w.Cluster, w.Voters = m.id, c.known.members(m.id)
		c.observer, err = cluster.NewObserver(w)
	}
	if err != nil {
		_ = t.Send(s.root, &metadataLost{reason: err}) // Root is gone only when the broker stops
		return
	}
	c.founding, c.waits = nil, waiting{}
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
	watch := cluster.ObserverOptions{Broker: o.Broker, Node: o.Node, Cluster: f.Self.Cluster, SnapshotBytes: o.SnapshotBytes}
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
