package cluster

import (
	"fmt"

	"github.com/troupe-broker/troupe/wire"
)

// topicNameMax is the longest topic name: a partition's directory must fit into a file name.
const topicNameMax = 249

// CheckTopicName applies Kafka's rules for topic names and returns a sentence about what is wrong, or "".
func CheckTopicName(name string) string {
	switch {
	case name == "":
		return "a topic name must not be empty"
	case name == "." || name == "..":
		return fmt.Sprintf("a topic name must not be %q", name)
	case len(name) > topicNameMax:
		return fmt.Sprintf("a topic name has at most %d characters, this one has %d", topicNameMax, len(name))
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return fmt.Sprintf("topic name %.60q has a character that is none of a-z A-Z 0-9 . _ -", name)
		}
	}
	return ""
}

// newName checks that a topic of this name may be created.
func (m *Image) newName(name string) *Error {
	if name == "__cluster_metadata" {
		return refuse(wire.InvalidTopicException, "the topic name %s is reserved for the metadata log", name)
	}
	if problem := CheckTopicName(name); problem != "" {
		return refuse(wire.InvalidTopicException, "%s", problem)
	}
	if _, ok := m.Topic(name); ok {
		return refuse(wire.TopicAlreadyExists, "topic %s already exists", name)
	}
	if other, ok := m.folded.get(foldName(name)); ok {
		return refuse(wire.InvalidTopicException, "topic %s collides with topic %s: . and _ are the same in metric names", name, other)
	}
	return nil
}
