package classic_test

import "testing"

// census counts what happened, so that a model that has become harmless is noticed.
type census struct {
	codes map[string]int
	notes map[string]int
	other map[string]int
}

func (c *census) add(o *census) {
	for to, from := range map[*map[string]int]map[string]int{&c.codes: o.codes, &c.notes: o.notes, &c.other: o.other} {
		if *to == nil {
			*to = map[string]int{}
		}
		for k, n := range from {
			(*to)[k] += n
		}
	}
}

// complete fails when something never happened.
func (c *census) complete(t *testing.T) {
	t.Helper()
	for _, want := range []string{
		"JoinReply NONE", "JoinReply MEMBER_ID_REQUIRED", "JoinReply UNKNOWN_MEMBER_ID", "JoinReply FENCED_INSTANCE_ID", "JoinReply REBALANCE_IN_PROGRESS",
		"JoinReply GROUP_MAX_SIZE_REACHED", "JoinReply INCONSISTENT_GROUP_PROTOCOL",
		"SyncReply NONE", "SyncReply REBALANCE_IN_PROGRESS", "SyncReply ILLEGAL_GENERATION", "SyncReply UNKNOWN_MEMBER_ID", "SyncReply FENCED_INSTANCE_ID",
		"HeartbeatReply NONE", "HeartbeatReply REBALANCE_IN_PROGRESS", "HeartbeatReply ILLEGAL_GENERATION", "HeartbeatReply UNKNOWN_MEMBER_ID",
		"HeartbeatReply FENCED_INSTANCE_ID", "LeaveReply NONE",
	} {
		if c.codes[want] == 0 {
			t.Errorf("nobody was ever answered %s", want)
		}
	}
	for _, want := range []string{"it did not join in time", "it did not sync in time", "its session timed out", "the group is full"} {
		if c.notes[want] == 0 {
			t.Errorf("no member was ever removed because %s", want)
		}
	}
	for _, want := range []string{
		"failover", "entry lost", "skipped assignment", "static member replaced silently", "ended Stable", "ended Empty", "commit NONE", "commit ILLEGAL_GENERATION",
		"commit REBALANCE_IN_PROGRESS", "commit UNKNOWN_MEMBER_ID", "pending forgotten", "request parked for ever by a dead client",
	} {
		if c.other[want] == 0 {
			t.Errorf("never happened: %s", want)
		}
	}
	t.Logf("%v %v %v", c.codes, c.notes, c.other)
}
