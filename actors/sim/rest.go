package sim

import (
	"slices"
	"time"

	"github.com/troupe-broker/troupe/cluster/config"
)

// How long the broker is left alone, and what counts as soon in that.
const (
	restFor = 20 * time.Second
	soonMs  = 2000
)

// rest leaves the broker alone for a while, and then holds it against what it has to do by itself: flush what flush.ms
// says, delete what retention.ms says. Whatever it told anybody of log starts is durable by then.
func (r *run) rest() {
	r.until("resting", restFor, nil)
	if r.violation != nil {
		return
	}
	image := r.host.inspection.Image()
	jumped := slices.ContainsFunc(r.plan.Faults, func(f FaultPlan) bool { return f.Kind == WallJump })
	for _, p := range r.host.inspection.Partitions() {
		t, known := image.TopicByID(p.ID)
		if !p.Serving || !known {
			r.fail("a broker at peace serves", "%s is not served", p)
			return
		}
		v := config.TopicOf(image.Stack(t.Name, 0, r.plan.Settings))
		o := p.Offsets
		if (!v.WriteCaching || v.FlushMs <= soonMs) && o.Flushed < o.End {
			r.fail("what is to be flushed is flushed", "%s has been left alone for %v, ends at %d and is flushed to %d (write.caching=%v, flush.ms=%d)",
				p, restFor, o.End, o.Flushed, v.WriteCaching, v.FlushMs)
		}
		// A clock that was wrong by hours leaves files that are of the future.
		if v.RetentionMs >= 0 && v.RetentionMs <= soonMs && !jumped && o.LogStart < o.End {
			r.fail("what is too old goes", "%s has been left alone for %v, and has records from %d to %d (retention.ms=%d)", p, restFor, o.LogStart, o.End, v.RetentionMs)
		}
	}
	r.ghost.rested()
}
