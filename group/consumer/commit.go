package consumer

import (
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

// modernVersionMin is the first version of OffsetCommit and OffsetFetch that a member of the new protocol may use: it has a member epoch.
const modernVersionMin = 9

// CheckCommit decides whether a commit comes from who may commit (ConsumerGroup.validateOffsetCommit). Without a member it is good while the group is empty.
// A member commits with its epoch; with an older one only partitions that it has had since (KIP-1251), otherwise the whole request is refused.
//
// Errors: UNKNOWN_MEMBER_ID; UNSUPPORTED_VERSION for a member of the new protocol below version 9; STALE_MEMBER_EPOCH, for a classic member
// ILLEGAL_GENERATION.
func (g *Group) CheckCommit(_ coord.Now, _ *coord.Config, c *coord.Commit, _ *coord.Out) wire.ErrorCode {
	if c.Generation < 0 && len(g.ids) == 0 {
		return wire.NoError
	}
	m := g.find(c.Member)
	switch {
	case m == nil:
		return wire.UnknownMemberID
	case !m.classic() && c.Version < modernVersionMin:
		return wire.UnsupportedVersion
	case c.Generation == m.epoch():
		return wire.NoError
	case c.Generation > m.epoch() || !m.heldSince(c):
		return m.stale()
	}
	return wire.NoError
}

// heldSince tells whether the member has had every partition of the commit since the epoch of the commit. Those that the handler refused do not count.
func (m *member) heldSince(c *coord.Commit) bool {
	if c.Generation < 0 {
		return false
	}
	assigned, revoking := claims(m.assigned(), m.epoch()), claims(m.revoking(), m.epoch())
	for i := range c.Topics {
		for _, p := range c.Topics[i].Partitions {
			if p.Code != 0 {
				continue
			}
			name := partition{c.Topics[i].ID, p.Partition}
			held, ok := lookup(assigned, name)
			if !ok {
				held, ok = lookup(revoking, name)
			}
			if !ok || held.epoch > c.Generation {
				return false
			}
		}
	}
	return true
}

// CheckFetch decides whether a fetch of offsets may be answered (ConsumerGroup.validateOffsetFetch). Without a member everybody may ask.
func (g *Group) CheckFetch(_ coord.Now, _ *coord.Config, c *coord.FetchOffsets, _ *coord.Out) wire.ErrorCode {
	if c.Member == "" && c.MemberEpoch < 0 {
		return wire.NoError
	}
	m := g.find(c.Member)
	switch {
	case m == nil:
		return wire.UnknownMemberID
	case c.MemberEpoch != m.epoch():
		return m.stale()
	}
	return wire.NoError
}

func (m *member) stale() wire.ErrorCode {
	if m.classic() {
		return wire.IllegalGeneration
	}
	return wire.StaleMemberEpoch
}
