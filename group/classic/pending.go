package classic

import (
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire/ident"
)

// pendingMax bounds the pending members of a group. An id costs its asker nothing, and is remembered for a session timeout of up to 30 minutes.
const pendingMax = 10_000

// pendingQueue has pending members in the order in which they came. Those that are not pending any more stay in it until they come first, or until they
// are more than the others: what a member costs does not depend on how many there are.
type pendingQueue struct {
	ids  []string
	head int
}

// push takes in the latest member.
func (q *pendingQueue) push(id string, pending map[string]struct{}) {
	if len(q.ids)-q.head > 2*len(pending)+16 || q.head > len(q.ids)/2 {
		kept := q.ids[:0]
		for _, id := range q.ids[q.head:] {
			if _, ok := pending[id]; ok {
				kept = append(kept, id)
			}
		}
		clear(q.ids[len(kept):])
		q.ids, q.head = kept, 0
	}
	q.ids = append(q.ids, id)
}

// first is the one of the pending members that came first.
func (q *pendingQueue) first(pending map[string]struct{}) string {
	for q.head < len(q.ids) {
		if _, ok := pending[q.ids[q.head]]; ok {
			return q.ids[q.head]
		}
		q.ids[q.head] = ""
		q.head++
	}
	return ""
}

// addPending remembers an id that was given away until a session timeout is over. The oldest one goes when there are too many.
func (g *Group) addPending(now coord.Now, c *coord.Join, out *coord.Out) {
	if len(g.pending) >= pendingMax {
		g.forgetPending(g.waiting.first(g.pending), out)
	}
	g.waiting.push(c.NewMember, g.pending)
	g.pending[c.NewMember] = struct{}{}
	g.said += len(c.NewMember)
	out.Timers.Set(g.memberKey(coord.TimerPending, c.NewMember), now.Mono+ident.Instant(c.SessionTimeout)*millisecond)
}

// forgetPending drops a pending member; false: it is none.
func (g *Group) forgetPending(id string, out *coord.Out) bool {
	if _, ok := g.pending[id]; !ok {
		return false
	}
	delete(g.pending, id)
	g.said -= len(id)
	out.Timers.Cancel(g.memberKey(coord.TimerPending, id))
	return true
}
