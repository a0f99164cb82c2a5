package cluster

import (
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Options is everything a Controller is told at birth. Zero numbers take the defaults written beside them.
type Options struct {
	Node   ident.NodeID   // this voter; must be among the voters of the log
	Broker ident.BrokerID // the broker it lives in

	// Durable is what the raft log holds. A first start saves and syncs Genesis before.
	Durable Durable

	// Static is this broker's file, environment and flags. The controller takes its defaults for new topics and its own timers from here.
	Static config.Set

	Features []FeatureRange // what this build can serve, by name

	TickMs         int64 // between two calls of Tick; 100
	ElectionTicks  int   // of silence before a follower campaigns; 10
	HeartbeatTicks int   // between two heartbeats of a leader; 1

	SessionMs int64 // silence after which a broker is fenced; 6000
	SuspectMs int64 // the same while gossip calls its run dead; 1500

	TopicsMax     int // 100 000; beyond it CreateTopics answers POLICY_VIOLATION
	PartitionsMax int // 200 000, of the whole cluster

	SnapshotBytes    int64 // of entries since the last snapshot that call for another; 20 MiB
	KeepBytes        int64 // of entries kept behind a snapshot for voters that lag; 4 MiB
	UncommittedBytes int64 // of entries proposed and not committed, above which commands are refused; 64 MiB
}

// withDefaults fills in the numbers that were left zero.
func (o Options) withDefaults() Options {
	def := func(field *int64, value int64) {
		if *field == 0 {
			*field = value
		}
	}
	def(&o.TickMs, 100)
	def(&o.SessionMs, 6000)
	def(&o.SuspectMs, 1500)
	def(&o.SnapshotBytes, 20<<20)
	def(&o.KeepBytes, 4<<20)
	def(&o.UncommittedBytes, 64<<20)
	for _, f := range []struct {
		field *int
		value int
	}{{&o.ElectionTicks, 10}, {&o.HeartbeatTicks, 1}, {&o.TopicsMax, 100_000}, {&o.PartitionsMax, 200_000}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	return o
}
