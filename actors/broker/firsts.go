package broker

import (
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire/ident"
)

// firstsMax bounds the producers that a replica without a log remembers: about 100 bytes each.
const firstsMax = 1024

// firsts are producers whose first batch was refused because the log could not be opened yet, for lack of space or descriptors. Their further batches are
// under way: once the log is there, the second one, taken as it comes, would go before the first, which could then never be written.
type firsts []partition.BatchInfo

// note remembers a refused batch if it is a producer's first.
func (f *firsts) note(b *partition.BatchInfo) {
	if b.ProducerID < 0 || b.BaseSequence != 0 || len(*f) == firstsMax {
		return
	}
	*f = append(*f, *b)
}

// tell hands them to what recovery found out about producers.
func (f *firsts) tell(p *partition.Producers, wall ident.Millis) {
	for _, b := range *f {
		p.ExpectFirst(b, wall)
	}
	*f = nil
}
