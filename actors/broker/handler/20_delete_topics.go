package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
)

// DeleteTopics (20), versions 1 to 6.
//
// As in Kafka: each topic has its own result; from version 6 on a topic is named or given by its id, not both; with delete.topic.enable=false the answer is
// TOPIC_DELETION_DISABLED, INVALID_REQUEST below version 3. Different: a timeout of 0 or less waits for the answer.

func deleteTopics(c *Call) {
	req := c.Request.(*kmsg.DeleteTopicsRequest)
	cmd := &cluster.DeleteTopics{}
	cmd.Deadline = c.deadline(req.TimeoutMillis)
	for _, topic := range req.TopicNames { // below version 6
		cmd.Topics = append(cmd.Topics, cluster.TopicRef{Name: topic})
	}
	for i := range req.Topics {
		ref := cluster.TopicRef{ID: req.Topics[i].TopicID}
		if req.Topics[i].Topic != nil {
			ref.Name = *req.Topics[i].Topic
		}
		cmd.Topics = append(cmd.Topics, ref)
	}
	c.Env.Ports.Controller(cmd, &cmd.Ask, func(r cluster.Reply) {
		body, ok := r.Body.(*cluster.DeleteTopicsReply)
		if !ok && r.Err == nil {
			r.Err = wrongBody()
		}
		if r.Err != nil {
			if r.Err.Code == wire.TopicDeletionDisabled && c.Version < 3 {
				r.Err = &cluster.Error{Code: wire.InvalidRequest, Message: r.Err.Message}
			}
			body = &cluster.DeleteTopicsReply{}
			for _, ref := range cmd.Topics {
				body.Topics = append(body.Topics, cluster.DeletedTopic{Name: ref.Name, ID: ref.ID, Err: r.Err})
			}
		}
		resp := kmsg.NewPtrDeleteTopicsResponse()
		for i := range body.Topics {
			t := &body.Topics[i]
			out := kmsg.NewDeleteTopicsResponseTopic()
			out.TopicID = t.ID
			if t.Name != "" || c.Version < 6 { // the name may not be null before
				out.Topic = new(t.Name)
			}
			out.ErrorCode, out.ErrorMessage = refusal(t.Err)
			resp.Topics = append(resp.Topics, out)
		}
		c.Respond(resp)
	})
}
