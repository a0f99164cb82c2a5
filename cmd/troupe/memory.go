package main

import (
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// memoryKeeper gives memory back to the kernel when the broker has come to rest. The runtime keeps a heap of twice what is alive until the next collection, and
// a broker at rest hardly ever comes to one: it would hold for ever what its start, or its last busy hour, took.
type memoryKeeper struct {
	over chan struct{}
	done chan struct{}
}

const (
	// restEvery is how often the keeper looks.
	restEvery = 15 * time.Second
	// restBytes is what a broker at rest allocates at most between two looks: heartbeats, gossip, the timers of partitions.
	restBytes = 4 << 20
	// restWorth is what has to have been allocated since the last time for a collection to be worth its time.
	restWorth = 16 << 20
)

func newMemoryKeeper() *memoryKeeper {
	k := &memoryKeeper{over: make(chan struct{}), done: make(chan struct{})}
	go k.run() // stop waits for it
	return k
}

// stop ends the goroutine.
func (k *memoryKeeper) stop() {
	close(k.over)
	<-k.done
}

func (k *memoryKeeper) run() {
	defer close(k.done)
	ticker := time.NewTicker(restEvery)
	defer ticker.Stop()
	var r restWatch
	for {
		select {
		case <-k.over:
			return
		case <-ticker.C:
			if r.due(allocatedBytes()) {
				debug.FreeOSMemory()
			}
		}
	}
}

// allocatedBytes is what the process has ever allocated on its heap.
func allocatedBytes() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// restWatch tells from what was allocated in all when it is time to give memory back: when little is allocated now, and much was since the last time.
type restWatch struct {
	last, freed uint64 // allocated in all, when it looked last, and when it was last due
}

func (r *restWatch) due(allocated uint64) bool {
	rests := allocated-r.last <= restBytes
	r.last = allocated
	if !rests || allocated-r.freed < restWorth {
		return false
	}
	r.freed = allocated
	return true
}
