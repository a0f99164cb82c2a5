package sim

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
)

// move has a partition of a cluster held by other brokers, two or three of them, or takes a move back. Of a lone replica whatever is left of it is all there is,
// so nothing is moved to one broker alone.
func (a *admin) move(t *ghostTopic) {
	if len(t.partitions) == 0 {
		return
	}
	number, to := one(a.rand, t.partitions...).number, []int32(nil)
	if chance(a.rand, 75) {
		for _, at := range a.rand.Perm(len(a.run.hosts))[:min(2+a.rand.IntN(2), len(a.run.hosts))] {
			to = append(to, int32(at+1))
		}
	}
	a.moveTo(t, number, to)
}

// moveTo asks for the brokers that are to hold a partition; none: for an end of the move that goes on.
func (a *admin) moveTo(t *ghostTopic, number int32, to []int32) {
	p := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
	p.Partition, p.Replicas = number, to
	req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	req.TimeoutMillis = 2000
	rt := kmsg.NewAlterPartitionAssignmentsRequestTopic()
	rt.Topic, rt.Partitions = t.name, append(rt.Partitions, p)
	req.Topics = append(req.Topics, rt)
	a.request(req, func(resp kmsg.Response) {
		r := resp.(*kmsg.AlterPartitionAssignmentsResponse)
		a.run.allow(a.name, "AlterPartitionReassignments", r.ErrorCode, append(passing, wire.NoError)...)
		for i := range r.Topics {
			for _, got := range r.Topics[i].Partitions {
				a.run.allow(a.name, "AlterPartitionReassignments", got.ErrorCode,
					append(passing, wire.NoError, wire.NoReassignmentInProgress, wire.InvalidReplicaAssignment)...)
			}
		}
	})
}
