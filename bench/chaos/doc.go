// Package chaos runs the real binary in bad company: it kills the broker while clients write, and lets a thousand hostile
// connections at it while one client works. What must hold is written as checks on what clients saw, never on what the
// broker says of itself.
//
// # What a kill must not take
//
// Writers (writer.go) send numbered records with acks=all and remember where each was acknowledged. A broker is killed with
// SIGKILL in the middle, started again, and the log is read as a consumer reads it (history.go). Then, for every partition:
//
//   - offsets follow each other without a gap;
//   - every acknowledged record lies at the offset that was acknowledged, byte for byte;
//   - each writer's records are there in the order in which they were sent, each once: the retry of a request whose answer the
//     kill swallowed is recognised;
//   - whatever a reader was given before a kill is there after it, at the same offset;
//   - a topic whose creation was answered exists, one whose deletion was answered does not.
//
// SIGKILL leaves the kernel's page cache alone, so this holds for write.caching=true as well; both classes run.
//
// # What a kill must not take from a cluster
//
// Three brokers (cluster.go) replicate under the same writers, with min.insync.replicas=2. The leader of a partition is killed, now and then all three at once,
// and what was acknowledged is read from whoever leads then, while the other is still down. All checks above hold; in the end the three have the same batches,
// byte by byte.
//
// # What a kill must not take from groups
//
// Committers (committer.go) commit numbers that only rise, as members of groups of both protocols and as simple consumers, and
// remember what was acknowledged. A small segment and a cleaner that never rests keep the offsets topic under compaction
// meanwhile. After each kill, for every group and partition:
//
//   - the committed number is one that was sent, and not below the last that was acknowledged;
//   - it is not below what a reader was told before the kill;
//   - the group comes back: its members go on committing, without being told to begin anew by hand;
//   - a group whose deletion was answered, or an offset whose deletion was, does not come back.
//
// # What hostile connections must not take
//
// Clients that send noise, announce huge frames, dribble bytes, never read, or send batches that lie (hostile.go) are closed
// or held; the broker's memory stays within a bound, no descriptor is left behind, and a well-behaved client's latency
// stays within twice what it was alone.
//
// # Size
//
// `go test` runs the small form. TROUPE_TEST_KILL_LOOPS, TROUPE_TEST_CLUSTER_LOOPS, TROUPE_TEST_GROUP_LOOPS and TROUPE_TEST_HOSTILE_SECONDS make it longer, TROUPE_TEST_SEED
// repeats the pauses of a run, TROUPE_TEST_ATTACK chooses one attack by a part of its name, TROUPE_TEST_BINARY names a binary
// that is built already, and TROUPE_TEST_ALONE says that nothing else runs on the machine, so that latency can be judged.
package chaos
