package broker

import (
	"github.com/troupe-broker/troupe/actors/runtime"
)

// Messages that several actors take. Those of one actor stand beside it.

// continuation is the answer to something a session asked: its function runs on the session's turn.
type continuation struct{ run func() }

// Bytes implements runtime.Message.
func (*continuation) Bytes() int { return 0 }

// resume posts a continuation to a session. A session that has stopped has nobody left to answer.
func resume(to *runtime.Ref, run func()) { _ = to.Post(&continuation{run}) }

// signal is a message without content: its value is its meaning.
type signal uint8

// Bytes implements runtime.Message.
func (signal) Bytes() int { return 0 }

const (
	signalTick       signal = iota + 1 // a timer of the actor's own
	signalWritable                     // a session's peer takes bytes again
	signalProceed                      // a session has more to write than one turn may
	signalWarm                         // the cold region a session wanted to send was read
	signalFetchDue                     // the longest wait of a session's fetch is over
	signalDrain                        // finish what was begun, take nothing new
	signalIdle                         // a session's connection was quiet for long
	signalHurry                        // the peer is gone, while its requests wait: do not let them wait
	signalShort                        // somebody waits for memory
	signalSweep                        // look for stalled reservations
	signalOpen                         // a partition may open its log: the one before is gone
	signalRetain                       // a partition looks for segments to delete
	signalCheckpoint                   // the flusher writes the directory's checkpoints
	signalDue                          // the longest wait of a link's request is over
	signalMarks                        // a link may send watermarks again
	signalUnmark                       // a partition tries again to have its strict mark removed
	signalStrict                       // a partition has a strict mark, which the flusher is to write soon
	signalRepair                       // a partition tries to mend what is damaged
	signalCompare                      // a partition has waited long enough for what its leader has
	signalRested                       // the flusher of the internal topics may begin a round
)
