package cluster

import "slices"

// disk is the raft log of a test: what was saved, and what of it is synced. crash forgets the rest.
type disk struct {
	now    Durable
	synced Durable
}

func diskOf(d Durable) *disk { return &disk{now: copyOf(d), synced: copyOf(d)} }

func copyOf(d Durable) Durable {
	c := Durable{HardState: slices.Clone(d.HardState), Entries: slices.Clone(d.Entries)}
	if d.Snapshot != nil {
		s := *d.Snapshot
		c.Snapshot = &s
	}
	return c
}

func (d *disk) durable() Durable { return copyOf(d.now) }

// save does what the raft log writer does with a Save.
func (d *disk) save(s Save) {
	if s.HardState != nil {
		d.now.HardState = slices.Clone(s.HardState)
	}
	if s.Snapshot != nil {
		d.now.Snapshot = &Snapshot{Index: s.Snapshot.Index, Term: s.Snapshot.Term, Data: slices.Clone(s.Snapshot.Bytes())}
		if s.Reset {
			d.now.Entries = nil
		}
		d.now.Entries = slices.DeleteFunc(d.now.Entries, func(e Entry) bool { return e.Index <= s.CompactTo })
	}
	if len(s.Entries) > 0 {
		d.now.Entries = slices.DeleteFunc(d.now.Entries, func(e Entry) bool { return e.Index >= s.Entries[0].Index })
		for _, e := range s.Entries {
			d.now.Entries = append(d.now.Entries, Entry{Index: e.Index, Term: e.Term, Data: slices.Clone(e.Data)})
		}
	}
	if s.Sync {
		d.synced = copyOf(d.now)
	}
}

// crash loses what is not synced.
func (d *disk) crash() { d.now = copyOf(d.synced) }
