package load

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Chase produces to partition 0 of a topic of a cluster, one record a request, acks=all, one request in flight, and follows the partition's leader without
// any patience. Nothing of its own is in the time between two acknowledgements but Pause, and Poll when the leader has changed.
type Chase struct {
	// Addrs is where each broker takes clients, by its id.
	Addrs map[int32]string
	Topic string
	// RecordBytes is the size of each record's value.
	RecordBytes int
	// Pause is the time between an answer and the next request, Poll the time between two questions to one broker who leads.
	Pause, Poll time.Duration
	// Acked is told of each acknowledgement, in their order.
	Acked func(Ack)
	// Led is told of each newer leader, when the first broker names it.
	Led func(Leader)
}

// Ack is one acknowledgement.
type Ack struct {
	At     time.Time
	Broker int32
	Offset int64
}

// Leader is who leads since an epoch; -1: nobody does.
type Leader struct {
	At     time.Time
	Broker int32
	Epoch  int32
}

// Run goes on until ctx ends, and then returns nil. An offset that does not rise is an error: a record that was acknowledged before is lost.
func (c Chase) Run(ctx context.Context) error {
	view := &leaderView{leader: Leader{Broker: -1, Epoch: -1}, led: c.Led}
	var asking sync.WaitGroup
	defer asking.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, addr := range c.Addrs {
		asking.Go(func() { lookout{addr, c.Topic, c.Poll}.run(ctx, view) })
	}
	stop := context.AfterFunc(ctx, func() { view.hold(nil, -1) })
	defer stop()

	batch, _ := Payload{RecordBytes: c.RecordBytes, RequestBytes: 1}.Batch()
	frame, _ := produceFrame(c.Topic, 0, -1, batch)
	var to *conn
	at, last := int32(-1), int64(-1)
	leave := func() {
		view.hold(nil, -1) // closes it
		to = nil
	}
	defer leave()
	for ; ctx.Err() == nil; wait(ctx, c.Pause) {
		leader := view.now()
		if leader.Broker < 0 {
			continue
		}
		if to != nil && at != leader.Broker {
			leave()
		}
		if to == nil {
			fresh, err := dialWithin(ctx, c.Addrs[leader.Broker], chaseDialMax)
			if err != nil {
				continue
			}
			to, at = fresh, leader.Broker
			view.hold(to, at)
		}
		offset, err := produceOnce(to, frame, c.Topic)
		if err == nil {
			if offset <= last {
				return fmt.Errorf("broker %d acknowledged offset %d after offset %d had been acknowledged: records are lost", at, offset, last)
			}
			last = offset
			c.Acked(Ack{time.Now(), at, offset})
			continue
		}
		if !isRefused(err) {
			leave()
		}
	}
	return nil
}

// chaseDialMax bounds an attempt to connect. On a network that drops packets nothing else ends it.
const chaseDialMax = 50 * time.Millisecond

// leaderView is what the lookouts have seen last. It closes the connection of a producer that waits for the answer of a broker that leads no more.
type leaderView struct {
	mu     sync.Mutex
	leader Leader
	led    func(Leader)
	held   *conn
	heldBy int32
}

func (v *leaderView) now() Leader {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.leader
}

// hold names the connection that is closed when another than broker leads; nil: none. The one before, if it is still held, is closed.
func (v *leaderView) hold(c *conn, broker int32) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.held != nil {
		v.held.leave()
	}
	v.held, v.heldBy = c, broker
	if c != nil && v.leader.Broker != broker {
		c.leave()
	}
}

func (v *leaderView) see(broker, epoch int32) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if epoch < v.leader.Epoch || epoch == v.leader.Epoch && (broker < 0 || v.leader.Broker >= 0) {
		return
	}
	v.leader = Leader{time.Now(), broker, epoch}
	if v.held != nil && broker >= 0 && v.heldBy != broker {
		v.held.leave()
		v.held = nil
	}
	if v.led != nil {
		v.led(v.leader)
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
