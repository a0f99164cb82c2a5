package consumer

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
)

// protocolType is the protocol type of consumers; a group of another one is not ours.
const protocolType = "consumer"

// protocolVersionMax is the newest version of the two messages that are known here (ConsumerProtocolSubscription.json). Newer ones begin the same way.
const protocolVersionMax = 3

var errMalformed = errors.New("malformed message of the embedded consumer protocol")

// subscription is a ConsumerProtocolSubscription, v0 to v3, as a classic member sends it.
type subscription struct {
	version    int16
	topics     []string
	owned      []namedPartitions
	generation int32
	rack       *string
}

// namedPartitions are partitions of a topic by its name, as both messages have them.
type namedPartitions struct {
	topic      string
	partitions []int32
}

// scanner reads a message that is not flexible. What is missing makes it bad, and an array never takes more memory than its bytes allow.
type scanner struct {
	rest []byte
	bad  bool
}

func (s *scanner) take(n int) []byte {
	if n < 0 || n > len(s.rest) {
		s.bad = true
		s.rest = nil
		return nil
	}
	taken := s.rest[:n]
	s.rest = s.rest[n:]
	return taken
}

func (s *scanner) int16() int16 {
	if b := s.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (s *scanner) int32() int32 {
	if b := s.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (s *scanner) string() string { return string(s.take(int(s.int16()))) }

// nullable reads a string that may be absent.
func (s *scanner) nullable() *string {
	n := s.int16()
	if n == -1 {
		return nil
	}
	word := string(s.take(int(n)))
	return &word
}

// bytes reads bytes that may be absent.
func (s *scanner) bytes() []byte {
	n := s.int32()
	if n == -1 {
		return nil
	}
	return s.take(int(n))
}

// count reads the length of an array whose elements have at least min bytes.
func (s *scanner) count(least int) int {
	n := int(s.int32())
	if n < 0 || n*least > len(s.rest) {
		s.bad = true
		s.rest = nil
		return 0
	}
	return n
}

func (s *scanner) version() int16 {
	v := s.int16()
	if v < 0 {
		s.bad = true
	}
	return min(v, protocolVersionMax)
}

func (s *scanner) partitions() []namedPartitions {
	list := make([]namedPartitions, s.count(6))
	for i := range list {
		list[i].topic = s.string()
		list[i].partitions = make([]int32, s.count(4))
		for j := range list[i].partitions {
			list[i].partitions[j] = s.int32()
		}
	}
	return list
}

func parseSubscription(b []byte) (subscription, error) {
	s := scanner{rest: b}
	r := subscription{version: s.version(), generation: -1}
	r.topics = make([]string, s.count(2))
	for i := range r.topics {
		r.topics[i] = s.string()
	}
	s.bytes()
	if r.version >= 1 {
		r.owned = s.partitions()
	}
	if r.version >= 2 {
		r.generation = s.int32()
	}
	if r.version >= 3 {
		r.rack = s.nullable()
	}
	if s.bad {
		return subscription{}, errMalformed
	}
	r.topics = sorted(r.topics)
	return r, nil
}

// parseAssignment reads a ConsumerProtocolAssignment. No bytes are no assignment.
func parseAssignment(b []byte) (assigned []namedPartitions, userData []byte, err error) {
	if len(b) == 0 {
		return nil, nil, nil
	}
	s := scanner{rest: b}
	s.version()
	assigned, userData = s.partitions(), s.bytes()
	if s.bad {
		return nil, nil, errMalformed
	}
	return assigned, userData, nil
}

// appendAssignment writes a ConsumerProtocolAssignment in the version that the member speaks, topics by name. A topic that is gone is left out.
func appendAssignment(dst []byte, version int16, topics coord.Topics, list []records.TopicPartitions) []byte {
	named := make([]namedPartitions, 0, len(list))
	for i := range list {
		if t, ok := topics.ByID(list[i].Topic); ok {
			named = append(named, namedPartitions{t.Name, list[i].Partitions})
		}
	}
	slices.SortFunc(named, func(a, b namedPartitions) int { return strings.Compare(a.topic, b.topic) })
	dst = binary.BigEndian.AppendUint16(dst, uint16(min(max(version, 0), protocolVersionMax)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(named)))
	for i := range named {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(named[i].topic)))
		dst = append(dst, named[i].topic...)
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(named[i].partitions)))
		for _, index := range named[i].partitions {
			dst = binary.BigEndian.AppendUint32(dst, uint32(index))
		}
	}
	return binary.BigEndian.AppendUint32(dst, 1<<32-1) // no user data
}

// byID translates partitions from names to ids; a topic that is gone is left out.
func byID(topics coord.Topics, named []namedPartitions) []coord.TopicPartitions {
	var list []coord.TopicPartitions
	for i := range named {
		if t, ok := topics.ByName(named[i].topic); ok {
			list = append(list, coord.TopicPartitions{Topic: t.ID, Partitions: named[i].partitions})
		}
	}
	return list
}
