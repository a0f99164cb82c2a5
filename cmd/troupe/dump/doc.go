// Package dump reads the files of a data directory, one item at a time, without a broker and without writing anything.
//
// It is a second reader beside store: it trusts no checkpoint and no index, works on a copy of one file, and says where
// a file stops making sense instead of repairing it. Files have Kafka's formats; what a file is follows from its name:
//
//	00000000000000000042.log        record batches          Batch, with its Records when asked
//	00000000000000000042.index      offset to position      IndexEntry
//	00000000000000000042.timeindex  timestamp to offset     TimeIndexEntry
//	00000000000000000042.snapshot   producers               Producer
//	leader-epoch-checkpoint         epochs                  Epoch
//	*-checkpoint                    offsets by partition    Checkpoint
//	meta.properties, partition.metadata                     Property
//	raft/*.raftlog                  the metadata log        RaftFile, RaftHardState, RaftSnapshot, RaftRecord
//
// A name may carry .deleted, .cleaned, .swap or .copy behind it: files that the broker has set aside are read like the
// others.
//
// # Glossary
//
//   - Item: one thing in a file, a struct whose JSON keys are a contract.
//   - Damage: the place from which a file cannot be read on, and why. Reserved space at the end of a segment (zeros, which
//     the broker allocates ahead) is no damage; it is an item, Reserved.
package dump
