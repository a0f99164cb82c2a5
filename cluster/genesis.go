package cluster

import (
	"errors"
	"fmt"

	"github.com/troupe-broker/troupe/wire/ident"
)

// Promise is what a founder binds itself to: the cluster's name and its voters.
type Promise struct {
	ClusterID ident.ClusterID
	Voters    []Voter        // 1, 3 or 5
	Features  []FeatureLevel // finalised from the first record on
}

// Genesis returns the raft log a founder starts from: its promise as the snapshot at index 1. Saving and syncing it is how a voter promises; all
// founders save the same bytes, whatever the order of Voters and Features. It fails when the promise is not one of 1, 3 or 5 distinct voters with a
// cluster id.
func Genesis(p Promise) (Durable, error) {
	if n := len(p.Voters); n != 1 && n != 3 && n != 5 {
		return Durable{}, fmt.Errorf("a cluster is founded by 1, 3 or 5 voters, not %d", n)
	}
	for i, v := range p.Voters {
		for _, w := range p.Voters[:i] {
			if v.Broker == w.Broker {
				return Durable{}, fmt.Errorf("broker %d is two voters", v.Broker)
			}
		}
		if v.Broker < 0 {
			return Durable{}, fmt.Errorf("voter %v has broker id %d", v.Node, v.Broker)
		}
		if v.Directory.IsZero() {
			return Durable{}, errors.New("a voter without a directory id")
		}
	}
	records := []Record{&ClusterRecord{ClusterID: p.ClusterID}, &VotersRecord{Voters: p.Voters}}
	for _, f := range p.Features {
		records = append(records, &FeatureLevelRecord{Name: f.Name, Level: f.Level})
	}
	m, _, err := NewImage().Apply(1, 1, records)
	if err != nil {
		return Durable{}, fmt.Errorf("promise: %w", err)
	}
	return Durable{
		HardState: encodeHardState(1, 0, 1),
		Snapshot:  &Snapshot{Index: 1, Term: 1, Data: EncodeSnapshot(m)},
	}, nil
}
