package sim

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/troupe-broker/troupe/wire/ident"
)

// ghostGroups is what must be true of groups, seen from outside: it hears of what members commit, are told to read, and fetch.
type ghostGroups struct {
	run     *run
	groups  map[string]*ghostGroup
	expires time.Duration // offsets.retention.minutes, when it is short enough to be seen; 0: nothing expires
	jumps   []wallJump
}

// wallJump is a moment at which somebody set the broker's clock, and what it showed before and after.
type wallJump struct {
	at            ident.Instant
	before, after ident.Millis
}

// ghostGroup is one group.
type ghostGroup struct {
	run     *run
	name    string
	places  map[*ghostPartition]*place
	deleted []*write // DeleteGroups: of every place
	modern  bool     // a member of it spoke the protocol of KIP-848

	shortest time.Duration // consumer.session.timeout.ms of the group that was ever asked for; 0: none was
}

// place is a partition as a group has it.
type place struct {
	group     *ghostGroup
	partition *ghostPartition
	writes    []*write
	holds     []*hold // of members that read it, as far as they know, and the last ones that others had
}

// write is a commit, or a deletion of one. An answer is right when some order of all writes gives it: each is carried out once between sent and done.
type write struct {
	mark   string // the metadata of the commit; "": a deletion
	offset int64
	epoch  int32 // leader epoch
	sent   ident.Instant
	done   ident.Instant // by then it was; 0: nobody knows
	wall   ident.Millis  // of the broker, when it was sent
	never  bool          // it was refused
}

// hold is a partition in the hands of a member: it was told by the answer to a request.
type hold struct {
	member   *member
	sent     ident.Instant // the request
	told     ident.Instant // the answer
	released bool          // the member does not read it any more
	byName   bool          // it was told a name: the member speaks the classic protocol
	began    ident.Instant // sent of the request by which it was told that name, though the topic that has it may have become another one since
}

func newGhostGroups(r *run) *ghostGroups {
	g := &ghostGroups{run: r, groups: make(map[string]*ghostGroup)}
	if minutes, set := r.plan.Settings.Get("offsets.retention.minutes"); set {
		if n, err := strconv.Atoi(minutes); err == nil {
			g.expires = time.Duration(n) * time.Minute
		}
	}
	return g
}

// group returns what is known of a group.
func (g *ghostGroups) group(name string) *ghostGroup {
	one := g.groups[name]
	if one == nil {
		one = &ghostGroup{run: g.run, name: name, places: make(map[*ghostPartition]*place)}
		g.groups[name] = one
	}
	return one
}

// names lists the groups in order.
func (g *ghostGroups) names() []string { return slices.Sorted(maps.Keys(g.groups)) }

// jumped lets the broker's clock be set.
func (g *ghostGroups) jumped(set func()) {
	_, before := g.run.host.node.Clock.Now()
	set()
	_, after := g.run.host.node.Clock.Now()
	g.jumps = append(g.jumps, wallJump{at: g.run.world.Now(), before: before, after: after})
}

// latest is the latest time that the broker's clock has shown since an instant.
func (g *ghostGroups) latest(since ident.Instant) ident.Millis {
	_, wall := g.run.host.node.Clock.Now()
	for _, j := range g.jumps {
		if j.at >= since {
			wall = max(wall, j.before, j.after)
		}
	}
	return wall
}

// place returns what is known of a partition.
func (g *ghostGroup) place(p *ghostPartition) *place {
	one := g.places[p]
	if one == nil {
		one = &place{group: g, partition: p}
		g.places[p] = one
	}
	return one
}

// judged tells whether anything can be said of a partition: what is committed by name may be another topic's, and goes with the topic.
func (l *place) judged() bool {
	return l.partition.topic.stable() && !l.group.run.ghost.reborn(l.partition.topic.name)
}

// begin notes that a write is sent.
func (l *place) begin(mark string, offset int64, epoch int32) *write {
	w := l.group.write(mark, offset)
	w.epoch = epoch
	l.writes = append(l.writes, w)
	return w
}

func (g *ghostGroup) write(mark string, offset int64) *write {
	_, wall := g.run.host.node.Clock.Now()
	return &write{mark: mark, offset: offset, sent: g.run.world.Now(), wall: wall}
}

// delete notes that the group is asked to go.
func (g *ghostGroup) delete() *write {
	w := g.write("", -1)
	g.deleted = append(g.deleted, w)
	return w
}

// after tells that w was surely carried out after v.
func (w *write) after(v *write) bool { return v.done != 0 && w.sent > v.done }

// fetched holds an answer to a fetch against what was committed; sent is when it was asked. What was seen is known to be carried out.
func (l *place) fetched(who string, sent ident.Instant, offset int64, epoch int32, mark string) {
	r, now := l.group.run, l.group.run.world.Now()
	if !l.judged() {
		return
	}
	r.counted("group offset fetched")
	all := slices.Concat(l.writes, l.group.deleted)
	// overwritten finds a write that surely came between v and the fetch.
	overwritten := func(v *write) *write {
		for _, w := range all {
			if w != v && !w.never && w.done != 0 && w.done < sent && (v == nil || w.after(v)) {
				return w
			}
		}
		return nil
	}
	var last *write
	if offset < 0 {
		last = overwritten(nil)
		ok := last == nil || slices.ContainsFunc(all, func(w *write) bool { return w.mark == "" && !w.never && overwritten(w) == nil })
		if !ok && l.mayExpire(sent) {
			r.counted("commits expired")
			ok = true
		}
		if !ok {
			r.fail("commits stay", "%s: group %s has no offset for %s-%d, and committed %s = %d", who, l.group.name, l.partition.topic.name, l.partition.number, last.mark, last.offset)
		}
		return
	}
	i := slices.IndexFunc(l.writes, func(w *write) bool { return w.mark == mark })
	if i < 0 || l.writes[i].offset != offset || l.writes[i].epoch != epoch || l.writes[i].never {
		r.fail("offsets that are told were committed", "%s: group %s has %q = %d of leader epoch %d for %s-%d, which nobody committed there", who, l.group.name, mark, offset, epoch, l.partition.topic.name, l.partition.number)
		return
	}
	w := l.writes[i]
	if last = overwritten(w); last != nil {
		r.fail("commits stay", "%s: group %s has %s = %d for %s-%d, and committed %q = %d after that", who, l.group.name, mark, offset, l.partition.topic.name, l.partition.number, last.mark, last.offset)
		return
	}
	if w.done == 0 {
		w.done = now
	}
	l.writes = slices.DeleteFunc(l.writes, func(v *write) bool { return w.after(v) })
}

// mayExpire tells whether the commits of the partition may have expired by now: the newest that is known is old enough by some time that the broker's clock
// has shown, and no member that read the partition before it was committed has gone on to read it.
func (l *place) mayExpire(sent ident.Instant) bool {
	g := l.group.run.groups
	if g.expires == 0 {
		return false
	}
	for _, w := range l.writes {
		if w.mark == "" || w.never || w.done == 0 || w.done >= sent {
			continue
		}
		if g.latest(w.sent)-w.wall < ident.Millis(g.expires.Milliseconds()) {
			return false
		}
		for _, h := range l.holds {
			if !h.released && h.told < w.sent && h.member.vouched() {
				return false
			}
		}
	}
	return true
}

// give notes that a member was told to read the partition. Nobody else reads it then, whom the coordinator cannot have given up.
func (l *place) give(h *hold) {
	r, m := l.group.run, h.member
	for _, other := range l.holds {
		if other.member == m || other.released || other.told >= h.sent || !l.partition.topic.stable() || !other.member.vouched() {
			continue
		}
		if l.group.modern && (l.mayBeAnothers(h) || l.mayBeAnothers(other)) { // only a group that was ever one of KIP-848 is dealt topics by their ids
			r.counted("member reads by name what another one reads by id")
			continue
		}
		r.fail("nobody reads what another one reads", "%s and %s of group %s both read %s-%d: %s since %v, %s was asked for at %v",
			other.member.name, m.name, l.group.name, l.partition.topic.name, l.partition.number, other.member.name, time.Duration(other.told), m.name, time.Duration(h.sent))
	}
	l.holds = slices.DeleteFunc(l.holds, func(o *hold) bool { return o.member == m || o.released && h.sent > o.told })
	l.holds = append(l.holds, h)
}

// imageLag is how much older the image of a coordinator may be than that of another broker: without a lease it answers nobody.
const imageLag = 6 * time.Second

// mayBeAnothers tells whether what was meant by a hold may be the topic that had the name before. A member of the classic protocol is told names, and reads
// whatever has the name; when the topic is deleted and made anew, it reads the new one without having been told to, until it joins again. The coordinator knows
// the two by their ids, and may give the new one to somebody else at once. It is so in Kafka. A topic that somebody has heard of before the name was told is no
// other one, for the coordinator knew it then; among several brokers it may have known it a while later.
func (l *place) mayBeAnothers(h *hold) bool {
	t, r := l.partition.topic, l.group.run
	known := t.seen
	if r.ensemble != nil && r.ghost.reborn(t.name) {
		known += ident.Instant(imageLag)
	}
	return h.byName && h.began <= known
}

// fenced tells whether a commit that is sent now must be refused: after the hold was given to its member, another one was given the partition.
func (l *place) fenced(h *hold) bool {
	return slices.ContainsFunc(l.holds, func(o *hold) bool { return o.member != h.member && o.sent > h.told })
}
