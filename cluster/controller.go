package cluster

// Controller is one voter of the metadata quorum; at any time at most one of them is the controller of the cluster. See the package comment.
// It is used by one goroutine at a time.
type Controller struct{}

// Genesis returns the raft log a founder starts from: its promise as the snapshot at index 1. Saving and syncing it is how a voter promises; all
// founders save the same bytes. It fails when the promise is not one of 1, 3 or 5 distinct voters with a cluster id.
func Genesis(p Promise) (Durable, error) { return Durable{}, nil }

// New builds a controller from what its raft log holds. It fails when that is empty, damaged, of a newer version, or does not name Options.Node as
// a voter: such a broker must not vote.
func New(o Options) (*Controller, error) { return nil, nil }

// Step carries out one command and appends what must be done to out.
func (c *Controller) Step(now Now, cmd Command, out *Out) {}

// Tick lets Options.TickMs of time pass: elections, heartbeats between voters, sessions of brokers, deadlines.
func (c *Controller) Tick(now Now, out *Out) {}

// Image is the newest committed image.
func (c *Controller) Image() *Image { return nil }

// Leading tells whether this voter is the controller and may act.
func (c *Controller) Leading() bool { return false }

// Check verifies every invariant of the machine and returns the first that is broken. It reads everything: for tests.
func (c *Controller) Check() error { return nil }
