package gossip

import "fmt"

// State is what gossip says of one incarnation of a broker.
type State uint8

// The states.
const (
	Joined  State = iota + 1 // alive, and was not shown before
	Updated                  // alive, and tells something else than before
	Dead                     // did not answer, or its death was announced by others; it may be refuted by a later Joined
	Left                     // said beforehand that it would stop, and stopped
)

// String names the state.
func (s State) String() string {
	switch s {
	case Joined:
		return "joined"
	case Updated:
		return "updated"
	case Dead:
		return "dead"
	case Left:
		return "left"
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Fact is the newest that gossip knows of one incarnation of a broker.
type Fact struct {
	State  State
	Member Member // as it was told last
}

// Note is a line for the log. It is written once for each offender.
type Note struct {
	Code string // TRP-nnnn
	Text string
}

// News is what has happened since the last Take. The owner keeps it.
type News struct {
	Facts []Fact // in the order in which the members became news, one for each incarnation
	Notes []Note
}
