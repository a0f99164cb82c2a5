package broker

import (
	"errors"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// How a replica goes out of service, by a lost directory, a memory fault, or the wish of Root. The controller hears of it at once: this broker lives and keeps
// its session, so nobody else would find out that the replica leads nothing and follows nobody any more.

// offline ends the service of the replica; everybody who waits hears KAFKA_STORAGE_ERROR, and so does everybody who comes until another replica leads.
func (p *partitionActor) offline(t *runtime.Turn, reason error) {
	p.tellMark(t, cluster.MarkOffline) // before the disk gives back what is on loan: that may take long
	if p.opening || p.lent {
		p.refuseAll = reason // the log, when it comes, is not used
		return
	}
	if p.machine == nil {
		return
	}
	p.stop(t, reason)
	p.carryOut(t)
}

// stop stops the machine, whose last answers the next carryOut gives.
func (p *partitionActor) stop(t *runtime.Turn, reason error) {
	if p.lost {
		return
	}
	p.lost = true
	p.tellMark(t, cluster.MarkOffline)
	p.machine.Step(p.now, &partition.Stop{Code: wire.KafkaStorageError}, &p.out)
	p.log.Error().Err(reason).Msg(codeReplicaOffline + ": replica offline: it answers with KAFKA_STORAGE_ERROR until the broker is restarted")
}

// letGo closes what a stopped machine leaves.
func (p *partitionActor) letGo() {
	p.machine, p.lost, p.confessing = nil, false, false
	p.refuseOffline()
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

// refuseOffline decides what clients hear of a replica that is out of service: where to go, if another one leads; else that its disk is to blame, as Kafka says.
func (p *partitionActor) refuseOffline() {
	p.refusal = wire.KafkaStorageError
	if b := p.become; b != nil && b.Leader != ident.NoBroker && b.Leader != p.shared.identity.Broker {
		p.refusal = wire.NotLeaderOrFollower
	}
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
		p.failed.Code, p.failed.Full = wire.KafkaStorageError, false
		p.machine.Step(p.now, &p.failed, &p.out)
	}
	p.stop(t, errFault)
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
