package consumer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

// refusal is why a request is refused. The zero value lets it pass.
type refusal struct {
	code wire.ErrorCode
	text string
}

func refuse(code wire.ErrorCode, format string, args ...any) refusal {
	return refusal{code, fmt.Sprintf(format, args...)}
}

// Validate checks what can be said of a heartbeat without knowing the group (GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid), in
// Kafka's order. Heartbeat does it again; the shard asks before it looks for the group.
func Validate(cfg *coord.Config, c *coord.ConsumerHeartbeat) (wire.ErrorCode, string) {
	r := validate(cfg, c)
	return r.code, r.text
}

func validate(cfg *coord.Config, c *coord.ConsumerHeartbeat) refusal {
	invalid := func(text string) refusal { return refusal{wire.InvalidRequest, text} }
	switch {
	case c.Group == "":
		return invalid("GroupId can't be empty.")
	case c.Instance != nil && *c.Instance == "":
		return invalid("InstanceId can't be empty.")
	case c.Rack != nil && *c.Rack == "":
		return invalid("RackId can't be empty.")
	case c.MemberEpoch < leftForAWhile:
		return refuse(wire.InvalidRequest, "MemberEpoch is %d, but must be greater than or equal to -2.", c.MemberEpoch)
	case c.Member == "" && (c.NewMember == "" || c.MemberEpoch != 0):
		return invalid("MemberId can't be empty.")
	case c.MemberEpoch == leftForAWhile && c.Instance == nil:
		return invalid("InstanceId can't be null.")
	case c.MemberEpoch == 0 && c.RebalanceTimeout == -1:
		return invalid("RebalanceTimeoutMs must be provided in first request.")
	case c.MemberEpoch == 0 && (c.Owned == nil || len(c.Owned) > 0):
		return invalid("TopicPartitions must be empty when (re-)joining.")
	case c.MemberEpoch == 0 && c.Topics == nil && c.Regex == nil:
		return invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
	case c.Assignor != nil && !slices.Contains(cfg.Assignors, *c.Assignor):
		return refuse(wire.UnsupportedAssignor, "ServerAssignor %s is not supported. Supported assignors: %s.", *c.Assignor, strings.Join(cfg.Assignors, ", "))
	}
	return refusal{}
}
