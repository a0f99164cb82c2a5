package offsets

import (
	"slices"
	"strconv"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
)

// How much a shard remembers of consumers that may be about to jump. The oldest are forgotten first.
const (
	jumpsMax     = 4096
	jumpBytesMax = 1 << 20 // of names
)

// Jumps are consumers that were told of no usable commit and have not committed since. The consumer then asks for an offset by a special timestamp
// (auto.offset.reset) and goes on from there; what lies between is a jump. It is soft state of a shard: a failover forgets it, and then a jump is not told.
//
// A jump counts only when the same client commits on the partition: monitors ask for the same things, but never commit. What was asked for first counts:
// a client that later asks for the end of the partition wants to know its lag.
type Jumps struct {
	waiting map[place]*waiting
	askers  map[asker][]*waiting
	oldest  *waiting
	newest  *waiting
	bytes   int
}

// place is what a client was told about.
type place struct {
	client       coord.Client
	group, topic string
	partition    int32
}

// asker is what is known of it when it asks for an offset.
type asker struct {
	client    coord.Client
	topic     string
	partition int32
}

// waiting is one consumer on one partition.
type waiting struct {
	place
	reason   records.JumpReason
	from     ident.Offset // what it would have read next
	logStart ident.Offset // when it was told
	target   ident.Offset // where it went, once it is known
	at       ident.Millis
	resolved bool

	older, newer *waiting
}

// NewJumps makes an empty memory.
func NewJumps() *Jumps {
	return &Jumps{waiting: make(map[place]*waiting), askers: make(map[asker][]*waiting)}
}

// Len is how many consumers are remembered.
func (j *Jumps) Len() int { return len(j.waiting) }

// told notes what a client heard about a partition. Without a log start there is nothing to count from: this broker does not lead the partition.
func (j *Jumps) told(now coord.Now, client coord.Client, group, topic string, id ident.TopicID, p coord.FetchPartition, o *records.Offset) {
	at := place{client: client, group: group, topic: topic, partition: p.Partition}
	if len(j.waiting) > 0 {
		j.forget(j.waiting[at]) // what it hears now counts
	}
	w := waiting{place: at, from: p.LogStart, logStart: p.LogStart, reason: records.JumpNoCommit, at: now.Wall}
	if usable(o, id) {
		w.from, w.reason = o.Offset, records.JumpExpired
		if o.Offset >= p.LogStart {
			return
		}
	}
	if p.LogStart >= 0 {
		j.remember(&w)
	}
}

// Jumped notes where a client asked to go. It answers for the group that was told last, if the client reads the partition for several.
func (j *Jumps) Jumped(c *coord.Jumped) {
	if len(j.waiting) == 0 {
		return
	}
	asked := j.askers[asker{client: c.Client, topic: c.Topic, partition: c.Partition}]
	for _, w := range slices.Backward(asked) {
		if !w.resolved {
			w.resolved, w.target, w.at = true, c.Target, c.At
			return
		}
	}
}

// committed takes the jump that a commit of a client proves; nil: none. Where it went may be unknown (To -1): the client went on by itself, or asked a
// broker that did not tell. Of a commit that fell below the log start the least is known even then: nobody reads below the log start.
func (j *Jumps) committed(client coord.Client, e *records.OffsetCommit) *records.Jump {
	if len(j.waiting) == 0 {
		return nil
	}
	w, offset := j.waiting[place{client: client, group: e.Group, topic: e.Topic, partition: e.Partition}], e.Value.Offset
	if w == nil {
		return nil
	}
	j.forget(w)
	to := min(w.target, offset) // a client that commits less has thought better of it
	if !w.resolved {
		to = min(w.logStart, offset)
		if w.reason == records.JumpNoCommit && offset > w.from {
			return &records.Jump{Reason: w.reason, From: w.from, To: ident.NoOffset, At: w.at}
		}
	}
	if to <= w.from {
		return nil // nothing was left unread
	}
	return &records.Jump{Reason: w.reason, From: w.from, To: to, At: w.at}
}

func (j *Jumps) remember(w *waiting) {
	j.waiting[w.place] = w
	a := w.asker()
	j.askers[a] = append(j.askers[a], w)
	w.older = j.newest
	if j.newest != nil {
		j.newest.newer = w
	} else {
		j.oldest = w
	}
	j.newest = w
	j.bytes += w.size()
	for len(j.waiting) > jumpsMax || j.bytes > jumpBytesMax {
		j.forget(j.oldest)
	}
}

func (j *Jumps) forget(w *waiting) {
	if w == nil {
		return
	}
	delete(j.waiting, w.place)
	j.bytes -= w.size()
	a := w.asker()
	if left := slices.DeleteFunc(j.askers[a], func(other *waiting) bool { return other == w }); len(left) == 0 {
		delete(j.askers, a)
	} else {
		j.askers[a] = left
	}
	if w.older != nil {
		w.older.newer = w.newer
	} else {
		j.oldest = w.newer
	}
	if w.newer != nil {
		w.newer.older = w.older
	} else {
		j.newest = w.older
	}
}

func (w *waiting) asker() asker {
	return asker{client: w.client, topic: w.topic, partition: w.partition}
}

func (w *waiting) size() int {
	return len(w.client.ID) + len(w.client.Host) + len(w.group) + len(w.topic)
}

// Remembered is what is still told of a jump: new commits of the partition carry it on, and an operator sees it. nil: nothing.
func Remembered(now coord.Now, cfg *coord.Config, jump *records.Jump) *records.Jump {
	if jump == nil || now.Wall-jump.At >= ident.Millis(cfg.JumpsRememberedMillis) {
		return nil
	}
	return jump
}

// note tells of a jump whose extent is known.
func note(member string, e *records.OffsetCommit, jump *records.Jump, out *coord.Out) {
	if jump.To < 0 {
		return
	}
	text := e.Topic + "-" + strconv.Itoa(int(e.Partition)) + ": " + jump.Reason.String() + ", from " + jump.From.String() + " to " + jump.To.String()
	out.Note(coord.Note{Kind: coord.NoteJump, Group: e.Group, Member: member, Text: text, Count: jump.Skipped()})
}
