package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire/ident"
)

// CreatePartitions (37), versions 0 to 3.
//
// As in Kafka: the count is the new total, and INVALID_PARTITIONS unless it is greater than the old; an assignment made by hand covers exactly the added
// partitions; validateOnly changes nothing. Different: a timeout of 0 or less waits for the answer.

func createPartitions(c *Call) {
	req := c.Request.(*kmsg.CreatePartitionsRequest)
	cmd := &cluster.CreatePartitions{ValidateOnly: req.ValidateOnly, Entropy: c.entropy()}
	cmd.Deadline = c.deadline(req.TimeoutMillis)
	for i := range req.Topics {
		t := &req.Topics[i]
		more := cluster.MorePartitions{Name: t.Topic, Count: t.Count}
		if t.Assignment != nil {
			more.Assignment = make([][]ident.BrokerID, 0, len(t.Assignment)) // an empty one is not a missing one
			for j := range t.Assignment {
				more.Assignment = append(more.Assignment, brokers(t.Assignment[j].Replicas))
			}
		}
		cmd.Topics = append(cmd.Topics, more)
	}
	c.Env.Ports.Controller(cmd, &cmd.Ask, func(r cluster.Reply) {
		body, ok := r.Body.(*cluster.CreatePartitionsReply)
		if !ok && r.Err == nil {
			r.Err = wrongBody()
		}
		if r.Err != nil {
			body = &cluster.CreatePartitionsReply{
				Topics: refuseAll(req.Topics, func(t *kmsg.CreatePartitionsRequestTopic) string { return t.Topic }, func(name string) cluster.TopicResult {
					return cluster.TopicResult{Name: name, Err: r.Err}
				}),
			}
		}
		resp := kmsg.NewPtrCreatePartitionsResponse()
		for i := range body.Topics {
			out := kmsg.NewCreatePartitionsResponseTopic()
			out.Topic = body.Topics[i].Name
			out.ErrorCode, out.ErrorMessage = refusal(body.Topics[i].Err)
			resp.Topics = append(resp.Topics, out)
		}
		c.Respond(resp)
	})
}
