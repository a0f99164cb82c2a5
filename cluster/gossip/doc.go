// Package gossip tells brokers of each other: who is there, at which address, and who seems to be dead. It wraps hashicorp/memberlist (SWIM with
// Lifeguard), and is an edge package like store: it has sockets, locks and the goroutines of the library. Nothing here decides anything. Gossip
// discovers, and suspects; only the controller fences, by a committed record.
//
// # What the shell does
//
// The package starts no goroutine and reads no clock. Its owner does:
//
//	Bind           one number for TCP and UDP
//	Start          check what the broker tells, the keys, the addresses; start memberlist
//	Receive        on a goroutine of the owner's: reads packets until Stop
//	Offer          a gossip stream that the peer listener has accepted; never blocks
//	Take           after a Wake: the facts and notes since the last Take; never blocks
//	Rejoin         at the start and every RejoinAfter, 10 s, with the brokers that are registered: contacts whom gossip does not show; blocks
//	Announce       when something that the broker tells has changed: a cluster found, a stop begun; blocks for a second at most
//	Leave, Stop    in this order when the stop is planned; Stop alone is a death
//
// Rejoin, Announce and Leave wait for others, so they belong to actors that own a goroutine. memberlist never reconnects by itself: without Rejoin a
// split of the network lasts for ever.
//
// # Facts
//
// A Fact says what one incarnation of one broker is now: Joined, Updated, Dead or Left. Facts of one incarnation merge while nobody takes them, and the
// newest wins, so the queue is never longer than the roster, and whoever takes late still learns how things are. memberlist cannot tell a leave
// from a death; a broker that leaves says so in its Member beforehand, and Left is the death of one that did.
//
// Dead is a suspicion that was not refuted in time: 1.2 s for up to ten brokers, from the first failed probe. A broker that was frozen for 2 s is
// declared dead and comes back as Joined.
//
// # Who is let in
//
// Nobody, unless its label is ours: packets and streams of another label are dropped unread. The label must be the same in brokers that want to find
// each other, those that have no cluster yet included, so it is configured and not made from the cluster id. With keys, everything is sealed by
// AES-GCM; the first key seals, all of them open. Then the Member that comes with each news of a broker is read: malformed ones, names that do not
// fit it, and members of another cluster are refused. A broker without a cluster hears everybody under its label, because it must not found a
// cluster while a member of one is in sight.
//
// What is refused is said once for each offender, in a Note with a code, and for a bounded number of offenders.
//
// # Memory
//
// Bounded whatever arrives: packets and streams are measured and, when they are not sealed, looked at before memberlist reads them, since the library sizes
// some buffers by what the sender declares. Compression, which it would unpack, is off and refused. A roster holds membersMax incarnations.
// Holders of a key are trusted not to be hostile; their bytes are bounded, what the library makes of them is not.
//
// # Glossary
//
//   - Member: what a broker tells about itself, at most 512 bytes in msgpack.
//   - Name: what memberlist calls an incarnation, b<broker>-<first half of the incarnation in hex>; each run of a process is a member of its own.
//   - Seed: an address of --join. Names are resolved anew at each attempt.
//   - Shown: in the roster and alive.
//   - Label: prefix of each packet and stream, which is also authenticated by the seal.
//   - Stranger: a name that was let in and has not become a member, because the news was old.
//   - Note: a line for the log with a code of docs/errors.md.
package gossip
