// Package actortest tries extension actors without a broker. A Kit runs one actor on
// the real runtime, with its mailbox and its supervision, but on one goroutine, a
// clock that moves only when told and an order drawn from a seed: the same test gives
// the same run, and a whole hour of timers takes a moment.
//
//	func TestCounts(t *testing.T) {
//		k := actortest.New(t, "observer.topichits")
//		k.Send(&actors.Appended{Topic: "a", AppendedBytes: 7})
//		k.Run()
//		if got := k.Counter("appended_bytes", "topic", "a"); got != 7 {
//			t.Errorf("counted %v", got)
//		}
//	}
//
// Conformance asks what every actor is asked: does it survive a restart between any
// two messages, a full mailbox, a stop at any moment; does it refuse settings that it
// does not know; does it leave a goroutine behind.
//
// # Glossary
//
//   - Kit: one actor under test, with its world.
//   - Peer: another actor's id, at which the kit records what arrives.
//   - Failure: a panic of the actor and what supervision did about it.
package actortest
