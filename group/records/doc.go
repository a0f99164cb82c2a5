// Package records is the language of __consumer_offsets: each record of a group coordinator as a value (Entry), and its bytes in Kafka's schemas, so that
// Kafka's dump tool and its coordinators read what we write, and we what they wrote.
//
// A key is an int16 type and a message of version 0, not flexible. A value is an int16 version and a message; no value is a tombstone. Unknown types and
// unknown tagged fields are passed over (KIP-915). All versions that Kafka ever wrote are read; one is written, and the exceptions stand at the entry.
//
//	type                                      key                        value, versions   written as
//	 0  LegacyOffsetCommit                    group, topic, partition    0 to 4            type 1
//	 1  OffsetCommit                          group, topic, partition    0 to 4            4; 1 with an expiry
//	 2  GroupMetadata                         group                      0 to 4            3; 4 with a string above StringMax
//	 3  ConsumerGroupMetadata                 group                      0                 0
//	 4  ConsumerGroupPartitionMetadata        group                      not looked at     tombstone only
//	 5  ConsumerGroupMemberMetadata           group, member              0                 0
//	 6  ConsumerGroupTargetAssignmentMetadata group                      0                 0
//	 7  ConsumerGroupTargetAssignmentMember   group, member              0                 0
//	 8  ConsumerGroupCurrentMemberAssignment  group, member              0                 0
//	16  ConsumerGroupRegularExpression        group, pattern             0                 0
//
// # A field of our own
//
// OffsetCommitValue version 4 may carry the tagged field 10000, which Kafka's schemas do not have and Kafka's decoders pass over: what the group skipped
// before this commit (Jump). It is reason (int8: 1 no committed offset, 2 committed offset below the log start), from (int64), to (int64), at (int64, ms
// since 1970). Bytes behind them belong to later versions and are passed over.
//
// # Glossary
//
//   - entry: one record as a value.
//   - tombstone: a record without value; compaction removes what its key named.
//   - flexible: the newer encoding (KIP-482), with compact strings and arrays and with tagged fields.
//   - tagged field: one with a number and a size, written only when it is not at its default.
package records
