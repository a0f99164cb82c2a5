package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// A command for the controller gets there from any broker. If the controller is here, its machine takes it; otherwise it goes over the control link to the
// broker that has it; while nobody does, it waits for an election, until its deadline. A controller that was deposed, or a link that ended, sends it on its
// way again, as Kafka's forwarding does: what was asked for may then have been done already, and the second answer tells that. The session hears once.
//
// The answer of a controller elsewhere names the index of the metadata log at which it holds, and is kept until this broker's image has got there: so
// whatever a client is told exists, exists here when it hears of it. A response's body is that index, 8 bytes big-endian, and cluster.EncodeReply's.

const (
	// journeysMax bounds the commands that wait for a controller.
	journeysMax = 4096
	// againMs is the pause before a command that nobody took is sent again, unless a controller appears.
	againMs = 100
	// heartbeatMs bounds one attempt of a heartbeat: one that is stuck at a controller that hangs must not use up the session.
	heartbeatMs = 1000
)

// proposal is a command for the controller. answer is called once, by whatever goroutine runs the metadata actor, after the image that holds the outcome
// is published: it may only enqueue.
type proposal struct {
	command cluster.Command
	ask     *cluster.Ask
	answer  func(cluster.Reply)

	remote *remoteCommand // it came from another broker, who is answered instead
	until  ident.Instant  // nobody waits any longer
	due    ident.Instant  // of the next attempt
}

// Bytes implements runtime.Message.
func (*proposal) Bytes() int { return 0 }

// Reject implements runtime.Rejecter.
func (p *proposal) Reject(err error) {
	if p.answer != nil { // another broker hears that the connection has ended
		p.answer(cluster.Reply{Request: p.ask.Request, Err: &cluster.Error{Code: wire.NotController, Message: "the controller takes no commands now: " + err.Error()}})
	}
}

type (
	// remoteCommand is a command that came from another broker.
	remoteCommand struct {
		link    *linkInfo
		id      uint64
		arrived ident.Instant
		waitMs  int32
		bytes   int // of the command on the wire
		command cluster.Command
		ask     *cluster.Ask
	}
	// returned is what came of a command that was sent away.
	returned struct {
		proposal *proposal
		response linkResponse
	}
)

// Bytes implements runtime.Message.
func (m *remoteCommand) Bytes() int { return m.bytes }
func (m *returned) Bytes() int      { return len(m.response.body) }

// journeys are the commands on their way to a controller that is not here.
type journeys struct {
	away   map[*proposal]struct{} // sent to another broker
	parked []*proposal            // wait for a controller
	held   []heldReply            // answered; this broker's image is not there yet
	leader ident.BrokerID         // as it was looked up last
	leads  bool
}

// heldReply is an answer that waits for an index.
type heldReply struct {
	proposal *proposal
	reply    cluster.Reply
	index    uint64
}

// end answers everybody: the broker stops.
func (j *journeys) end() {
	for _, p := range j.parked {
		p.Reject(runtime.ErrStopped)
	}
	for p := range j.away {
		p.Reject(runtime.ErrStopped)
	}
	for _, h := range j.held {
		h.proposal.Reject(runtime.ErrStopped)
	}
	*j = journeys{}
}

// propose sends a command of this broker on its way.
func (c *controllerActor) propose(t *runtime.Turn, p *proposal) {
	mono, _ := t.Now()
	if p.until = p.ask.Deadline; p.until == 0 {
		p.until = mono + commandMs*millisecond
	}
	if h, ok := p.command.(*cluster.Heartbeat); ok && c.observer != nil {
		h.Node = c.shared.identity.Node // by which it can become a voter
	}
	c.route(t, p)
}

// route takes a command, sends it to whoever takes it, or lets it wait.
func (c *controllerActor) route(t *runtime.Turn, p *proposal) {
	mono, _ := t.Now()
	to := c.leader()
	switch {
	case c.leads() || c.shared.links == nil:
		c.take(t, p)
	case mono >= p.until:
		c.tell(t, p, refusedReply(wire.RequestTimedOut, "no controller took the command in time"))
	case to == ident.NoBroker || to == c.shared.identity.Broker:
		c.park(t, p)
	default:
		c.send(t, p, to)
	}
}

// take gives a command to the machine in this broker.
func (c *controllerActor) take(t *runtime.Turn, p *proposal) {
	c.requests++
	p.ask.Request = c.requests
	c.open[p.ask.Request] = p
	c.step(t, p.command)
}

// park lets a command wait.
func (c *controllerActor) park(t *runtime.Turn, p *proposal) {
	if len(c.journeys.parked) >= journeysMax {
		c.tell(t, p, refusedReply(wire.NotController, "too many commands wait for a controller"))
		return
	}
	mono, _ := t.Now()
	p.due = mono + againMs*millisecond
	c.journeys.parked = append(c.journeys.parked, p)
}

// send sends a command to the controller in another broker.
func (c *controllerActor) send(t *runtime.Turn, p *proposal, to ident.BrokerID) {
	body, err := cluster.EncodeCommand(p.command)
	if err != nil {
		panic("broker: a command that cannot travel was to be forwarded: " + err.Error())
	}
	mono, _ := t.Now()
	wait := p.until - mono
	if _, ok := p.command.(*cluster.Heartbeat); ok {
		wait = min(wait, heartbeatMs*millisecond)
	}
	self := t.Self()
	c.journeys.away[p] = struct{}{}
	c.shared.links.send(t, to, peer.Control, &linkRequest{body: body, wait: time.Duration(wait), answer: func(r linkResponse) {
		_ = self.Post(&returned{proposal: p, response: r}) // who has stopped has answered
	}})
}

// returned takes what came of a command that was sent away.
func (c *controllerActor) returned(t *runtime.Turn, m *returned) {
	p, r := m.proposal, &m.response
	if _, ok := c.journeys.away[p]; !ok {
		return
	}
	delete(c.journeys.away, p)
	switch {
	case r.err != nil:
		c.again(t, p)
		return
	case r.code != wire.NoError:
		c.settled(t, p, refusedReply(r.code, r.text))
		return
	}
	reply, index, err := decodeResponse(r.body)
	if err != nil {
		c.tell(t, p, refusedReply(wire.UnknownServerError, "the controller's answer cannot be read: "+err.Error()))
		return
	}
	if index > c.image().Index() && c.waitsForImage(reply) {
		c.journeys.held = append(c.journeys.held, heldReply{proposal: p, reply: reply, index: index})
		return
	}
	c.settled(t, p, reply)
}

// waitsForImage tells whether an answer says what the image must show. A new run of a broker makes its partitions by the image that has its registration, and
// serves by one in which it is not fenced. A heartbeat may end a fence of which this broker has not heard yet: what it says counts when the image has come to it.
func (c *controllerActor) waitsForImage(r cluster.Reply) bool {
	switch r.Body.(type) { //nolint:gochecksumtype // all others are
	case nil, *cluster.ChangeISRReply, *cluster.VerifiedReply, *cluster.AllocateProducerIDsReply, *cluster.DescribeQuorumReply:
		return false
	}
	return true
}

// settled takes an answer, which is none if a controller that is none gave it.
func (c *controllerActor) settled(t *runtime.Turn, p *proposal, r cluster.Reply) {
	switch {
	case p.remote != nil:
		c.respond(t, p.remote, r)
	case r.Err != nil && r.Err.Code == wire.NotController && c.shared.links != nil:
		c.again(t, p)
	default:
		c.tell(t, p, r)
	}
}

// again lets a command wait for another attempt, if there is time for one.
func (c *controllerActor) again(t *runtime.Turn, p *proposal) {
	if mono, _ := t.Now(); mono >= p.until {
		c.tell(t, p, refusedReply(wire.RequestTimedOut, "no controller answered in time; what was asked for may have been done"))
		return
	}
	if create, ok := p.command.(*cluster.CreateTopics); ok {
		create.Again()
	}
	c.park(t, p)
}

// tell answers by way of the metadata actor, behind the images that came before.
func (c *controllerActor) tell(t *runtime.Turn, p *proposal, r cluster.Reply) {
	_ = t.Send(c.shared.metadata, &settledReply{answer: p.answer, reply: r}) // Reject answers
}

func refusedReply(code wire.ErrorCode, text string) cluster.Reply {
	return cluster.Reply{Err: &cluster.Error{Code: code, Message: text}}
}

// releaseHeld lets the answers go that the image has caught up with.
func (c *controllerActor) releaseHeld(t *runtime.Turn) {
	index := c.image().Index()
	c.journeys.held = slices.DeleteFunc(c.journeys.held, func(h heldReply) bool {
		if h.index <= index {
			c.settled(t, h.proposal, h.reply)
		}
		return h.index <= index
	})
}

// lookUp sends what waits to a controller that has appeared.
func (c *controllerActor) lookUp(t *runtime.Turn) {
	leader, leads := c.leader(), c.leads()
	if leader == c.journeys.leader && leads == c.journeys.leads {
		return
	}
	c.journeys.leader, c.journeys.leads = leader, leads
	c.reroute(t, math.MaxInt64)
}

// tickJourneys tries again what is due, and gives up what has waited too long.
func (c *controllerActor) tickJourneys(t *runtime.Turn) {
	mono, _ := t.Now()
	c.reroute(t, mono)
	c.journeys.held = slices.DeleteFunc(c.journeys.held, func(h heldReply) bool {
		if _, registers := h.proposal.command.(*cluster.RegisterBroker); registers || mono < h.proposal.until {
			return false
		}
		c.settled(t, h.proposal, h.reply) // it is done; only this broker lags behind
		return true
	})
}

// reroute routes what is due.
func (c *controllerActor) reroute(t *runtime.Turn, due ident.Instant) {
	parked := c.journeys.parked
	c.journeys.parked = nil
	for i, p := range parked {
		if p.due > due {
			c.journeys.parked = append(c.journeys.parked, p)
			continue
		}
		parked[i] = nil
		c.route(t, p)
	}
}

// serve takes a command of another broker. Only the controller carries it out, but every voter answers pulls.
func (c *controllerActor) serve(t *runtime.Turn, m *remoteCommand) {
	if c.voter == nil {
		c.respond(t, m, refusedReply(wire.NotController, "this broker has no vote in the metadata quorum"))
		return
	}
	wait := ident.Instant(max(m.waitMs, 0)) * millisecond
	switch cmd := m.command.(type) { //nolint:gochecksumtype // two of them are stamped
	case *cluster.Heartbeat:
		cmd.Arrived = m.arrived
	case *cluster.Pull:
		wait /= 2 // the other half is for the way back
	}
	m.ask.Deadline = m.arrived + max(wait, millisecond)
	c.take(t, &proposal{command: m.command, ask: m.ask, remote: m})
}

// respond answers another broker.
func (c *controllerActor) respond(t *runtime.Turn, m *remoteCommand, r cluster.Reply) {
	body := append(binary.BigEndian.AppendUint64(nil, c.image().Index()), cluster.EncodeReply(r)...)
	if n := len(body); n > responseBytesMax {
		r = refusedReply(wire.UnknownServerError, fmt.Sprintf("the controller has done it, but its answer of %d bytes is too large to be passed on: ask for less at a time, or ask broker %d itself", n, c.shared.identity.Broker))
		body = append(body[:8], cluster.EncodeReply(r)...)
	}
	_ = t.Send(m.link.ref, &linkMessage{&peer.Response{ID: m.id, Body: body}}) // one that has stopped has nobody to answer
}

// responseBytesMax bounds the body of an answer: with what stands around it, it fits a frame of a control connection.
const responseBytesMax = peer.ControlMax - 4<<10

// errShort says that a response has no index.
var errShort = errors.New("it is too short")

func decodeResponse(body []byte) (cluster.Reply, uint64, error) {
	if len(body) < 8 {
		return cluster.Reply{}, 0, errShort
	}
	r, err := cluster.DecodeReply(body[8:])
	return r, binary.BigEndian.Uint64(body), err
}
