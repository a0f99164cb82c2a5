package cluster

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"
)

// HardStateOf decodes what a voter may not forget, as Save and Durable carry it, for tools that read a log offline.
func HardStateOf(b []byte) (term, vote, commit uint64, err error) {
	hard, err := decodeHardState(b)
	if err != nil {
		return 0, 0, 0, err
	}
	return hard.GetTerm(), hard.GetVote(), hard.GetCommit(), nil
}

// RecordsOf decodes the records of an entry, for tools that read a log offline. An entry that only begins a term has none.
func RecordsOf(e Entry) ([]Record, error) {
	entry, err := decodeEntry(e)
	if err != nil {
		return nil, err
	}
	return recordsOf(entry)
}

// recordsOf decodes the records of an entry.
func recordsOf(e *pb.Entry) ([]Record, error) {
	switch {
	case e.GetType() == pb.EntryConfChangeV2:
		_, records, err := decodeChange(e.GetData())
		return records, err
	case e.GetType() != pb.EntryNormal:
		return nil, fmt.Errorf("%w: a %v entry", ErrNewerVersion, e.GetType())
	case len(e.GetData()) == 0:
		return nil, nil
	}
	return DecodeBatch(e.GetData())
}
