package classic

import (
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Leave serves LeaveGroup: many members at once, each with an answer of its own, and one rebalance for all.
func (g *Group) Leave(now coord.Now, cfg *coord.Config, id ident.RequestID, c *coord.Leave, out *coord.Out) {
	if g.state == Dead {
		out.Reply(id, &coord.LeaveReply{Code: wire.CoordinatorNotAvailable})
		return
	}
	a := &coord.LeaveReply{Members: make([]coord.LeftMember, len(c.Members))}
	why := ""
	for i := range c.Members {
		l := &c.Members[i]
		a.Members[i] = coord.LeftMember{Member: l.Member, Instance: l.Instance}
		if g.forgetPending(l.Member, out) {
			continue
		}
		m, code := g.leaving(l)
		if code != wire.NoError {
			a.Members[i].Code = code
			continue
		}
		if why == "" {
			why = "member " + m.id + " left"
			if l.Reason != "" {
				why += ": " + l.Reason
			}
		}
		g.expel(m, out)
	}
	if why != "" {
		g.rebalance(now, cfg, why, out)
	} else {
		g.completeIfJoined(now, out)
	}
	out.Reply(id, a)
}

// leaving finds who leaves. An operator names a static member by its instance, without a member id.
func (g *Group) leaving(l *coord.LeavingMember) (*member, wire.ErrorCode) {
	if l.Member != "" {
		return g.find(l.Member, l.Instance)
	}
	if m := g.static[l.Instance]; m != nil {
		return m, wire.NoError
	}
	return nil, wire.UnknownMemberID
}
