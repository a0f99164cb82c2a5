package consumer

import (
	"fmt"
	"slices"

	"github.com/troupe-broker/troupe/group/records"
)

// Check verifies every invariant of a group that has been loaded whole, and returns an error that names the first broken one. It is meant for tests and
// simulations: its cost grows with the state.
func (g *Group) Check() error {
	for _, check := range []func() error{g.checkEpochs, g.checkHolders, g.checkMembers, g.checkCounts, g.checkRegexes} {
		if err := check(); err != nil {
			return fmt.Errorf("consumer group %s: %w", g.id, err)
		}
	}
	return nil
}

func (g *Group) checkEpochs() error {
	switch {
	case g.head == nil && len(g.members) > 0:
		return fmt.Errorf("%d members without a group epoch", len(g.members))
	case g.targetEpoch() > g.Epoch():
		return fmt.Errorf("target epoch %d above group epoch %d", g.targetEpoch(), g.Epoch())
	case len(g.ids) == 0 && g.targetEpoch() != g.Epoch():
		return fmt.Errorf("no members, target epoch %d, group epoch %d", g.targetEpoch(), g.Epoch())
	}
	for _, id := range g.ids {
		m := g.members[id]
		if m.epoch() > g.targetEpoch() {
			return fmt.Errorf("member %s has epoch %d above target epoch %d", id, m.epoch(), g.targetEpoch())
		}
	}
	return nil
}

// checkHolders: nobody holds what another one does, and the index says who does.
func (g *Group) checkHolders() error {
	held := make(map[partition]string)
	var double error
	for _, id := range g.ids {
		g.each(g.members[id], func(p partition) {
			if other, ok := held[p]; ok {
				double = fmt.Errorf("partition %s-%d is held by %s and by %s", p.topic, p.index, other, id)
			}
			held[p] = id
		})
	}
	if double != nil {
		return double
	}
	if len(held) != len(g.holders) {
		return fmt.Errorf("%d partitions are held, the index has %d", len(held), len(g.holders))
	}
	for p, m := range g.holders {
		if held[p] != m.id || g.members[m.id] != m {
			return fmt.Errorf("the index has partition %s-%d with %s, it is with %q", p.topic, p.index, m.id, held[p])
		}
	}
	return nil
}

func (g *Group) checkMembers() error {
	for id, m := range g.members {
		switch {
		case m.sub == nil:
			return fmt.Errorf("%s has an assignment and no subscription", id)
		case (m.state() == records.MemberUnrevoked) != (len(m.revoking()) > 0):
			return fmt.Errorf("%s is in state %d and has to revoke %v", id, m.state(), m.revoking())
		case !slices.IsSorted(m.sub.Topics):
			return fmt.Errorf("the topics of %s are not sorted", id)
		case m.sub.Instance != nil && g.statics[*m.sub.Instance] != id:
			return fmt.Errorf("instance %s of %s is with %q", *m.sub.Instance, id, g.statics[*m.sub.Instance])
		}
		for _, list := range [][]records.TopicPartitions{m.assigned(), m.revoking()} {
			if flat := claims(list, 0); !sameClaims(pack(flat), list) {
				return fmt.Errorf("what %s has is not in order: %v", id, list)
			}
			for _, c := range claims(list, 0) {
				if c.epoch > max(0, m.epoch()) {
					return fmt.Errorf("%s of epoch %d has a partition since epoch %d", id, m.epoch(), c.epoch)
				}
			}
		}
	}
	return nil
}

func (g *Group) checkCounts() error {
	unsettled, classics, statics := 0, 0, 0
	for _, id := range g.ids {
		m := g.members[id]
		if m.epoch() != leftForAWhile && !m.reached(g.targetEpoch()) {
			unsettled++
		}
		if m.classic() {
			classics++
		}
		if m.sub.Instance != nil {
			statics++
		}
	}
	if unsettled != g.unsettled || classics != g.classics || statics != len(g.statics) || len(g.ids) != len(g.members) || !slices.IsSorted(g.ids) {
		return fmt.Errorf("counts are off: unsettled %d (%d), classic %d (%d), static %d (%d), members %d (%d)",
			g.unsettled, unsettled, g.classics, classics, len(g.statics), statics, len(g.ids), len(g.members))
	}
	return nil
}

func (g *Group) checkRegexes() error {
	said := 0
	for _, id := range g.ids {
		said += sizeOf(id, g.members[id].sub)
	}
	for pattern, resolved := range g.regexes {
		said += regexSize(pattern, resolved)
	}
	if said != g.said {
		return fmt.Errorf("members and patterns take %d bytes, counted %d", said, g.said)
	}
	patterns := g.patterns()
	for pattern := range g.regexes {
		if _, ok := slices.BinarySearch(patterns, pattern); !ok {
			return fmt.Errorf("nobody subscribes to the pattern %q", pattern)
		}
	}
	for _, pattern := range patterns {
		if g.regexes[pattern] == nil && !slices.Contains(g.under.patterns, pattern) {
			return fmt.Errorf("the pattern %q is not resolved, and is not going to be", pattern)
		}
	}
	return nil
}
