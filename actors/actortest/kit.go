package actortest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/troupe-broker/troupe/actors"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire/ident"
)

// wallStart is what a kit's wall clock shows at first: 2023-11-14 22:13:20 UTC.
const wallStart ident.Millis = 1_700_000_000_000

// Option changes a Kit before its actor starts.
type Option func(*options)

type options struct {
	seed     uint64
	settings map[string]string
	peers    []string
	leaks    bool // goroutines are looked for at the end
}

// unleaked leaves the search for goroutines to another kit of the same test: one that
// finds something waits for it to end.
func unleaked() Option { return func(o *options) { o.leaks = false } }

// Seed chooses the order in which things happen. Default: 1.
func Seed(seed uint64) Option { return func(o *options) { o.seed = seed } }

// Seeds runs a test once for each of n seeds: in each, things happen in another order.
func Seeds(t *testing.T, n int, f func(t *testing.T, seed Option)) {
	t.Helper()
	for i := range n {
		t.Run(fmt.Sprintf("seed=%d", i+1), func(t *testing.T) { f(t, Seed(uint64(i+1))) })
	}
}

// Setting gives the actor a setting, by the key that follows its id.
func Setting(key, value string) Option { return func(o *options) { o.settings[key] = value } }

// Peer lets the actor send to another id; Sent has what arrived there.
func Peer(id string) Option { return func(o *options) { o.peers = append(o.peers, id) } }

// Sent is one message that the actor sent.
type Sent struct {
	// To is the id of the peer, "" for what was emitted.
	To  string
	Msg any
}

// Failure is a panic of the actor.
type Failure struct {
	// At is the type of the message, or the name of the method.
	At     string
	Reason any
	Stack  string
	// Decision is what supervision did: "restart", "quarantine" or "stop".
	Decision string
}

// Kit is one actor under test. It is used by the goroutine of the test.
type Kit struct {
	tb        testing.TB
	id        string
	clock     *runtime.SimClock
	run       *runtime.Seeded
	sys       *runtime.System
	host      *actors.Host
	from      *runtime.Runner
	ref       *runtime.Ref
	instances int
	handled   int
	sent      []Sent
}

// New starts the registered actor of this id. The test fails when it does not start;
// Start returns the error instead. At the end of the test the actor is stopped, and a
// goroutine that it left behind fails the test.
func New(tb testing.TB, id string, opts ...Option) *Kit {
	tb.Helper()
	k, err := Start(tb, id, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// Start is New for tests of a start that fails.
func Start(tb testing.TB, id string, opts ...Option) (*Kit, error) {
	tb.Helper()
	info, ok := actors.Lookup(id)
	if !ok || info.Kind == actors.Core {
		return nil, fmt.Errorf("no extension actor %s is registered; does the test import its package?", id)
	}
	o := options{seed: 1, settings: map[string]string{}, leaks: true}
	for _, opt := range opts {
		opt(&o)
	}
	k := &Kit{tb: tb, id: id, clock: runtime.NewSimClock(wallStart)}
	before := goleak.IgnoreCurrent()
	k.run = runtime.NewSeeded(o.seed, k.clock)
	k.sys = runtime.NewSystem(runtime.Options{Clock: k.clock, Dispatcher: k.run})
	k.from = runtime.NewRunner(k.sys)
	tb.Cleanup(func() { k.end(o.leaks, before) })

	infos := []actors.Info{k.instrument(info), k.recorder(emitted)}
	enabled := []string{id, emitted}
	for _, peer := range o.peers {
		infos = append(infos, k.recorder(peer))
		enabled = append(enabled, peer)
	}
	settings := map[string]string{}
	for key, value := range o.settings {
		settings[id+"."+key] = value
	}
	host, err := actors.StartHost(tb.Context(), actors.HostOptions{
		System: k.sys, Log: zerolog.New(zerolog.NewTestWriter(tb)), Actors: infos, Enabled: enabled, Settings: settings,
	})
	if err != nil {
		return nil, err
	}
	k.host = host
	k.ref, _ = host.Ref(id)
	return k, nil
}

// Send queues messages for the actor, as facts of the broker or another actor's
// words. They are handled by Run. A message that is refused is lost, as in life;
// Rejected counts them.
func (k *Kit) Send(msgs ...any) {
	for _, m := range msgs {
		_ = k.host.Send(k.from, k.id, m) // counted by the mailbox
	}
	k.from.Run()
}

// Run lets everything happen that needs no time to pass.
func (k *Kit) Run() {
	k.tb.Helper()
	if !k.run.Drain() {
		k.tb.Fatal(k.run.Err())
	}
}

// Pass lets time pass, with all timers in it.
func (k *Kit) Pass(d time.Duration) {
	k.tb.Helper()
	now, _ := k.clock.Now()
	end := now + ident.Instant(d)
	k.Run()
	for {
		now, _ = k.clock.Now()
		next, set := k.clock.Earliest()
		if left := time.Duration(end - now); !set || next > left {
			k.clock.Advance(max(0, left))
			return
		}
		k.clock.Next()
		k.Run()
	}
}

// Counter is the value of one of the actor's counters, 0 when it was never counted.
func (k *Kit) Counter(name string, labels ...string) float64 {
	sum, _ := k.series(name, true, labels)
	return sum
}

// Summary is the sum and the number of the values that the actor observed.
func (k *Kit) Summary(name string, labels ...string) (sum float64, n uint64) {
	return k.series(name, false, labels)
}

// Samples lists all that the actor counted and observed.
func (k *Kit) Samples() []actors.Sample {
	return slices.DeleteFunc(k.host.Samples(), func(s actors.Sample) bool { return s.Actor != k.id })
}

// Sent lists what the actor sent to peers and emitted, in the order of arrival.
func (k *Kit) Sent() []Sent { return k.sent }

// Handled is the number of messages that Receive has returned from.
func (k *Kit) Handled() int { return k.handled }

// Instances is how often the actor was made: 1, and one more for each restart.
func (k *Kit) Instances() int { return k.instances }

// Rejected is the number of messages that the mailbox refused.
func (k *Kit) Rejected() int {
	n := 0
	for _, s := range k.sys.Stats() {
		if s.Kind == k.id {
			n += int(s.Rejects)
		}
	}
	return n
}

// Failures lists the panics of the actor.
func (k *Kit) Failures() []Failure {
	var out []Failure
	for _, b := range k.run.Blames() {
		if b.Kind == k.id {
			out = append(out, Failure{At: b.Message, Reason: b.Reason, Stack: b.Stack, Decision: b.Decision.String()})
		}
	}
	return out
}

// Fill makes the mailbox refuse everything, or accept again.
func (k *Kit) Fill(full bool) { k.run.Fill(k.ref, full) }

// Restart replaces the instance before its next message, without a bug.
func (k *Kit) Restart() { k.run.Restart(k.ref) }

// Stop stops the actor and waits. It may be called again.
func (k *Kit) Stop() {
	k.tb.Helper()
	k.ref.Stop()
	k.Run()
	if !k.ref.Stopped() {
		k.tb.Fatalf("%s does not stop", k.id)
	}
}

// MaxAllocs fails the test when handling msg allocates more than most times.
func (k *Kit) MaxAllocs(most float64, msg any) {
	k.tb.Helper()
	m := &measure{msg: msg}
	k.Send(m)
	k.Run()
	switch {
	case !m.done:
		k.tb.Errorf("%s did not handle %T", k.id, msg)
	case m.allocs > most:
		k.tb.Errorf("%s allocates %v times for %T, %v are allowed", k.id, m.allocs, msg, most)
	}
}

func (k *Kit) series(name string, counter bool, labels []string) (sum float64, n uint64) {
	for _, s := range k.Samples() {
		if s.Name == name && s.Counter == counter && slices.Equal(s.Labels, labels) {
			return s.Sum, s.N
		}
	}
	return 0, 0
}

// end stops everything and looks for goroutines.
func (k *Kit) end(leaks bool, before goleak.Option) {
	k.tb.Helper()
	if err := k.sys.Shutdown(k.tb.Context()); err != nil && k.run.Err() == nil && k.tb.Context().Err() == nil {
		k.tb.Error(err)
	}
	if !leaks {
		return
	}
	if err := goleak.Find(before); err != nil {
		k.tb.Errorf("%s started a goroutine and did not wait for it: %v", k.id, err)
	}
}

// emitted is the id of the observer that hears what the actor emits.
const emitted = "observer.actortest-emitted"

// recorder declares an actor that writes down what it hears.
func (k *Kit) recorder(id string) actors.Info {
	kind, name, _ := strings.Cut(id, ".")
	to := id
	if id == emitted {
		to = ""
	}
	return actors.Info{
		Kind: actors.Kind(kind), Name: name, Scope: "process", Policy: actors.DefaultPolicy,
		New: func() actors.Actor { return receive(func(msg any) { k.sent = append(k.sent, Sent{to, msg}) }) },
	}
}

type receive func(msg any)

// Receive implements actors.Actor.
func (f receive) Receive(_ *actors.Ctx, msg any) error {
	f(msg)
	return nil
}
