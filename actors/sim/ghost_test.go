package sim

import (
	"testing"

	"github.com/troupe-broker/troupe/wire/ident"
)

// TestAnAnswerThatWasUnderWayWhenThePowerWent: a broker that stops in order has sent an answer, its power goes before it has synced, and the client has the answer
// then. What it tells may be gone, unless it was promised to survive that.
func TestAnAnswerThatWasUnderWayWhenThePowerWent(t *testing.T) {
	for _, c := range []struct {
		name          string
		strict, later bool // promised; sent after the power cut
		excused       bool
	}{
		{"cached", false, false, true}, {"synced", true, false, false}, {"sent later", false, true, false},
	} {
		r := &run{plan: &Plan{Promise: PromiseMixed}, world: NewWorld(1), counts: make(map[string]int)}
		r.ghost = newGhost(r)
		topic := r.ghost.topic("t0", ident.TopicID{1})
		if c.strict {
			topic.strictSince = 1
		}
		p := topic.partition(0)
		send := func(id uint64) *batch {
			return &batch{id: id, topic: "t0", count: 1, acks: -1, first: 2, idempotent: true, era: p.era}
		}
		lost := send(1)
		r.ghost.powerLost()
		if c.later {
			lost = send(1)
		}
		r.ghost.acknowledged(topic, lost, 65)
		r.ghost.acknowledged(topic, send(2), 65)
		if excused := r.violation == nil; excused != c.excused {
			t.Errorf("%s: %v", c.name, r.violation)
		}
	}
}
