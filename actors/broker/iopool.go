package broker

import (
	"fmt"
	"sync/atomic"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/store"
)

// ioPool is a set of blocking actors that do what waits for a disk and is nobody's turn: opening and deleting logs, looking for timestamps, reading cold
// regions into the page cache.
type ioPool struct {
	workers []*ioWorker
}

// job is work for the pool. It tells its outcome by messages.
type job interface {
	runtime.Message
	do(t *runtime.Turn)
}

// ioWorker is one of the actors.
type ioWorker struct {
	ref  *runtime.Ref
	open atomic.Int64 // jobs that are not done
}

// spawnPool starts a pool of n actors below parent.
func spawnPool(sys *runtime.System, parent *runtime.Ref, name string, n int) (*ioPool, error) {
	p := &ioPool{}
	for i := range n {
		w := &ioWorker{}
		spec := blocking(cast("ioworker", fmt.Sprintf("%s-%d", name, i), w))
		spec.BatchMax = 1
		ref, err := sys.Spawn(parent, spec)
		if err != nil {
			return nil, err
		}
		w.ref = ref
		p.workers = append(p.workers, w)
	}
	return p, nil
}

// give hands a job to the worker that has least to do. A refused job was rejected.
func (p *ioPool) give(s runtime.Sender, j job) error {
	best := p.workers[0]
	for _, w := range p.workers[1:] {
		if w.open.Load() < best.open.Load() {
			best = w
		}
	}
	best.open.Add(1)
	err := s.Send(best.ref, j)
	if err != nil {
		best.open.Add(-1)
	}
	return err
}

// Turn implements runtime.Behaviour.
func (w *ioWorker) Turn(t *runtime.Turn, batch []runtime.Message) {
	for _, m := range batch {
		m.(job).do(t)
		w.open.Add(-1)
	}
}

// after calls done when the jobs before it are done, or the worker has stopped.
func (w *ioWorker) after(done func()) {
	w.open.Add(1)
	if w.ref.Post(&barrier{done: done}) != nil { // Reject has called it
		w.open.Add(-1)
	}
}

// barrier tells when the jobs before it are done.
type barrier struct{ done func() }

// Bytes implements runtime.Message.
func (*barrier) Bytes() int { return 0 }

// Reject implements runtime.Rejecter.
func (b *barrier) Reject(error) { b.done() }

// do implements job.
func (b *barrier) do(*runtime.Turn) { b.done() }

const (
	// warmAhead is how far behind a cold region the disk is asked for too, so that a reader that catches up finds the next one warm.
	warmAhead = 1 << 20
	warmStep  = 256 << 10
)

// warmRegion reads a region into the page cache and tells its session.
type warmRegion struct {
	region store.Region // a reference of its own
	to     *runtime.Ref
	store  *buffers
}

// Bytes implements runtime.Message.
func (*warmRegion) Bytes() int { return 0 }

// Reject implements runtime.Rejecter: the session sends the region cold, which costs time and nothing else.
func (w *warmRegion) Reject(error) { w.finish() }

func (w *warmRegion) finish() {
	w.region.Release()
	_ = w.to.Post(signalWarm) // a session that is gone sends nothing
}

// do implements job. Errors are the sender's to meet: it reads the same bytes.
func (w *warmRegion) do(*runtime.Turn) {
	w.region.Prefetch(warmAhead)
	buf := w.store.get(warmStep)
	file, off := w.region.File()
	for at := int64(0); at < int64(w.region.Len()); at += int64(len(buf)) {
		if n, err := file.ReadAt(buf, off+at); err != nil || n == 0 {
			break
		}
	}
	w.store.put(buf)
	w.finish()
}
