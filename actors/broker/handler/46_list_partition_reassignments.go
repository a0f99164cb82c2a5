package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
)

// ListPartitionReassignments (46), version 0 (KIP-455).
//
// As in Kafka: a null list means all partitions; what is not being reassigned, or does not exist, is left out. Different: the broker that is asked answers by
// its own metadata, which know of every reassignment that it has confirmed; a partition that is named twice is listed once.

func listPartitionReassignments(c *Call) {
	req := c.Request.(*kmsg.ListPartitionReassignmentsRequest)
	resp := kmsg.NewPtrListPartitionReassignmentsResponse()
	if req.Topics == nil {
		for t := range c.Env.Image.Topics() {
			addReassigning(resp, t, func(yield func(int32) bool) {
				for i := range t.Partitions {
					if !yield(int32(i)) {
						return
					}
				}
			})
		}
	}
	seen := map[cluster.PartitionRef]bool{} // read by key only
	for i := range req.Topics {
		t, ok := c.Env.Image.Topic(req.Topics[i].Topic)
		if !ok {
			continue
		}
		addReassigning(resp, t, func(yield func(int32) bool) {
			for _, n := range req.Topics[i].Partitions {
				ref := cluster.PartitionRef{Topic: t.Name, Partition: n}
				if n < 0 || int(n) >= len(t.Partitions) || seen[ref] {
					continue
				}
				if seen[ref] = true; !yield(n) {
					return
				}
			}
		})
	}
	c.Respond(resp)
}

// addReassigning lists those of a topic's partitions that are being reassigned.
func addReassigning(resp *kmsg.ListPartitionReassignmentsResponse, t *cluster.Topic, numbers func(func(int32) bool)) {
	out := kmsg.NewListPartitionReassignmentsResponseTopic()
	out.Topic = t.Name
	for n := range numbers {
		p := t.Partitions[n]
		if !p.Reassigning() {
			continue
		}
		part := kmsg.NewListPartitionReassignmentsResponseTopicPartition()
		part.Partition, part.Replicas, part.AddingReplicas, part.RemovingReplicas = n, ids(p.Replicas), ids(p.Adding), ids(p.Removing)
		out.Partitions = append(out.Partitions, part)
	}
	if len(out.Partitions) > 0 {
		resp.Topics = append(resp.Topics, out)
	}
}
