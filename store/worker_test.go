package store_test

import "sync"

// worker runs jobs one after another on a goroutine of its own: what a directory's
// Background wants. The goroutine exists while there are jobs. The zero value is
// ready.
type worker struct {
	mu      sync.Mutex
	jobs    []func() // from next on
	next    int
	running bool
	idle    sync.WaitGroup
}

func (w *worker) Run(job func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs = append(w.jobs, job)
	if !w.running {
		w.running = true
		w.idle.Go(w.work)
	}
}

func (w *worker) work() {
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

func (w *worker) Wait() { w.idle.Wait() }
