package runtime_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
)

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

func name(prefix string, i int) string { return prefix + strconv.Itoa(i) }

// fatalBug fails the test when an actor fails.
func fatalBug(tb testing.TB) func(*runtime.Blame) {
	tb.Helper()
	return func(b *runtime.Blame) { tb.Errorf("%v\n%s", b, b.Stack) }
}

func spawn(tb testing.TB, sys *runtime.System, parent *runtime.Ref, spec runtime.Spec) *runtime.Ref {
	tb.Helper()
	ref, err := sys.Spawn(parent, spec)
	if err != nil {
		tb.Fatal(err)
	}
	return ref
}

// spawnReady spawns and waits until the actor takes messages in place.
func spawnReady(tb testing.TB, sys *runtime.System, parent *runtime.Ref, spec runtime.Spec) *runtime.Ref {
	tb.Helper()
	ref := spawn(tb, sys, parent, spec)
	waitIdle(tb, sys, ref)
	return ref
}

// waitIdle waits until the actor has started and has nothing to do.
func waitIdle(tb testing.TB, sys *runtime.System, ref *runtime.Ref) {
	tb.Helper()
	eventually(tb, "idle "+ref.Name(), func() bool { return runtime.Idle(ref) })
}

// eventually polls; the runtime has no other way to tell that nothing happens.
func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(50 * time.Microsecond) {
		if time.Now().After(end) {
			tb.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func shutdown(tb testing.TB, sys *runtime.System) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := sys.Shutdown(ctx); err != nil {
		tb.Fatal(err)
	}
}
