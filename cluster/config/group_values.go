package config

import (
	"fmt"
	"slices"
	"strconv"
)

// GroupValues are the broker's keys about consumer groups as plain values. Times are in ms.
type GroupValues struct {
	ConsumerProtocol   bool  // group.coordinator.rebalance.protocols has consumer
	AppendLingerMs     int32 // -1: none
	BufferBytesMax     int32 // kept between two batches
	CommitTimeoutMs    int32
	LoadBufferBytes    int32
	ReplicationFactor  int16
	Partitions         int32
	SegmentBytes       int32
	Codec              int8 // by its number in record batches
	MetadataBytesMax   int32
	RetentionMs        int64
	RetentionCheckMs   int64
	SessionMinMs       int32
	SessionMaxMs       int32
	InitialDelayMs     int32
	SizeMax            int32
	ConsumerSizeMax    int32
	Assignors          []string
	MigrateUp          bool // a classic group with members may become a consumer group
	MigrateDown        bool // and the other way round
	RegexRefreshMs     int32
	SessionMs          Bounded // of members of the newer protocol; a group may set its own
	HeartbeatMs        Bounded
	AssignmentInterval Bounded
}

// Bounded is a default, and the bounds for what single groups set.
type Bounded struct{ Value, Min, Max int32 }

// clamp brings a value within the bounds.
func (b Bounded) clamp(n int64) int32 { return int32(min(max(n, int64(b.Min)), int64(b.Max))) }

// groupsOf resolves the broker's keys about groups.
func groupsOf(s Stack) (GroupValues, error) {
	number := func(name string) int32 { return int32(s.BrokerInt(name)) }
	policy := s.BrokerText("group.consumer.migration.policy")
	v := GroupValues{
		ConsumerProtocol:  slices.Contains(s.value(brokerTable, "group.coordinator.rebalance.protocols").Words, "consumer"),
		AppendLingerMs:    number("group.coordinator.append.linger.ms"),
		BufferBytesMax:    number("group.coordinator.cached.buffer.max.bytes"),
		CommitTimeoutMs:   number("offsets.commit.timeout.ms"),
		LoadBufferBytes:   number("offsets.load.buffer.size"),
		ReplicationFactor: int16(number("offsets.topic.replication.factor")),
		Partitions:        number("offsets.topic.num.partitions"),
		SegmentBytes:      number("offsets.topic.segment.bytes"),
		Codec:             int8(number("offsets.topic.compression.codec")),
		MetadataBytesMax:  number("offset.metadata.max.bytes"),
		RetentionMs:       s.BrokerInt("offsets.retention.minutes") * 60_000,
		RetentionCheckMs:  s.BrokerInt("offsets.retention.check.interval.ms"),
		SessionMinMs:      number("group.min.session.timeout.ms"),
		SessionMaxMs:      number("group.max.session.timeout.ms"),
		InitialDelayMs:    number("group.initial.rebalance.delay.ms"),
		SizeMax:           number("group.max.size"),
		ConsumerSizeMax:   number("group.consumer.max.size"),
		Assignors:         s.value(brokerTable, "group.consumer.assignors").Words,
		MigrateUp:         policy == "upgrade" || policy == "bidirectional",
		MigrateDown:       policy == "downgrade" || policy == "bidirectional",
		RegexRefreshMs:    number("group.consumer.regex.refresh.interval.ms"),
	}
	if v.SessionMinMs > v.SessionMaxMs {
		return GroupValues{}, &Error{
			Code: Conflict, Key: "group.min.session.timeout.ms", Value: strconv.Itoa(int(v.SessionMinMs)),
			Problem: fmt.Sprintf("it must not be above group.max.session.timeout.ms, which is %d", v.SessionMaxMs),
		}
	}
	for _, b := range []struct {
		to   *Bounded
		what string
	}{
		{&v.SessionMs, "session.timeout.ms"}, {&v.HeartbeatMs, "heartbeat.interval.ms"}, {&v.AssignmentInterval, "assignment.interval.ms"},
	} {
		key := "group.consumer." + b.what
		*b.to = Bounded{Value: number(key), Min: number("group.consumer.min." + b.what), Max: number("group.consumer.max." + b.what)}
		if b.to.Min > b.to.Max || b.to.Value < b.to.Min || b.to.Value > b.to.Max {
			return GroupValues{}, &Error{
				Code: Conflict, Key: key, Value: strconv.Itoa(int(b.to.Value)),
				Problem: fmt.Sprintf("it must lie from group.consumer.min.%s to group.consumer.max.%s, which are %d and %d", b.what, b.what, b.to.Min, b.to.Max),
			}
		}
	}
	if v.HeartbeatMs.Value >= v.SessionMs.Value {
		return GroupValues{}, &Error{
			Code: Conflict, Key: "group.consumer.heartbeat.interval.ms", Value: strconv.Itoa(int(v.HeartbeatMs.Value)),
			Problem: fmt.Sprintf("it must be below group.consumer.session.timeout.ms, which is %d", v.SessionMs.Value),
		}
	}
	return v, nil
}

// ConsumerGroupValues are what a consumer group may have of its own, within the broker's bounds. Times are in ms.
type ConsumerGroupValues struct{ SessionMs, HeartbeatMs, AssignmentIntervalMs int32 }

// ConsumerGroupOf resolves the configs of one consumer group; its own are Stack.Override. What was set before the broker's bounds changed is brought
// within them.
func ConsumerGroupOf(s Stack, b *GroupValues) ConsumerGroupValues {
	of := func(name string, b Bounded) int32 { return b.clamp(s.value(groupTable, name).Int) }
	return ConsumerGroupValues{
		SessionMs:            of("consumer.session.timeout.ms", b.SessionMs),
		HeartbeatMs:          of("consumer.heartbeat.interval.ms", b.HeartbeatMs),
		AssignmentIntervalMs: of("consumer.assignment.interval.ms", b.AssignmentInterval),
	}
}

// CheckGroup judges what a group sets of its own against the broker's bounds. It returns an *Error, or nil.
func CheckGroup(s Stack) error {
	b, err := groupsOf(Stack{Cluster: s.Cluster, Static: s.Static})
	if err != nil {
		return err
	}
	for _, k := range []struct {
		name   string
		bounds Bounded
	}{
		{"consumer.session.timeout.ms", b.SessionMs}, {"consumer.heartbeat.interval.ms", b.HeartbeatMs}, {"consumer.assignment.interval.ms", b.AssignmentInterval},
	} {
		text, set := s.Override.Get(k.name)
		if !set {
			continue
		}
		if n := s.value(groupTable, k.name).Int; n < int64(k.bounds.Min) || n > int64(k.bounds.Max) {
			return &Error{Code: BadValue, Key: k.name, Value: text, Problem: fmt.Sprintf("the brokers allow groups from %d to %d", k.bounds.Min, k.bounds.Max)}
		}
	}
	if v := ConsumerGroupOf(s, &b); v.HeartbeatMs >= v.SessionMs {
		return &Error{
			Code: Conflict, Key: "consumer.heartbeat.interval.ms", Value: strconv.Itoa(int(v.HeartbeatMs)),
			Problem: fmt.Sprintf("it must be below consumer.session.timeout.ms, which is %d", v.SessionMs),
		}
	}
	return nil
}
