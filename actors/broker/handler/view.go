package handler

import (
	"iter"
	"slices"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// view is the image as a client on one listener sees it: a broker without that listener does not exist for it.
type view struct {
	image    *cluster.Image
	listener string
	self     ident.BrokerID
}

func (c *Call) view() view {
	return view{image: c.Env.Image, listener: c.Client.Listener, self: c.Env.Broker}
}

// brokers yields the brokers that can be reached, and with fenced those that are registered only.
func (v view) brokers(fenced bool) iter.Seq2[*cluster.Broker, cluster.Endpoint] {
	return func(yield func(*cluster.Broker, cluster.Endpoint) bool) {
		for b := range v.image.Brokers() {
			if b.Fenced && !fenced {
				continue
			}
			if e, ok := b.Endpoint(v.listener); ok && !yield(b, e) {
				return
			}
		}
	}
}

// controller is the broker that clients are to send their admin requests to. Every live broker takes them, so it is this one, or else the first that
// lives; ident.NoBroker when none does.
func (v view) controller() ident.BrokerID {
	first := ident.NoBroker
	for b := range v.image.Brokers() {
		switch {
		case b.Fenced:
		case b.ID == v.self:
			return v.self
		case first == ident.NoBroker:
			first = b.ID
		}
	}
	return first
}

// leader is a partition's leader if it can be reached. Otherwise it is ident.NoBroker, and code says why.
func (v view) leader(p *cluster.Partition) (leader ident.BrokerID, code wire.ErrorCode) {
	b, ok := v.image.Broker(p.Leader)
	if !ok {
		return ident.NoBroker, wire.LeaderNotAvailable
	}
	if _, ok := b.Endpoint(v.listener); !ok {
		return ident.NoBroker, wire.ListenerNotFound
	}
	return p.Leader, wire.NoError
}

// reachable tells whether a broker is alive and has the listener.
func (v view) reachable(id ident.BrokerID) bool {
	b, ok := v.image.Broker(id)
	if !ok || b.Fenced {
		return false
	}
	_, ok = b.Endpoint(v.listener)
	return ok
}

// offline lists the replicas that cannot be read: their broker is gone or cannot be reached, their directory is not online, or their broker says so.
func (v view) offline(p *cluster.Partition) []int32 {
	out := []int32{}
	for i, id := range p.Replicas {
		if !v.reachable(id) || !v.online(id, p.Directories[i]) || slices.Contains(p.Offline, id) {
			out = append(out, int32(id))
		}
	}
	return out
}

// online tells whether a broker has a directory online. A replica that was not yet told where it lies is taken to be online, as Kafka takes it.
func (v view) online(id ident.BrokerID, d ident.DirectoryID) bool {
	switch d {
	case ident.DirectoryUnassigned, ident.DirectoryMigrating:
		return true
	case ident.DirectoryLost:
		return false
	}
	b, ok := v.image.Broker(id)
	return ok && slices.Contains(b.Directories, d)
}

// ids converts broker ids for a response. The list is never null.
func ids(brokers []ident.BrokerID) []int32 {
	out := make([]int32, len(brokers))
	for i, b := range brokers {
		out[i] = int32(b)
	}
	return out
}

// unknownTopic is the code for a topic that does not exist: its name may be one that cannot.
func unknownTopic(name string) wire.ErrorCode {
	if cluster.CheckTopicName(name) != "" {
		return wire.InvalidTopicException
	}
	return wire.UnknownTopicOrPartition
}
