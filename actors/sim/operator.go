package sim

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
)

// operator looks after groups as an administrator does: it lists and describes them, fetches their offsets and deletes some, and deletes groups that are empty.
// What it does changes no member's right to anything.
type operator struct {
	*client
	busy      bool
	finishing bool
	asked     int // groups whose offsets were fetched since finishing began
}

func newOperator(c *client) *operator {
	fetch := int16(kmsg.OffsetFetch)
	c.versions[fetch] = min(max(c.versions[fetch], 8), 9) // many groups, topics by name
	return &operator{client: c}
}

func (o *operator) begin()     {}
func (o *operator) lost()      { o.busy = o.busy && o.run.ensemble != nil } // what is under way to another broker goes on
func (o *operator) finish()    { o.finishing, o.asked = true, 0 }
func (o *operator) done() bool { return o.asked >= len(o.run.groups.groups) }

func (o *operator) connected() {
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

// request asks the coordinator of a group; "": whoever there is. It is told where that is.
func (o *operator) request(group string, req kmsg.Request, answer func(kmsg.Response)) {
	line := o.client
	if o.run.ensemble != nil && group != "" {
		line = o.reach(o.run.coordinator(group))
	}
	if line == nil {
		return
	}
	o.busy = true
	line.ask(req, func(resp kmsg.Response, err error) {
		o.busy = false
		if err == nil {
			answer(resp)
		}
	})
}

func (o *operator) act() {
	names := o.run.groups.names()
	if len(names) == 0 {
		return
	}
	if o.finishing {
		if o.asked < len(names) {
			o.fetch(o.run.groups.groups[names[o.asked]], func() { o.asked++ })
		}
		return
	}
	g := o.run.groups.groups[one(o.rand, names...)]
	if o.plan.Adjusts && chance(o.rand, 15) {
		o.adjust(g)
		return
	}
	switch o.rand.IntN(8) {
	case 0:
		o.delete(g)
	case 1, 2:
		o.deleteOffsets(g)
	case 3, 4, 5:
		o.fetch(g, func() {})
	default:
		o.describe(g)
	}
}

// delete asks for the end of a group.
func (o *operator) delete(g *ghostGroup) {
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Groups = []string{g.name}
	w := g.delete()
	o.request(g.name, req, func(resp kmsg.Response) {
		code := resp.(*kmsg.DeleteGroupsResponse).Groups[0].ErrorCode
		o.run.allow(o.name, "DeleteGroups", code, append(elsewhere, wire.NoError, wire.NonEmptyGroup, wire.GroupIDNotFound)...)
		o.became(w, code, wire.NonEmptyGroup, wire.GroupIDNotFound)
	})
}

// became notes what came of a deletion.
func (o *operator) became(w *write, code int16, refusals ...wire.ErrorCode) {
	switch {
	case code == 0:
		w.done = o.now()
	case slices.Contains(refusals, wire.ErrorCode(code)):
		w.never = true
	}
}

// deleteOffsets asks for the end of one commit.
func (o *operator) deleteOffsets(g *ghostGroup) {
	for _, t := range o.run.ghost.all() {
		if !t.stable() || len(t.partitions) == 0 || !chance(o.rand, 60) {
			continue
		}
		p := one(o.rand, t.partitions...)
		req := kmsg.NewPtrOffsetDeleteRequest()
		req.Group = g.name
		rt := kmsg.NewOffsetDeleteRequestTopic()
		rt.Topic = t.name
		rp := kmsg.NewOffsetDeleteRequestTopicPartition()
		rp.Partition = p.number
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
		w := g.place(p).begin("", -1, -1)
		o.request(g.name, req, func(resp kmsg.Response) {
			r := resp.(*kmsg.OffsetDeleteResponse)
			refused := []wire.ErrorCode{wire.NonEmptyGroup, wire.GroupIDNotFound, wire.GroupSubscribedToTopic, wire.UnknownTopicOrPartition}
			o.run.allow(o.name, "OffsetDelete", r.ErrorCode, append(slices.Concat(elsewhere, refused), wire.NoError)...)
			code := r.ErrorCode
			for i := range r.Topics {
				for j := range r.Topics[i].Partitions {
					code = r.Topics[i].Partitions[j].ErrorCode
					o.run.allow(o.name, "OffsetDelete", code, append(slices.Concat(elsewhere, refused), wire.NoError)...)
				}
			}
			o.became(w, code, refused...)
		})
		return
	}
}

// fetch asks for everything that a group has committed, and calls then when it was answered.
func (o *operator) fetch(g *ghostGroup, then func()) {
	req := kmsg.NewPtrOffsetFetchRequest()
	rg := kmsg.NewOffsetFetchRequestGroup()
	rg.Group, rg.MemberEpoch = g.name, -1
	var asked []*place
	for _, t := range o.run.ghost.all() {
		if !t.stable() || o.run.ghost.reborn(t.name) {
			continue
		}
		for _, p := range t.partitions {
			rt := kmsg.NewOffsetFetchRequestGroupTopic()
			rt.Topic, rt.Partitions = t.name, []int32{p.number}
			rg.Topics = append(rg.Topics, rt)
			asked = append(asked, g.place(p))
		}
	}
	if len(asked) == 0 {
		then()
		return
	}
	req.Groups = append(req.Groups, rg)
	sent := o.now()
	o.request(g.name, req, func(resp kmsg.Response) {
		r := resp.(*kmsg.OffsetFetchResponse).Groups[0]
		if r.ErrorCode != 0 {
			o.run.allow(o.name, "OffsetFetch", r.ErrorCode, elsewhere...)
			return
		}
		if len(r.Topics) != len(asked) {
			o.run.fail("answers are to what was asked", "%s asked for %d offsets and got %d", o.name, len(asked), len(r.Topics))
			return
		}
		for i, l := range asked {
			p := &r.Topics[i].Partitions[0]
			if p.ErrorCode != 0 {
				o.run.allow(o.name, "OffsetFetch", p.ErrorCode, wire.UnknownTopicOrPartition)
				continue
			}
			l.fetched(o.name, sent, p.Offset, p.LeaderEpoch, textOf(p.Metadata))
		}
		then()
	})
}

// describe asks what there is to be known of a group.
func (o *operator) describe(g *ghostGroup) {
	switch o.rand.IntN(3) {
	case 0:
		req := kmsg.NewPtrDescribeGroupsRequest()
		req.Groups = []string{g.name}
		o.request(g.name, req, func(resp kmsg.Response) {
			o.run.allow(o.name, "DescribeGroups", resp.(*kmsg.DescribeGroupsResponse).Groups[0].ErrorCode, append(elsewhere, wire.NoError, wire.GroupIDNotFound)...)
		})
	case 1:
		req := kmsg.NewPtrConsumerGroupDescribeRequest()
		req.Groups = []string{g.name}
		o.request(g.name, req, func(resp kmsg.Response) {
			r := &resp.(*kmsg.ConsumerGroupDescribeResponse).Groups[0]
			o.run.allow(o.name, "ConsumerGroupDescribe", r.ErrorCode, append(elsewhere, wire.NoError, wire.GroupIDNotFound)...)
			if r.AssignmentEpoch > r.Epoch {
				o.run.fail("no epoch is above its group's", "group %s has epoch %d, and an assignment of %d", g.name, r.Epoch, r.AssignmentEpoch)
			}
			for i := range r.Members {
				if r.Members[i].MemberEpoch > r.Epoch {
					o.run.fail("no epoch is above its group's", "group %s has epoch %d, and member %s has %d", g.name, r.Epoch, r.Members[i].MemberID, r.Members[i].MemberEpoch)
				}
			}
		})
	default:
		o.request("", kmsg.NewPtrListGroupsRequest(), func(resp kmsg.Response) {
			o.run.allow(o.name, "ListGroups", resp.(*kmsg.ListGroupsResponse).ErrorCode, append(elsewhere, wire.NoError)...)
		})
	}
}
