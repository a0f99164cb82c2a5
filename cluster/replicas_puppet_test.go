package cluster

import "github.com/troupe-broker/troupe/wire/ident"

// ghostEntry is one batch: written in a leader epoch, and unlike any other.
type ghostEntry struct {
	epoch ident.LeaderEpoch
	id    int
}

// run is a broker under one registration: what an earlier run reported says nothing of a later one.
type run struct {
	broker ident.BrokerID
	epoch  ident.BrokerEpoch
}

// runOf is the run of a broker that an image knows.
func runOf(m *Image, id ident.BrokerID) run {
	if b, ok := m.Broker(id); ok {
		return run{id, b.Epoch}
	}
	return run{}
}

// copyOfLog is one replica on a disk.
type copyOfLog struct {
	log        []ghostEntry
	flushed    int
	made       bool // its directory is there
	lossy      bool // it lost what it had reported, and its broker has not registered since
	unverified bool // this run has not looked at it yet
	late       bool // this run took it for whole, and has not told yet that it is not
	following  ident.LeaderEpoch
	mark       Mark          // what this run has to say of it
	marked     Mark          // what the controller has heard
	full       bool          // it cannot append
	toldFull   bool          // so the controller has heard
	told       *MarkReplicas // the last word, which it may not have heard; nil: it has

	// Of a leader.
	leading  ident.LeaderEpoch
	start    int // of the epoch
	acks     map[run]int
	pending  []Member
	proposed ident.PartitionEpoch
	hw       int
}

// puppet is a broker in the model.
type puppet struct {
	id     ident.BrokerID
	up     bool
	leaves bool // it is being stopped in order
	run    byte
	epoch  ident.BrokerEpoch // of this run; 0: not registered
	last   ident.BrokerEpoch // what a clean stop would write down
	clean  ident.BrokerEpoch // what it did write down
	image  *Image            // replayed
	copies []copyOfLog       // by partition
}

// registeredIn tells whether an image knows this run.
func (p *puppet) registeredIn(m *Image) bool {
	b, ok := m.Broker(p.id)
	return ok && p.epoch != 0 && b.Epoch == p.epoch
}

func (c *copyOfLog) lastEpoch() ident.LeaderEpoch {
	if len(c.log) == 0 {
		return ident.NoLeaderEpoch
	}
	return c.log[len(c.log)-1].epoch
}
