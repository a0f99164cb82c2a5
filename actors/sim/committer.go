package sim

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// committer commits offsets for a group of its own that has no members, one request at a time, and asks for them again:
// what was acknowledged is there, or something that it committed later. Each offset is committed once, so that an answer
// names its commit.
type committer struct {
	*client
	group     string
	topics    []*ghostTopic
	found     bool // the coordinator
	at        ident.BrokerID
	busy      bool
	finishing bool
	asked     bool // for everything, since finishing began
	next      int64
	commits   map[*ghostPartition]*committed
}

// committed is what a group's offset of a partition may be.
type committed struct {
	sure  int64   // the last that was acknowledged; -1: none
	maybe []int64 // those sent after it whose fate is not known
	// stray: those that were not answered. They may lie in the buffers of a broker that stands still, or that waits for a slow disk, and it may turn to another
	// connection first.
	stray []int64
}

func newCommitter(c *client) *committer {
	return &committer{client: c, group: "group of " + c.name, commits: make(map[*ghostPartition]*committed)}
}

func (o *committer) begin()     {}
func (o *committer) lost()      { o.busy = o.busy && o.run.ensemble != nil } // what is under way to another broker goes on
func (o *committer) finish()    { o.finishing, o.asked = true, false }
func (o *committer) done() bool { return o.asked }

func (o *committer) connected() {
	o.lost()
	connection := o.connection
	var again func()
	again = func() {
		if o.end == nil || o.connection != connection {
			return
		}
		if !o.busy {
			o.act()
		}
		o.after(o.pause(), again)
	}
	again()
}

// tell sends a request to the coordinator. Without a connection to it, it is looked for again.
func (o *committer) tell(req kmsg.Request, answer func(kmsg.Response, error)) {
	line := o.client
	if o.run.ensemble != nil {
		line = o.reach(o.at)
	}
	if line == nil {
		o.found = false
		answer(nil, errLost)
		return
	}
	o.request(line, req, answer)
}

// request sends one and remembers that it is under way.
func (o *committer) request(line *client, req kmsg.Request, answer func(kmsg.Response, error)) {
	o.busy = true
	line.ask(req, func(resp kmsg.Response, err error) {
		o.busy = false
		answer(resp, err)
	})
}

func (o *committer) act() {
	switch {
	case !o.found:
		o.find()
	case o.finishing && len(o.commits) > 0 && !o.asked:
		o.fetch()
	case o.finishing:
		o.asked = true
	case len(o.topics) == 0 || chance(o.rand, 10):
		o.look()
	case len(o.commits) > 0 && chance(o.rand, 30):
		o.fetch()
	default:
		o.commit()
	}
}

// find asks for the coordinator, which makes the topic of offsets if it is not there.
func (o *committer) find() {
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorKey, req.CoordinatorKeys = o.group, []string{o.group}
	o.request(o.client, req, func(resp kmsg.Response, err error) {
		if err != nil {
			return
		}
		r := resp.(*kmsg.FindCoordinatorResponse)
		code := r.ErrorCode
		o.at = ident.BrokerID(r.NodeID)
		for _, c := range r.Coordinators {
			code, o.at = c.ErrorCode, ident.BrokerID(c.NodeID)
		}
		if o.found = code == 0; !o.found {
			o.run.allow(o.name, "FindCoordinator", code, wire.CoordinatorNotAvailable, wire.CoordinatorLoadInProgress, wire.RequestTimedOut)
		}
	})
}

func (o *committer) look() {
	sent := o.now()
	o.request(o.client, kmsg.NewPtrMetadataRequest(), func(resp kmsg.Response, err error) {
		if err == nil {
			o.topics = o.run.topicsOf(resp.(*kmsg.MetadataResponse), sent)
		}
	})
}

// retried are codes of a coordinator that is loading, or in trouble.
var retried = []wire.ErrorCode{
	wire.NotCoordinator, wire.CoordinatorNotAvailable, wire.CoordinatorLoadInProgress, wire.RequestTimedOut, wire.UnknownTopicOrPartition, wire.NotEnoughReplicas,
}

func (o *committer) commit() {
	t := one(o.rand, o.topics...)
	if len(t.partitions) == 0 {
		o.topics = nil
		return
	}
	p := one(o.rand, t.partitions...)
	c := o.commits[p]
	if c == nil {
		c = &committed{sure: -1}
		o.commits[p] = c
	}
	o.next++
	offset := o.next
	c.maybe = append(c.maybe, offset)
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = o.group, -1
	rt := kmsg.NewOffsetCommitRequestTopic()
	rt.Topic = t.name
	rp := kmsg.NewOffsetCommitRequestTopicPartition()
	rp.Partition, rp.Offset = p.number, offset
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	o.tell(req, func(resp kmsg.Response, err error) {
		if err != nil {
			c.stray = append(c.stray, offset)
			return
		}
		for _, rt := range resp.(*kmsg.OffsetCommitResponse).Topics {
			for _, rp := range rt.Partitions {
				if rp.ErrorCode == 0 {
					o.run.counted("offset committed")
					c.sure, c.maybe = offset, nil
					continue
				}
				o.run.allow(o.name, "OffsetCommit", rp.ErrorCode, retried...)
				o.found = o.found && o.run.ensemble == nil
				if wire.ErrorCode(rp.ErrorCode) == wire.UnknownTopicOrPartition {
					o.topics = nil
				}
			}
		}
	})
}

// fetch asks for everything that was committed.
func (o *committer) fetch() {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = o.group
	var asked []*ghostPartition
	for _, t := range o.run.ghost.all() {
		if !t.stable() || o.run.ghost.reborn(t.name) {
			continue // the name may be another topic's
		}
		for _, p := range t.partitions {
			if o.commits[p] == nil {
				continue
			}
			rt := kmsg.NewOffsetFetchRequestTopic()
			rt.Topic, rt.Partitions = t.name, []int32{p.number}
			req.Topics = append(req.Topics, rt)
			asked = append(asked, p)
		}
	}
	if len(asked) == 0 {
		o.asked = o.finishing
		return
	}
	o.tell(req, func(resp kmsg.Response, err error) {
		if err != nil {
			return
		}
		r := resp.(*kmsg.OffsetFetchResponse)
		if r.ErrorCode != 0 {
			o.found = o.found && o.run.ensemble == nil
			o.run.allow(o.name, "OffsetFetch", r.ErrorCode, retried...)
			return
		}
		bad := false
		for i := range r.Topics {
			for _, rp := range r.Topics[i].Partitions {
				if rp.ErrorCode != 0 {
					o.found = o.found && o.run.ensemble == nil
					o.run.allow(o.name, "OffsetFetch", rp.ErrorCode, retried...)
					bad = true
					continue
				}
				o.holds(asked, r.Topics[i].Topic, rp.Partition, rp.Offset)
			}
		}
		o.asked = o.finishing && !bad
	})
}

// holds verifies an offset that was fetched, and knows more afterwards: what is in the log once stays.
func (o *committer) holds(asked []*ghostPartition, topic string, number int32, offset int64) {
	i := slices.IndexFunc(asked, func(p *ghostPartition) bool { return p.topic.name == topic && p.number == number })
	if i < 0 {
		o.run.fail("answers are to what was asked", "%s asked for offsets, and not of %s-%d", o.name, topic, number)
		return
	}
	p := asked[i]
	c := o.commits[p]
	if !p.topic.stable() || o.run.ghost.reborn(topic) {
		return
	}
	at := slices.Index(c.maybe, offset)
	if offset != c.sure && at < 0 && !slices.Contains(c.stray, offset) {
		o.run.fail("what was committed stays", "%s: the offset of %s-%d is %d, %d was acknowledged last, after that %v may have been committed", o.group, topic, number, offset, c.sure, c.maybe)
		return
	}
	o.run.counted("offset fetched")
	if i := slices.Index(c.stray, offset); i >= 0 { // it is sent once, and was carried out
		c.stray, c.sure = slices.Delete(c.stray, i, i+1), offset
	}
	if at >= 0 {
		c.sure, c.maybe = offset, slices.Clone(c.maybe[at+1:])
	}
}
