package cluster

import "math"

func (cmd *AlterReassignments) encode(w *writer) {
	w.command(CodeAlterReassignments, 2)
	each(w, cmd.Partitions, func(p *Reassignment) {
		w.array(3)
		w.string(p.Topic)
		w.int(int64(p.Partition))
		w.brokersOrNil(p.Replicas)
	})
	w.bool(cmd.FixFactor)
}

func (r *reader) alterReassignmentsCommand(f *fields) Command {
	cmd := &AlterReassignments{}
	if f.next() {
		cmd.Partitions = list(r, itemsMax, func(f *fields, p *Reassignment) {
			f.string(&p.Topic)
			number(f, &p.Partition, math.MinInt32, math.MaxInt32)
			if f.next() {
				p.Replicas = r.brokersOrNil()
			}
		})
	}
	f.bool(&cmd.FixFactor)
	return cmd
}

// [[[name, partition, error|nil]…]]
func (body *AlterReassignmentsReply) encode(w *writer) {
	w.answer(CodeAlterReassignments, 1)
	each(w, body.Partitions, func(p *ReassignmentResult) {
		w.array(3)
		w.string(p.Topic)
		w.int(int64(p.Partition))
		w.error(p.Err)
	})
}

func (r *reader) alterReassignmentsReply(f *fields) ReplyBody {
	body := &AlterReassignmentsReply{}
	if f.next() {
		body.Partitions = list(r, itemsMax, func(f *fields, p *ReassignmentResult) {
			f.string(&p.Topic)
			number(f, &p.Partition, math.MinInt32, math.MaxInt32)
			f.error(&p.Err)
		})
	}
	return body
}
