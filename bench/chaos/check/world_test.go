package check

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
)

// world makes a history that is in order: two producers write one partition, batch by batch; two readers and a group with two members, which take turns,
// read it; three replicas have it. Some sends end without an answer, and of these some are in the log; some are refused.
type world struct {
	random  *rand.Rand
	now     int64
	events  []Event
	log     []Record
	batches []Batch
}

const tp = "t-0"

func (w *world) tick() int64 {
	w.now += 1 + w.random.Int64N(50)
	return w.now
}

func good(seed uint64) []Event {
	w := &world{random: rand.New(rand.NewPCG(seed, 9))}
	next, sequence := map[string]int64{}, map[string]int32{}
	for range 60 {
		name := []string{"a", "b"}[w.random.IntN(2)]
		w.batch(name, next, sequence)
	}
	w.reader("r1", "")
	w.reader("r2", "")
	w.group()
	w.events = append(w.events, Event{Kind: Final, Worker: "final", TP: tp, Records: slices.Clone(w.log)})
	for i := range 3 {
		w.events = append(w.events, Event{Kind: Replica, Worker: fmt.Sprint("broker-", i+1), TP: tp, Batches: slices.Clone(w.batches)})
	}
	w.events = append(w.events, Event{Kind: Fault, Worker: "nemesis", Text: "kill-leader"})
	w.looks()
	return w.events
}

// looks is what watchers saw: leaders, where the log ended at a few times, and what brokers hold.
func (w *world) looks() {
	for epoch := range int32(4) {
		e := Event{Kind: Leader, TP: tp, T0: w.tick(), T1: w.tick(), Broker: 1 + w.random.Int32N(3), Epoch: epoch}
		w.events = append(w.events, e, e, Event{Kind: Leader, TP: tp, T0: w.tick(), T1: w.tick(), Broker: -1, Epoch: epoch})
	}
	end := int64(len(w.log))
	for range 5 {
		w.now += StaleMax / 3
		w.events = append(w.events, Event{Kind: Ends, Worker: "watcher", TP: tp, T0: w.tick(), T1: w.tick(), Offset: end, Outcome: OK})
	}
	for i := range 3 {
		name := fmt.Sprint("broker-", i+1)
		w.events = append(w.events,
			Event{Kind: Usage, Worker: name, Load: &Load{Rest: Before, Anon: 20 << 20, Descriptors: 30, Files: 10, Goroutines: 40}},
			Event{Kind: Usage, Worker: name, T1: w.tick(), Load: &Load{Anon: 500 << 20, Descriptors: 300, Files: 400, Goroutines: 900}},
			Event{Kind: Usage, Worker: name, T1: w.tick(), Load: &Load{Rest: After, Anon: 60 << 20, Descriptors: 50, Files: 400, Goroutines: 80}})
	}
}

// batch sends a few records together. Only the last of a batch's sends, as a whole, can be without an answer.
func (w *world) batch(name string, next map[string]int64, sequence map[string]int32) {
	count := 1 + w.random.IntN(4)
	outcome, logged := OK, true
	switch w.random.IntN(12) {
	case 0:
		outcome = Info
	case 1:
		outcome, logged = Info, false
	case 2:
		outcome, logged = Fail, false
	}
	t0 := w.tick()
	base := int64(len(w.log))
	for i := range count {
		n := next[name]
		next[name]++
		e := Event{Kind: Send, Worker: name, TP: tp, T0: t0, Number: n, CRC: crc32.ChecksumIEEE(fmt.Append(nil, name, n)), Outcome: outcome}
		if outcome == OK {
			e.Offset = base + int64(i)
		}
		if logged {
			w.log = append(w.log, Record{base + int64(i), name, n, e.CRC})
		}
		w.events = append(w.events, e)
	}
	t1 := w.tick()
	for i := range count {
		w.events[len(w.events)-1-i].T1 = t1
	}
	if logged {
		producer := map[string]int64{"a": 7, "b": 8}[name]
		w.batches = append(w.batches, Batch{Base: base, Last: base + int64(count) - 1, Epoch: int32(base / 40), Producer: producer, Sequence: sequence[name], Bytes: 100 * count, CRC: w.random.Uint32()})
		sequence[name] += int32(count)
	}
}

func (w *world) reader(name, group string) {
	w.events = append(w.events, Event{Kind: Assign, Worker: name, Group: group, TP: tp, T0: w.tick(), T1: w.now})
	for at := 0; at < len(w.log); {
		at = w.poll(name, group, at)
	}
}

func (w *world) poll(name, group string, at int) int {
	n := min(len(w.log), at+1+w.random.IntN(9))
	w.events = append(w.events, Event{Kind: Poll, Worker: name, Group: group, TP: tp, T0: w.tick(), T1: w.tick(), Records: slices.Clone(w.log[at:n]), Outcome: OK})
	return n
}

// group lets members take over from each other at the committed offset; some have read more than they committed.
func (w *world) group() {
	committed := 0
	for turn := 0; committed < len(w.log); turn++ {
		name := fmt.Sprint("m", turn%2)
		w.events = append(w.events, Event{Kind: Assign, Worker: name, Group: "g", TP: tp, T0: w.tick(), T1: w.now, Offset: int64(committed)})
		at := committed
		for range 1 + w.random.IntN(4) {
			if at == len(w.log) {
				break
			}
			at = w.poll(name, "g", at)
			e := Event{Kind: Commit, Worker: name, Group: "g", TP: tp, T0: w.tick(), T1: w.tick(), Offset: int64(at), Outcome: OK}
			if w.random.IntN(5) == 0 {
				e.Outcome = []Outcome{Info, Fail}[w.random.IntN(2)]
			} else {
				committed = at
			}
			w.events = append(w.events, e)
			w.events = append(w.events, Event{Kind: Fetched, Worker: "watcher", Group: "g", TP: tp, T0: w.tick(), T1: w.tick(), Offset: int64(committed), Outcome: OK})
			if committed == 0 {
				w.events[len(w.events)-1].Offset = -1
			}
		}
		w.events = append(w.events, Event{Kind: Revoke, Worker: name, Group: "g", TP: tp, T0: w.tick(), T1: w.now})
	}
}
