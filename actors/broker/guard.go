package broker

import (
	"fmt"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire/ident"
)

// unrest says why no broker should be stopped now, by the metadata of this one: the first reason that it finds. "" means that every broker is there and
// every replica in sync. Whether stopping a certain broker leaves enough, the metadata alone do not know: `troupe roll` asks the controllers, too.
func unrest(m *cluster.Image) string {
	for b := range m.Brokers() {
		if b.Fenced || b.ShuttingDown {
			return fmt.Sprintf("broker %d does not serve", b.ID)
		}
	}
	for t := range m.Topics() {
		for n, p := range t.Partitions {
			switch {
			case p.Leader == ident.NoBroker:
				return fmt.Sprintf("nobody leads %s-%d", t.Name, n)
			case len(p.ISR) < len(p.Replicas):
				return fmt.Sprintf("%s-%d has %d of %d replicas in sync", t.Name, n, len(p.ISR), len(p.Replicas))
			}
		}
	}
	return ""
}
