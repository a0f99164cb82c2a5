package broker

import (
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// pullReturned is what came of a pull.
type pullReturned struct {
	id       uint64
	response linkResponse
}

// Bytes implements runtime.Message.
func (m *pullReturned) Bytes() int { return len(m.response.body) }

// observe gives the machine of an observer a command.
func (c *controllerActor) observe(t *runtime.Turn, cmd cluster.ObserverCommand) {
	c.observer.Step(c.now(t), cmd, &c.watched)
	c.carryOutWatched(t)
}

// carryOutWatched does what the machine of an observer asks, in the order it states.
func (c *controllerActor) carryOutWatched(t *runtime.Turn) {
	c.persist(t, c.watched.Persist)
	if a := c.watched.Ask; a != nil {
		c.pull(t, a)
	}
	c.commit(t, c.watched.Commit)
	for _, n := range c.watched.Note {
		c.note(t, n)
	}
	if c.watched.Reseat != nil {
		c.reseating = c.watched.Reseat
	}
	c.watched.Reset()
}

// pull asks a voter. It may park the pull for half of the time that the answer is waited for.
func (c *controllerActor) pull(t *runtime.Turn, a *cluster.PullAsk) {
	body, err := cluster.EncodeCommand(&a.Pull)
	if err != nil {
		panic("broker: a pull cannot be written: " + err.Error())
	}
	self, id := t.Self(), a.ID
	c.shared.links.send(t, a.To, peer.Control, &linkRequest{body: body, wait: 2 * time.Duration(a.WaitMs) * time.Millisecond, answer: func(r linkResponse) {
		_ = self.Post(&pullReturned{id: id, response: r}) // who has stopped pulls no more
	}})
}

func (c *controllerActor) pullReturned(t *runtime.Turn, m *pullReturned) {
	if c.voter != nil {
		c.step(t, &cluster.Pulled{Pull: m.id, Reply: m.reply()})
		return
	}
	if c.observer == nil {
		return
	}
	before, reply := c.refused, m.reply()
	c.observe(t, &cluster.Pulled{Pull: m.id, Reply: reply})
	if reply.Err == nil && c.refused == before {
		c.starved.over()
	}
}

// reply is what was answered. Everything but metadata is a refusal.
func (m *pullReturned) reply() cluster.Reply {
	r := &m.response
	switch {
	case r.err != nil:
		return refusedReply(wire.NetworkException, r.err.Error())
	case r.code != wire.NoError:
		return refusedReply(r.code, r.text)
	}
	reply, _, err := decodeResponse(r.body)
	if err != nil {
		return refusedReply(wire.UnknownServerError, err.Error())
	}
	return reply
}

// starve tells, now and then, that a broker gave this observer no metadata. It asks another at once, and all of them again twice a second. That one refuses is
// usual: connections end when a broker registers, and whoever has just joined asks observers, too. It is worth a line when it lasts.
func (c *controllerActor) starve(t *runtime.Turn, broker ident.BrokerID, reason string) {
	c.refused++
	now, _ := t.Now()
	if !c.starved.due(now, reason) {
		return
	}
	level := zerolog.DebugLevel
	if c.starved.lasts(now) {
		level = zerolog.WarnLevel
	}
	c.log.WithLevel(level).Int32("peer", int32(broker)).Str("reason", reason).Msg("a broker gave no metadata; asking another")
}
