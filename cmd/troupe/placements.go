package main

import (
	"cmp"
	"maps"
	"slices"
)

// placement is where one partition is, or shall be.
type placement struct {
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
	Replicas  []int32 `json:"replicas"` // the preferred leader first
}

// seats are the brokers that may take replicas, with their racks; an empty one is none.
type seats map[int32]string

// loads counts the replicas of each seat.
func (s seats) loads(parts []placement) map[int32]int {
	n := map[int32]int{}
	for id := range s {
		n[id] = 0
	}
	for i := range parts {
		for _, b := range parts[i].Replicas {
			if _, ok := s[b]; ok {
				n[b]++
			}
		}
	}
	return n
}

// best is the seat that should take one more replica of a partition that is on these brokers: in a rack that it does not use yet, if there is one, then the
// one with fewest replicas, then the lowest id. 0, false: all have one.
func (s seats) best(on []int32, n map[int32]int) (int32, bool) {
	racks := map[string]bool{}
	for _, b := range on {
		if rack := s[b]; rack != "" {
			racks[rack] = true
		}
	}
	ids := slices.DeleteFunc(slices.Sorted(maps.Keys(s)), func(b int32) bool { return slices.Contains(on, b) })
	if len(ids) == 0 {
		return 0, false
	}
	return slices.MinFunc(ids, func(a, b int32) int {
		if x, y := racks[s[a]], racks[s[b]]; x != y {
			if x {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(n[a], n[b]), cmp.Compare(a, b))
	}), true
}

// drained plans the moves that leave nothing on a broker. Another one takes its place in the order of preference. stuck are partitions that every other broker
// has already: with shrink they get one replica less, unless it is their last.
func drained(parts []placement, s seats, id int32, shrink bool) (moves, stuck []placement) {
	others := maps.Clone(s)
	delete(others, id)
	n := others.loads(parts)
	for i := range parts {
		p := &parts[i]
		at := slices.Index(p.Replicas, id)
		if at < 0 {
			continue
		}
		to := placement{Topic: p.Topic, Partition: p.Partition, Replicas: slices.Clone(p.Replicas)}
		b, ok := others.best(slices.Delete(slices.Clone(p.Replicas), at, at+1), n)
		switch {
		case ok:
			to.Replicas[at] = b
			n[b]++
		case shrink && len(p.Replicas) > 1:
			to.Replicas = slices.Delete(to.Replicas, at, at+1)
		default:
			stuck = append(stuck, *p)
			continue
		}
		moves = append(moves, to)
	}
	return moves, stuck
}

// evened plans the moves after which no broker has two replicas more than another, where racks allow it: a move never makes two replicas share a rack that did
// not before.
func evened(parts []placement, s seats) (moves []placement) {
	now := make([]placement, len(parts))
	for i := range parts {
		now[i] = placement{Topic: parts[i].Topic, Partition: parts[i].Partition, Replicas: slices.Clone(parts[i].Replicas)}
	}
	n, changed := s.loads(now), map[int]bool{}
	for s.evenOne(now, n, changed) {
	}
	for i := range now {
		if changed[i] {
			moves = append(moves, now[i])
		}
	}
	return moves
}

// evenOne moves one replica from the broker with most to one with fewest that can take it.
func (s seats) evenOne(now []placement, n map[int32]int, changed map[int]bool) bool {
	ids := slices.Sorted(maps.Keys(s))
	slices.SortStableFunc(ids, func(a, b int32) int { return cmp.Compare(n[b], n[a]) })
	for _, from := range ids {
		for _, to := range slices.Backward(ids) {
			if n[from]-n[to] < 2 {
				break
			}
			for i := range now {
				p := &now[i]
				at := slices.Index(p.Replicas, from)
				if at < 0 || slices.Contains(p.Replicas, to) || s.shares(p.Replicas, at, to) {
					continue
				}
				p.Replicas[at] = to
				n[from], n[to], changed[i] = n[from]-1, n[to]+1, true
				return true
			}
		}
	}
	return false
}

// shares tells whether a broker in the place of a replica would be in the rack of another one, where that one's was not.
func (s seats) shares(on []int32, at int, to int32) bool {
	rack := s[to]
	if rack == "" || rack == s[on[at]] {
		return false
	}
	for i, b := range on {
		if i != at && s[b] == rack {
			return true
		}
	}
	return false
}
