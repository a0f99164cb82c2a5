package cluster

import (
	"math/rand"
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/wire/ident"
)

// TestSettlingKeepsItsRules settles random partitions in random situations and checks what has to hold whatever they are.
func TestSettlingKeepsItsRules(t *testing.T) {
	met := map[Election]int{}
	for seed := range int64(20_000) {
		rng := rand.New(rand.NewSource(seed))
		p := randomPartition(rng)
		if err := p.check(); err != nil {
			t.Fatal(err)
		}
		for _, b := range p.Replicas {
			if rng.Intn(6) == 0 && !p.InSync(b) {
				p.Offline = append(p.Offline, b)
			}
			if rng.Intn(4) == 0 {
				p.Damaged = append(p.Damaged, b)
			}
			if rng.Intn(4) == 0 {
				p.Full = append(p.Full, b)
			}
		}
		up := map[ident.BrokerID]bool{}
		for _, b := range p.Replicas {
			up[b] = rng.Intn(3) > 0 || p.InSync(b)
		}
		s := situation{gone: ident.NoBroker, rules: rules{minISR: 1 + rng.Intn(3), unclean: rng.Intn(4) == 0}, unclean: rng.Intn(6) == 0}
		if rng.Intn(3) > 0 {
			s.gone, s.lost = p.Replicas[rng.Intn(len(p.Replicas))], rng.Intn(2) == 0
			up[s.gone] = false
		}
		s.live = func(b ident.BrokerID) bool { return up[b] }
		to := settle(&p, s, nil)
		if err := to.check(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		before := append(slices.Clone(p.ISR), p.ELR...)
		switch {
		case to.Leader != ident.NoBroker && (!up[to.Leader] || slices.Contains(p.Offline, to.Leader)):
			t.Errorf("seed %d: a dead leader", seed)
		case slices.Contains(to.Full, to.Leader) && slices.ContainsFunc(to.ISR, to.sound(s)):
			t.Errorf("seed %d: a full leader, and a sound member of the ISR: %s", seed, describePartition(&to))
		case to.Leader != p.Leader && slices.Contains(to.Full, to.Leader) && slices.ContainsFunc(to.ISR, to.roomy(s)):
			t.Errorf("seed %d: a full leader was elected, and a member of the ISR has room: %s", seed, describePartition(&to))
		case to.Leader != ident.NoBroker && len(to.ISR) > int(to.MinISR) && slices.ContainsFunc(to.ISR, func(b ident.BrokerID) bool { return b != to.Leader && slices.Contains(to.Full, b) }) &&
			len(to.ISR)-len(to.Full) >= int(to.MinISR):
			t.Errorf("seed %d: a full follower holds up an ISR that does not need it: %s", seed, describePartition(&to))
		case slices.Contains(to.Damaged, to.Leader) && slices.ContainsFunc(to.ISR, to.sound(s)):
			t.Errorf("seed %d: a damaged leader, and a sound member of the ISR: %s", seed, describePartition(&to))
		case slices.Contains(to.Damaged, to.Leader) && slices.ContainsFunc(to.ELR, to.sound(s)) &&
			!slices.ContainsFunc(to.ISR, func(b ident.BrokerID) bool { return !slices.Contains(to.Damaged, b) }):
			t.Errorf("seed %d: a damaged leader, and a sound member of the ELR: %s", seed, describePartition(&to))
		case len(to.ISR) > 0 && to.commits() && len(to.ELR) > 0:
			t.Errorf("seed %d: an ELR beside a full ISR", seed)
		case s.gone == ident.NoBroker && len(p.ISR) > 0 && to.MinISR < p.MinISR && len(to.ELR) > 0:
			t.Errorf("seed %d: MinISR fell and left an ELR", seed)
		case s.gone != ident.NoBroker && to.InSync(s.gone):
			t.Errorf("seed %d: who is gone is in the ISR", seed)
		case s.lost && slices.Contains(to.ELR, s.gone):
			t.Errorf("seed %d: who lost records is in the ELR", seed)
		case to.Leader != ident.NoBroker && len(to.Reports) > 0:
			t.Errorf("seed %d: a leader, and reports of those who could be", seed)
		case to.Leader != p.Leader && to.Leader != ident.NoBroker && (to.Election == ElectionUnclean || len(p.Replicas) == 1):
			if len(to.LastKnownELR) > 0 {
				t.Errorf("seed %d: %v is kept, and nobody can be compared, or has to", seed, to.LastKnownELR)
			}
		case to.Leader != p.Leader && p.Leader != ident.NoBroker && !slices.Equal(to.LastKnownELR[:len(before)], before):
			t.Errorf("seed %d: %v and %v were in sync, %v is kept", seed, p.ISR, p.ELR, to.LastKnownELR)
		case slices.ContainsFunc(p.LastKnownELR, func(b ident.BrokerID) bool { return !slices.Contains(to.LastKnownELR, b) }):
			t.Errorf("seed %d: nobody has shown that it led, and %v became %v", seed, p.LastKnownELR, to.LastKnownELR)
		}
		if to.Leader == p.Leader || to.Leader == ident.NoBroker {
			continue
		}
		met[to.Election]++
		switch to.Election {
		case ElectionClean:
			if !slices.Contains(before, to.Leader) || len(p.Replicas) > 1 && slices.Contains(p.Unverified, to.Leader) {
				t.Errorf("seed %d: %d is called clean after %s", seed, to.Leader, describePartition(&p))
			}
		case ElectionUnclean:
			if !s.rules.unclean && !s.unclean {
				t.Errorf("seed %d: an unclean election that nobody allowed", seed)
			}
		case ElectionPossibleLoss:
			if whole := slices.DeleteFunc(before, func(b ident.BrokerID) bool { return b == s.gone && s.lost }); len(whole) > 0 {
				t.Errorf("seed %d: %v were whole", seed, whole)
			}
		}
		// Settled is settled: the same situation asks for nothing more.
		s.gone, s.lost = ident.NoBroker, false
		again := settle(&to, s, nil)
		if rec, changed := changeOf(&to, &again); changed {
			t.Errorf("seed %d: %s asks for %+v", seed, describePartition(&to), *rec)
		}
	}
	for _, how := range []Election{ElectionClean, ElectionUnclean, ElectionPossibleLoss} {
		if met[how] == 0 {
			t.Errorf("no election of kind %d", how)
		}
	}
}

// randomPartition makes any partition that can be.
func randomPartition(rng *rand.Rand) Partition {
	p := Partition{Leader: ident.NoBroker, MinISR: int32(1 + rng.Intn(3))}
	for _, b := range rng.Perm(4)[:1+rng.Intn(4)] {
		id := ident.BrokerID(b + 1)
		p.Replicas = append(p.Replicas, id)
		switch rng.Intn(5) {
		case 0, 1:
			p.ISR = append(p.ISR, id)
		case 2:
			p.ELR = append(p.ELR, id)
		case 3:
			p.Unverified = append(p.Unverified, id)
		}
	}
	p.MinISR = min(p.MinISR, int32(len(p.Replicas)))
	if p.commits() {
		p.ELR = nil
	}
	if len(p.ISR) > 0 && rng.Intn(4) > 0 {
		p.Leader = p.ISR[rng.Intn(len(p.ISR))]
	}
	if p.Leader != ident.NoBroker && rng.Intn(2) == 0 {
		p.LastKnownELR = slices.Clone(p.Replicas[:1+rng.Intn(len(p.Replicas))])
	}
	if p.Leader == ident.NoBroker {
		p.LastKnownELR = slices.Clone(p.Replicas[:1+rng.Intn(len(p.Replicas))])
		for _, b := range p.LastKnownELR {
			if rng.Intn(3) > 0 {
				p.Reports = append(p.Reports, Report{Broker: b, LastEpoch: ident.LeaderEpoch(rng.Intn(3)), End: ident.Offset(rng.Intn(100))})
			}
		}
	}
	return p
}

// TestAMoveThatAnOlderControllerLeftIsEnded: a build from before reassignments takes the replicas that are added for what they are, and knows nothing of those that
// are to go. The first look of a newer controller ends the move.
func TestAMoveThatAnOlderControllerLeftIsEnded(t *testing.T) {
	p := Partition{Replicas: []ident.BrokerID{1, 3, 2}, Removing: []ident.BrokerID{2}, ISR: []ident.BrokerID{1, 2, 3}, Leader: 2, MinISR: 2}
	all := func(ident.BrokerID) bool { return true }
	to := settle(&p, situation{gone: ident.NoBroker, rules: rules{minISR: 2}, live: all}, nil)
	if to.Reassigning() || to.Leader != 1 || !slices.Equal(to.Replicas, []ident.BrokerID{1, 3}) || !slices.Equal(to.ISR, []ident.BrokerID{1, 3}) {
		t.Errorf("it stays as %s", describePartition(&to))
	}
}
