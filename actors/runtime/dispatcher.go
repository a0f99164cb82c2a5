package runtime

import (
	"context"
	goruntime "runtime"
	"sync"
)

// Dispatcher runs the actors that no sender runs. There are two: Pool and Seeded.
type Dispatcher interface {
	// enqueue takes over a claimed actor.
	enqueue(m *mailbox)
	// batch says how many of n > 0 queued messages the next turn may get.
	batch(n int) int
	// inPlace says whether senders run turns themselves.
	inPlace() bool
	// blocks says whether blocking actors get goroutines.
	blocks() bool
	// await lets actors run until done is closed.
	await(ctx context.Context, done <-chan struct{}) error
	// told hears of every blame and says whether it ends the run itself.
	told(b *Blame) bool
	// record hears of every turn, before it runs, when traced says so.
	record(m *mailbox, batch []Message)
	traced() bool
	// close lets the goroutines go, when all actors have stopped.
	close()
}

// Pool is the dispatcher of production: a few goroutines that sleep until work is
// handed over. They are started on demand and end with the System.
type Pool struct {
	mu      sync.Mutex
	work    sync.Cond
	queue   []*mailbox // ring of claimed actors
	head, n int
	idle    int
	started int
	max     int
	closed  bool
	group   sync.WaitGroup
}

// NewPool makes a dispatcher of at most workers goroutines; 0 takes twice
// GOMAXPROCS, at least four. A Pool belongs to one System.
func NewPool(workers int) *Pool {
	if workers <= 0 {
		workers = max(4, 2*goruntime.GOMAXPROCS(0))
	}
	p := &Pool{max: workers, queue: make([]*mailbox, 64)}
	p.work.L = &p.mu
	return p
}

func (p *Pool) enqueue(m *mailbox) {
	p.mu.Lock()
	if p.n == len(p.queue) {
		queue := make([]*mailbox, 2*len(p.queue))
		for i := range p.n {
			queue[i] = p.queue[(p.head+i)&(len(p.queue)-1)]
		}
		p.queue, p.head = queue, 0
	}
	p.queue[(p.head+p.n)&(len(p.queue)-1)] = m
	p.n++
	start := p.idle < p.n && p.started < p.max
	if start {
		p.started++
		p.group.Add(1)
	}
	p.mu.Unlock()
	if start {
		go p.worker(m.sys)
		return
	}
	p.work.Signal()
}

func (p *Pool) worker(sys *System) {
	r := NewRunner(sys)
	defer func() {
		if r.gone {
			go p.worker(sys)
			return
		}
		p.group.Done()
	}()
	for m := p.next(); m != nil; m = p.next() {
		r.visit(m, &budget{turns: turnsMax})
		r.Run()
	}
}

// next waits for a claimed actor; nil ends the worker.
func (p *Pool) next() *mailbox {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.n == 0 {
		if p.closed {
			return nil
		}
		p.idle++
		p.work.Wait()
		p.idle--
	}
	m := p.queue[p.head]
	p.queue[p.head] = nil
	p.head = (p.head + 1) & (len(p.queue) - 1)
	p.n--
	return m
}

func (p *Pool) batch(int) int { return batchMax }

func (p *Pool) inPlace() bool { return true }

func (p *Pool) blocks() bool { return true }

func (p *Pool) told(*Blame) bool { return false }

func (p *Pool) record(*mailbox, []Message) {}

func (p *Pool) traced() bool { return false }

func (p *Pool) await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *Pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.work.Broadcast()
	p.group.Wait()
}
