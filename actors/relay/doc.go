// Package relay is a network between brokers, and between clients and brokers, that does what networks do at their worst. It relays TCP connections and
// gossip's packets on one machine, in user space, so that it works everywhere and needs no right that others do not have. Brokers and clients know nothing of
// it: a broker listens at an address of its own (the back) and is told to advertise another one (the front), at which a [Net] listens for it. `troupe dev` cuts
// its brokers off by it, and bench/chaos does all that a [Fault] can.
//
//	client   ── dials ──> client front of 2 ── Net ──> client back of 2
//	broker 1 ── dials ──> peer front of 2   ── Net ──> peer back of 2
//
// # Who is it?
//
// What comes to a client front is a client, and has the number 0. What comes to a peer front is told by its first bytes: a link between brokers opens with
// a greeting that names the broker and what the connection is for (package wire/peer), so that control and data have kinds of their own. Anything else is gossip, or
// encrypted; the kernel's tables of sockets and descriptors tell whose it is (whose.go). Somebody else, a scanner of ports, is closed. Packets of gossip come from their
// sender's back.
//
// # What a fault does
//
// A [Fault] is put on ways, directions from one to another, and on kinds of connections. It lasts from [Net.Add] until [Net.Remove] or [Net.Heal].
//
//   - Cut: nothing passes, not even the end of a connection. What is sent waits, in the sockets, and goes on when the fault ends, as TCP would send it again.
//     New connections are taken and hear nothing; of those that give up the broker never hears. Packets are lost. On one way of two it is a network that is deaf on one side.
//   - Drop: what is sent is lost, and when the fault ends, the connections that lost something are reset. On the way back it is a request that was
//     applied and whose answer never came.
//   - Delay, Jitter: each piece waits, and what comes meanwhile waits with it, so that a byte is late by up to twice as much. Order stays.
//   - Rate: bytes per second.
//
// Two things happen at once and do not end. [Net.Reset] resets connections at both ends. [Net.Forget] lets one end hear that its connection is lost, and
// the other end hear nothing: what it sends is taken and thrown away until it finds out by itself.
//
// # What it is not
//
// A connect succeeds even where nothing passes, since the kernel answers it; only [Net.Down] makes connects fail, as those to a process that has ended. The kernel
// acknowledges what the Net has taken, so that a sender's own probes of TCP see a living peer. Both make a cut harder to notice than a real one.
package relay
