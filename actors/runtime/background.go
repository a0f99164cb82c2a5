package runtime

import "sync"

// Background runs jobs one after another, in the order in which they were given, on a goroutine of its own. The store gives it
// what must not delay a turn: reserving space ahead of the writer, unlinking deleted segments.
type Background struct {
	mu   sync.Mutex
	work sync.Cond
	jobs []func()
	over bool
	done chan struct{}
}

// NewBackground starts one, which Stop ends.
func NewBackground() *Background {
	b := &Background{done: make(chan struct{})}
	b.work.L = &b.mu
	go b.run() // Stop waits for it
	return b
}

// Do adds a job. It never waits. After Stop, the job runs at once.
func (b *Background) Do(job func()) {
	b.mu.Lock()
	if b.over {
		b.mu.Unlock()
		job()
		return
	}
	b.jobs = append(b.jobs, job)
	b.mu.Unlock()
	b.work.Signal()
}

// Stop runs what was given and ends the goroutine.
func (b *Background) Stop() {
	b.mu.Lock()
	b.over = true
	b.mu.Unlock()
	b.work.Signal()
	<-b.done
}

func (b *Background) run() {
	defer close(b.done)
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		for len(b.jobs) == 0 {
			if b.over {
				return
			}
			b.work.Wait()
		}
		jobs := b.jobs
		b.jobs = nil
		b.mu.Unlock()
		for _, job := range jobs {
			job()
		}
		b.mu.Lock()
	}
}
