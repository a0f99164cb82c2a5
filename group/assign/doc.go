// Package assign has the assignors that a coordinator runs for the members of a consumer group (KIP-848): uniform, which balances and keeps what can be kept,
// and range, which gives the same partition numbers of different topics to the same member.
//
// An assignor is a pure function of the members, what each of them was last told to have, and the number of partitions of each topic. The order in which
// the members come does not matter, and neither does anything else: the same group gets the same assignment on every broker and after every failover.
//
// What every assignor promises: each partition of a topic with a subscriber goes to exactly one member, and that member subscribes to the topic.
//
// Neither looks at racks, as Kafka's do not since 4.0: a member reads from the replica in its own rack (KIP-392), so where its leader stands matters little.
//
// # Glossary
//
//   - target: what a member shall have, as against what it has at the moment. The assignors work on targets; getting there is the group's business.
//   - homogeneous group: all members subscribe to the same topics. Otherwise it is heterogeneous.
//   - quota: how many partitions a member may have for the group to be in balance.
//   - sticky: a partition stays with its member unless balance or a subscription asks for a move.
package assign
