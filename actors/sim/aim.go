package sim

import (
	"math/rand/v2"
	"time"
)

// aims are operations at which it matters what a death leaves: the syncs that make things durable, the renames and cuts whose order is a promise.
var aims = []string{
	"sync *.log", "sync *.log", "write *.log", "allocate *.log", "truncate *.log", "open *.log", "rename *.log",
	"syncdir *", "syncdir *", "syncfs *", "rename *", "remove *", "mkdir *",
	"rename *.deleted", "rename log-start-offset-checkpoint*", "rename recovery-point-offset-checkpoint*", "rename leader-epoch-checkpoint", "rename *.snapshot",
	"sync leader-epoch-checkpoint*", "sync *index", "sync *.snapshot", "rename control-block", "sync control-block*", "remove .kafka_cleanshutdown",
	"sync *.raftlog", "write *.raftlog", "sync partition.metadata",
}

// planAimed draws machines that are slow, and deaths that wait for their moment: the process or the machine ends just before an operation of one kind on files of one kind is done. A
// second one often follows, in the middle of what the restart does about the first.
func (p *Plan) planAimed(r *rand.Rand) {
	if chance(r, 20) {
		p.Disk.Late = one(r, 200*time.Microsecond, 3*time.Millisecond, 20*time.Millisecond)
	}
	if chance(r, 8) {
		p.Disk.SyncMax = 250 * time.Millisecond
	}
	if !chance(r, 35) {
		return
	}
	die := func(at time.Duration, most int) {
		f := FaultPlan{Number: len(p.Faults), Kind: Kill, At: at, Before: one(r, aims...), N: 1 + r.IntN(most), Pause: one(r, 0, 5*time.Millisecond, time.Second), Seed: r.Uint64()}
		if p.Promise != PromiseCached {
			f.Kind = one(r, Kill, Power, Power)
		}
		f.tidy()
		p.Faults = append(p.Faults, f)
	}
	for range 1 + r.IntN(4) {
		at := between(r, 0, p.Duration*9/10)
		die(at, one(r, 1, 3, 20))
		if chance(r, 50) {
			die(at, one(r, 4, 12))
		}
	}
}
