package actors

// The broker's own cast. The table in the package comment is for people, this one for
// the program; a test compares them.
func init() {
	exit, halt := Policy{OnBug: Exit}, Policy{OnBug: Halt}
	for _, i := range []Info{
		{Name: "root", Scope: "process", Policy: exit, OnIOError: "back off", Doc: "the spawn tree; makes partitions what the metadata says"},
		{Name: "lifecycle", Scope: "process", Policy: exit, OnIOError: "back off", Doc: "registration, heartbeats, readiness, controlled shutdown"},
		{Name: "metadata", Scope: "process", Policy: exit, OnIOError: "none", Doc: "the published cluster.Image and those who wait for it"},
		{Name: "controller", Scope: "process", Policy: exit, OnIOError: "step down", Doc: "cluster.Controller, active on one process"},
		{Name: "raftlogwriter", Scope: "process", Policy: exit, OnIOError: "exit", Doc: "store.RaftLog of the metadata quorum"},
		{Name: "producerids", Scope: "process", Policy: exit, OnIOError: "none", Doc: "the block of producer ids being given out"},
		{Name: "listener", Scope: "address", Policy: exit, OnIOError: "back off", Doc: "accept, limits of connections"},
		{Name: "session", Scope: "client connection", Policy: halt, OnIOError: "close it", Doc: "order of requests, credit, operations under way"},
		{Name: "partition", Scope: "hosted replica", Policy: exit, OnIOError: "replica offline", Doc: "partition.Machine and its store.Log"},
		{Name: "flusher", Scope: "data directory", Policy: exit, OnIOError: "directory offline; all: exit", Doc: "group commit"},
		{Name: "ioworker", Scope: "goroutine of a pool", Policy: exit, OnIOError: "told to who asked", Doc: "reads of cold data; opening, closing and deleting of logs"},
		{Name: "facts", Scope: "process", Policy: exit, OnIOError: "none", Doc: "the facts that observers hear"},
	} {
		i.Kind = Core
		Register(i)
	}
}
