package cluster

import (
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// deleteTopics deletes topics by name or by id. Their ids are gone with them: an id is random and checked against the image when it is given.
func (c *Controller) deleteTopics(cmd *DeleteTopics) decision {
	if !c.stack(c.next, "").BrokerBool("delete.topic.enable") {
		return refused(refuse(wire.TopicDeletionDisabled, "topics cannot be deleted while delete.topic.enable=false"))
	}
	reply := &DeleteTopicsReply{Topics: make([]DeletedTopic, len(cmd.Topics))}
	found := make([]*Topic, len(cmd.Topics))
	mentioned := map[*Topic]int{} // read by key only
	for i, ref := range cmd.Topics {
		reply.Topics[i] = DeletedTopic{Name: ref.Name, ID: ref.ID}
		t, err := c.next.find(ref)
		if err != nil {
			reply.Topics[i].Err = err
			continue
		}
		found[i] = t
		mentioned[t]++
		reply.Topics[i] = DeletedTopic{Name: t.Name, ID: t.ID}
	}
	var records []Record
	for i, t := range found {
		if t == nil {
			continue
		}
		if mentioned[t] > 1 {
			reply.Topics[i].Err = refuse(wire.InvalidRequest, "topic %s is in the request more than once", t.Name)
			continue
		}
		records = append(records, &RemoveTopicRecord{ID: t.ID})
	}
	return decision{records: records, body: reply}
}

// find looks a topic up by name or id.
func (m *Image) find(ref TopicRef) (*Topic, *Error) {
	switch {
	case ref.Name != "" && !ref.ID.IsZero():
		return nil, refuse(wire.InvalidRequest, "topic %s is given by name and by id; give one of them", ref.Name)
	case ref.Name != "":
		if t, ok := m.Topic(ref.Name); ok {
			return t, nil
		}
		return nil, refuse(wire.UnknownTopicOrPartition, "topic %.249s does not exist", ref.Name)
	case ref.ID == ident.TopicID{}:
		return nil, refuse(wire.InvalidRequest, "a topic is given by neither name nor id")
	}
	if t, ok := m.TopicByID(ref.ID); ok {
		return t, nil
	}
	return nil, refuse(wire.UnknownTopicID, "no topic has the id %v", ref.ID)
}
