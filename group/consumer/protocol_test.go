package consumer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/group/consumer"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
)

// embedded is a message of the embedded consumer protocol, written by another codec than ours.
type embedded struct {
	version int16
	topics  []string
	names   []string
	owned   map[string][]int32
	rack    *string
}

func subscriptionOf(version int16, topics []string) *embedded {
	return &embedded{version: version, topics: topics, owned: map[string][]int32{}}
}

func (s *embedded) own(topic string, index int32) {
	if _, ok := s.owned[topic]; !ok {
		s.names = append(s.names, topic)
	}
	s.owned[topic] = append(s.owned[topic], index)
}

func (s *embedded) encode() []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Version, m.Topics, m.Rack, m.Generation = s.version, s.topics, s.rack, 5
	for _, name := range s.names {
		m.OwnedPartitions = append(m.OwnedPartitions, kmsg.ConsumerMemberMetadataOwnedPartition{Topic: name, Partitions: s.owned[name]})
	}
	return m.AppendTo(nil)
}

func (s *embedded) encodeAssignment(userData []byte) []byte {
	m := kmsg.NewConsumerMemberAssignment()
	m.Version, m.UserData = s.version, userData
	for _, name := range s.names {
		m.Topics = append(m.Topics, kmsg.ConsumerMemberAssignmentTopic{Topic: name, Partitions: s.owned[name]})
	}
	return m.AppendTo(nil)
}

// showAssignment reads a ConsumerProtocolAssignment.
func showAssignment(b []byte) string {
	if len(b) == 0 {
		return "-"
	}
	m := kmsg.NewConsumerMemberAssignment()
	if err := m.ReadFrom(b); err != nil {
		return "bad: " + err.Error()
	}
	parts := []string{fmt.Sprintf("v%d", m.Version)}
	for _, t := range m.Topics {
		parts = append(parts, fmt.Sprintf("%s%v", t.Topic, t.Partitions))
	}
	return strings.Join(parts, " ")
}

// Whatever a member sends, a group survives it: truncated and flipped messages are refused or read, and take no more memory than they have bytes.
func TestMalformedSubscriptionsAreRefused(t *testing.T) {
	s := subscriptionOf(3, []string{"a", "b"})
	s.own("a", 1)
	good := s.encode()
	try := func(subscription, assignment []byte) error {
		cfg, out := coord.DefaultConfig(), coord.Out{Timers: coord.NewTimers()}
		return consumer.New("g").Adopt(coord.Now{Mono: 1, Wall: 1}, &cfg, topicView{}, &records.Generation{
			ProtocolType: "consumer", Generation: 1, Members: []records.ClassicMember{{Member: "m", Subscription: subscription, Assignment: assignment}},
		}, nil, &out)
	}
	if err := try(good, nil); err != nil {
		t.Fatalf("a good one: %v", err)
	}
	for n := range good {
		if try(good[:n], nil) == nil {
			t.Errorf("cut to %d of %d bytes it is taken", n, len(good))
		}
	}
	given := s.encodeAssignment(nil)
	for n := 1; n < len(given); n++ {
		if try(good, given[:n]) == nil {
			t.Errorf("an assignment cut to %d of %d bytes is taken", n, len(given))
		}
	}
	for i := range good {
		for _, flip := range []byte{0x80, 0x7f, 0xff} {
			bad := append([]byte(nil), good...)
			bad[i] ^= flip
			allocated := testing.AllocsPerRun(1, func() { _ = try(bad, nil) })
			if allocated > 100 {
				t.Errorf("byte %d flipped by %x: %v allocations", i, flip, allocated)
			}
		}
	}
}
