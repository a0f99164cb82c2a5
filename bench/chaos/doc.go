// Chaos runs real brokers in bad company: it kills and pauses them, cuts them off, delays and loses what they say, while real clients work, and lets hostile
// connections at them. What must hold is judged by what clients saw and by what lies on the disks, never by what a broker says of itself.
//
//	go run ./bench/chaos                                     one run of 60 s, all faults, both clients
//	go run ./bench/chaos -runs 20 -seed 1 -out report.txt
//	go run ./bench/chaos -nemeses kill-leader,pause -clients franz-go -seconds 30
//	go run ./bench/chaos -schedule -seed 7                   what would come, and when
//	go run ./bench/chaos -check DIR/history                  judge a history once more
//	go run ./bench/chaos -runs 5 -pages DIR                  a page with a timeline of each run
//
// # A run
//
// A run has a cluster of its own (cluster.go): three processes, one topic with write.caching=false and one with true, three replicas,
// min.insync.replicas=2. Idempotent producers of franz-go and of librdkafka (producer.go, drivers/librdkafka.py) write to every partition with acks=all.
// A reader without a group follows them, and two groups, of the classic protocol and of KIP-848, with a member of each client (member.go). Topics
// are created and deleted beside it (shelf.go), and a few hostile clients never leave the brokers alone (hostile.go). A nemesis carries out a schedule that the seed decides (schedule.go, nemesis.go); whom a fault
// meets is decided when it comes, by who leads then. All that brokers say to each other, and that clients and brokers do, passes through a network of the
// harness (actors/relay), which knows control connections from data connections and from gossip; hostile clients alone go straight to the brokers. Faults do not wait until replicas are in sync again: no order of kills and pauses may lose anything.
//
// Then all is healed, and every partition has to have its ISR whole within a minute, both groups have to commit up to the ends, and every broker
// has to let go of what clients were (gauge.go looks at memory, descriptors and goroutines all the time) and to stop in order. How soon each partition takes a record
// after the healing, and each group a commit, is measured and told (progress.go). Everything is read from start to end, and the batches on the three disks are noted.
//
// Each worker has written a history (history.go), which package check judges: what was acknowledged is in the log, once, where it was said to be, in the
// order of each producer; readers were given what the log has, and nothing twice; ends of logs do not go back; committed offsets rise; an epoch has one leader and a partition one member of a
// group; replicas are equal byte by byte; a broker at rest holds what it held at first. A run that
// acknowledged too little fails as well, since it said nothing.
//
// The report has a line for each run. Of one that failed it tells what is wrong, what happened when, and where its data, logs and histories are kept; a page
// (page.go) draws faults, acknowledgements, leaders and what brokers held over one axis.
//
// # Two builds
//
// Most runs are of the product's binary. SIGKILL cannot show what a power loss takes, since the page cache stays, and nobody can move the clock of one process alone. One
// run in three is therefore of a test build (bench/chaos/proving): the same cast, with a clock that reads how wrong it is from a file, and on a disk that
// forgets what was not synced (bench/chaos/volatile). In every other one of these all brokers may lose their power at once; then both topics have write.caching=false,
// for what page caches alone keep may be lost. A single loss waits until all replicas are in sync, which is what write.caching=true asks for.
//
// A disk that can be filled is a small tmpfs, which takes root. Without it that fault is left out, and the report says so. Bits are turned on one broker (rot.go, rotfile.go),
// in every file of every log, and on another one only when all of that is whole again; a disk is replaced by an empty one once. Both wait until all replicas are in sync: there
// has to be another copy. Damage that is not mended a minute after the end is told, and fails no run; damage that a reader cannot get past does, and damage that a broker gives out
// after it has found it.
//
// Glossary: a nemesis is who brings faults, and a kind of fault; a gap is the longest time in which nothing of a partition was acknowledged, as a client
// sees it, its own timeouts and back-off included; unknown is a record that was neither acknowledged nor certainly refused.
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
// # Tests
//
// `go test` runs short forms of the run above, with one broker and with three, and the two stories below it. TROUPE_TEST_KILL_SECONDS,
// TROUPE_TEST_CLUSTER_SECONDS, TROUPE_TEST_POWER_SECONDS, TROUPE_TEST_GROUP_LOOPS and TROUPE_TEST_HOSTILE_SECONDS make them longer, TROUPE_TEST_SEED repeats the schedule of a run,
// TROUPE_TEST_ATTACK chooses one attack by a part of its name, TROUPE_TEST_BINARY and TROUPE_TEST_PROVING name binaries that are built already, and TROUPE_TEST_ALONE says
// that nothing else runs on the machine, so that latency can be judged. librdkafka needs Python with venv; where it is missing, franz-go works alone,
// unless CI=true.
package main
