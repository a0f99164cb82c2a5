package runtime

import (
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
)

// library is one ActorSystem of protoactor. Making one costs some milliseconds and
// megabytes, so simulations, which make thousands, use them again: when all actors
// have stopped nothing is left in it.
type library struct {
	system  *actor.ActorSystem
	guarded *actor.RootContext
	log     *bridge
	again   bool
}

var libraries sync.Pool

// openLibrary makes a library, or takes one that was used before when again is set.
func openLibrary(log zerolog.Logger, again bool) *library {
	if again {
		if l, ok := libraries.Get().(*library); ok {
			l.log.to(log)
			return l
		}
	}
	l := &library{log: newBridge(log), again: again}
	l.system = actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(l.log) }),
		// A goroutine sleeps for this long after a dead letter; nothing of ours is one.
		actor.WithDeadLetterThrottleInterval(time.Millisecond),
	)
	l.guarded = l.system.Root.Copy().WithGuardian(supervision)
	return l
}

// close gives the library back. All its actors have stopped.
func (l *library) close() {
	if l.again {
		l.log.to(zerolog.Nop())
		libraries.Put(l)
		return
	}
	l.system.Shutdown()
}
