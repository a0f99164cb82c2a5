package check

import (
	"math/rand/v2"
	"slices"
)

// faults are ways to spoil a good history; each must be called by its name. A mutation that finds no place in a history returns false.
var faults = []struct {
	name string
	want Anomaly
	do   func(r *rand.Rand, events *[]Event) bool
}{
	{"the last acknowledged record is cut off", Lost, func(_ *rand.Rand, events *[]Event) bool {
		f := final(*events)
		f.Records = f.Records[:len(f.Records)-1]
		return (*events)[slices.IndexFunc(*events, func(e Event) bool {
			return e.Kind == Send && e.Worker == lastOf(*events).Worker && e.Number == lastOf(*events).Number
		})].Outcome != Fail &&
			slices.ContainsFunc(*events, func(e Event) bool { return acked(&e) && e.Offset == int64(len(f.Records)) })
	}},
	{"an acknowledged record is replaced by one that nobody sent", Lost, func(r *rand.Rand, events *[]Event) bool {
		s := nth(r, *events, acked)
		final(*events).Records[s.Offset].Number += 1_000_000
		return true
	}},
	{"an answer that was unknown is said to be an acknowledgement", Lost, func(r *rand.Rand, events *[]Event) bool {
		s := nth(r, *events, func(e *Event) bool {
			return e.Kind == Send && e.Outcome == Info && !slices.ContainsFunc(final(*events).Records, func(x Record) bool { return x.Worker == e.Worker && x.Number == e.Number })
		})
		if s == nil {
			return false
		}
		s.Outcome, s.Offset = OK, -1
		return true
	}},
	{"the whole log is not read", Lost, func(_ *rand.Rand, events *[]Event) bool {
		*events = slices.DeleteFunc(*events, func(e Event) bool { return e.Kind == Final })
		return true
	}},

	{"the last record is there twice", Duplicate, func(_ *rand.Rand, events *[]Event) bool {
		f := final(*events)
		again := f.Records[len(f.Records)-1]
		again.Offset++
		f.Records = append(f.Records, again)
		return true
	}},
	{"an earlier record comes again", Duplicate, func(r *rand.Rand, events *[]Event) bool {
		f := final(*events)
		again := f.Records[r.IntN(len(f.Records))]
		again.Offset = f.Records[len(f.Records)-1].Offset + 1
		f.Records = append(f.Records, again)
		return true
	}},
	{"a record lies over its neighbour", Duplicate, func(r *rand.Rand, events *[]Event) bool {
		f := final(*events)
		i := 1 + r.IntN(len(f.Records)-1)
		at := f.Records[i].Offset
		f.Records[i] = f.Records[i-1]
		f.Records[i].Offset = at
		return true
	}},

	{"two records of a producer change places in the log", Reordered, func(r *rand.Rand, events *[]Event) bool {
		f := final(*events)
		i, j, ok := pair(r, f.Records, true)
		if ok {
			swap(f.Records, i, j)
		}
		return ok
	}},
	{"two records of two producers change places everywhere, against the clock", Reordered, func(r *rand.Rand, events *[]Event) bool {
		return swapAcks(r, *events, func(a, b *Event) bool { return a.T1 < b.T0 && a.Worker != b.Worker })
	}},
	{"a record is acknowledged long after, with an old offset", Reordered, func(r *rand.Rand, events *[]Event) bool {
		s := nth(r, *events, func(e *Event) bool { return acked(e) && e.Offset > 10 })
		s.Offset = 0
		return true
	}},

	{"an acknowledgement is one too high", Moved, func(r *rand.Rand, events *[]Event) bool { nth(r, *events, acked).Offset++; return true }},
	{"an acknowledgement names offset 0", Moved, func(r *rand.Rand, events *[]Event) bool {
		nth(r, *events, func(e *Event) bool { return acked(e) && e.Offset > 0 }).Offset = 0
		return true
	}},
	{"two acknowledgements are exchanged", Moved, func(r *rand.Rand, events *[]Event) bool {
		return exchange(r, *events, func(a, b *Event) bool { return a != b })
	}},

	{"an offset is left out", Hole, func(r *rand.Rand, events *[]Event) bool {
		f := final(*events)
		i := r.IntN(len(f.Records) - 1)
		f.Records = slices.Delete(f.Records, i, i+1)
		return true
	}},
	{"the log starts late", Hole, func(r *rand.Rand, events *[]Event) bool {
		f := final(*events)
		f.Records = f.Records[1+r.IntN(4):]
		return true
	}},
	{"an offset is used twice", Hole, func(r *rand.Rand, events *[]Event) bool {
		f := final(*events)
		f.Records[1+r.IntN(len(f.Records)-1)].Offset--
		return true
	}},
	{"a replica lacks a batch in the middle", Hole, func(r *rand.Rand, events *[]Event) bool {
		e := nth(r, *events, kind(Replica))
		e.Batches = slices.Delete(e.Batches, 3, 4+r.IntN(3))
		return true
	}},

	{"a record has other bytes", Unsent, func(r *rand.Rand, events *[]Event) bool {
		f := final(*events)
		f.Records[r.IntN(len(f.Records))].CRC ^= 1 << r.IntN(32)
		return true
	}},
	{"a refused record is there", Unsent, func(r *rand.Rand, events *[]Event) bool {
		s := nth(r, *events, func(e *Event) bool { return e.Kind == Send && e.Outcome == Fail })
		if s == nil {
			return false
		}
		f := final(*events)
		f.Records = append(f.Records, Record{int64(len(f.Records)), s.Worker, s.Number, s.CRC})
		return true
	}},
	{"a record of nobody is there", Unsent, func(r *rand.Rand, events *[]Event) bool {
		f := final(*events)
		f.Records = append(f.Records, Record{int64(len(f.Records)), "", r.Int64(), 0})
		return true
	}},

	{"a reader is given other bytes", Inconsistent, func(r *rand.Rand, events *[]Event) bool {
		nth(r, *events, inner).Records[r.IntN(3)].CRC++
		return true
	}},
	{"a reader is given another record", Inconsistent, func(r *rand.Rand, events *[]Event) bool {
		nth(r, *events, inner).Records[r.IntN(3)].Number++
		return true
	}},
	{"all offsets of a reader's poll are shifted against the log", Inconsistent, func(r *rand.Rand, events *[]Event) bool {
		records := nth(r, *events, inner).Records
		swap(records, 0, 1)
		return true
	}},
	{"two readers disagree, and nobody read the log", Inconsistent, func(r *rand.Rand, events *[]Event) bool {
		*events = slices.DeleteFunc(*events, func(e Event) bool { return e.Kind == Final || e.Kind == Send })
		nth(r, *events, inner).Records[1].CRC++
		return true
	}},

	{"what a reader had was cut off", Vanished, func(r *rand.Rand, events *[]Event) bool {
		f := final(*events)
		f.Records = f.Records[:len(f.Records)-1-r.IntN(5)]
		return true
	}},
	{"a reader was given what is beyond the end", Vanished, func(r *rand.Rand, events *[]Event) bool {
		e := nth(r, *events, func(e *Event) bool {
			return e.Kind == Poll && e.Records[len(e.Records)-1].Offset == int64(len(final(*events).Records)-1)
		})
		e.Records = append(e.Records, Record{int64(len(final(*events).Records)), "a", 1 + r.Int64N(3), 1})
		return true
	}},
	{"the log is empty", Vanished, func(_ *rand.Rand, events *[]Event) bool { final(*events).Records = nil; return true }},

	{"a poll leaves a record out", Skip, func(r *rand.Rand, events *[]Event) bool {
		e := nth(r, *events, inner)
		e.Records = slices.Delete(e.Records, 1, 2)
		return true
	}},
	{"a poll is given twice", Skip, func(r *rand.Rand, events *[]Event) bool {
		at := slices.IndexFunc(*events, func(e Event) bool { return inner(&e) && r.IntN(3) == 0 })
		if at < 0 {
			return false
		}
		*events = slices.Insert(*events, at, (*events)[at])
		return true
	}},
	{"a reader begins elsewhere than it said", Skip, func(r *rand.Rand, events *[]Event) bool {
		nth(r, *events, kind(Assign)).Offset++
		return true
	}},
	{"a group commits what no member was given", Skip, func(r *rand.Rand, events *[]Event) bool {
		lost := r.Int64N(int64(len(final(*events).Records)))
		for i := range *events {
			if e := &(*events)[i]; e.Group != "" {
				e.Records = slices.DeleteFunc(e.Records, func(r Record) bool { return r.Offset == lost })
			}
		}
		return true
	}},

	{"a group has forgotten its offsets", CommitLost, func(r *rand.Rand, events *[]Event) bool {
		nth(r, *events, func(e *Event) bool { return e.Kind == Fetched && e.Offset > 0 }).Offset = -1
		return true
	}},
	{"a committed offset goes back", CommitLost, func(r *rand.Rand, events *[]Event) bool {
		e := nth(r, *events, func(e *Event) bool { return e.Kind == Fetched && e.Offset > 0 })
		e.Offset -= 1 + r.Int64N(e.Offset)
		return true
	}},
	{"an offset is committed that nobody committed", CommitLost, func(r *rand.Rand, events *[]Event) bool {
		nth(r, *events, kind(Fetched)).Offset = 100_000
		return true
	}},
	{"an old commit passes", CommitLost, func(r *rand.Rand, events *[]Event) bool {
		e := nth(r, *events, func(e *Event) bool { return e.Kind == Fetched && e.Offset > 1 })
		*events = append(*events, Event{Kind: Commit, Worker: "zombie", Group: "g", TP: tp, T0: e.T1 + 1, T1: e.T1 + 2, Offset: 1, Outcome: OK})
		return true
	}},

	{"a replica lacks its last batch", Divergent, func(r *rand.Rand, events *[]Event) bool {
		e := nth(r, *events, kind(Replica))
		e.Batches = e.Batches[:len(e.Batches)-1]
		return true
	}},
	{"a replica has one more", Divergent, func(r *rand.Rand, events *[]Event) bool {
		e := nth(r, *events, kind(Replica))
		b := e.Batches[len(e.Batches)-1]
		e.Batches = append(e.Batches, Batch{b.Last + 1, b.Last + 1, b.Epoch, -1, 0, -1, 70, 1})
		return true
	}},
	{"a bit of a batch is another", Divergent, func(r *rand.Rand, events *[]Event) bool {
		e := nth(r, *events, kind(Replica))
		e.Batches[r.IntN(len(e.Batches))].CRC ^= 1
		return true
	}},
	{"an epoch of a batch is another", Divergent, func(r *rand.Rand, events *[]Event) bool {
		e := nth(r, *events, kind(Replica))
		e.Batches[r.IntN(len(e.Batches))].Epoch++
		return true
	}},
	{"all replicas have an epoch that falls", Divergent, func(r *rand.Rand, events *[]Event) bool {
		at := 1 + r.IntN(5)
		return each(*events, func(e *Event) bool { e.Batches[at-1].Epoch += 10; return true })
	}},
	{"all replicas are without the end", Divergent, func(_ *rand.Rand, events *[]Event) bool {
		return each(*events, func(e *Event) bool { e.Batches = e.Batches[:len(e.Batches)-1]; return true })
	}},

	{"a sequence is left out", Sequence, func(r *rand.Rand, events *[]Event) bool {
		at := 5 + r.IntN(5)
		return each(*events, func(e *Event) bool { e.Batches[at].Sequence++; return true })
	}},
	{"a batch is there again", Sequence, func(r *rand.Rand, events *[]Event) bool {
		at := 5 + r.IntN(5)
		return each(*events, func(e *Event) bool {
			b := e.Batches[at]
			last := e.Batches[len(e.Batches)-1]
			b.Base, b.Last, b.Epoch = last.Last+1, last.Last+1+b.Last-b.Base, last.Epoch
			e.Batches = append(e.Batches, b)
			return true
		})
	}},
	{"an old epoch of a producer writes", Sequence, func(r *rand.Rand, events *[]Event) bool {
		at := r.IntN(10)
		return each(*events, func(e *Event) bool { e.Batches[at].Term = 3; return at < len(e.Batches)-20 })
	}},

	{"an end goes back", Stale, func(_ *rand.Rand, events *[]Event) bool {
		last(*events, Ends).Offset--
		return true
	}},
	{"an end is below what was acknowledged long before", Stale, func(_ *rand.Rand, events *[]Event) bool {
		e := *last(*events, Ends)
		*events = slices.DeleteFunc(*events, func(e Event) bool { return e.Kind == Ends })
		e.Offset = 1
		*events = append(*events, e)
		return true
	}},
	{"a broker that was forgotten answers", Stale, func(r *rand.Rand, events *[]Event) bool {
		e := *last(*events, Ends)
		e.T0, e.T1, e.Offset, e.Worker = e.T1+2*StaleMax, e.T1+2*StaleMax+1, r.Int64N(e.Offset), "another"
		*events = append(*events, e)
		return true
	}},
	{"an end was told that never was", Vanished, func(r *rand.Rand, events *[]Event) bool {
		nth(r, *events, kind(Ends)).Offset += 1 + r.Int64N(3)
		return true
	}},

	{"two brokers lead in one epoch", Split, func(r *rand.Rand, events *[]Event) bool {
		e := *nth(r, *events, func(e *Event) bool { return e.Kind == Leader && e.Broker > 0 })
		e.Broker = e.Broker%3 + 1
		*events = append(*events, e)
		return true
	}},
	{"an epoch is given twice", Split, func(_ *rand.Rand, events *[]Event) bool {
		for i := range *events {
			if e := &(*events)[i]; e.Kind == Leader && e.Epoch == 3 {
				e.Epoch, e.Broker = 2, 7
			}
		}
		return true
	}},
	{"an old leader comes back in its own epoch, which another has taken", Split, func(_ *rand.Rand, events *[]Event) bool {
		*events = append(*events, Event{Kind: Leader, TP: tp, Broker: 9, Epoch: 0})
		return true
	}},

	{"a member goes on when another has the partition", Shared, func(r *rand.Rand, events *[]Event) bool {
		at := slices.IndexFunc(*events, kindOf(Revoke))
		e := (*events)[at]
		*events = slices.Delete(*events, at, at+1)
		next := slices.IndexFunc((*events)[at:], func(o Event) bool { return o.Kind == Poll && o.Group == "g" && o.Worker != e.Worker })
		if next < 0 {
			return false
		}
		more := (*events)[at+next]
		more.Worker, more.T0, more.T1 = e.Worker, more.T1+1, more.T1+2
		*events = slices.Insert(*events, at+next+1, more)
		return true
	}},
	{"a revocation comes late", Shared, func(_ *rand.Rand, events *[]Event) bool {
		_, ok := revokeLate(events)
		return ok
	}},
	{"a member takes what another has", Shared, func(_ *rand.Rand, events *[]Event) bool {
		at := slices.IndexFunc(*events, func(o Event) bool { return o.Kind == Assign && o.Group == "g" })
		e := (*events)[at]
		e.Worker, e.T0, e.T1 = "thief", e.T0+1, e.T1+1
		poll := (*events)[at+1]
		poll.Worker, poll.T0, poll.T1 = "thief", poll.T0+1, poll.T1+1
		*events = slices.Insert(*events, at+1, e)
		*events = slices.Insert(*events, at+3, poll)
		return true
	}},

	{"memory does not come back", Grown, func(r *rand.Rand, events *[]Event) bool {
		nth(r, *events, rested(After)).Load.Anon += 60 << 20
		return true
	}},
	{"descriptors stay open", Grown, func(r *rand.Rand, events *[]Event) bool {
		nth(r, *events, rested(After)).Load.Descriptors += 50
		return true
	}},
	{"goroutines are left", Grown, func(r *rand.Rand, events *[]Event) bool {
		nth(r, *events, rested(After)).Load.Goroutines += 100
		return true
	}},

	{"a producer gives up", GaveUp, func(_ *rand.Rand, events *[]Event) bool {
		*events = append(*events, Event{Kind: Fatal, Worker: "a", Text: "out of order sequence number"})
		return true
	}},
	{"a broker ends by itself", GaveUp, func(_ *rand.Rand, events *[]Event) bool {
		*events = append(*events, Event{Kind: Fatal, Worker: "broker-1", Text: "exit status 2"})
		return true
	}},
	{"a reader gives up", GaveUp, func(_ *rand.Rand, events *[]Event) bool {
		*events = append(*events, Event{Kind: Fatal, Worker: "r1", TP: tp, Text: "offset out of range"})
		return true
	}},
}

// nth picks an event that fits; nil: there is none.
func nth(r *rand.Rand, events []Event, fits func(*Event) bool) *Event {
	var all []*Event
	for i := range events {
		if fits(&events[i]) {
			all = append(all, &events[i])
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[r.IntN(len(all))]
}

func kind(k Kind) func(*Event) bool { return func(e *Event) bool { return e.Kind == k } }

func kindOf(k Kind) func(Event) bool { return func(e Event) bool { return e.Kind == k } }

func rested(r Rest) func(*Event) bool {
	return func(e *Event) bool { return e.Kind == Usage && e.Load.Rest == r }
}

// last is the last event of a kind.
func last(events []Event, k Kind) *Event {
	for i := len(events) - 1; ; i-- {
		if events[i].Kind == k {
			return &events[i]
		}
	}
}

func acked(e *Event) bool { return e.Kind == Send && e.Outcome == OK }

func final(events []Event) *Event {
	for i := range events {
		if events[i].Kind == Final {
			return &events[i]
		}
	}
	return nil
}

func inner(e *Event) bool { return e.Kind == Poll && e.Group == "" && len(e.Records) > 2 }

func lastOf(events []Event) Record {
	log := []Record(nil)
	for _, e := range events {
		if e.Kind == Poll && (len(log) == 0 || e.Records[len(e.Records)-1].Offset > log[len(log)-1].Offset) {
			log = e.Records
		}
	}
	return log[len(log)-1]
}

func each(events []Event, do func(*Event) bool) bool {
	ok := true
	for i := range events {
		if events[i].Kind == Replica {
			ok = do(&events[i]) && ok
		}
	}
	return ok
}

// pair finds two records, of the same producer or of two.
func pair(r *rand.Rand, records []Record, same bool) (i, j int, ok bool) {
	for range 1000 {
		i, j = r.IntN(len(records)), r.IntN(len(records))
		if i < j && (records[i].Worker == records[j].Worker) == same {
			return i, j, true
		}
	}
	return 0, 0, false
}

// swap exchanges what lies at two offsets.
func swap(records []Record, i, j int) {
	records[i], records[j] = records[j], records[i]
	records[i].Offset, records[j].Offset = records[j].Offset, records[i].Offset
}

// exchange gives two acknowledged sends each other's offset.
func exchange(r *rand.Rand, events []Event, fits func(a, b *Event) bool) bool {
	for range 1000 {
		a, b := nth(r, events, acked), nth(r, events, acked)
		if fits(a, b) {
			a.Offset, b.Offset = b.Offset, a.Offset
			return true
		}
	}
	return false
}

// swapAcks does it in acknowledgements and in the log alike, so that only the clock speaks against it.
func swapAcks(r *rand.Rand, events []Event, fits func(a, b *Event) bool) bool {
	return exchange(r, events, func(a, b *Event) bool {
		if !fits(a, b) {
			return false
		}
		swap(final(events).Records, int(a.Offset), int(b.Offset))
		return true
	})
}

// revokeLate has a member hear that a partition is not its own when the next one has had it and has lost it, too. It says when that is.
func revokeLate(events *[]Event) (at int64, ok bool) {
	first := slices.IndexFunc(*events, kindOf(Revoke))
	e := (*events)[first]
	next := slices.IndexFunc((*events)[first:], func(o Event) bool { return o.Kind == Revoke && o.Worker != e.Worker })
	if next < 0 {
		return 0, false
	}
	at = (*events)[first+next].T1 + 1
	e.T0, e.T1 = at, at
	*events = slices.Insert(slices.Delete(*events, first, first+1), first+next, e)
	return at, true
}
