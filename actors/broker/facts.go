package broker

import (
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/partition"
)

// facts passes what happened on to whoever observes the broker, off the hot path: what is noted here happens a few times per partition and epoch, not per
// request.
type facts struct{}

func (f *facts) partition(*replica, partition.Note) {}

func (f *facts) cluster(cluster.Note) {}
