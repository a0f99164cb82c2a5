package sim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// FaultKind names what can go wrong.
type FaultKind uint8

// The kinds of faults. Those that end the process are followed by a new start after a pause.
const (
	Kill           FaultKind = iota // kill -9 between two events
	KillAt                          // kill -9 at the Nth operation on the disk from then on, in the middle of a turn
	Power                           // the power fails
	PowerAt                         // the power fails at the Nth operation on the disk
	PowerAtSync                     // the power fails when the Nth sync has been done and nobody knows it yet
	CleanStop                       // the broker is stopped in order
	BrokenDisk                      // operations of the disk fail, by Rule
	FullDisk                        // the disk has Room bytes left, then space again
	SlowDisk                        // whatever waits for the disk takes long
	CutLine                         // a connection breaks; the sides hear of it in their own time
	LoseAnswer                      // a connection breaks in the moment in which an answer is written
	HoldLine                        // nothing moves between a client and the broker
	WallJump                        // somebody sets the broker's clock
	Noise                           // index files, producer snapshots and epoch files are full of noise at the next start
	TruncateAnswer                  // the broker's side closes a connection when N bytes of an answer are written
	Ask                             // the first administrator asks for what Rule says; see admin.told
	Silence                         // client N, a member, does nothing, and then goes on as if nothing had happened
	Quit                            // likewise, it leaves its group in order, and joins again
	Die                             // likewise, it dies, and another process comes in its place
	Move                            // likewise, the other process speaks the other protocol

	// Among several brokers, of which Who says which is hit.

	Freeze   // the process stands still for a while, as by SIGSTOP
	Split    // nothing moves between the broker and another one, which Seed draws
	OneWay   // nothing that the broker sends reaches another one
	Isolate  // nothing moves between the broker and all others
	CutPeers // a connection between the broker and another one breaks
	Rumour   // gossip takes the broker for dead at one of the others, which hears better after a while
	PowerAll // the power of all brokers fails, with N when the disk of the one that is hit does its Nth operation from then on
)

var faultWords = []string{
	"kill", "kill-at", "power", "power-at", "power-at-sync", "stop", "broken-disk", "full-disk", "slow-disk", "cut", "lose-answer", "hold", "wall-jump", "noise",
	"truncate-answer", "ask", "silence", "quit", "die", "move",
	"freeze", "split", "one-way", "isolate", "cut-peers", "rumour", "power-all",
}

// String is the word of the kind in plans.
func (k FaultKind) String() string { return faultWords[k] }

// FaultPlan is one fault.
type FaultPlan struct {
	Number int
	Kind   FaultKind
	At     time.Duration // from the begin of the workload
	For    time.Duration // of those that last
	N      int           // which operation, from then on; how many bytes of an answer; the number of a client
	Before string        // of Kill and Power: the Nth operation of this kind on a file like this, as in "sync *.log", is not done any more
	Rule   string        // of a broken disk, see storetest.Injector; what to ask for
	Room   int64         // of a full disk, in bytes
	Jump   time.Duration
	Pause  time.Duration // until the process is started again
	Seed   uint64        // what a power cut leaves, whom a network fault hits
	Who    string        // which broker: its id, "controller", "leader:TOPIC-N", "follower:TOPIC-N", "any" by the seed; see run.aimed
}

// planFaults draws the faults: some kinds for each seed, that the promise under test allows.
func (p *Plan) planFaults(r *rand.Rand) {
	allowed := []FaultKind{Kill, Kill, KillAt, KillAt, CleanStop, FullDisk, SlowDisk, CutLine, CutLine, LoseAnswer, LoseAnswer, HoldLine, WallJump, Noise}
	if p.Promise != PromiseCached {
		allowed = append(allowed, Power, Power, PowerAt, PowerAt, PowerAtSync, PowerAtSync, PowerAtSync, BrokenDisk)
	}
	var kinds []FaultKind
	for range 1 + r.IntN(5) {
		kinds = append(kinds, one(r, allowed...))
	}
	for range r.IntN(9) {
		f := FaultPlan{Number: len(p.Faults), Kind: one(r, kinds...), Seed: r.Uint64()}
		f.At = between(r, 0, p.Duration*9/10)
		f.For = between(r, 10*time.Millisecond, p.Duration/3)
		f.Pause = one(r, 0, 5*time.Millisecond, time.Second)
		f.N = 1 + r.IntN(one(r, 3, 30, 300))
		f.Room = int64(r.IntN(one(r, 1, 3000, 30_000)))
		f.Rule = brokenRule(r)
		f.Jump = one(r, time.Duration(-1), 1) * between(r, time.Millisecond, one(r, time.Second, 10*time.Minute, 2*time.Hour)) // retention and expiry take days
		f.tidy()
		p.Faults = append(p.Faults, f)
	}
}

// tidy clears what the kind of a fault does not use.
func (f *FaultPlan) tidy() {
	t := FaultPlan{Number: f.Number, Kind: f.Kind, At: f.At, Seed: f.Seed, Who: f.Who}
	switch f.Kind {
	case KillAt, PowerAt, PowerAtSync:
		t.N, t.Pause = f.N, f.Pause
	case Kill, Power, CleanStop:
		t.Pause, t.Before, t.N = f.Pause, f.Before, f.N
		if t.Before == "" {
			t.N = 0
		}
	case BrokenDisk:
		t.Rule, t.For = f.Rule, f.For
	case FullDisk:
		t.Room, t.For = f.Room, f.For
	case SlowDisk, HoldLine, Freeze, Split, OneWay, Isolate, Rumour:
		t.For = f.For
	case WallJump:
		t.Jump = f.Jump
	case TruncateAnswer:
		t.N = f.N
	case Ask:
		t.Rule = f.Rule
	case Silence, Quit, Die, Move:
		t.N, t.For = f.N, f.For
	case PowerAll:
		t.Pause = f.Pause
	case CutLine, LoseAnswer, Noise, CutPeers:
	}
	*f = t
}

// brokenRule draws how a disk fails.
func brokenRule(r *rand.Rand) string {
	op := one(r, "sync", "sync", "sync", "write", "read", "any", "syncdir", "syncfs", "rename", "allocate", "truncate", "open", "remove")
	glob := one(r, "*", "*", "*.log", "*.raftlog", "*.index", "*-checkpoint*", "control-block*", "*.snapshot")
	when := one(r, fmt.Sprintf("nth %d", 1+r.IntN(20)), fmt.Sprintf("from %d", 1+r.IntN(20)))
	action := "EIO"
	switch {
	case op == "write" && chance(r, 30):
		action = "torn"
	case op == "write" && chance(r, 20):
		action = fmt.Sprintf("short %d", r.IntN(100))
	case op != "sync" && op != "read" && chance(r, 30):
		action = "ENOSPC"
	case op == "open" && chance(r, 50):
		action = "EMFILE"
	}
	return fmt.Sprintf("%s %s %s: %s", op, glob, when, action)
}
