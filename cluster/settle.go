package cluster

import (
	"cmp"
	"math"
	"slices"

	"github.com/troupe-broker/troupe/wire/ident"
)

// situation is what a partition is settled in.
type situation struct {
	rules rules
	// live tells whether a broker may lead: registered, not fenced, not leaving.
	live func(ident.BrokerID) bool
	// gone is out of the ISR and leads no more; ident.NoBroker: nobody is.
	gone ident.BrokerID
	// led tells whether a partition's leader is known to have heard that it leads; nil: nobody is asked.
	led func(*Partition) bool
	// lost says that what gone holds of the partition is not whole.
	lost bool
	// unclean lets anybody lead, as an operator may ask.
	unclean bool
}

// settle decides what becomes of one partition. It is a pure function, after KIP-966 and with its own answer to replicas that lost records:
//
//   - Who leaves an ISR which then is smaller than MinISR goes to the ELR, because nothing was committed without it. Who is not whole goes nowhere.
//   - An ISR of MinISR members commits without the ELR, so that ends. So does every lowering of MinISR while somebody is in the ISR, in the same record.
//   - Who is out of both sets under a leader that stays is compared, should the leader turn out to have lost what it had, until that has heard that it may commit
//     without it. It may have been dead before: when a rack loses its power, the one member that kept what it had may be taken for the one that is gone.
//   - A leader comes from the ISR, else from the ELR. Replicas that are not verified, or offline, stay in their sets and wait.
//   - A damaged replica leads where no sound one of ISR or ELR can, and no longer: it may answer for a batch that another has.
//   - A full replica, which can append nothing, leads where no other of the ISR can, and no longer. As a follower it would hold up acks=all: it leaves the ISR
//     where that commits without it. Where it does not, it stays until its leader loses its patience: what follows would be refused without it as well.
//   - When both sets are empty, nobody whole is left. Everybody who was in them when there last was a leader that led has to be back and to have said how far its
//     log reaches; the farthest leads, and the record says that something may be lost. A lone replica need not be compared with anybody.
//   - Fewer suffice only where unclean elections are allowed.
//   - A reassignment whose last replica has joined the ISR ends, and who was to go is gone, in the same record. While all who stay are damaged nobody goes.
//
// prepare changes the copy before it is looked at; nil: it does not.
func settle(p *Partition, s situation, prepare func(*Partition)) Partition {
	to := *p
	if prepare != nil {
		prepare(&to)
	}
	to.Strict = s.rules.strict
	if s.gone != ident.NoBroker {
		to.leave(s.gone, s.lost)
	}
	if to.complete(s) {
		to.finish()
	}
	to.MinISR = int32(min(s.rules.minISR, to.assigned()))
	if len(to.ISR) > 0 && (to.commits() || to.MinISR < p.MinISR) {
		to.ELR = nil
	}
	if (slices.Contains(to.Damaged, to.Leader) || slices.Contains(to.Full, to.Leader)) && to.electClean(to.sound(s)) {
		to.LastKnownELR = to.known(p, s.led)
	}
	if to.Leader == ident.NoBroker {
		if p.Leader != ident.NoBroker {
			to.LastKnownELR, to.Reports = to.known(p, s.led), nil
		}
		to.elect(s)
	}
	to.excuse()
	if to.Leader != ident.NoBroker && to.Leader == p.Leader && to.lacks(p) {
		to.LastKnownELR = to.known(p, s.led)
	}
	to.question()
	if to.complete(s) { // an election was what it needed
		return settle(&to, situation{rules: s.rules, live: s.live, led: s.led, gone: ident.NoBroker}, nil)
	}
	return to
}

// couldLead lists who has to be compared should the leader, and all who could take its place, turn out to have lost records: the ISR and the ELR, and those who
// were in them when somebody last led who has heard of it, if the present leader may not have. When a whole rack loses its power one dead broker after the
// other is elected, until the registration of each says what it has lost. A leader has heard of it when it has proposed something, or a heartbeat came with an
// image that says so: else a machine that is gone for good would be waited for, long after others have taken its place.
func (p *Partition) couldLead(led func(*Partition) bool) []ident.BrokerID {
	all := append(slices.Clone(p.ISR), p.ELR...)
	if p.Leader != ident.NoBroker && led != nil && led(p) {
		return all
	}
	for _, b := range p.LastKnownELR {
		if !slices.Contains(all, b) {
			all = append(all, b)
		}
	}
	return all
}

// known is the last known set of a partition that comes from another state: who could have led in that, and who joined the ISR in the same record, as far as
// they still hold a replica.
func (p *Partition) known(before *Partition, led func(*Partition) bool) []ident.BrokerID {
	all := before.couldLead(led)
	for _, b := range p.ISR {
		if !slices.Contains(all, b) {
			all = append(all, b)
		}
	}
	return slices.DeleteFunc(all, func(b ident.BrokerID) bool { return !p.HasReplica(b) })
}

// lacks tells whether somebody who holds a replica was in the ISR or the ELR of another state, and is in neither now. As long as the leader has not heard of that,
// it has committed nothing that this one lacks.
func (p *Partition) lacks(before *Partition) bool {
	return slices.ContainsFunc(slices.Concat(before.ISR, before.ELR), func(b ident.BrokerID) bool {
		return p.HasReplica(b) && !slices.Contains(p.ISR, b) && !slices.Contains(p.ELR, b)
	})
}

// question asks those for a report on whom an election waits that compares reports. Who has been back since before it came to that, or is back as whole as it
// was, would never tell.
func (p *Partition) question() {
	if p.Leader != ident.NoBroker || len(p.ISR) > 0 || len(p.ELR) > 0 || len(p.Replicas) == 1 {
		return
	}
	for _, b := range p.LastKnownELR {
		if p.report(b) == nil && !slices.Contains(p.Unverified, b) {
			p.Unverified = append(slices.Clone(p.Unverified), b)
		}
	}
}

// commits tells whether the ISR is large enough for anything to be committed.
func (p *Partition) commits() bool { return len(p.ISR) >= int(p.MinISR) }

// leave takes a broker out of the ISR, and out of the ELR when it lost records.
func (p *Partition) leave(b ident.BrokerID, lost bool) {
	if p.InSync(b) {
		p.ISR = without(p.ISR, b)
		p.ELR = append(slices.Clone(p.ELR), b)
	}
	if lost {
		p.ELR = without(p.ELR, b)
	}
	if p.Leader == b {
		p.Leader = ident.NoBroker
	}
}

// serving tells which replicas are there.
func (p *Partition) serving(s situation) func(ident.BrokerID) bool {
	return func(b ident.BrokerID) bool { return s.live(b) && !slices.Contains(p.Offline, b) }
}

// eligible tells which of them may lead. Of one replica there is no better copy: whatever it has is what there is.
func (p *Partition) eligible(s situation) func(ident.BrokerID) bool {
	serves := p.serving(s)
	return func(b ident.BrokerID) bool {
		return serves(b) && (len(p.Replicas) == 1 || !slices.Contains(p.Unverified, b))
	}
}

// sound tells which of those can read all that they have, and append to it.
func (p *Partition) sound(s situation) func(ident.BrokerID) bool {
	can := p.roomy(s)
	return func(b ident.BrokerID) bool { return can(b) && !slices.Contains(p.Damaged, b) }
}

// roomy tells which of the eligible can append.
func (p *Partition) roomy(s situation) func(ident.BrokerID) bool {
	can := p.eligible(s)
	return func(b ident.BrokerID) bool { return can(b) && !slices.Contains(p.Full, b) }
}

// excuse lets the full followers out of an ISR that commits without them.
func (p *Partition) excuse() {
	if p.Leader == ident.NoBroker || len(p.Full) == 0 {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(p.ISR), func(b ident.BrokerID) bool { return b != p.Leader && slices.Contains(p.Full, b) })
	if len(rest) < len(p.ISR) && len(rest) >= int(p.MinISR) {
		p.ISR, p.ELR = rest, nil
	}
}

// elect looks for a leader.
func (p *Partition) elect(s situation) {
	can := p.eligible(s)
	if p.electClean(p.sound(s)) || p.electClean(p.roomy(s)) || p.electClean(can) {
		return
	}
	if len(p.ISR) == 0 {
		if b := p.farthest(p.serving(s)); b != ident.NoBroker && len(p.ELR) == 0 {
			p.ISR = []ident.BrokerID{b}
			p.install(b, ElectionPossibleLoss)
			return
		}
	}
	if !s.rules.unclean && !s.unclean {
		return
	}
	b := p.best(can, s.unclean)
	if b == ident.NoBroker {
		return
	}
	p.ISR, p.ELR = []ident.BrokerID{b}, nil
	p.install(b, ElectionUnclean)
}

// electClean looks for a leader among those who have all that was committed. While somebody is in the ELR, ISR and ELR are alike in that: where all members
// of the ISR are damaged, one of the ELR takes their place.
func (p *Partition) electClean(can func(ident.BrokerID) bool) bool {
	if b := p.first(p.ISR, can); b != ident.NoBroker {
		p.install(b, ElectionClean)
		return true
	}
	if slices.ContainsFunc(p.ISR, func(b ident.BrokerID) bool { return !slices.Contains(p.Damaged, b) }) {
		return false
	}
	b := p.first(p.ELR, can)
	if b == ident.NoBroker {
		return false
	}
	p.ISR, p.ELR = []ident.BrokerID{b}, append(without(p.ELR, b), p.ISR...)
	p.install(b, ElectionClean)
	return true
}

// install makes a broker leader. Until it proposes something nobody knows that it leads, so the last known set stays, where there is somebody to compare and an
// operator has not done without.
func (p *Partition) install(b ident.BrokerID, how Election) {
	p.Leader, p.Election, p.Reports = b, how, nil
	p.led = math.MaxUint64 // nobody has heard of it
	if how == ElectionUnclean || len(p.Replicas) == 1 {
		p.LastKnownELR = nil
	}
	if p.commits() {
		p.ELR = nil
	}
}

// first returns the first replica, in the order of preference, that is among the eligible and can lead.
func (p *Partition) first(eligible []ident.BrokerID, can func(ident.BrokerID) bool) ident.BrokerID {
	for _, b := range p.Replicas {
		if slices.Contains(eligible, b) && can(b) {
			return b
		}
	}
	return ident.NoBroker
}

// farthest returns the replica that reaches farthest once all who could have been leader are back and have reported; before that nobody.
func (p *Partition) farthest(live func(ident.BrokerID) bool) ident.BrokerID {
	if len(p.Replicas) == 1 {
		return p.first(p.Replicas, live)
	}
	known := p.LastKnownELR
	if len(known) == 0 {
		known = p.Replicas
	}
	for _, b := range known {
		if p.HasReplica(b) && (!live(b) || p.report(b) == nil) {
			return ident.NoBroker
		}
	}
	return p.farthestOf(func(b ident.BrokerID) bool { return slices.Contains(known, b) })
}

// farthestOf returns the reporter with the greatest (last batch epoch, log end). Among equals it is one that can read all that it has, then the first in the order
// of preference. One that reaches farther goes before it, damaged or not: a hole is mended when another is back in the ISR, an end that was cut off is lost.
func (p *Partition) farthestOf(eligible func(ident.BrokerID) bool) ident.BrokerID {
	var best *Report
	for _, b := range p.soundFirst() {
		r := p.report(b)
		if r != nil && eligible(b) && (best == nil || r.compare(best) > 0) {
			best = r
		}
	}
	if best == nil {
		return ident.NoBroker
	}
	return best.Broker
}

// soundFirst lists the replicas in the order of preference, those that cannot read all they have behind the others.
func (p *Partition) soundFirst() []ident.BrokerID {
	list := slices.DeleteFunc(slices.Clone(p.Replicas), func(b ident.BrokerID) bool { return slices.Contains(p.Damaged, b) })
	for _, b := range p.Replicas {
		if slices.Contains(p.Damaged, b) {
			list = append(list, b)
		}
	}
	return list
}

// best returns whom an unclean election takes: the farthest of those that reported, else the first; one that is only being added after all others and only when
// somebody asks for it, because it may have nothing, and would take over from all who have something.
func (p *Partition) best(can func(ident.BrokerID) bool, asked bool) ident.BrokerID {
	if b := p.farthestOf(can); b != ident.NoBroker {
		return b
	}
	for _, b := range p.soundFirst() {
		if can(b) && !slices.Contains(p.Adding, b) {
			return b
		}
	}
	return p.first(p.Adding, func(b ident.BrokerID) bool { return asked && can(b) })
}

func (p *Partition) report(b ident.BrokerID) *Report {
	for i := range p.Reports {
		if p.Reports[i].Broker == b {
			return &p.Reports[i]
		}
	}
	return nil
}

// compare orders reports by how much of the partition they hold.
func (r *Report) compare(o *Report) int {
	if c := cmp.Compare(r.LastEpoch, o.LastEpoch); c != 0 {
		return c
	}
	return cmp.Compare(r.End, o.End)
}

// changeOf makes the record that leads from one state of a partition to another, and tells whether there is anything in it.
func changeOf(p, to *Partition) (*PartitionChangeRecord, bool) {
	rec := &PartitionChangeRecord{Leader: LeaderUnchanged}
	changed := false
	if risen(p, to) {
		rec.Leader, rec.Election, changed = to.Leader, to.Election, true
	}
	if to.Strict != p.Strict {
		rec.Mode, changed = modeOf(to.Strict), true
	}
	if to.MinISR != p.MinISR {
		rec.MinISR, changed = to.MinISR, true
	}
	for _, l := range [...]struct {
		rec      *[]ident.BrokerID
		from, to []ident.BrokerID
	}{
		{&rec.ISR, p.ISR, to.ISR},
		{&rec.ELR, p.ELR, to.ELR},
		{&rec.LastKnownELR, p.LastKnownELR, to.LastKnownELR},
		{&rec.Replicas, p.Replicas, to.Replicas},
		{&rec.Adding, p.Adding, to.Adding},
		{&rec.Removing, p.Removing, to.Removing},
		{&rec.Unverified, p.Unverified, to.Unverified},
		{&rec.Offline, p.Offline, to.Offline},
		{&rec.Damaged, p.Damaged, to.Damaged},
		{&rec.Full, p.Full, to.Full},
	} {
		if !slices.Equal(l.from, l.to) {
			*l.rec, changed = notNil(l.to), true
		}
	}
	if !slices.Equal(p.Directories, to.Directories) {
		rec.Directories, changed = notNil(to.Directories), true
	}
	if !slices.Equal(p.Reports, to.Reports) {
		rec.Reports, changed = notNil(to.Reports), true
	}
	return rec, changed
}

// risen tells whether a change needs a new leader epoch for its leader: it is another one, or replicas are taken away. One of those may come back empty, and
// what a leader had heard of it in the former epoch must not count then, whichever records between it has seen.
func risen(p, to *Partition) bool {
	return to.Leader != p.Leader || to.Leader != ident.NoBroker && slices.ContainsFunc(p.Replicas, func(b ident.BrokerID) bool { return !to.HasReplica(b) })
}

func modeOf(strict bool) Mode {
	if strict {
		return ModeStrict
	}
	return ModeCached
}

func without(list []ident.BrokerID, b ident.BrokerID) []ident.BrokerID {
	out := make([]ident.BrokerID, 0, len(list))
	for _, x := range list {
		if x != b {
			out = append(out, x)
		}
	}
	return out
}

// notNil keeps "empty" apart from "unchanged".
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
