package classic

// State is the state of a classic group.
type State int8

// The states.
const (
	// Empty has no members; there may be committed offsets. A Join starts the first wait. Heartbeat, Sync and Leave: UNKNOWN_MEMBER_ID.
	Empty State = iota
	// PreparingRebalance collects joins. Join: parked. Heartbeat and Sync: REBALANCE_IN_PROGRESS. Commits of the last generation are accepted.
	PreparingRebalance
	// CompletingRebalance has a new generation and waits for what its leader decides. Sync: parked, the leader's ends the state. Heartbeat: accepted.
	// Commit: REBALANCE_IN_PROGRESS. Join: the same answer again, or with other metadata a new rebalance.
	CompletingRebalance
	// Stable works. Sync: the current assignment. Join: a rebalance, unless a follower brings nothing new.
	Stable
	// Dead was dropped. Everything: COORDINATOR_NOT_AVAILABLE, clients look for the coordinator again.
	Dead
)

// String is Kafka's word.
func (s State) String() string {
	switch s {
	case Empty:
		return "Empty"
	case PreparingRebalance:
		return "PreparingRebalance"
	case CompletingRebalance:
		return "CompletingRebalance"
	case Stable:
		return "Stable"
	case Dead:
		return "Dead"
	}
	return "Unknown"
}
