package cluster

import (
	"errors"
	"slices"
	"strings"

	"github.com/troupe-broker/troupe/wire/ident"
)

// ErrTooFewBrokers says that fewer brokers live than replicas are wanted.
var ErrTooFewBrokers = errors.New("too few live brokers")

// Seat is a broker that may take replicas.
type Seat struct {
	Broker ident.BrokerID
	Rack   string // empty: none. Racks count only when every seat has one
}

// Place chooses the replicas of partitions first, first+1, … of a topic. It is a pure function: the same arguments give the same placement.
//
// Leaders are spread evenly: over any stretch of len(seats) partitions each broker is preferred leader once. Followers of one leader are spread over
// the other brokers, shifted a little more in each round, so that a dead broker's leaderships do not all fall to one neighbour. With racks, seats are
// taken rack by rack, and a partition's replicas are in different racks as long as there are racks left.
func Place(seats []Seat, first int32, partitions, factor int, entropy uint64) ([][]ident.BrokerID, error) {
	if factor > len(seats) {
		return nil, ErrTooFewBrokers
	}
	ring := interleave(seats)
	n := uint64(len(ring))
	placed := make([][]ident.BrokerID, partitions)
	for i := range placed {
		number := uint64(first) + uint64(i)
		leader := (entropy%n + number) % n
		placed[i] = replicas(ring, leader, number/n+entropy/n, factor)
	}
	return placed, nil
}

// interleave orders the seats so that neighbours are in different racks as far as that can be: by id within a rack, one rack after the other in turns.
// Without racks everywhere the order is that of the ids.
func interleave(seats []Seat) []Seat {
	sorted := slices.Clone(seats)
	slices.SortFunc(sorted, func(a, b Seat) int { return int(a.Broker) - int(b.Broker) })
	if slices.ContainsFunc(sorted, func(s Seat) bool { return s.Rack == "" }) {
		return sorted
	}
	turn := make([]int, len(sorted)) // how many seats of the same rack come before
	for i, s := range sorted {
		for _, before := range sorted[:i] {
			if before.Rack == s.Rack {
				turn[i]++
			}
		}
	}
	order := make([]int, len(sorted))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if turn[a] != turn[b] {
			return turn[a] - turn[b]
		}
		return strings.Compare(sorted[a].Rack, sorted[b].Rack)
	})
	ring := make([]Seat, len(sorted))
	for i, o := range order {
		ring[i] = sorted[o]
	}
	return ring
}

// replicas picks the leader and walks on from it, shift seats further. A first walk takes only racks that are not used yet, a second takes whoever is
// left.
func replicas(ring []Seat, leader, shift uint64, factor int) []ident.BrokerID {
	n := uint64(len(ring))
	chosen := make([]uint64, 1, factor)
	chosen[0] = leader
	racked := !slices.ContainsFunc(ring, func(s Seat) bool { return s.Rack == "" })
	for _, newRack := range []bool{true, false} {
		for step := uint64(0); step < n-1 && len(chosen) < factor; step++ {
			at := (leader + 1 + (shift+step)%(n-1)) % n
			if slices.Contains(chosen, at) {
				continue
			}
			if racked && newRack && slices.ContainsFunc(chosen, func(c uint64) bool { return ring[c].Rack == ring[at].Rack }) {
				continue
			}
			chosen = append(chosen, at)
		}
	}
	out := make([]ident.BrokerID, len(chosen))
	for i, c := range chosen {
		out[i] = ring[c].Broker
	}
	return out
}

// seats lists the brokers that may take new replicas.
func (m *Image) seats() []Seat {
	var seats []Seat
	for b := range m.Brokers() {
		if b.active() {
			seats = append(seats, Seat{Broker: b.ID, Rack: b.Rack})
		}
	}
	return seats
}
