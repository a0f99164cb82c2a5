package classic

import (
	"encoding/binary"
	"maps"
)

// Subscribed tells whether a member subscribes to a topic, as far as anybody knows: consumers whose subscriptions cannot be read may subscribe to any. It
// says what the current generation was formed with.
func (g *Group) Subscribed(topic string) bool {
	if !g.topicsKnown {
		return g.protocolType == ConsumerProtocol
	}
	_, ok := g.topics[topic]
	return ok
}

// resubscribe reads the subscriptions of all members.
func (g *Group) resubscribe() {
	g.topics, g.topicsKnown, g.topicsSize = nil, false, 0
	if g.protocolType != ConsumerProtocol {
		return
	}
	topics, size := map[string]struct{}{}, 0
	for _, m := range g.members {
		if !eachTopic(m.metadata(g.protocol), func(topic []byte) {
			if _, ok := topics[string(topic)]; !ok {
				topics[string(topic)] = struct{}{}
				size += topicWeight + len(topic)
			}
		}) {
			return
		}
	}
	g.topics, g.topicsKnown, g.topicsSize = topics, true, size
}

// otherTopics tells whether two subscriptions of consumers name different topics. What cannot be read differs from nothing.
func (g *Group) otherTopics(a, b []byte) bool {
	if g.protocolType != ConsumerProtocol {
		return false
	}
	sets := [2]map[string]struct{}{{}, {}}
	for i, metadata := range [2][]byte{a, b} {
		if !eachTopic(metadata, func(topic []byte) { sets[i][string(topic)] = struct{}{} }) {
			return false
		}
	}
	return !maps.Equal(sets[0], sets[1])
}

// eachTopic visits the topics of a ConsumerProtocolSubscription: an int16 version, then, in every version alike, an array of strings; what follows it is
// for the assignor. It returns false when the bytes are none; some topics may have been visited then.
func eachTopic(b []byte, visit func(topic []byte)) bool {
	if len(b) < 6 || int16(binary.BigEndian.Uint16(b)) < 0 {
		return false
	}
	count := int32(binary.BigEndian.Uint32(b[2:]))
	b = b[6:]
	if count < 0 || int64(count)*2 > int64(len(b)) {
		return false
	}
	for range count {
		if len(b) < 2 {
			return false
		}
		n := int16(binary.BigEndian.Uint16(b))
		b = b[2:]
		if n < 0 || int(n) > len(b) {
			return false
		}
		visit(b[:n])
		b = b[n:]
	}
	return true
}
