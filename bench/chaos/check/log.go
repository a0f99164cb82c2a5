package check

import (
	"cmp"
	"slices"
)

// checkLog looks at the complete read alone: its offsets, and each producer's records in it.
func (p *place) checkLog() {
	if !p.logged {
		if len(p.sends) > 0 {
			p.violate(Lost, 0, "the partition was written and was not read in the end")
		}
		return
	}
	last := map[string]int64{}
	next := int64(0)
	for _, r := range p.log {
		if r.Offset != next {
			p.violate(Hole, 0, "offset %d is there where %d was next", r.Offset, next)
		}
		next = r.Offset + 1
		p.at[r.Offset] = r
		key := id{r.Worker, r.Number}
		if first, twice := p.byID[key]; twice {
			p.violate(Duplicate, 0, "record %v is at offset %d and at %d", r, first, r.Offset)
			continue
		}
		p.byID[key] = r.Offset
		if n, known := last[r.Worker]; known && r.Number < n {
			p.violate(Reordered, 0, "at offset %d, record %v follows record %d of the same producer", r.Offset, r, n)
		}
		last[r.Worker] = max(last[r.Worker], r.Number)
	}
}

// checkSends holds the log against what producers sent and were told.
func (p *place) checkSends() {
	sent := make(map[id]*Event, len(p.sends))
	for i := range p.sends {
		sent[id{p.sends[i].Worker, p.sends[i].Number}] = &p.sends[i]
	}
	for _, r := range p.log {
		switch s := sent[id{r.Worker, r.Number}]; {
		case s == nil:
			p.violate(Unsent, 0, "offset %d has %v, which nobody sent", r.Offset, r)
		case s.CRC != r.CRC:
			p.violate(Unsent, s.T1, "offset %d has %v, which was sent with crc %08x", r.Offset, r, s.CRC)
		case s.Outcome == Fail:
			p.violate(Unsent, s.T1, "offset %d has %v, which was refused: %s", r.Offset, r, s.Text)
		}
	}
	if !p.logged {
		return
	}
	for i := range p.sends {
		s := &p.sends[i]
		if s.Outcome != OK {
			continue
		}
		found, there := p.byID[id{s.Worker, s.Number}]
		switch {
		case !there:
			p.violate(Lost, s.T1, "record %s/%d, acknowledged at offset %d, is not in the log, which ends at %d", s.Worker, s.Number, s.Offset, p.end())
		case s.Offset >= 0 && found != s.Offset && p.at[s.Offset] != (Record{s.Offset, s.Worker, s.Number, s.CRC}):
			p.violate(Moved, s.T1, "record %s/%d was acknowledged at offset %d and is at %d", s.Worker, s.Number, s.Offset, found)
		}
	}
}

// end is the offset after the last of the log.
func (p *place) end() int64 {
	if len(p.log) == 0 {
		return 0
	}
	return p.log[len(p.log)-1].Offset + 1
}

// checkOrderInTime: what was acknowledged before another record was sent has the lower offset.
func (p *place) checkOrderInTime() {
	var sent []*Event
	for i := range p.sends {
		if s := &p.sends[i]; s.Outcome == OK && s.Offset >= 0 {
			sent = append(sent, s)
		}
	}
	ended := slices.Clone(sent)
	slices.SortFunc(sent, func(a, b *Event) int { return cmp.Compare(a.T0, b.T0) })
	slices.SortFunc(ended, func(a, b *Event) int { return cmp.Compare(a.T1, b.T1) })
	var top *Event
	for _, s := range sent {
		for len(ended) > 0 && ended[0].T1 < s.T0 {
			if top == nil || ended[0].Offset > top.Offset {
				top = ended[0]
			}
			ended = ended[1:]
		}
		if top != nil && s.Offset < top.Offset {
			p.violate(Reordered, s.T1, "record %s/%d was sent after %s/%d had been acknowledged at offset %d, and was acknowledged at %d",
				s.Worker, s.Number, top.Worker, top.Number, top.Offset, s.Offset)
		}
	}
}

// checkReads: each reader was given one offset after the other, and what the others and the log have there.
func (p *place) checkReads() {
	seen := map[int64]Record{}
	for _, worker := range sortedKeys(p.reads) {
		next := int64(-1)
		for _, e := range p.reads[worker] {
			if e.Kind == Assign {
				next = e.Offset
				continue
			}
			for _, r := range e.Records {
				if next >= 0 && r.Offset != next {
					p.violate(Skip, e.T1, "%s was given offset %d where %d was next", worker, r.Offset, next)
				}
				next = r.Offset + 1
				if first, again := seen[r.Offset]; again && !first.same(r) {
					p.violate(Inconsistent, e.T1, "offset %d was %v to one reader, and is %v to %s", r.Offset, first, r, worker)
					continue
				}
				seen[r.Offset] = r
				if !p.logged {
					continue
				}
				switch there, has := p.at[r.Offset]; {
				case !has:
					p.violate(Vanished, e.T1, "%s was given %v at offset %d, and the log, which ends at %d, does not have it", worker, r, r.Offset, p.end())
				case !there.same(r):
					p.violate(Inconsistent, e.T1, "offset %d was %v to %s, and is %v in the log", r.Offset, r, worker, there)
				}
			}
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
