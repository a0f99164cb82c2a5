package partition

import "github.com/troupe-broker/troupe/wire/ident"

// Now is the time of a turn, on both clocks. Deadlines and alarms use the monotonic
// one, ages of producers the wall clock.
type Now struct {
	Mono ident.Instant
	Wall ident.Millis
}

// Role is what this broker is to the partition.
type Role int8

// The roles; see the package comment for how they follow each other.
const (
	// Unassigned is the role between New and the first Become.
	Unassigned Role = iota
	// Leading: appends and serves.
	Leading
	// Following: another broker leads, or none does.
	Following
	// Resigned: led, and gave it up before the controller took it away.
	Resigned
	// Stopped: answers everything with the code it was stopped with.
	Stopped
)

// Machine is one replica of one partition. It is not safe for concurrent use: its
// actor steps it.
type Machine struct {
	broker ident.BrokerID
	role   Role
	config Config
	log    LogState
}

// New makes the machine of a replica whose log was opened and recovered. It is
// Unassigned until the first Become.
func New(o Options) *Machine {
	return &Machine{broker: o.Broker, config: o.Config, log: o.Log}
}

// Step applies one command and appends what follows from it to out. It never fails:
// a request that cannot be served is answered with a code. A shell that breaks the
// order of a turn, by stepping anything but Appended or AppendFailed after a
// WriteBatch, is a bug and panics.
func (m *Machine) Step(now Now, c Command, out *Out) {}

// Tick does what time alone makes due: deadlines of parked produces, flush.ms,
// forgotten producers. Calling it early or often does no harm.
func (m *Machine) Tick(now Now, out *Out) {}

// Check verifies every invariant and returns an error that names the first broken
// one. It is meant for tests and simulations: its cost grows with the state.
func (m *Machine) Check() error { return nil }

// Role tells what this broker is to the partition now.
func (m *Machine) Role() Role { return m.role }

// Offsets is a reading of the machine's offsets, for answers and metrics.
type Offsets struct {
	LogStart      ident.Offset
	LastStable    ident.Offset
	HighWatermark ident.Offset
	End           ident.Offset
	Flushed       ident.Offset
}

// Offsets reads the offsets.
func (m *Machine) Offsets() Offsets { return Offsets{} }

// Producers is what a partition remembers of idempotent producers: the last five
// batches of each, by which a repeated batch is told from a new one.
type Producers struct{}

// NewProducers makes an empty memory for at most max producers. During recovery it
// is loaded from a snapshot and fed the batches above it, in any order of the two;
// then it goes into [Options].
func NewProducers(max int) *Producers { return &Producers{} }

// Replay takes in a batch found in the log at base. now dates it for expiry: a
// producer found by recovery gets a whole expiration span from there.
func (p *Producers) Replay(base ident.Offset, b BatchInfo, now ident.Millis) {}
