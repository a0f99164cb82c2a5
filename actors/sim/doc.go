// Package sim runs whole brokers in a simulated world: one goroutine, one seed, no
// real clock, disk, socket or random number. What runs inside is the real broker,
// from the bytes of a request to the sectors of a segment; what is simulated is
// everything that it takes from outside, through actors/broker's World.
//
// The same seed gives the same run, event by event, and the same hash. So a failure
// is a number: `go test ./actors/sim -run Seed -seed=N` replays it.
//
// # Glossary
//
//   - World: one simulation; its seed, its own time, its order, its invariants.
//   - Node: a process of the world, through crashes and boots.
//   - NodeClock: what a node takes for the time; it drifts, and jumps when it is set.
//   - Network, End: streams of bytes between nodes and clients, and one side of one.
//   - Weather: delays, sizes and buffers of the network.
//   - member: a client that consumes in a group, by the classic protocol or that of
//     KIP-848. Faults silence it, kill it, have it leave, or speak the other protocol.
//   - hold: a partition in the hands of a member, as far as that knows. Nobody else is
//     given it while the coordinator cannot have given the member up.
//   - fold: the state that the records of a log make. A coordinator's is compared with
//     what its log has on the disk, compacted or not, at random moments.
//   - Platter: what a power cut would leave at this moment, at least. What the broker
//     counts as durable has to be there, at every death and now and then.
//   - Aim: an operation of the disk at which it matters what a death leaves.
//   - Noise: damage to files that are caches.
//   - Stream: a named source of choices; two purposes never draw from the same one.
package sim
