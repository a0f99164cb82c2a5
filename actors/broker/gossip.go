package broker

import (
	"sync"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster/gossip"
	"github.com/troupe-broker/troupe/wire/ident"
)

// gossipActor has this broker's part in the gossip. Its own goroutine waits for others, when it contacts them and when it tells them something; two more
// read packets and pass on what is heard, so that no death is heard late because somebody else does not answer.
type gossipActor struct {
	shared  *shared
	peering *peering
	log     zerolog.Logger
	timer   *runtime.Timer
	group   sync.WaitGroup
	passing sync.Mutex    // what is taken first is told first
	looked  bool          // each address of --join was tried once; under passing
	over    chan struct{} // closed when the actor stops
}

type (
	// tellOthers has gossip tell who this broker is now.
	tellOthers struct{}
	// leaveGossip tells others that this broker stops on purpose.
	leaveGossip struct{ done func() }
)

// Bytes implements runtime.Message.
func (*tellOthers) Bytes() int  { return 0 }
func (*leaveGossip) Bytes() int { return 0 }

// Reject implements runtime.Rejecter.
func (m *leaveGossip) Reject(error) { m.done() }

// Started implements runtime.Starter.
func (g *gossipActor) Started(t *runtime.Turn) {
	g.over = make(chan struct{})
	g.timer = t.NewTimer(signalTick)
	g.group.Go(g.receive)
	g.group.Go(g.listen)
	g.rejoin()
	g.passOn()
	g.passing.Lock()
	g.looked = true
	g.passing.Unlock()
	_ = g.shared.controller.Post(&lookedAround{}) // gone only when the broker stops
}

// Turn implements runtime.Behaviour.
func (g *gossipActor) Turn(_ *runtime.Turn, batch []runtime.Message) {
	for _, m := range batch {
		switch m := m.(type) {
		case *tellOthers:
			g.tell()
		case *leaveGossip:
			g.peering.gossip.Leave()
			m.done()
		case signal:
			g.rejoin()
		default:
			panic("broker: gossip got a message that it does not know")
		}
	}
}

// receive is the goroutine that reads packets.
func (g *gossipActor) receive() {
	for {
		err := g.peering.gossip.Receive()
		if err == nil {
			return
		}
		g.log.Warn().Err(err).Msg("gossip cannot read its packets; trying again")
		pause := make(chan struct{})
		g.shared.system.Clock().NewAlarm(func() { close(pause) }).Set(acceptBackOff)
		<-pause
	}
}

// listen is the goroutine that passes on what gossip has heard.
func (g *gossipActor) listen() {
	for {
		select {
		case <-g.peering.kick:
		case <-g.over:
			return
		}
		g.passOn()
	}
}

// passOn tells what gossip has heard since it was asked last.
func (g *gossipActor) passOn() {
	g.passing.Lock()
	defer g.passing.Unlock()
	news := g.peering.gossip.Take()
	for i := range news.Notes {
		level := zerolog.WarnLevel
		if n := &news.Notes[i]; n.Code == gossip.CodeUnreachable && (!g.looked || g.shared.clusterID() == "") {
			level = zerolog.InfoLevel // the others may start later than this one
		}
		g.log.WithLevel(level).Msg(news.Notes[i].Code + ": " + news.Notes[i].Text)
	}
	for i := range news.Facts {
		f := &news.Facts[i]
		g.log.Debug().Int32("peer", int32(f.Member.Broker)).Stringer("state", f.State).Str("address", f.Member.Peer).Msg("gossip")
		_ = g.shared.controller.Post(&gossiped{fact: *f}) // gone only when the broker stops
	}
}

// rejoin contacts whom gossip does not show, and sets the time of the next attempt.
func (g *gossipActor) rejoin() {
	var registered []gossip.Peer
	for b := range g.shared.image.Load().Brokers() {
		if address := peerAddress(b); address != "" {
			registered = append(registered, gossip.Peer{Broker: b.ID, Address: address})
		}
	}
	g.peering.rejoin(registered)
	g.timer.Reset(g.peering.gossip.RejoinAfter())
}

// tell announces who this broker is now.
func (g *gossipActor) tell() {
	if err := g.peering.gossip.Announce(inCluster(g.peering.gossip.Self(), g.shared.clusterID())); err != nil {
		g.log.Error().Err(err).Msg("gossip cannot tell others of this broker")
	}
}

// inCluster is what a broker tells that has a cluster, and so founds none any more; of none if id is empty.
func inCluster(m gossip.Member, id ident.ClusterID) gossip.Member {
	if m.Cluster = id; id != "" {
		m.Expect = 0
	}
	return m
}

// Stopping implements runtime.Stopper.
func (g *gossipActor) Stopping(*runtime.Turn) {
	close(g.over)
	g.peering.gossip.Stop()
}

// Stopped implements runtime.Stopper.
func (g *gossipActor) Stopped(*runtime.Turn) { g.group.Wait() }
