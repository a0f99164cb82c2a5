package cluster

import (
	"slices"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// createPartitions raises the number of partitions of topics.
func (c *Controller) createPartitions(cmd *CreatePartitions) decision {
	reply := &CreatePartitionsReply{}
	plan := &topicPlan{c: c, image: c.next, entropy: cmd.Entropy}
	mentioned := count(cmd.Topics, func(t MorePartitions) string { return t.Name })
	for _, t := range cmd.Topics {
		n := mentioned[t.Name]
		delete(mentioned, t.Name)
		if n == 0 {
			continue // its first mention has the answer
		}
		result := TopicResult{Name: t.Name}
		if n > 1 {
			result.Err = refuse(wire.InvalidRequest, "topic %.249s is in the request more than once", t.Name)
		} else {
			result.Err = plan.enlarge(t)
		}
		reply.Topics = append(reply.Topics, result)
	}
	if cmd.ValidateOnly {
		return decision{body: reply}
	}
	return decision{records: plan.records, body: reply}
}

// enlarge plans the partitions to add to one topic.
func (p *topicPlan) enlarge(more MorePartitions) *Error {
	t, err := p.image.find(TopicRef{Name: more.Name})
	if err != nil {
		return err
	}
	have := len(t.Partitions)
	if int(more.Count) == have {
		return refuse(wire.InvalidPartitions, "topic %s has %d partitions already", t.Name, have)
	}
	if int(more.Count) < have {
		return refuse(wire.InvalidPartitions, "topic %s has %d partitions; their number can only grow, not become %d", t.Name, have, more.Count)
	}
	added := int(more.Count) - have
	factor := int(t.ReplicationFactor())
	var placed [][]ident.BrokerID
	if more.Assignment == nil {
		if placed, err = p.automatic(t.Name, int32(have), added, factor); err != nil {
			return err
		}
	} else if placed, err = p.manualMore(t, more, added, factor); err != nil {
		return err
	}
	p.take(p.fresh(t.ID, have, placed, p.c.rules(p.image, t.Name)), added)
	return nil
}

// manualMore checks the placement of added partitions made by hand.
func (p *topicPlan) manualMore(t *Topic, more MorePartitions, added, factor int) ([][]ident.BrokerID, *Error) {
	if len(more.Assignment) != added {
		return nil, refuse(wire.InvalidReplicaAssignment, "topic %s: %d partitions are added and %d are assigned", t.Name, added, len(more.Assignment))
	}
	if err := p.room(t.Name, added); err != nil {
		return nil, err
	}
	placed := make([][]ident.BrokerID, added)
	for i, brokers := range more.Assignment {
		if err := p.image.assignable(t.Name, int32(len(t.Partitions)+i), brokers, factor); err != nil {
			return nil, err
		}
		placed[i] = slices.Clone(brokers)
	}
	return placed, nil
}
