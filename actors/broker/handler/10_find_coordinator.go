package handler

import (
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
)

// FindCoordinator (10), versions 0 to 6.
//
// As in Kafka: it creates the topic of the coordinators when somebody asks for the first time; from version 4 on a request asks for several keys, each with
// a code of its own. Different: the answer waits for the new topic, where Kafka answers COORDINATOR_NOT_AVAILABLE first; transactions are refused with
// TRANSACTIONAL_ID_AUTHORIZATION_FAILED, which clients do not try again, and share groups, which version 6 may ask for, with INVALID_REQUEST, since this
// broker has neither yet.

// The kinds of coordinators (CoordinatorType.java).
const (
	coordinatorOfGroup       = 0
	coordinatorOfTransaction = 1
	coordinatorOfShare       = 2
)

// findManyVersion is the first version that asks for several keys (KIP-699).
const findManyVersion = 4

func findCoordinator(c *Call) {
	req := c.Request.(*kmsg.FindCoordinatorRequest)
	keys := req.CoordinatorKeys
	if c.Version < findManyVersion {
		keys = []string{req.CoordinatorKey}
	}
	if code, message := coordinatorKind(req.CoordinatorType); code != wire.NoError {
		respondCoordinators(c, keys, func(string) foundCoordinator { return notFound(code, message) })
		return
	}
	c.Env.Ports.OffsetsTopic(func(image *cluster.Image, code wire.ErrorCode) {
		v := view{image: image, listener: c.Client.Listener, self: c.Env.Broker}
		respondCoordinators(c, keys, func(key string) foundCoordinator {
			if code != wire.NoError {
				return notFound(code, "the topic of the coordinators could not be created yet")
			}
			return v.coordinator(key)
		})
	})
}

// coordinatorKind judges what is asked for.
func coordinatorKind(kind int8) (wire.ErrorCode, string) {
	switch kind {
	case coordinatorOfGroup:
		return wire.NoError, ""
	case coordinatorOfTransaction:
		return wire.TransactionalIDAuthorizationFailed, "this broker has no transactions yet"
	case coordinatorOfShare:
		return wire.InvalidRequest, "this broker has no share groups yet"
	}
	return wire.InvalidRequest, "coordinator type " + strconv.Itoa(int(kind)) + " is unknown"
}

// foundCoordinator is where a coordinator is, or why it cannot be told.
type foundCoordinator struct {
	code    wire.ErrorCode
	message string
	node    int32
	host    string
	port    int32
}

func notFound(code wire.ErrorCode, message string) foundCoordinator {
	return foundCoordinator{code: code, message: message, node: -1, port: -1}
}

// coordinator finds the broker that coordinates a group: the leader of the partition to which its name hashes.
func (v view) coordinator(group string) foundCoordinator {
	topic, ok := v.image.Topic(cluster.OffsetsTopic)
	if !ok {
		return notFound(wire.CoordinatorNotAvailable, "there is no topic "+cluster.OffsetsTopic)
	}
	p := topic.Partitions[records.PartitionOf(group, int32(len(topic.Partitions)))]
	leader, code := v.leader(p)
	if code != wire.NoError || !v.reachable(leader) {
		return notFound(wire.CoordinatorNotAvailable, "the coordinator of the group has no leader that can be reached on this listener")
	}
	b, _ := v.image.Broker(leader)
	e, _ := b.Endpoint(v.listener)
	return foundCoordinator{node: int32(b.ID), host: e.Host, port: int32(e.Port)}
}

func respondCoordinators(c *Call, keys []string, find func(string) foundCoordinator) {
	resp := kmsg.NewPtrFindCoordinatorResponse()
	if c.Version < findManyVersion {
		f := find(keys[0])
		resp.ErrorCode, resp.ErrorMessage, resp.NodeID, resp.Host, resp.Port = int16(f.code), orNull(f.message), f.node, f.host, f.port
		c.Respond(resp)
		return
	}
	for _, key := range keys {
		f := find(key)
		out := kmsg.NewFindCoordinatorResponseCoordinator()
		out.Key, out.ErrorCode, out.ErrorMessage, out.NodeID, out.Host, out.Port = key, int16(f.code), orNull(f.message), f.node, f.host, f.port
		resp.Coordinators = append(resp.Coordinators, out)
	}
	c.Respond(resp)
}
