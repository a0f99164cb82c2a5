package cluster

import (
	"testing"

	"github.com/troupe-broker/troupe/wire/ident"
)

// A partition whose ISR and ELR are empty: who leads, when one of those that could cannot read all that it has.
func TestOfEqualCopiesTheSoundOneLeads(t *testing.T) {
	end := func(b ident.BrokerID, epoch ident.LeaderEpoch, end ident.Offset) Report {
		return Report{Broker: b, LastEpoch: epoch, End: end}
	}
	for name, c := range map[string]struct {
		reports []Report
		damaged []ident.BrokerID
		unclean bool
		want    ident.BrokerID
	}{
		"the farthest":                       {reports: []Report{end(1, 1, 10), end(2, 1, 20), end(3, 1, 15)}, want: 2},
		"of equals the preferred":            {reports: []Report{end(1, 1, 10), end(2, 1, 10), end(3, 1, 10)}, want: 1},
		"of equals one that is sound":        {reports: []Report{end(1, 1, 10), end(2, 1, 10), end(3, 1, 10)}, damaged: []ident.BrokerID{1, 2}, want: 3},
		"all alike, and damaged":             {reports: []Report{end(1, 1, 10), end(2, 1, 10), end(3, 1, 10)}, damaged: []ident.BrokerID{1, 2, 3}, want: 1},
		"the farthest, though it is damaged": {reports: []Report{end(1, 1, 10), end(2, 1, 20), end(3, 1, 15)}, damaged: []ident.BrokerID{2}, want: 2},
		"a newer epoch, though damaged":      {reports: []Report{end(1, 1, 10), end(2, 2, 5), end(3, 1, 15)}, damaged: []ident.BrokerID{2}, want: 2},
		"nobody has told, unclean":           {damaged: []ident.BrokerID{1}, unclean: true, want: 2},
		"nobody has told, and all damaged":   {damaged: []ident.BrokerID{1, 2, 3}, unclean: true, want: 1},
	} {
		p := &Partition{Replicas: []ident.BrokerID{1, 2, 3}, Leader: ident.NoBroker, Reports: c.reports, Damaged: c.damaged, Strict: true, MinISR: 2}
		to := settle(p, situation{gone: ident.NoBroker, rules: rules{minISR: 2, strict: true}, unclean: c.unclean, live: func(ident.BrokerID) bool { return true }}, nil)
		if to.Leader != c.want {
			t.Errorf("%s: %d leads, not %d: %s", name, to.Leader, c.want, describePartition(&to))
		}
	}
}
