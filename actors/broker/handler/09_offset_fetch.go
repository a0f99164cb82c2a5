package handler

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// OffsetFetch (9), versions 1 to 10.
//
// As in Kafka: every partition that is asked for is in the answer, with offset -1 when nothing is committed; null topics, from version 2 on, mean all; from
// version 8 on a request asks for several groups, each with a code of its own; from version 10 on topics are named by id, and an unknown one is
// UNKNOWN_TOPIC_ID; COORDINATOR_NOT_AVAILABLE is told as NOT_COORDINATOR, since older consumers do not expect it here. Version 1 has no code for the
// group: its partitions carry it. Different: a group that is asked for twice is answered once.

// Versions of OffsetFetch that matter here.
const (
	fetchGroupCode = 2 // the first with a code for the group
	fetchManyGroup = 8 // the first with several groups (KIP-709)
)

func offsetFetch(c *Call) {
	req := c.Request.(*kmsg.OffsetFetchRequest)
	if c.Version < fetchManyGroup {
		g := groupFetch{name: req.Group, epoch: -1, all: req.Topics == nil && c.Version >= fetchGroupCode}
		for i := range req.Topics {
			g.topics = append(g.topics, topicFetch{name: req.Topics[i].Topic, partitions: req.Topics[i].Partitions})
		}
		c.fetchOffsets(&g, req.RequireStable, func(a *coord.FetchOffsetsReply) { c.Respond(fetchedOne(c.Version, &g, a)) })
		return
	}
	resp := kmsg.NewPtrOffsetFetchResponse()
	groups := once(req.Groups, func(g *kmsg.OffsetFetchRequestGroup) string { return g.Group })
	resp.Groups = make([]kmsg.OffsetFetchResponseGroup, len(groups))
	wait := gathering(func() { c.Respond(resp) })
	for i := range groups {
		r := &groups[i]
		g := groupFetch{name: r.Group, member: text(r.MemberID), epoch: r.MemberEpoch, all: r.Topics == nil}
		for j := range r.Topics {
			g.topics = append(g.topics, topicFetch{name: r.Topics[j].Topic, id: r.Topics[j].TopicID, partitions: r.Topics[j].Partitions})
		}
		wait.expect()
		c.fetchOffsets(&g, req.RequireStable, func(a *coord.FetchOffsetsReply) {
			resp.Groups[i] = fetchedGroup(c, &g, a)
			wait.arrived()
		})
	}
	wait.arrived()
}

// groupFetch is what is asked of one group.
type groupFetch struct {
	name, member string
	epoch        int32
	all          bool
	topics       []topicFetch
}

type topicFetch struct {
	name       string
	id         ident.TopicID
	partitions []int32
	missing    wire.ErrorCode // there is no such topic: the coordinator is not asked
}

// once leaves out the partitions that are asked for again: the metadata of a commit may be a thousand times as large as a partition's number.
func (g *groupFetch) once() {
	type key struct {
		name      string
		id        ident.TopicID
		partition int32
	}
	seen := map[key]bool{}
	for i := range g.topics {
		t := &g.topics[i]
		t.partitions = slices.DeleteFunc(t.partitions, func(p int32) bool {
			k := key{t.name, t.id, p}
			again := seen[k]
			seen[k] = true
			return again
		})
	}
}

// fetchOffsets asks the coordinator of a group. Topics whose id is unknown are left out.
func (c *Call) fetchOffsets(g *groupFetch, stable bool, done func(*coord.FetchOffsetsReply)) {
	g.once()
	cmd := &coord.FetchOffsets{
		Version: c.Version, Group: g.name, Member: g.member, MemberEpoch: g.epoch, Client: c.coordClient(), All: g.all, RequireStable: stable,
	}
	for i := range g.topics {
		t := &g.topics[i]
		ask := coord.FetchTopic{Name: t.name, ID: t.id, Partitions: make([]coord.FetchPartition, len(t.partitions))}
		if c.Version >= offsetsTopicIDs {
			topic, missing := c.topicNamed("", t.id, true)
			if t.missing = missing; topic == nil {
				continue
			}
			ask.Name = topic.Name
		}
		for j, p := range t.partitions {
			start, high := c.Env.Ports.HighWatermark(Place{Topic: ask.Name, Partition: p})
			ask.Partitions[j] = coord.FetchPartition{Partition: p, LogStart: start, HighWatermark: high}
		}
		cmd.Topics = append(cmd.Topics, ask)
	}
	coordinated(c, g.name, cmd, func(a *coord.FetchOffsetsReply) {
		c.Env.Ports.FetchedOffsets(cmd, a)
		done(a)
	}, func(code wire.ErrorCode) {
		if code == wire.CoordinatorNotAvailable {
			code = wire.NotCoordinator
		}
		done(&coord.FetchOffsetsReply{Group: g.name, Code: code})
	})
}

// fetchedOne is the answer of the versions that ask for one group.
func fetchedOne(version int16, g *groupFetch, a *coord.FetchOffsetsReply) *kmsg.OffsetFetchResponse {
	resp := kmsg.NewPtrOffsetFetchResponse()
	resp.ErrorCode = int16(a.Code)
	if a.Code != wire.NoError && version < fetchGroupCode {
		for i := range g.topics {
			t := coord.FetchedTopic{Name: g.topics[i].name}
			for _, p := range g.topics[i].partitions {
				t.Partitions = append(t.Partitions, notFetched(p, a.Code))
			}
			a.Topics = append(a.Topics, t)
		}
	}
	for i := range a.Topics {
		t := kmsg.NewOffsetFetchResponseTopic()
		t.Topic = a.Topics[i].Name
		for j := range a.Topics[i].Partitions {
			p := &a.Topics[i].Partitions[j]
			o := kmsg.NewOffsetFetchResponseTopicPartition()
			o.Partition, o.Offset, o.LeaderEpoch, o.Metadata, o.ErrorCode = p.Partition, int64(p.Offset), int32(p.LeaderEpoch), new(p.Metadata), int16(p.Code)
			t.Partitions = append(t.Partitions, o)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

func notFetched(partition int32, code wire.ErrorCode) coord.FetchedOffset {
	return coord.FetchedOffset{Partition: partition, Offset: ident.NoOffset, LeaderEpoch: ident.NoLeaderEpoch, Code: code}
}

// fetchedGroup is one group's answer, its topics in the order of the request.
func fetchedGroup(c *Call, g *groupFetch, a *coord.FetchOffsetsReply) kmsg.OffsetFetchResponseGroup {
	out := kmsg.NewOffsetFetchResponseGroup()
	out.Group, out.ErrorCode = g.name, int16(a.Code)
	if a.Code != wire.NoError {
		return out
	}
	if g.all {
		for i := range a.Topics {
			t := &a.Topics[i]
			if topic, ok := c.Env.Image.Topic(t.Name); ok && t.ID.IsZero() {
				t.ID = topic.ID
			}
			if c.Version >= offsetsTopicIDs && t.ID.IsZero() {
				continue // the topic is gone and had no id that anybody remembers
			}
			out.Topics = append(out.Topics, fetchedTopic(t))
		}
		return out
	}
	next := 0
	for i := range g.topics {
		t := &g.topics[i]
		if t.missing != wire.NoError {
			refused := coord.FetchedTopic{Name: t.name, ID: t.id}
			for _, p := range t.partitions {
				refused.Partitions = append(refused.Partitions, notFetched(p, t.missing))
			}
			out.Topics = append(out.Topics, fetchedTopic(&refused))
			continue
		}
		if next < len(a.Topics) {
			a.Topics[next].ID = t.id
			out.Topics = append(out.Topics, fetchedTopic(&a.Topics[next]))
			next++
		}
	}
	return out
}

func fetchedTopic(t *coord.FetchedTopic) kmsg.OffsetFetchResponseGroupTopic {
	out := kmsg.NewOffsetFetchResponseGroupTopic()
	out.Topic, out.TopicID = t.Name, t.ID
	for j := range t.Partitions {
		p := &t.Partitions[j]
		o := kmsg.NewOffsetFetchResponseGroupTopicPartition()
		o.Partition, o.Offset, o.LeaderEpoch, o.Metadata, o.ErrorCode = p.Partition, int64(p.Offset), int32(p.LeaderEpoch), new(p.Metadata), int16(p.Code)
		out.Partitions = append(out.Partitions, o)
	}
	return out
}
