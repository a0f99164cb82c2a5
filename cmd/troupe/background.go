package main

import "sync"

// background runs jobs one after another, in the order in which they were given, on a goroutine of its own. The store gives it
// what must not delay a turn: reserving space ahead of the writer, unlinking deleted segments.
type background struct {
	mu   sync.Mutex
	work sync.Cond
	jobs []func()
	over bool
	done chan struct{}
}

func newBackground() *background {
	b := &background{done: make(chan struct{})}
	b.work.L = &b.mu
	go b.run() // stop waits for it
	return b
}

// do adds a job. It never waits. After stop, the job runs at once.
func (b *background) do(job func()) {
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

// stop runs what was given and ends the goroutine.
func (b *background) stop() {
	b.mu.Lock()
	b.over = true
	b.mu.Unlock()
	b.work.Signal()
	<-b.done
}

func (b *background) run() {
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
