package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire/ident"
)

// CreateTopics (19), versions 2 to 7.
//
// As in Kafka: each topic has its own result; -1 partitions and -1 replicas mean the broker's defaults; validateOnly checks everything and tells what
// would come of it; from version 5 on the answer carries the topic's configs and where they come from. Different: when the answer arrives, the topic is
// there and its leader serves on this broker, where Kafka's clients may have to ask again; a timeout of 0 or less waits for the answer.

func createTopics(c *Call) {
	req := c.Request.(*kmsg.CreateTopicsRequest)
	cmd := &cluster.CreateTopics{ValidateOnly: req.ValidateOnly, Entropy: c.entropy()}
	cmd.Deadline = c.deadline(req.TimeoutMillis)
	for i := range req.Topics {
		t := &req.Topics[i]
		topic := cluster.NewTopic{Name: t.Topic, ID: c.topicID(), Partitions: t.NumPartitions, ReplicationFactor: t.ReplicationFactor}
		for j := range t.ReplicaAssignment {
			a := &t.ReplicaAssignment[j]
			topic.Assignment = append(topic.Assignment, cluster.Assignment{Partition: a.Partition, Brokers: brokers(a.Replicas)})
		}
		for j := range t.Configs {
			topic.Configs = append(topic.Configs, cluster.ConfigValue{Name: t.Configs[j].Name, Value: t.Configs[j].Value})
		}
		cmd.Topics = append(cmd.Topics, topic)
	}
	c.Env.Ports.Controller(cmd, &cmd.Ask, func(r cluster.Reply) {
		body, ok := r.Body.(*cluster.CreateTopicsReply)
		if !ok && r.Err == nil {
			r.Err = wrongBody()
		}
		resp := kmsg.NewPtrCreateTopicsResponse()
		if r.Err != nil {
			resp.Topics = refuseAll(req.Topics, func(t *kmsg.CreateTopicsRequestTopic) string { return t.Topic }, func(name string) kmsg.CreateTopicsResponseTopic {
				return createdTopic(&cluster.CreatedTopic{Name: name, Err: r.Err})
			})
		} else {
			for i := range body.Topics {
				resp.Topics = append(resp.Topics, createdTopic(&body.Topics[i]))
			}
		}
		c.Respond(resp)
	})
}

// refuseAll makes one result for each name that a request mentions, in the order of first mention.
func refuseAll[T, R any](asked []T, name func(*T) string, refuse func(name string) R) []R {
	var out []R
	seen := map[string]bool{}
	for i := range asked {
		if n := name(&asked[i]); !seen[n] {
			seen[n] = true
			out = append(out, refuse(n))
		}
	}
	return out
}

func brokers(replicas []int32) []ident.BrokerID {
	out := make([]ident.BrokerID, len(replicas))
	for i, r := range replicas {
		out[i] = ident.BrokerID(r)
	}
	return out
}

func createdTopic(t *cluster.CreatedTopic) kmsg.CreateTopicsResponseTopic {
	out := kmsg.NewCreateTopicsResponseTopic()
	out.Topic = t.Name
	if t.Err != nil {
		out.ErrorCode, out.ErrorMessage = refusal(t.Err)
		return out
	}
	out.TopicID, out.NumPartitions, out.ReplicationFactor = t.ID, t.Partitions, t.ReplicationFactor
	out.Configs = make([]kmsg.CreateTopicsResponseTopicConfig, len(t.Configs))
	for i := range t.Configs {
		e := &t.Configs[i]
		o := &out.Configs[i]
		*o = kmsg.NewCreateTopicsResponseTopicConfig()
		o.Name, o.Value, o.Source, o.IsSensitive = e.Key.Name, shown(e), int8(e.Source), e.Key.Hidden
	}
	return out
}

// shown is a value as clients may see it: null for an unset one and for a secret.
func shown(e *config.Effective) *string {
	if e.Null || e.Key.Hidden {
		return nil
	}
	return new(e.Value)
}
