package handler

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Metadata (3), versions 0 to 13.
//
// As in Kafka: a null list asks for all topics and an empty one for none, in version 0 an empty one for all; endpoints are those of the listener the
// request came in by; an unknown topic is created if the request and auto.create.topics.enable allow it, while the answer says
// UNKNOWN_TOPIC_OR_PARTITION and the client asks again; topic ids from version 12 on. Different: the controller that clients are told is the broker that
// answers, since every broker takes admin requests; a topic asked for twice is answered once, one asked for by name and one by id both are answered;
// internal topics are never created by asking for them.

func metadata(c *Call) {
	req := c.Request.(*kmsg.MetadataRequest)
	resp := kmsg.NewPtrMetadataResponse()
	v := c.view()
	for b, e := range v.brokers(false) {
		node := kmsg.NewMetadataResponseBroker()
		node.NodeID, node.Host, node.Port, node.Rack = int32(b.ID), e.Host, int32(e.Port), rack(b)
		resp.Brokers = append(resp.Brokers, node)
	}
	resp.ClusterID = new(string(c.Env.Cluster))
	resp.ControllerID = int32(v.controller())
	resp.AuthorizedOperations = operations(req.IncludeClusterAuthorizedOperations, allClusterOperations)
	switch {
	case req.Topics == nil || c.Version == 0 && len(req.Topics) == 0:
		for t := range c.Env.Image.Topics() {
			resp.Topics = append(resp.Topics, describeTopic(c, v, t))
		}
	case namesById(req) && c.Version < 12:
		// The field exists from version 10 on, but was not served before 12; all topics of such a request are refused.
		for i := range req.Topics {
			resp.Topics = append(resp.Topics, refuseTopic(wire.InvalidRequest, new(name(&req.Topics[i])), req.Topics[i].TopicID))
		}
	default:
		resp.Topics = askedTopics(c, v, req)
	}
	c.Respond(resp)
}

// namesById tells whether a request names a topic by its id, or not at all.
func namesById(req *kmsg.MetadataRequest) bool {
	for i := range req.Topics {
		if req.Topics[i].Topic == nil || req.Topics[i].TopicID != [16]byte{} {
			return true
		}
	}
	return false
}

func name(t *kmsg.MetadataRequestTopic) string {
	if t.Topic == nil {
		return ""
	}
	return *t.Topic
}

// askedTopics answers for the topics that a request lists.
func askedTopics(c *Call, v view, req *kmsg.MetadataRequest) []kmsg.MetadataResponseTopic {
	var out []kmsg.MetadataResponseTopic
	var missing []string
	answered := map[string]bool{}
	for i := range req.Topics {
		asked := &req.Topics[i]
		if asked.TopicID != [16]byte{} {
			t, ok := c.Env.Image.TopicByID(asked.TopicID)
			if !ok {
				out = append(out, refuseTopic(wire.UnknownTopicID, nil, asked.TopicID))
			} else if !answered[t.Name] {
				answered[t.Name] = true
				out = append(out, describeTopic(c, v, t))
			}
			continue
		}
		topic := name(asked)
		if answered[topic] {
			continue
		}
		answered[topic] = true
		if t, ok := c.Env.Image.Topic(topic); ok {
			out = append(out, describeTopic(c, v, t))
			continue
		}
		code := unknownTopic(topic)
		if code == wire.UnknownTopicOrPartition {
			missing = append(missing, topic)
		}
		out = append(out, refuseTopic(code, new(topic), [16]byte{}))
	}
	if len(missing) > 0 && (req.AllowAutoTopicCreation || c.Version < 4) && c.brokerBool("auto.create.topics.enable") {
		createMissing(c, missing)
	}
	return out
}

// brokerBool reads a broker setting as it holds now.
func (c *Call) brokerBool(key string) bool {
	return c.Env.Image.Stack("", c.Env.Broker, c.Env.Static).BrokerBool(key)
}

// createMissing asks for topics with the broker's defaults. Nobody waits: the client asks for metadata again until they are there, and what became of
// an attempt (another client may have been faster) shows in the next answer.
func createMissing(c *Call, names []string) {
	cmd := &cluster.CreateTopics{Entropy: c.entropy()}
	for _, topic := range names {
		if cluster.InternalTopic(topic) {
			continue
		}
		cmd.Topics = append(cmd.Topics, cluster.NewTopic{Name: topic, ID: c.topicID(), Partitions: -1, ReplicationFactor: -1})
	}
	if len(cmd.Topics) > 0 {
		c.Env.Ports.Controller(cmd, &cmd.Ask, func(cluster.Reply) {})
	}
}

// topicID draws the id of a new topic.
func (c *Call) topicID() (id ident.TopicID) {
	for id.IsZero() {
		c.Env.Ports.Random(id[:])
	}
	return id
}

// entropy draws where the placement of new partitions starts.
func (c *Call) entropy() uint64 {
	var b [8]byte
	c.Env.Ports.Random(b[:])
	return binary.BigEndian.Uint64(b[:])
}

// describeTopic tells all of a topic.
func describeTopic(c *Call, v view, t *cluster.Topic) kmsg.MetadataResponseTopic {
	out := kmsg.NewMetadataResponseTopic()
	out.Topic, out.TopicID, out.IsInternal = new(t.Name), t.ID, t.Internal()
	out.AuthorizedOperations = operations(c.Request.(*kmsg.MetadataRequest).IncludeTopicAuthorizedOperations, allTopicOperations)
	out.Partitions = make([]kmsg.MetadataResponseTopicPartition, len(t.Partitions))
	for i, p := range t.Partitions {
		leader, code := v.leader(p)
		if code == wire.ListenerNotFound && c.Version < 6 {
			code = wire.LeaderNotAvailable
		}
		o := &out.Partitions[i]
		*o = kmsg.NewMetadataResponseTopicPartition()
		o.Partition, o.Leader, o.LeaderEpoch = int32(i), int32(leader), int32(p.LeaderEpoch)
		o.Replicas, o.ISR, o.OfflineReplicas = ids(p.Replicas), ids(p.ISR), v.offline(p)
		if c.Version == 0 {
			// Clients that old take every replica in the answer for one they can reach.
			o.Replicas, o.ISR = v.reached(p.Replicas), v.reached(p.ISR)
			if code == wire.NoError && (len(o.Replicas) < len(p.Replicas) || len(o.ISR) < len(p.ISR)) {
				code = wire.ReplicaNotAvailable
			}
		}
		o.ErrorCode = int16(code)
	}
	return out
}

// reached leaves out the brokers that cannot be reached.
func (v view) reached(brokers []ident.BrokerID) []int32 {
	out := []int32{}
	for _, b := range brokers {
		if v.reachable(b) {
			out = append(out, int32(b))
		}
	}
	return out
}

func refuseTopic(code wire.ErrorCode, topic *string, id [16]byte) kmsg.MetadataResponseTopic {
	out := kmsg.NewMetadataResponseTopic()
	out.ErrorCode, out.Topic, out.TopicID = int16(code), topic, id
	if topic != nil {
		out.IsInternal = cluster.InternalTopic(*topic)
	}
	return out
}

// rack is a broker's rack, null for none.
func rack(b *cluster.Broker) *string {
	if b.Rack == "" {
		return nil
	}
	return new(b.Rack)
}
