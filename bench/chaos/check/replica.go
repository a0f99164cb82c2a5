package check

// checkReplicas: all disks have the same batches, in sequence, and as many as the log.
func (p *place) checkReplicas() {
	for i := range p.replicas {
		r := &p.replicas[i]
		p.checkBatches(r)
		if i > 0 {
			p.compare(&p.replicas[0], r)
		}
		end := int64(0)
		if n := len(r.Batches); n > 0 {
			end = r.Batches[n-1].Last + 1
		}
		if p.logged && end != p.end() {
			p.violate(Divergent, 0, "the log that was read ends at %d, and on %s at %d", p.end(), r.Worker, end)
		}
	}
}

// compare reports the first difference alone: what follows it differs, too.
func (p *place) compare(first, other *Event) {
	for i := range max(len(first.Batches), len(other.Batches)) {
		switch {
		case i >= len(first.Batches):
			p.violate(Divergent, 0, "%s has %+v, and %s has nothing more", other.Worker, other.Batches[i], first.Worker)
		case i >= len(other.Batches):
			p.violate(Divergent, 0, "%s has %+v, and %s has nothing more", first.Worker, first.Batches[i], other.Worker)
		case first.Batches[i] != other.Batches[i]:
			p.violate(Divergent, 0, "%s has %+v where %s has %+v", first.Worker, first.Batches[i], other.Worker, other.Batches[i])
		default:
			continue
		}
		return
	}
}

// checkBatches looks at one replica: offsets without a hole, epochs that do not fall, and each producer's sequence.
func (p *place) checkBatches(r *Event) {
	type state struct {
		term int16
		next int32
	}
	producers := map[int64]state{}
	next, epoch := int64(0), int32(-1)
	for _, b := range r.Batches {
		if b.Base != next {
			p.violate(Hole, 0, "%s has a batch at offset %d where %d was next", r.Worker, b.Base, next)
		}
		if b.Epoch < epoch {
			p.violate(Divergent, 0, "%s has a batch of epoch %d at offset %d, behind one of epoch %d", r.Worker, b.Epoch, b.Base, epoch)
		}
		next, epoch = b.Last+1, b.Epoch
		if b.Producer < 0 {
			continue
		}
		s, known := producers[b.Producer]
		switch {
		case known && b.Term < s.term:
			p.violate(Sequence, 0, "%s: at offset %d, producer %d writes with epoch %d behind its epoch %d", r.Worker, b.Base, b.Producer, b.Term, s.term)
		case !known || b.Term > s.term:
			s.next = 0
			fallthrough
		default:
			if b.Sequence != s.next {
				p.violate(Sequence, 0, "%s: at offset %d, producer %d (epoch %d) has sequence %d where %d was next", r.Worker, b.Base, b.Producer, b.Term, b.Sequence, s.next)
			}
		}
		// Sequences go round after 2³¹-1.
		producers[b.Producer] = state{b.Term, int32((int64(b.Sequence) + b.Last - b.Base + 1) & (1<<31 - 1))}
	}
}
