package broker

import (
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
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
	if c.observer == nil {
		return
	}
	r := &m.response
	var reply cluster.Reply
	err := r.err
	switch {
	case err != nil:
	case r.code != wire.NoError:
		reply = refusedReply(r.code, r.text)
	default:
		reply, _, err = decodeResponse(r.body)
	}
	if err != nil {
		reply = refusedReply(wire.UnknownServerError, err.Error())
	}
	c.observe(t, &cluster.Pulled{Pull: m.id, Reply: reply})
}
