package check

import (
	"cmp"
	"slices"
)

// ownership is the time in which a member showed that it had the partition: from its assignment until it was revoked, or until its last sign.
type ownership struct {
	worker   string
	from, to int64
	patience int64
}

// checkOwners: a partition has one member of each group, up to the time that a member needs to hear that it is out.
func (p *place) checkOwners() {
	for _, group := range sortedKeys(p.groups) {
		spans := ownerships(p.groups[group])
		slices.SortFunc(spans, func(a, b ownership) int { return cmp.Compare(a.from, b.from) })
		var last *ownership // of those before, the one that ends last
		for i := range spans {
			s := &spans[i]
			if last != nil && last.worker != s.worker && min(last.to, s.to)-s.from > max(last.patience, s.patience) {
				p.violate(Shared, s.from, "group %s: %s had the partition until %d µs, and %s since %d µs", group, last.worker, last.to, s.worker, s.from)
			}
			if last == nil || s.to > last.to {
				last = s
			}
		}
	}
}

func ownerships(events []Event) []ownership {
	var spans []ownership
	open := map[string]*ownership{}
	shut := func(worker string) {
		if o := open[worker]; o != nil {
			spans = append(spans, *o)
			delete(open, worker)
		}
	}
	for i := range events {
		switch e := &events[i]; e.Kind {
		case Assign:
			shut(e.Worker)
			open[e.Worker] = &ownership{e.Worker, e.T1, e.T1, e.Patience}
		case Poll:
			if o := open[e.Worker]; o != nil {
				o.to = e.T1
			}
		case Revoke:
			if o := open[e.Worker]; o != nil {
				o.to = e.T0
			}
			shut(e.Worker)
		default:
		}
	}
	for _, worker := range sortedKeys(open) {
		shut(worker)
	}
	return spans
}
