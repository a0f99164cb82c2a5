package check

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// What looks like a fault and is none.
func TestNearMissesPass(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(r *rand.Rand, events *[]Event) bool
	}{
		{"Lost: a record without an answer is not there", func(r *rand.Rand, events *[]Event) bool {
			f := final(*events)
			last := f.Records[len(f.Records)-1]
			for i := range *events {
				e := &(*events)[i]
				e.Records = slices.DeleteFunc(e.Records, func(r Record) bool { return r == last })
				if e.Kind == Send && e.Worker == last.Worker && e.Number == last.Number {
					e.Outcome = Info
				}
				if e.Kind == Ends {
					e.Offset = last.Offset
				}
				if e.Group != "" && e.Offset > last.Offset {
					e.Outcome = Fail
				}
				if n := len(e.Batches); n > 0 {
					e.Batches[n-1].Last--
					if e.Batches[n-1].Last < e.Batches[n-1].Base {
						e.Batches = e.Batches[:n-1]
					}
				}
			}
			return true
		}},
		{"Duplicate: two producers send equal numbers and bytes", func(_ *rand.Rand, events *[]Event) bool {
			for i := range *events {
				e := &(*events)[i]
				e.CRC = 5
				for j := range e.Records {
					e.Records[j].CRC = 5
				}
			}
			return true
		}},
		{"Reordered: records of two producers that were sent at the same time change places", func(r *rand.Rand, events *[]Event) bool {
			for i := range *events {
				if e := &(*events)[i]; e.Kind == Send {
					e.T0, e.T1 = 0, 1_000_000 // all at once
				}
			}
			f := final(*events).Records
			for i := range len(f) - 1 {
				if f[i].Worker == f[i+1].Worker {
					continue
				}
				a, b := f[i], f[i+1]
				a.Offset, b.Offset = b.Offset, a.Offset
				for k := range *events {
					e := &(*events)[k]
					for j := range e.Records {
						switch e.Records[j].Offset {
						case b.Offset:
							e.Records[j] = b
						case a.Offset:
							e.Records[j] = a
						}
					}
					switch {
					case acked(e) && e.Worker == a.Worker && e.Number == a.Number:
						e.Offset = a.Offset
					case acked(e) && e.Worker == b.Worker && e.Number == b.Number:
						e.Offset = b.Offset
					}
				}
				return true
			}
			return false
		}},
		{"Moved: the client does not know the offset", func(r *rand.Rand, events *[]Event) bool {
			nth(r, *events, acked).Offset = -1
			return true
		}},
		{"Hole: a batch is split in two", func(_ *rand.Rand, events *[]Event) bool {
			return each(*events, func(e *Event) bool {
				at := slices.IndexFunc(e.Batches, func(b Batch) bool { return b.Last > b.Base })
				front, back := e.Batches[at], e.Batches[at]
				front.Last = front.Base
				back.Base, back.Sequence = front.Base+1, front.Sequence+1
				e.Batches = slices.Replace(e.Batches, at, at+1, front, back)
				return true
			})
		}},
		{"Unsent: a record without an answer is there", func(r *rand.Rand, events *[]Event) bool {
			nth(r, *events, acked).Outcome = Info
			return true
		}},
		{"Inconsistent: a reader is given less", func(_ *rand.Rand, events *[]Event) bool {
			at := 0
			*events = slices.DeleteFunc(*events, func(e Event) bool {
				if e.Kind != Poll || e.Worker != "r2" {
					return false
				}
				at++
				return at > 3
			})
			return true
		}},
		{"Skip: a member begins again where it was committed, and reads again", func(_ *rand.Rand, events *[]Event) bool {
			*events = append(*events, Event{Kind: Assign, Worker: "m0", Group: "g", TP: tp, T0: 1 << 40, T1: 1 << 40, Offset: 3},
				Event{Kind: Poll, Worker: "m0", Group: "g", TP: tp, T0: 1 << 41, T1: 1 << 41, Records: slices.Clone(final(*events).Records[3:9])})
			return true
		}},
		{"commit: an answer that was lost, and the commit was taken", func(r *rand.Rand, events *[]Event) bool {
			e := nth(r, *events, func(e *Event) bool { return e.Kind == Commit && e.Outcome == OK })
			e.Outcome = Info
			return true
		}},
		{"commit: one that overlaps with the question", func(r *rand.Rand, events *[]Event) bool {
			at := slices.IndexFunc(*events, func(e Event) bool { return e.Kind == Commit && e.Outcome == OK && e.Offset > 20 })
			if at < 0 {
				return false
			}
			early := Event{Kind: Fetched, Worker: "w2", Group: "g", TP: tp, T0: (*events)[at].T0 + 1, T1: (*events)[at].T1 + 1, Outcome: OK, Offset: -1}
			for _, e := range (*events)[:at] {
				if e.Kind == Fetched {
					early.Offset = e.Offset
				}
			}
			(*events)[at].T1 = early.T0 + 1
			*events = slices.Insert(*events, at+1, early)
			return r != nil
		}},
		{"divergent: no replica was looked at", func(_ *rand.Rand, events *[]Event) bool {
			*events = slices.DeleteFunc(*events, func(e Event) bool { return e.Kind == Replica })
			return true
		}},
		{"sequence: a producer begins anew with a new epoch, and sequences go round", func(_ *rand.Rand, events *[]Event) bool {
			return each(*events, func(e *Event) bool {
				b := e.Batches[len(e.Batches)-1]
				e.Batches[len(e.Batches)-1].Term, e.Batches[len(e.Batches)-1].Sequence = b.Term+1, 0
				return true
			})
		}},
		{"stale: a broker that leads no more tells what it knew, within its session", func(_ *rand.Rand, events *[]Event) bool {
			e := *last(*events, Ends)
			e.T0, e.T1, e.Offset = e.T1+1, e.T1+2, e.Offset-1
			*events = slices.DeleteFunc(*events, func(o Event) bool { return o.Kind == Ends && o.T1 < e.T0-StaleMax })
			for i := range *events {
				if s := &(*events)[i]; acked(s) && s.Offset >= e.Offset {
					s.T1 = e.T0 - StaleMax // answered late: nobody could know
				}
			}
			*events = append(*events, e)
			return true
		}},
		{"split: a leader stays for several epochs", func(_ *rand.Rand, events *[]Event) bool {
			for i := range *events {
				if e := &(*events)[i]; e.Kind == Leader && e.Broker > 0 {
					e.Broker = 2
				}
			}
			return true
		}},
		{"shared: a member that heard nothing goes on for a while", func(_ *rand.Rand, events *[]Event) bool {
			until, ok := revokeLate(events)
			for i := range *events {
				if a := &(*events)[i]; a.Kind == Assign && a.Group == "g" {
					a.Patience = until
				}
			}
			return ok
		}},
		{"grown: a broker held much while there was work", func(r *rand.Rand, events *[]Event) bool {
			nth(r, *events, rested("")).Load.Goroutines = 1 << 20
			nth(r, *events, rested(After)).Load.Anon = 20<<20*2 + anonSlack
			return true
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tried := 0
			for seed := range uint64(seeds) {
				events := good(seed)
				if !c.do(rand.New(rand.NewPCG(seed, 1)), &events) {
					continue
				}
				tried++
				for _, v := range All(events) {
					t.Errorf("seed %d: %v", seed, v)
				}
			}
			if tried == 0 {
				t.Error("it was never tried")
			}
		})
	}
}
