// Package load generates the traffic of the benchmarks and measures it from the
// client's side of the socket.
//
// There is one generator for every target (the floors, the null broker, Troupe and
// Apache Kafka), so that a ratio between two of them is a ratio between servers and
// never between clients:
//
//   - Replay sends Produce requests that were encoded before the clock started. Only
//     the correlation id is patched, so the generator costs a write and a read a
//     request. It is closed-loop: a fixed number of requests is in flight.
//   - Drain sends Fetch requests and checks the CRC of every batch before it forgets
//     it: bytes nobody looked at prove nothing.
//   - OpenLoop sends small requests at a fixed rate. Each is stamped with the
//     time at which it was due, not the time at which it left, so a stall of either
//     side is counted against everything that was due meanwhile (no coordinated
//     omission). Records come back through a second connection that long-polls, which
//     gives the end-to-end time as well.
//   - Chase sends one request at a time to whoever leads a partition of a cluster, asks
//     all brokers all the time who that is, and waits for nothing: how long it gets no
//     acknowledgement is how long the cluster gave none.
//
// It is not a Kafka client: it speaks Produce v7 and Fetch v11 to one partition, both
// non-flexible versions whose fields lie at fixed places, and Metadata v7.
package load
