package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// client is the part that all model clients share: one connection at a time, requests in order, patience, and a new
// connection after a pause. It encodes and decodes with another codec than the broker's.
type client struct {
	run      *run
	plan     ClientPlan
	name     string
	rand     *rand.Rand
	clock    *NodeClock
	versions map[int16]int16
	format   *kmsg.RequestFormatter
	script   script
	to       *host     // whom it is connected with, or wants to be
	bound    bool      // to that one
	via      []*client // connections to other brokers, in the order in which they were wanted

	end         *End
	connection  int // counts connections
	in          []byte
	open        []*call // sent and not answered, in order
	correlation int32
	unsent      []byte // written when there is room
	backoff     bool
	quit        bool // wants no connection any more
	deaf        bool // does not listen to answers
}

// script is what a client does.
type script interface {
	// begin is called once, connected or not.
	begin()
	// connected is called on each new connection.
	connected()
	// lost is called when the connection is over, after all open calls have ended.
	lost()
	// finish asks to bring what was begun to an end; done tells whether it has.
	finish()
	done() bool
}

// call is one request on its way.
type call struct {
	request     kmsg.Request
	version     int16
	correlation int32
	sent        ident.Instant
	connection  int
	answer      func(kmsg.Response, error)
	answered    bool
}

// errLost ends the calls of a connection that is over.
var errLost = errors.New("the connection is over")

func newClient(r *run, p ClientPlan) *client {
	name := fmt.Sprintf("c%d", p.Number)
	c := &client{
		run: r, plan: p, name: name, rand: r.world.Rand("client/" + name), clock: r.world.NewNode(name).Clock, versions: make(map[int16]int16),
		format: kmsg.NewRequestFormatter(kmsg.FormatterClientID(name)),
	}
	for _, api := range wire.APIs() {
		draw := r.world.Rand(fmt.Sprintf("version/%s/%d", name, api.Key)) // an API more changes nothing for the others
		c.versions[int16(api.Key)] = api.Min + int16(draw.IntN(int(api.Max-api.Min)+1))
	}
	if p.Kind == Told {
		for _, api := range wire.APIs() {
			c.versions[int16(api.Key)] = api.Max // so that it hears which topic it has created
		}
	}
	if r.plan.Zstd {
		c.versions[0], c.versions[1] = max(c.versions[0], 7), max(c.versions[1], 10)
	}
	if m := int16(kmsg.Metadata); p.Kind != Curious {
		c.versions[m] = max(c.versions[m], 10) // the first with topic ids, by which histories are told apart
	}
	if p.Near {
		c.versions[int16(kmsg.Fetch)] = max(c.versions[int16(kmsg.Fetch)], 11) // the first with racks
	}
	c.to = r.hosts[p.Number%len(r.hosts)]
	c.bound = len(r.hosts) == 1 || p.Kind == Consumer
	switch p.Kind {
	case Idempotent, Plain:
		c.script = newProducer(c)
	case Consumer:
		c.script = newConsumer(c)
	case Admin, Told:
		c.script = newAdmin(c)
	case Committer:
		c.versions[int16(kmsg.OffsetCommit)] = min(c.versions[int16(kmsg.OffsetCommit)], 9) // the last with names of topics
		c.versions[int16(kmsg.OffsetFetch)] = min(c.versions[int16(kmsg.OffsetFetch)], 7)   // the last with one group
		c.script = newCommitter(c)
	case Classic, Modern:
		c.script = newMember(c)
	case Operator:
		c.script = newOperator(c)
	case Keyed:
		c.script = newKeyed(c)
	case Governor:
		c.script = newGovernor(c)
	case Curious:
		c.script = &curious{client: c}
	case Hostile:
		c.script = &hostile{client: c}
	}
	return c
}

// pause is a time between two things that the client does.
func (c *client) pause() time.Duration { return between(c.rand, c.plan.Pause/2, c.plan.Pause*3/2) }

// after calls f when d has passed by the client's clock.
func (c *client) after(d time.Duration, f func()) { c.clock.NewAlarm(f).Set(d) }

// now is the world's time, by which histories are ordered.
func (c *client) now() ident.Instant { return c.run.world.Now() }

// start connects for the first time.
func (c *client) start() {
	c.script.begin()
	c.connect()
}

// connect dials, again and again until it works.
func (c *client) connect() {
	if c.end != nil || c.backoff || c.quit {
		return
	}
	end, err := c.to.dial(c)
	if err != nil {
		c.elsewhere()
		c.backoff = true
		c.after(between(c.rand, 5*time.Millisecond, 100*time.Millisecond), func() {
			c.backoff = false
			c.connect()
		})
		return
	}
	c.end = end
	c.connection++
	c.script.connected()
}

// elsewhere has a client of several brokers try another one next time.
func (c *client) elsewhere() {
	if !c.bound {
		c.to = c.run.hosts[c.rand.IntN(len(c.run.hosts))]
	}
}

// reach is the connection to a broker; nil: there is none now, or no such broker.
func (c *client) reach(b ident.BrokerID) *client {
	h := c.run.called(b)
	if h == nil {
		return nil
	}
	for _, v := range c.via {
		if v.to == h {
			return v.ifOpen()
		}
	}
	name := c.name + "-" + h.node.Name
	v := &client{
		run: c.run, plan: c.plan, name: name, rand: c.run.world.Rand("client/" + name), clock: c.clock, versions: c.versions, format: c.format, to: h, bound: true,
		connection: int(b) << 20, script: mute{}, quit: c.quit,
	}
	c.via = append(c.via, v)
	v.connect()
	return v.ifOpen()
}

// ifOpen is the client if it is connected.
func (c *client) ifOpen() *client {
	if c.end == nil {
		return nil
	}
	return c
}

// mute is the script of a connection on which another script speaks.
type mute struct{}

func (mute) begin()     {}
func (mute) connected() {}
func (mute) lost()      {}
func (mute) finish()    {}
func (mute) done() bool { return true }

// leave ends the connections for good.
func (c *client) leave() {
	c.quit = true
	c.hangUp()
	for _, v := range c.via {
		v.leave()
	}
}

// hangUp ends the connection.
func (c *client) hangUp() {
	if c.end != nil {
		c.end.Close()
		c.disconnected()
	}
}

// Closed implements Handler.
func (c *client) Closed(error) { c.disconnected() }

// disconnected ends all calls and connects anew.
func (c *client) disconnected() {
	if c.end == nil {
		return
	}
	c.end, c.in, c.unsent = nil, nil, nil
	open := c.open
	c.open = nil
	for _, k := range open {
		k.finish(nil, errLost)
	}
	c.script.lost()
	c.elsewhere()
	if !c.quit {
		c.after(between(c.rand, time.Millisecond, 20*time.Millisecond), c.connect)
	}
}

// ask sends a request. answer is called once: with the response, or when the connection is over.
func (c *client) ask(req kmsg.Request, answer func(kmsg.Response, error)) {
	if c.end == nil {
		panic("sim: a request without a connection")
	}
	version, ok := c.versions[req.Key()]
	if !ok {
		panic(fmt.Sprintf("sim: nobody serves API %d", req.Key()))
	}
	req.SetVersion(version)
	c.correlation++
	k := &call{request: req, version: version, correlation: c.correlation, sent: c.now(), connection: c.connection, answer: answer}
	c.open = append(c.open, k)
	c.write(c.format.AppendRequest(nil, req, k.correlation))
	connection := c.connection
	c.after(c.plan.Patience, func() {
		if !k.answered && c.connection == connection && c.end != nil {
			c.run.tell("%s runs out of patience with %s", c.name, kmsg.NameForKey(req.Key()))
			c.hangUp()
		}
	})
}

// silent sends a request that is not answered.
func (c *client) silent(req kmsg.Request) {
	req.SetVersion(c.versions[req.Key()])
	c.correlation++
	c.write(c.format.AppendRequest(nil, req, c.correlation))
}

// write writes now, and the rest when there is room.
func (c *client) write(b []byte) {
	c.unsent = append(c.unsent, b...)
	c.Writable()
}

// Writable implements Handler.
func (c *client) Writable() {
	if c.end == nil || len(c.unsent) == 0 {
		return
	}
	n, err := c.end.Write(c.unsent)
	if err != nil {
		c.disconnected()
		return
	}
	c.unsent = c.unsent[n:]
}

// Receive implements Handler: it cuts answers out of the stream.
func (c *client) Receive(b []byte) int {
	if c.deaf {
		return len(b)
	}
	c.in = append(c.in, b...)
	for c.end != nil && len(c.in) >= 4 {
		size := int(int32(binary.BigEndian.Uint32(c.in)))
		if size < 4 || size > 64<<20 {
			c.run.fail("framing", "%s: the broker sent a frame of %d bytes", c.name, size)
			return len(b)
		}
		if len(c.in) < 4+size {
			break
		}
		frame := c.in[4 : 4+size]
		c.in = c.in[4+size:]
		c.answered(frame)
	}
	return len(b)
}

// answered ends the oldest call.
func (c *client) answered(frame []byte) {
	correlation := int32(binary.BigEndian.Uint32(frame))
	if len(c.open) == 0 || c.open[0].correlation != correlation {
		want := "none"
		if len(c.open) > 0 {
			want = fmt.Sprint(c.open[0].correlation)
		}
		c.run.fail("answers in order", "%s: an answer to request %d came, the next one to be answered is %s", c.name, correlation, want)
		return
	}
	k := c.open[0]
	c.open = c.open[1:]
	body := frame[4:]
	resp := k.request.ResponseKind()
	resp.SetVersion(k.version)
	if resp.IsFlexible() && resp.Key() != int16(kmsg.ApiVersions) {
		if len(body) == 0 || body[0] != 0 {
			c.run.fail("codec", "%s: the header of the answer to %s has tags", c.name, kmsg.NameForKey(resp.Key()))
			return
		}
		body = body[1:]
	}
	if err := resp.ReadFrom(body); err != nil {
		c.run.fail("codec", "%s: the answer to %s version %d does not decode: %v", c.name, kmsg.NameForKey(resp.Key()), k.version, err)
		return
	}
	k.finish(resp, nil)
}

func (k *call) finish(resp kmsg.Response, err error) {
	if k.answered {
		panic("sim: a call ended twice")
	}
	k.answered = true
	k.answer(resp, err)
}
