// Package check judges what clients saw of a cluster, after the fact: it reads histories and says what in them must not be. It asks no broker and
// believes none. Offsets reveal the order in which a partition took its records, so every check is one pass over a map or a sorted list; none searches.
//
// A history is a set of files with one [Event] per line, in JSON. Whoever works on the cluster writes one: producers, readers, members of groups, the
// nemesis. All run on one machine, so that one clock (CLOCK_MONOTONIC) orders them. After the faults have ended, the harness adds a complete read of
// every partition (kind [Final]) and what each replica has on its disk (kind [Replica]); with these, a loss is proven and not suspected.
//
// # Outcomes
//
// An operation is [OK] when it certainly happened, [Fail] when it certainly did not, [Info] when nobody knows: a timeout, a lost connection, an answer
// that does not say. Taking Info for Fail is the classic mistake of a checker; a writer of histories takes Info whenever in doubt.
//
// # Anomalies
//
//	lost          an acknowledged record is not in the log
//	duplicate     a record is in the log twice
//	reordered     records of one producer are not in the log in the order in which they were sent, or an acknowledged record was given an offset below
//	              one that had been acknowledged before it was sent
//	moved         a record is not where its acknowledgement said
//	hole          an offset of the log is missing, or given twice
//	unsent        the log has a record that nobody sent, that certainly was not taken, or with other bytes
//	inconsistent  two readers, a reader and an acknowledgement, or a reader and the log disagree on what an offset holds
//	vanished      a reader was given a record that is not in the log any more
//	skip          a reader was not given an offset, or given one again, within one assignment; a group's committed offset is above what its
//	              members were given
//	commit        a committed offset went back, was forgotten, or was committed by nobody
//	divergent     replicas do not have the same batches
//	sequence      batches of an idempotent producer are not in sequence on a replica
//	stale         an end was told below one that had been told, or below a record that had been acknowledged, more than [StaleMax] before
//	split         two brokers led a partition in one epoch
//	shared        two members of a group had one partition for longer than the slower of them could be excused
//	grown         a broker that has nothing to do any more holds more than it did at first: memory, descriptors, goroutines
//	fatal         a client gave up, or a broker ended by itself
package check
