package sim

import (
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire/ident"
)

// held finds out whether more than half of the voters have everything that is committed in the metadata log where no loss of power takes it away: of those that
// there are, or of those that there were before their newest change: what was under way when that was committed is counted by the set before, until the
// controller has applied it. It is asked at each death, and now and then when something new is committed.
func (e *ensemble) held() {
	if e.run.violation != nil || e.image.Index() == 0 {
		return
	}
	e.run.counted("platters of voters counted")
	if have := e.have(e.image.Voters()); 2*have <= len(e.image.Voters()) && 2*e.have(e.voted) <= len(e.voted) {
		e.run.fail("committed metadata is on the platters of a majority", "index %d of term %d is committed, and %d of %d voters have it there", e.image.Index(), e.image.Term(), have, len(e.image.Voters()))
	}
}

// have counts the voters that have the newest of what is committed on their platters.
func (e *ensemble) have(voters []cluster.Voter) (n int) {
	for _, v := range voters {
		h := e.run.called(v.Broker)
		if h == nil {
			continue
		}
		log, err := (&checker{disk: h.disk.Platter()}).raft()
		if err != nil {
			continue // it has none, or a broken disk has left half of one
		}
		last, term := log.Snapshot.Index, log.Snapshot.Term
		for _, entry := range log.Entries {
			if last = max(last, entry.Index); entry.Index == e.image.Index() {
				term = entry.Term
			}
		}
		if last > e.image.Index() && log.Snapshot.Index >= e.image.Index() || last >= e.image.Index() && term == e.image.Term() {
			n++
		}
	}
	return n
}

// fencing follows who is fenced, by what is committed.
func (e *ensemble) fencing() {
	for _, h := range e.run.hosts {
		b, known := e.image.Broker(h.id)
		_, was := e.fenced[h]
		if known && !b.Fenced {
			e.allowed[h] = b.Epoch
		}
		switch {
		case known && b.Fenced && !was:
			e.fenced[h] = e.run.world.Now()
		case !known || !b.Fenced:
			delete(e.fenced, h)
		}
	}
}

// touchMax is how long a controller that another has succeeded may go on to answer heartbeats, with something to spare.
const touchMax = ident.Instant(time.Second)

// produced holds an answer to a Produce with acks=1, which one broker gives alone, against the bound of a broker that is fenced: a request that reached it
// later than a session after that is not acknowledged.
func (e *ensemble) produced(h *host, acks int16, sent ident.Instant, resp *kmsg.ProduceResponse) {
	if e == nil || acks != 1 {
		return
	}
	text, _ := e.run.plan.Settings.Get("broker.session.timeout.ms")
	session, err := strconv.Atoi(text)
	since, fenced := e.fenced[h]
	if err != nil || !fenced || sent < since+ident.Instant(time.Duration(session)*time.Millisecond)+touchMax {
		return
	}
	e.run.counted("asked a fenced broker after its bound")
	for i := range resp.Topics {
		for _, p := range resp.Topics[i].Partitions {
			if p.ErrorCode == 0 {
				e.run.fail("a fenced broker acknowledges nothing after its bound", "%s is fenced since %v, was asked at %v, and wrote offset %d of %s-%d alone",
					h, time.Duration(since), time.Duration(sent), p.BaseOffset, resp.Topics[i].Topic, p.Partition)
			}
		}
	}
}
