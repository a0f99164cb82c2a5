package broker

// The kinds of the broker's actors, as they are counted and declared.
const (
	kindRoot        = "core.root"
	kindMetadata    = "core.metadata"
	kindController  = "core.controller"
	kindRaftLog     = "core.raftlog"
	kindLifecycle   = "core.lifecycle"
	kindProducerIDs = "core.producerids"
	kindListener    = "core.listener"
	kindSession     = "core.session"
	kindPartition   = "core.partition"
	kindFlusher     = "core.flusher"
	kindIOPool      = "core.iopool"
)
