package cluster

import (
	"cmp"
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
	// lost says that what gone holds of the partition is not whole.
	lost bool
	// unclean lets anybody lead, as an operator may ask.
	unclean bool
}

// settle decides what becomes of one partition. It is a pure function, after KIP-966 and with its own answer to replicas that lost records:
//
//   - Who leaves an ISR which then is smaller than MinISR goes to the ELR, because nothing was committed without it. Who is not whole goes nowhere.
//   - An ISR of MinISR members commits without the ELR, so that ends. So does every lowering of MinISR while somebody is in the ISR, in the same record.
//   - A leader comes from the ISR, else from the ELR. Replicas that are not verified stay in their sets and wait.
//   - When both sets are empty, nobody whole is left. Everybody who was in them when there last was a leader has to be back and to have said how far its
//     log reaches; the farthest leads, and the record says that something may be lost. A lone replica need not be compared with anybody.
//   - Fewer suffice only where unclean elections are allowed.
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
	to.MinISR = int32(min(s.rules.minISR, to.assigned()))
	if len(to.ISR) > 0 && (to.commits() || to.MinISR < p.MinISR) {
		to.ELR = nil
	}
	if to.Leader == ident.NoBroker {
		if p.Leader != ident.NoBroker {
			to.LastKnownELR, to.Reports = append(slices.Clone(p.ISR), p.ELR...), nil
		}
		to.elect(s)
	}
	return to
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

// elect looks for a leader.
func (p *Partition) elect(s situation) {
	// Of one replica there is no better copy: whatever it has is what there is.
	can := func(b ident.BrokerID) bool {
		return s.live(b) && (len(p.Replicas) == 1 || !slices.Contains(p.Unverified, b))
	}
	if b := p.first(p.ISR, can); b != ident.NoBroker {
		p.install(b, ElectionClean)
		return
	}
	if len(p.ISR) == 0 {
		if b := p.first(p.ELR, can); b != ident.NoBroker {
			p.ISR, p.ELR = []ident.BrokerID{b}, without(p.ELR, b)
			p.install(b, ElectionClean)
			return
		}
		if b := p.farthest(s.live); b != ident.NoBroker && len(p.ELR) == 0 {
			p.ISR = []ident.BrokerID{b}
			p.install(b, ElectionPossibleLoss)
			return
		}
	}
	if !s.rules.unclean && !s.unclean {
		return
	}
	b := p.best(can)
	if b == ident.NoBroker {
		return
	}
	p.ISR, p.ELR = []ident.BrokerID{b}, nil
	p.install(b, ElectionUnclean)
}

// install makes a broker leader.
func (p *Partition) install(b ident.BrokerID, how Election) {
	p.Leader, p.Election = b, how
	p.LastKnownELR, p.Reports = nil, nil
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

// farthestOf returns the reporter with the greatest (last batch epoch, log end), in the order of preference among equals.
func (p *Partition) farthestOf(eligible func(ident.BrokerID) bool) ident.BrokerID {
	var best *Report
	for _, b := range p.Replicas {
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

// best returns whom an unclean election takes: the farthest of those that reported, else the first; one that is only being added after all others, because
// it may have nothing.
func (p *Partition) best(can func(ident.BrokerID) bool) ident.BrokerID {
	if b := p.farthestOf(can); b != ident.NoBroker {
		return b
	}
	if b := p.first(p.Replicas, func(b ident.BrokerID) bool { return can(b) && !slices.Contains(p.Adding, b) }); b != ident.NoBroker {
		return b
	}
	return p.first(p.Adding, can)
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
	if to.Leader != p.Leader {
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
