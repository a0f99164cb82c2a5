// Package peer starts the brokers of a comparison, ours and the other: Apache Kafka, as its own release ships it, in a process of
// its own beside ours. The figures of package bench and the verdicts of the interop suite are worth something only
// when both brokers ran on the same machine, in the same minutes, driven by the same client.
//
// Nothing is installed by hand. Maven resolves the class path of the release pinned in pom.xml, once; afterwards the
// answer lies in the cache directory and no network is needed. A node is formatted by Kafka's own StorageTool, serves
// as broker and controller at once on ports of the loopback interface that were free a moment ago, and keeps its data
// and its logs below one directory.
//
// Glossary:
//
//   - Profile: the knobs in which two Kafkas of one comparison differ. Stock is what the release's start script and
//     server.properties give; Tuned is set for a machine with two cores.
//   - Class: how much a broker promises with an acknowledgement. Cached is Kafka as shipped: the bytes are in the page
//     cache. Synced is flush.messages=1: each append waits for the disk. Figures of the two classes are never mixed.
//   - Cluster: three nodes, of either kind, that can be killed, paused and started again one by one.
//   - Network: three hosts behind a bridge, each a network namespace, so that one can be cut off.
//   - Process: one started child. It has a known pid, is stopped by that pid alone, and dies with the process that
//     started it.
//   - Usage: what the kernel has charged to a process so far: user and system CPU time, and the memory it holds itself
//     (RssAnon: pages mapped from files are the kernel's to drop, so they do not count).
package peer
