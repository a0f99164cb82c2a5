package actors

// The broker's own cast. The table in the package comment is for people, this one for
// the program; a test compares them.
func init() {
	exit, halt := Policy{OnBug: Exit}, Policy{OnBug: Halt}
	// Each is sent at most some messages per partition, per session or per request under way.
	many := Mailbox{CountMax: 1 << 20, BytesMax: 64 << 20}
	// What waits for a session answers requests that the credit pool has let in.
	unbounded := Mailbox{CountMax: 1 << 20, BytesMax: 1 << 40}
	for _, i := range []Info{
		{Name: "root", Mailbox: many, Scope: "process", Policy: exit, OnIOError: "back off", Doc: "the spawn tree; makes partitions what the metadata says"},
		{Name: "lifecycle", Scope: "process", Policy: exit, OnIOError: "back off", Doc: "registration, heartbeats, readiness, controlled shutdown"},
		{Name: "metadata", Mailbox: many, Scope: "process", Policy: exit, OnIOError: "none", Doc: "the published cluster.Image and those who wait for it"},
		{Name: "controller", Mailbox: Mailbox{CountMax: 1 << 20, BytesMax: 256 << 20}, Scope: "process", Policy: exit, OnIOError: "step down", Doc: "cluster.Founding, then Controller or Observer; active on one process"},
		{Name: "raftlogwriter", Mailbox: Mailbox{CountMax: 1 << 16, BytesMax: 256 << 20}, Scope: "process", Policy: exit, OnIOError: "exit", Doc: "store.RaftLog of the metadata quorum"},
		{Name: "producerids", Mailbox: many, Scope: "process", Policy: exit, OnIOError: "none", Doc: "the block of producer ids being given out"},
		{Name: "listener", Scope: "address", Policy: exit, OnIOError: "back off", Doc: "accept, limits of connections"},
		{Name: "session", Mailbox: unbounded, Scope: "client connection", Policy: halt, OnIOError: "close it", Doc: "order of requests, credit, operations under way"},
		{Name: "partition", Scope: "hosted replica", Policy: exit, OnIOError: "replica offline", Doc: "partition.Machine and its store.Log"},
		{Name: "isr", Mailbox: many, Scope: "process", Policy: exit, OnIOError: "none", Doc: "what replicas here say to the controller: proposals, verdicts of recovery, marks"},
		{Name: "coordinator", Mailbox: many, Scope: "led partition of __consumer_offsets", Policy: exit, OnIOError: "unload, load again", Doc: "group.Shard: the groups that hash to the partition"},
		{Name: "flusher", Mailbox: many, Scope: "data directory and kind of topic", Policy: exit, OnIOError: "directory offline; all: exit", Doc: "group commit: of clients' topics, of internal ones"},
		{Name: "cleaner", Mailbox: many, Scope: "process", Policy: exit, OnIOError: "back off", Doc: "has the dirtiest logs compacted"},
		{Name: "scrubber", Scope: "process", Policy: exit, OnIOError: "none", Doc: "has all records read and summed up, round by round"},
		{Name: "ioworker", Mailbox: many, Scope: "goroutine of a pool", Policy: exit, OnIOError: "told to who asked", Doc: "reads of cold data; opening, closing, cutting, compacting and deleting of logs"},
		{Name: "links", Mailbox: many, Scope: "process", Policy: exit, OnIOError: "back off", Doc: "which brokers are reached: the peer port, dialling, back-off"},
		{Name: "link", Mailbox: Mailbox{CountMax: 1 << 20, BytesMax: 256 << 20}, Scope: "connection between brokers", Policy: halt, OnIOError: "connect again", Doc: "msgpack frames, probes, requests under way"},
		{Name: "gossip", Mailbox: many, Scope: "process", Policy: exit, OnIOError: "back off", Doc: "memberlist: discovers brokers and suspects the dead"},
		{Name: "neighbour", Mailbox: many, Scope: "process of a simulation of several", Policy: exit, OnIOError: "none", Doc: "nothing: it stands for Gossip, and the simulation hears who this broker is"},
		{Name: "facts", Scope: "process", Policy: exit, OnIOError: "none", Doc: "the facts that observers hear"},
	} {
		i.Kind = Core
		Register(i)
	}
}
