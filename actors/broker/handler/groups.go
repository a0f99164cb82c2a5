package handler

import (
	"encoding/hex"
	"unicode/utf8"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// What the APIs of groups share.

// allGroupOperations are the operations that Kafka has on a group (AclEntry.java).
const allGroupOperations = 1<<3 | 1<<6 | 1<<8 | 1<<10 | 1<<11 // read delete describe describe-configs alter-configs

// coordClient is who asks, as coordinators know clients.
func (c *Call) coordClient() coord.Client {
	return coord.Client{ID: c.Client.ID, Host: c.Client.Host()}
}

// Host is the client's address as Kafka prints it in descriptions of groups. It is made once for a connection.
func (c *Client) Host() string {
	if c.host == "" {
		c.host = "/" + c.Address.Addr().Unmap().String()
	}
	return c.host
}

// uuidSize is the size of a spelt UUID.
const uuidSize = 36

// memberID makes an id for a new member, as Kafka does: what it calls itself, and a random UUID. A name that leaves no room for that is cut: no string of
// the protocol, and no key of the log, is longer than wire.StringMax.
func (c *Call) memberID(instance string) string {
	name := c.Client.ID
	if instance != "" {
		name = instance
	}
	return cut(name, wire.StringMax-1-uuidSize) + "-" + c.uuid()
}

// cut shortens a text to at most so many bytes, and leaves its characters whole.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// uuid makes a random UUID (version 4) in its usual spelling.
func (c *Call) uuid() string {
	var id [16]byte
	c.Env.Ports.Random(id[:])
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	text := hex.EncodeToString(id[:])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}

// coordinated hands a command to the coordinator of a group and its answer to done; when there is no such answer, a code to refused.
func coordinated[A coord.Answer](c *Call, group string, command coord.Command, done func(A), refused func(wire.ErrorCode)) {
	c.Env.Ports.Coordinator(group, command, func(a coord.Answer) { answerOf(a, done, refused) })
}

// answerOf takes an answer apart. One of another command is a bug of ours, which one client need not pay for with its connection.
func answerOf[A coord.Answer](a coord.Answer, done func(A), refused func(wire.ErrorCode)) {
	if expected, ok := a.(A); ok {
		done(expected)
		return
	}
	if refusal, ok := a.(*coord.ErrorReply); ok {
		refused(refusal.Code)
		return
	}
	refused(wire.UnknownServerError)
}

// consumerProtocol tells whether the newer protocol of consumer groups (KIP-848) is spoken.
func (c *Call) consumerProtocol() bool {
	if c.Env.Image.FeatureLevel(cluster.GroupVersion) < 1 {
		return false
	}
	if _, set := c.Env.Static.Get("group.coordinator.rebalance.protocols"); !set {
		return true // by default it is
	}
	v, err := config.BrokerOf(config.Stack{Static: c.Env.Static})
	return err == nil && v.Groups.ConsumerProtocol
}

// once leaves out what is asked for again under the same name: an answer may be large, and a name is short.
func once[T any](asked []T, name func(*T) string) []T {
	seen := make(map[string]bool, len(asked))
	first := make([]T, 0, len(asked))
	for i := range asked {
		if n := name(&asked[i]); !seen[n] {
			seen[n] = true
			first = append(first, asked[i])
		}
	}
	return first
}

// text is a string that may be null.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// orNull is null for an empty string.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return new(s)
}

// kept copies bytes out of the request's frame. They are not null.
func kept(b []byte) []byte { return append([]byte{}, b...) }

// notNull is an empty slice for a missing one: not every field of the protocol can be null.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// topicNamed finds a topic as a request names it: by id from some version on, by name before.
func (c *Call) topicNamed(name string, id ident.TopicID, byID bool) (*cluster.Topic, wire.ErrorCode) {
	if byID {
		if t, ok := c.Env.Image.TopicByID(id); ok {
			return t, wire.NoError
		}
		return nil, wire.UnknownTopicID
	}
	if t, ok := c.Env.Image.Topic(name); ok {
		return t, wire.NoError
	}
	return nil, wire.UnknownTopicOrPartition
}
