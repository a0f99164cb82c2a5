package sim

import (
	"time"

	"github.com/troupe-broker/troupe/wire/ident"
)

// background is where one life of a broker leaves what need not be done at once: renaming and unlinking files, and reserving space. Each job is done a while after
// it was given, one after the other; a death takes along those that wait.
func (h *host) background(life int) func(job func()) {
	draw := h.run.world.Rand(h.prefix + "later")
	last := ident.Instant(0)
	return func(job func()) {
		now := h.run.world.Now()
		last = max(last, now+ident.Instant(between(draw, 0, h.run.plan.Disk.Later)))
		h.run.world.after(time.Duration(last-now), func() {
			if h.lives == life && h.node.Running() != nil {
				job()
			}
		})
	}
}
