package store

import "sync"

// Worker runs jobs one after another on a goroutine of its own: what a directory's
// [DirectoryOptions].Background wants. The goroutine exists while there are jobs.
// The zero value is ready.
type Worker struct {
	mu      sync.Mutex
	jobs    []func() // from next on
	next    int
	running bool
	idle    sync.WaitGroup
}

// Run queues a job. Jobs are few (a page range to populate, files to unlink), so the
// queue has no bound of its own: each log has at most one populating job under way.
func (w *Worker) Run(job func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs = append(w.jobs, job)
	if !w.running {
		w.running = true
		w.idle.Go(w.work)
	}
}

func (w *Worker) work() {
	for {
		w.mu.Lock()
		if w.next == len(w.jobs) {
			w.jobs, w.next, w.running = w.jobs[:0], 0, false
			w.mu.Unlock()
			return
		}
		job := w.jobs[w.next]
		w.jobs[w.next] = nil
		w.next++
		w.mu.Unlock()
		job()
	}
}

// Wait returns when every job that was queued before has ended. Call it before the
// directory is closed.
func (w *Worker) Wait() { w.idle.Wait() }
