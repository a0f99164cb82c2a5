package cluster

import (
	"github.com/troupe-broker/troupe/wire"
)

// producerIDBlock is how many producer ids a broker gets at once, as in Kafka.
const producerIDBlock = 1000

// allocateProducerIDs cuts the next block.
func (c *Controller) allocateProducerIDs(cmd *AllocateProducerIDs) decision {
	if err := c.registered(cmd.Broker, cmd.Epoch); err != nil {
		return refused(err)
	}
	first := c.next.nextProducerID
	if first > 1<<62 {
		return refused(refuse(wire.UnknownServerError, "all producer ids are used up"))
	}
	return decision{
		records: []Record{&ProducerIDsRecord{Broker: cmd.Broker, Epoch: cmd.Epoch, Next: first + producerIDBlock}},
		body:    &AllocateProducerIDsReply{First: first, Count: producerIDBlock},
	}
}

// noteDelta tells what a committed batch did to brokers and leaders.
func noteDelta(d *Delta, out *Out) {
	for _, b := range d.Brokers {
		n := Note{Broker: b.ID, Index: d.Index}
		switch {
		case b.To == nil:
			continue
		case b.From == nil || b.From.Epoch != b.To.Epoch:
			n.Kind = NoteRegistered
		case b.To.Fenced && !b.From.Fenced:
			n.Kind = NoteFenced
		case !b.To.Fenced && b.From.Fenced:
			n.Kind = NoteUnfenced
		default:
			continue
		}
		out.Note = append(out.Note, n)
	}
	noteElections(d, out)
}
