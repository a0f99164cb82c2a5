package broker

import (
	"errors"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire"
)

// How a replica goes out of service, by a lost directory, a memory fault, or the wish of Root.

// offline ends the service of the replica; everybody who waits hears KAFKA_STORAGE_ERROR, and so does everybody who comes.
func (p *partitionActor) offline(t *runtime.Turn, reason error) {
	if p.opening || p.lent {
		p.refuseAll = reason // the log, when it comes, is not used
		return
	}
	if p.machine == nil {
		return
	}
	p.stop(reason)
	p.carryOut(t)
}

// stop stops the machine, whose last answers the next carryOut gives.
func (p *partitionActor) stop(reason error) {
	if p.lost {
		return
	}
	p.lost = true
	p.machine.Step(p.now, &partition.Stop{Code: wire.KafkaStorageError}, &p.out)
	p.log.Error().Err(reason).Msg(codeReplicaOffline + ": replica offline: it answers with KAFKA_STORAGE_ERROR until the broker is restarted")
}

// letGo closes what a stopped machine leaves.
func (p *partitionActor) letGo() {
	p.machine, p.lost = nil, false
	p.stopCleaning()
	p.replica.stats.offline.Store(true)
	p.replica.stats.leading.Store(false)
	if p.retention != nil {
		p.retention.Stop()
	}
	for _, timer := range p.timers {
		if timer != nil {
			timer.Stop()
		}
	}
	// Nothing is synced or marked: a log that is lost is recovered at the next start.
	if err := p.file.Close(false); err != nil {
		p.log.Debug().Err(err).Msg("closing the files of an offline replica")
	}
	p.file = nil
}

// errFault is the reason of a replica that a memory fault took out of service.
var errFault = errors.New("a memory fault in the mapping of a log: the file is shorter than it was, or the disk gave no page")

// Faulted implements runtime.Faulter: a page of the log's mapping could not be read or written. The log cannot be trusted, the rest of the broker can.
func (p *partitionActor) Faulted(t *runtime.Turn, _ runtime.Fault, batch []runtime.Message) bool {
	if p.machine == nil {
		return false // nothing mapped is used then: a bug
	}
	if p.writing {
		p.writing = false
		p.failed.Code = wire.KafkaStorageError
		p.machine.Step(p.now, &p.failed, &p.out)
	}
	p.stop(errFault)
	p.carryOut(t)
	for i, m := range batch {
		if m != nil && m == p.current && p.id == 0 {
			batch[i] = nil // answered
		}
	}
	if a, ok := p.current.(*leaderAnswer); ok {
		a.done()
	}
	p.current, p.id = nil, 0
	return true
}
