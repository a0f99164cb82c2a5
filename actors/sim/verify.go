package sim

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// verify writes to every partition, reads everything there is, and holds it against all that was promised.
func (r *run) verify(round int) {
	if r.violation != nil {
		return
	}
	probe := newClient(r, ClientPlan{
		Number: 100 + 2*round, Kind: Idempotent, Acks: -1, InFlight: 5, Pause: time.Millisecond, Size: 300, Patience: 30 * time.Second,
	})
	last := newClient(r, ClientPlan{Number: 101 + 2*round, Kind: Consumer, Pause: time.Millisecond, Patience: 30 * time.Second})
	r.clients = append(r.clients, probe, last)
	p := probe.script.(*producer)
	probe.start()
	r.until("writing to every partition", finishMax, func() bool { return p.everywhere() })
	probe.script.finish()
	r.until("probing", finishMax, p.done)

	s := last.script.(*consumer)
	s.patient = true
	s.finish()
	last.start()
	r.until("reading everything", catchUp, s.done)
	if r.violation != nil {
		return
	}
	for _, t := range r.ghost.all() {
		if !t.stable() {
			continue
		}
		for n, g := range t.partitions {
			d := find(s.readers, t.name, t.id, int32(n))
			if d == nil || d.topic != t {
				r.fail("created topics stay", "nobody can read %s-%d (%s)", t.name, n, t.id)
				return
			}
			if d.from < g.startKept {
				r.fail("what was deleted stays deleted", "%s-%d begins at %d, it was told to begin at %d, long before the last restart", t.name, n, d.from, g.startKept)
				return
			}
			g.missing(r, d.from, s.behind[g], d.read)
		}
	}
	r.lookups(last, s)
	for _, c := range []*client{probe, last} {
		c.script.finish()
	}
	r.verifyCommits(round)
}

// verifyCommits asks for what all groups have committed, and holds it against what they were told.
func (r *run) verifyCommits(round int) {
	if r.violation != nil || len(r.groups.groups) == 0 {
		return
	}
	c := newClient(r, ClientPlan{Number: 110 + round, Kind: Operator, Pause: time.Millisecond, Patience: 30 * time.Second})
	r.clients = append(r.clients, c)
	c.script.finish()
	c.start()
	r.until("asking for all commits", time.Minute, c.script.done)
}

// everywhere tells that the producer has had something acknowledged in every partition that exists.
func (p *producer) everywhere() bool {
	if len(p.topics) == 0 {
		return p.looked
	}
	for _, t := range p.topics {
		for n := range t.partitions {
			if !t.stable() {
				continue
			}
			if l := p.laneOf(t, int32(n)); l.gone || l.acks == 0 {
				return false
			}
		}
	}
	return true
}

// lookups asks for offsets by time, and holds the answers against what was read.
func (r *run) lookups(c *client, s *consumer) {
	draw := stream(r.plan.Seed, fmt.Sprintf("lookups/%s", c.name))
	var asked []*reader
	req := kmsg.NewPtrListOffsetsRequest()
	for _, d := range s.readers {
		if !d.topic.stable() || d.topic.mayForget || len(d.spans) == 0 {
			continue
		}
		at := d.spans[draw.IntN(len(d.spans))]
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic = d.topic.name
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.CurrentLeaderEpoch = d.partition, -1
		p.Timestamp = int64(at.times[draw.IntN(len(at.times))]) + draw.Int64N(3) - 1
		t.Partitions = append(t.Partitions, p)
		req.Topics = append(req.Topics, t)
		asked = append(asked, d)
	}
	if len(asked) == 0 {
		return
	}
	answered := false
	c.ask(req, func(resp kmsg.Response, err error) {
		answered = err == nil
		if err != nil {
			r.fail("a broker at peace answers", "%s: %v", c.name, err)
			return
		}
		for i, t := range resp.(*kmsg.ListOffsetsResponse).Topics {
			p, d := t.Partitions[0], asked[i]
			want, stamp := d.firstAt(ident.Millis(req.Topics[i].Partitions[0].Timestamp))
			if wire.ErrorCode(p.ErrorCode) != wire.NoError || ident.Offset(p.Offset) != want || ident.Millis(p.Timestamp) != stamp {
				r.fail("offsets are found by time", "%s-%d: for timestamp %d the answer is offset %d with %d (%v), the log has %d with %d",
					d.topic.name, d.partition, req.Topics[i].Partitions[0].Timestamp, p.Offset, p.Timestamp, wire.ErrorCode(p.ErrorCode), want, stamp)
			}
		}
	})
	r.until("looking up", time.Minute, func() bool { return answered })
}

// firstAt is the first record that was read with a timestamp at or after ts; -1, -1 when there is none.
func (d *reader) firstAt(ts ident.Millis) (ident.Offset, ident.Millis) {
	for _, s := range d.spans {
		for i, t := range s.times {
			if o := s.base + ident.Offset(i); t >= ts && o >= d.from {
				return o, t
			}
		}
	}
	return -1, -1
}
