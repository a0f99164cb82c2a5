package cluster

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/wire/ident"
)

func seatsOf(brokers, racks int) []Seat {
	var out []Seat
	for b := range brokers {
		s := Seat{Broker: ident.BrokerID(b + 1)}
		if racks > 0 {
			s.Rack = fmt.Sprintf("r%d", b%racks)
		}
		out = append(out, s)
	}
	return out
}

func TestPlacementSpreadsLeadersReplicasAndRacks(t *testing.T) {
	for brokers := 1; brokers <= 9; brokers++ {
		for racks := 0; racks <= brokers; racks++ {
			for factor := 1; factor <= brokers; factor++ {
				for _, entropy := range []uint64{0, 3, 1 << 63} {
					checkPlacement(t, seatsOf(brokers, racks), racks, factor, entropy)
				}
			}
		}
	}
}

func checkPlacement(t *testing.T, seats []Seat, racks, factor int, entropy uint64) {
	t.Helper()
	brokers := len(seats)
	partitions := brokers * max(brokers-1, 1)
	placed, err := Place(seats, 0, partitions, factor, entropy)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("%d brokers, %d racks, factor %d, entropy %d", brokers, racks, factor, entropy)
	leaders, holders := map[ident.BrokerID]int{}, map[ident.BrokerID]int{}
	for _, p := range placed {
		if len(p) != factor {
			t.Fatalf("%s: %v", name, p)
		}
		leaders[p[0]]++
		used := map[string]bool{}
		for i, b := range p {
			if slices.Contains(p[:i], b) {
				t.Fatalf("%s: broker twice in %v", name, p)
			}
			holders[b]++
			used[seats[b-1].Rack] = true
		}
		if racks > 0 && len(used) != min(racks, factor) {
			t.Fatalf("%s: %v uses %d racks", name, p, len(used))
		}
	}
	for _, s := range seats {
		if leaders[s.Broker] != partitions/brokers {
			t.Fatalf("%s: broker %d leads %d of %d", name, s.Broker, leaders[s.Broker], partitions)
		}
		if racks == 0 && holders[s.Broker] != partitions*factor/brokers {
			t.Fatalf("%s: broker %d holds %d replicas of %d", name, s.Broker, holders[s.Broker], partitions*factor)
		}
	}
}

func TestPlacementOfAddedPartitionsContinuesTheOld(t *testing.T) {
	seats := seatsOf(5, 0)
	whole, err := Place(seats, 0, 20, 3, 2)
	if err != nil {
		t.Fatal(err)
	}
	tail, err := Place(seats, 12, 8, 3, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i := range tail {
		if !slices.Equal(tail[i], whole[12+i]) {
			t.Fatalf("partition %d: %v alone, %v together", 12+i, tail[i], whole[12+i])
		}
	}
}

func TestPlacementDoesNotDependOnTheOrderOfSeats(t *testing.T) {
	a, b := seatsOf(6, 3), seatsOf(6, 3)
	slices.Reverse(b)
	pa, err := Place(a, 0, 30, 3, 7)
	if err != nil {
		t.Fatal(err)
	}
	pb, err := Place(b, 0, 30, 3, 7)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(pa) != fmt.Sprint(pb) {
		t.Fatal("the same seats in another order are placed otherwise")
	}
	if _, err := Place(a, 0, 1, 7, 0); !errors.Is(err, ErrTooFewBrokers) {
		t.Fatal(err)
	}
}
