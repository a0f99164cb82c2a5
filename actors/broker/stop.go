package broker

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-broker/troupe/actors"
	"github.com/troupe-broker/troupe/wire/ident"
)

// drainMax is how long sessions may take to finish what was begun, when the broker stops.
const drainMax = 10 * time.Second

// Stop stops the broker: no new connections and requests, those that were begun are finished, the controller is told, the logs are synced and closed, and
// the directory gets its clean marker. When ctx ends first, what is left is ended without it; the next start recovers as after a crash.
func (b *Broker) Stop(ctx context.Context) error {
	done := make(chan error, 1)
	b.Shutdown(func(err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		b.root.Stop()
		return errors.Join(errors.New("the broker did not stop in time; the next start recovers"), context.Cause(ctx))
	}
}

// Shutdown does the same without waiting. done is called once, from somewhere.
func (b *Broker) Shutdown(done func(error)) {
	if b.stopping.Swap(true) {
		done(nil)
		return
	}
	if host := b.shared.facts.host; host.Observed() {
		host.Tell(nil, &actors.Stopping{})
	}
	if b.peering != nil {
		b.peering.noContacts()
	}
	s := &stop{b: b, done: done, epoch: ident.NoBrokerEpoch}
	s.drain()
}

// stop is a broker's way down, one step after the other. Each step ends in a callback, which may only enqueue.
type stop struct {
	b     *Broker
	done  func(error)
	epoch ident.BrokerEpoch

	mu  sync.Mutex
	err error
}

func (s *stop) note(err error) {
	s.mu.Lock()
	s.err = errors.Join(s.err, err)
	s.mu.Unlock()
}

// after calls then when n things are done.
func after(n int, then func()) (one func()) {
	if n == 0 {
		then()
		return func() {}
	}
	left := atomic.Int64{}
	left.Store(int64(n))
	return func() {
		if left.Add(-1) == 0 {
			then()
		}
	}
}

// drain lets the sessions finish.
func (s *stop) drain() {
	var once sync.Once
	next := func() { once.Do(s.leave) }
	alarm := s.b.world.System.Clock().NewAlarm(next)
	alarm.Set(drainMax)
	one := after(len(s.b.listeners), func() {
		alarm.Cancel()
		next()
	})
	for _, l := range s.b.listeners {
		_ = l.Post(&drainListener{done: one}) // Reject calls it too
	}
}

// leave tells the controller.
func (s *stop) leave() {
	for _, l := range s.b.listeners {
		l.Stop() // sessions that did not finish in time
	}
	_ = s.b.lifecycle.Post(&leave{done: func(e ident.BrokerEpoch) { // Reject calls it too
		s.epoch = e
		s.handOver()
	}})
}

// handOver gives the office of the controller to another voter.
func (s *stop) handOver() {
	_ = s.b.shared.controller.Post(&handOver{done: s.leaveGossip}) // Reject calls it too
}

// leaveGossip tells the other brokers that this is no death.
func (s *stop) leaveGossip() {
	if s.b.peering == nil {
		s.closeLogs()
		return
	}
	_ = s.b.shared.gossip.Post(&leaveGossip{done: s.closeLogs}) // Reject calls it too
}

// closeLogs syncs and closes all logs.
func (s *stop) closeLogs() {
	var all []*replica
	for _, e := range s.b.shared.topics.Load().all() {
		for _, r := range e.replicas {
			if r != nil {
				all = append(all, r)
			}
		}
	}
	one := after(len(all), s.finishRecovery)
	for _, r := range all {
		if r.coordinator != nil {
			r.coordinator.Stop() // nobody asks it any more
		}
		_ = r.ref.Post(&closePartition{done: func(err error) { // Reject calls it too
			s.note(err)
			one()
		}})
	}
}

// finishRecovery waits for the logs that are being deleted, and for compactions to come to their end: a directory is given back with nobody at work in it.
func (s *stop) finishRecovery() {
	var workers []*ioWorker
	for _, d := range s.b.shared.directories {
		workers = append(workers, d.recovery.workers...)
	}
	one := after(len(workers)+1, s.closeMetadata)
	_ = s.b.cleaner.Post(&cleanRest{done: one}) // Reject calls it too
	for _, w := range workers {
		w.after(one)
	}
}

// closeMetadata ends the controller and closes its log.
func (s *stop) closeMetadata() {
	s.b.shared.controller.Stop()
	_ = s.b.writer.Post(&closeRaftLog{done: func(err error) { // Reject calls it too
		s.note(err)
		s.closeDirectories()
	}})
}

// closeDirectories writes the clean markers, if all logs were closed, and gives the directories back.
func (s *stop) closeDirectories() {
	s.mu.Lock()
	clean := s.err == nil
	s.mu.Unlock()
	one := after(len(s.b.shared.directories), s.end)
	for _, d := range s.b.shared.directories {
		epoch := s.epoch
		if epoch == ident.NoBrokerEpoch {
			epoch = d.opened.CleanEpoch // this run never was one: what held before holds
		}
		_ = d.internal.Post(&closeLane{done: func(err error) { // Reject calls it too
			s.note(err)
			_ = d.flusher.Post(&closeDirectory{clean: clean && err == nil, epoch: epoch, done: func(err error) { // likewise
				s.note(err)
				one()
			}})
		}})
	}
}

func (s *stop) end() {
	s.b.root.Stop()
	s.done(s.err)
}
