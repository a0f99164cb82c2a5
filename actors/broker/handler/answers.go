package handler

import (
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

const millisecond = 1_000_000 // of ident.Instant

// deadline turns the timeout of an admin request into the instant at which the controller gives up. Without a positive timeout there is none: the
// answer comes as soon as there is one, where Kafka would say REQUEST_TIMED_OUT at once although the change goes on.
func (c *Call) deadline(timeoutMs int32) ident.Instant {
	if timeoutMs <= 0 {
		return 0
	}
	return c.Env.Now.Mono + ident.Instant(timeoutMs)*millisecond
}

// refusal is an error of the controller as two fields of a response: 0 and null without one.
func refusal(err *cluster.Error) (code int16, message *string) {
	if err == nil {
		return 0, nil
	}
	return int16(err.Code), new(err.Message)
}

// wrongBody is the answer to a command's caller when a port gave the reply of another command: a bug of ours that one client need not pay for with its
// connection.
func wrongBody() *cluster.Error {
	return &cluster.Error{Code: wire.UnknownServerError, Message: "the controller answered another question"}
}

// gather waits for several answers: done is called when as many arrived as were expected and the asking has ended.
type gather struct {
	missing int
	done    func()
}

// gathering begins to wait. The handler calls expect for each question it asks and arrived for each answer, and arrived once more when it has asked
// everything, so that a request without questions is answered too.
func gathering(done func()) *gather { return &gather{missing: 1, done: done} }

func (g *gather) expect() { g.missing++ }

func (g *gather) arrived() {
	if g.missing--; g.missing == 0 {
		g.done()
	}
}

// What a caller may do when nothing is forbidden: one bit for each operation that Kafka has on a topic or on the cluster (AclEntry.java).
const (
	allTopicOperations   = 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<10 | 1<<11 // read write create delete alter describe describe-configs alter-configs
	allClusterOperations = 1<<5 | 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<11 | 1<<12       // create alter describe cluster-action describe-configs alter-configs idempotent-write
	operationsNotAsked   = -1 << 31                                                // the answer to those who did not ask
)

// operations is the field of authorised operations: all of them to whoever asks, since this broker forbids nothing.
func operations(asked bool, all int32) int32 {
	if asked {
		return all
	}
	return operationsNotAsked
}
