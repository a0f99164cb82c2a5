package actors_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/troupe-broker/troupe/actors"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire/ident"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// actor is an Actor made of functions.
type actor struct {
	provision func(c *actors.Ctx) error
	receive   func(c *actors.Ctx, msg any) error
	stop      func(c *actors.Ctx)
}

func (a *actor) Provision(c *actors.Ctx) error {
	if a.provision == nil {
		return nil
	}
	return a.provision(c)
}

func (a *actor) Receive(c *actors.Ctx, msg any) error {
	if a.receive == nil {
		return nil
	}
	return a.receive(c, msg)
}

func (a *actor) Stop(c *actors.Ctx) {
	if a.stop != nil {
		a.stop(c)
	}
}

func info(name string, a func() *actor) actors.Info {
	return actors.Info{
		Kind: actors.Observer, Name: name, Doc: "Is tried.", Scope: "process", Policy: actors.DefaultPolicy,
		New: func() actors.Actor { return a() },
	}
}

// world is a Host on a simulated system.
type world struct {
	*actors.Host
	clock *runtime.SimClock
	run   *runtime.Seeded
	sys   *runtime.System
	from  *runtime.Runner
}

func start(t *testing.T, o actors.HostOptions) (*world, error) {
	t.Helper()
	w := &world{clock: runtime.NewSimClock(0)}
	w.run = runtime.NewSeeded(1, w.clock)
	w.sys = runtime.NewSystem(runtime.Options{Clock: w.clock, Dispatcher: w.run})
	w.from = runtime.NewRunner(w.sys)
	t.Cleanup(func() {
		if err := w.sys.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	o.System = w.sys
	if o.Enabled == nil {
		for _, i := range o.Actors {
			o.Enabled = append(o.Enabled, i.ID())
		}
	}
	var err error
	w.Host, err = actors.StartHost(t.Context(), o)
	return w, err
}

func mustStart(t *testing.T, o actors.HostOptions) *world {
	t.Helper()
	w, err := start(t, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) tell(facts ...actors.Fact) {
	for i, f := range facts {
		if i%2 == 0 {
			w.Tell(w.from, f)
		} else {
			w.Tell(nil, f)
		}
	}
	w.from.Run()
	w.run.Drain()
}

// hears returns an actor that writes down what it hears.
func hears(log *[]string) func() *actor {
	return func() *actor {
		return &actor{receive: func(_ *actors.Ctx, msg any) error {
			*log = append(*log, fmt.Sprintf("%T", msg))
			return nil
		}}
	}
}

func TestAllObserversHearAllFacts(t *testing.T) {
	var a, b []string
	w := mustStart(t, actors.HostOptions{Actors: []actors.Info{info("a", hears(&a)), info("b", hears(&b))}})
	w.tell(
		&actors.Started{Broker: 1, Cluster: "c", Version: "v"}, &actors.ControllerElected{Epoch: 1}, &actors.TopicCreated{Topic: "t", Partitions: 1}, &actors.LeaderElected{Topic: "t"},
		&actors.ConnectionOpened{Client: "h:1"}, &actors.ConnectionClosed{Client: "h:1"}, &actors.DirectoryLost{Path: "d"},
		&actors.Appended{Topic: "t"}, &actors.TopicDeleted{Topic: "t"}, &actors.Stopping{},
	)
	want := "*actors.Started *actors.ControllerElected *actors.TopicCreated *actors.LeaderElected *actors.ConnectionOpened *actors.ConnectionClosed *actors.DirectoryLost *actors.Appended *actors.TopicDeleted *actors.Stopping"
	if got := strings.Join(a, " "); got != want || !slices.Equal(a, b) {
		t.Errorf("a heard %s\nb heard %s\nwant    %s", got, strings.Join(b, " "), want)
	}
}

func TestWithoutObserversFactsCostNothing(t *testing.T) {
	var none *actors.Host
	if none.Observed() || none.Samples() != nil {
		t.Error("no host observes")
	}
	none.Tell(nil, &actors.Stopping{})
	none.Stop()
	w := mustStart(t, actors.HostOptions{Actors: []actors.Info{}, Appends: func(func(actors.AppendTotals)) { t.Error("asked for totals that nobody hears") }})
	w.tell(&actors.Stopping{})
	w.clock.Advance(time.Minute)
	if w.Observed() || w.run.Steps() != 0 {
		t.Errorf("observed %v, %d turns", w.Observed(), w.run.Steps())
	}
}

func TestAppendedIsMadeOfTotals(t *testing.T) {
	totals := map[int32]actors.AppendTotals{}
	var heard []string
	hear := func() *actor {
		return &actor{receive: func(_ *actors.Ctx, msg any) error {
			a := msg.(*actors.Appended)
			heard = append(heard, fmt.Sprintf("%s-%d: %d batches %d records %d bytes to %d", a.Topic, a.Partition, a.Batches, a.Records, a.AppendedBytes, a.End))
			return nil
		}}
	}
	id := ident.TopicID{1}
	put := func(partition int32, batches, records, bytes int64, end ident.Offset) {
		totals[partition] = actors.AppendTotals{Topic: "t", ID: id, Partition: partition, Batches: batches, Records: records, AppendedBytes: bytes, End: end}
	}
	w := mustStart(t, actors.HostOptions{
		Actors: []actors.Info{info("a", hear)}, AppendedEvery: time.Second,
		Appends: func(visit func(actors.AppendTotals)) {
			for p := range int32(3) {
				if now, ok := totals[p]; ok {
					visit(now)
				}
			}
		},
	})
	second := func() {
		for end, _ := w.clock.Now(); ; {
			w.run.Drain()
			if now, _ := w.clock.Now(); now >= end+ident.Instant(time.Second) {
				return
			}
			w.clock.Advance(10 * time.Millisecond)
		}
	}
	put(0, 2, 20, 200, 20)
	second()
	second() // nothing new
	put(0, 3, 25, 250, 25)
	put(1, 1, 1, 10, 1)
	second()
	delete(totals, 0)
	second()
	put(0, 1, 5, 50, 5) // created again: what was counted before is forgotten
	second()
	want := []string{
		"t-0: 2 batches 20 records 200 bytes to 20", "t-0: 1 batches 5 records 50 bytes to 25",
		"t-1: 1 batches 1 records 10 bytes to 1", "t-0: 1 batches 5 records 50 bytes to 5",
	}
	if !slices.Equal(heard, want) {
		t.Errorf("heard\n%s\nwant\n%s", strings.Join(heard, "\n"), strings.Join(want, "\n"))
	}
}

func TestActorsSendEmitAndWait(t *testing.T) {
	type ping struct{ n int }
	var heard []int
	a := func() *actor {
		return &actor{
			provision: func(c *actors.Ctx) error {
				c.After(time.Second, ping{1})
				c.After(2*time.Second, ping{2}).Stop()
				return nil
			},
			receive: func(c *actors.Ctx, msg any) error {
				p := msg.(ping)
				c.Emit(ping{p.n + 10})
				if err := c.Send("observer.nobody", p); err == nil || !strings.Contains(err.Error(), "no such actor") {
					t.Errorf("send to nobody: %v", err)
				}
				return c.Send("observer.b", ping{p.n + 20})
			},
		}
	}
	b := func() *actor {
		return &actor{receive: func(_ *actors.Ctx, msg any) error {
			heard = append(heard, msg.(ping).n)
			return nil
		}}
	}
	w := mustStart(t, actors.HostOptions{Actors: []actors.Info{info("a", a), info("b", b)}})
	w.clock.Advance(5 * time.Second)
	w.run.Drain()
	if !slices.Equal(heard, []int{11, 21}) {
		t.Errorf("heard %v", heard)
	}
}

func TestConfigurationErrorsSayWhatAndWhere(t *testing.T) {
	type config struct {
		Text  string        `config:"text"`
		On    bool          `config:"on"`
		Small int           `config:"small"`
		Big   int64         `config:"big"`
		Ratio float64       `config:"ratio"`
		Wait  time.Duration `config:"wait"`
		other int
	}
	got := config{Text: "default", other: 3}
	configured := info("conf", func() *actor { return &actor{provision: func(c *actors.Ctx) error { return c.Config(&got) }} })
	plain := info("plain", func() *actor { return &actor{} })
	try := func(enabled []string, settings map[string]string) error {
		_, err := start(t, actors.HostOptions{Actors: []actors.Info{configured, plain}, Enabled: enabled, Settings: settings})
		return err
	}
	if err := try([]string{"observer.conf"}, map[string]string{
		"observer.conf.on": "true", "observer.conf.small": "-7", "observer.conf.big": "1099511627776", "observer.conf.ratio": "0.5", "observer.conf.wait": "1500ms",
	}); err != nil {
		t.Fatal(err)
	}
	if want := (config{"default", true, -7, 1 << 40, 0.5, 1500 * time.Millisecond, 3}); got != want {
		t.Errorf("decoded %+v, want %+v", got, want)
	}
	for _, c := range []struct {
		enabled      []string
		key, value   string
		code, reason string
	}{
		{[]string{"observer.conv"}, "", "", "TRP-5001", `unknown actor "observer.conv"; this binary has observer.conf, observer.plain`},
		{[]string{"observer.conf", "observer.conf"}, "", "", "TRP-5001", "named twice"},
		{[]string{"core.root"}, "", "", "TRP-5001", "unknown actor"},
		{nil, "observer.conv.x", "1", "TRP-5001", "unknown actor"},
		{nil, "observer", "1", "TRP-5002", "is named actors.<kind>"},
		{[]string{"observer.plain"}, "observer.conf.on", "true", "TRP-5002", "does not run"},
		{nil, "observer.conf.onn", "true", "TRP-5002", "no such setting; observer.conf has big, on, ratio, small, text, wait"},
		{nil, "observer.plain.x", "true", "TRP-5002", "no such setting; observer.plain has none"},
		{nil, "observer.conf.on", "yes", "TRP-5002", `"yes" is not true or false`},
		{nil, "observer.conf.small", "1.5", "TRP-5002", "is not a whole number"},
		{nil, "observer.conf.ratio", "half", "TRP-5002", "is not a number"},
		{nil, "observer.conf.wait", "3", "TRP-5002", "is not a duration"},
	} {
		enabled := c.enabled
		if enabled == nil {
			enabled = []string{"observer.conf", "observer.plain"}
		}
		settings := map[string]string{}
		if c.key != "" {
			settings[c.key] = c.value
		}
		err := try(enabled, settings)
		var bad *actors.ConfigError
		if !errors.As(err, &bad) || bad.Code != c.code || !strings.Contains(bad.Reason, c.reason) || (c.key != "" && bad.Key != "actors."+c.key) {
			t.Errorf("%v %s=%s: %v", c.enabled, c.key, c.value, err)
		}
	}
}

func TestAnActorThatCannotStartStopsTheStart(t *testing.T) {
	boom := errors.New("boom")
	var others []string
	for want, p := range map[string]func(*actors.Ctx) error{
		"observer.bad refuses to start: boom": func(*actors.Ctx) error { return boom },
		"observer.bad panicked in Provision":  func(*actors.Ctx) error { panic(boom) },
	} {
		w, err := start(t, actors.HostOptions{Actors: []actors.Info{info("bad", func() *actor { return &actor{provision: p} }), info("other", hears(&others))}})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "TRP-5003") {
			t.Errorf("start: %v", err)
		}
		w.run.Drain()
		if n := len(w.sys.Actors()); n != 0 {
			t.Errorf("%d actors are left of a start that failed", n)
		}
	}
}

func TestAProvisionThatFailsLaterIsABug(t *testing.T) {
	boom, times := errors.New("boom"), 0
	w := mustStart(t, actors.HostOptions{Actors: []actors.Info{info("a", func() *actor {
		return &actor{
			provision: func(*actors.Ctx) error {
				if times++; times == 2 {
					return boom
				}
				return nil
			},
			receive: func(*actors.Ctx, any) error { panic("once") },
		}
	})}})
	w.tell(&actors.Stopping{})
	for range 100 {
		w.clock.Advance(10 * time.Millisecond)
		w.run.Drain()
	}
	if b := w.run.Blames(); len(b) != 2 || !errors.Is(b[1], boom) || b[1].Message != "Started" || times != 3 {
		t.Errorf("%d instances, blames %v", times, b)
	}
}

func TestACtxThatIsKeptIsABug(t *testing.T) {
	var kept *actors.Ctx
	mustStart(t, actors.HostOptions{Actors: []actors.Info{info("a", func() *actor {
		return &actor{provision: func(c *actors.Ctx) error {
			kept = c
			return nil
		}}
	})}})
	defer func() {
		if got, _ := recover().(string); !strings.Contains(got, "observer.a used its Ctx outside a method") {
			t.Errorf("recovered %q", got)
		}
	}()
	kept.Now()
}

func TestErrorsAreCountedAndLoggedNowAndThen(t *testing.T) {
	var out strings.Builder
	w := mustStart(t, actors.HostOptions{
		Log: zerolog.New(&out),
		Actors: []actors.Info{info("a", func() *actor {
			return &actor{receive: func(*actors.Ctx, any) error { return errors.New("not now") }}
		})},
	})
	for range 50 {
		w.tell(&actors.Stopping{})
	}
	w.clock.Advance(11 * time.Second)
	w.tell(&actors.Stopping{})
	if n := strings.Count(out.String(), "not now"); n != 2 || !strings.Contains(out.String(), `"skipped":49`) {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
	if s := w.Samples(); len(s) != 1 || s[0].Name != "errors" || s[0].Sum != 51 {
		t.Errorf("samples %+v", s)
	}
}

func TestSeriesAreBounded(t *testing.T) {
	w := mustStart(t, actors.HostOptions{Actors: []actors.Info{info("a", func() *actor {
		return &actor{receive: func(c *actors.Ctx, _ any) error {
			c.Observe("plain", 3)
			for i := range 5000 {
				c.Count("many", 1, "topic", fmt.Sprint(i), "side", "left")
			}
			return nil
		}}
	})}})
	w.tell(&actors.Stopping{})
	samples := w.Samples()
	total, other := 0.0, 0.0
	for _, s := range samples {
		if s.Name != "many" {
			if s.Name != "plain" || s.Counter || s.Sum != 3 || s.N != 1 || len(s.Labels) != 0 {
				t.Errorf("sample %+v", s)
			}
			continue
		}
		total += s.Sum
		if slices.Equal(s.Labels, []string{"topic", "other", "side", "other"}) {
			other = s.Sum
		}
	}
	if len(samples) > 1001 || total != 5000 || other < 4000 {
		t.Errorf("%d series, %v in all, %v in other", len(samples), total, other)
	}
}

func TestSeriesHaveOneForm(t *testing.T) {
	for want, count := range map[string]func(c *actors.Ctx){
		"is no name of a series": func(c *actors.Ctx) { c.Count("Appended-Bytes", 1) },
		`"to pic" is no name`:    func(c *actors.Ctx) { c.Count("a", 1, "to pic", "x") },
		"has other labels":       func(c *actors.Ctx) { c.Count("a", 1, "topic", "x"); c.Count("a", 1) },
		"give at most two pairs": func(c *actors.Ctx) { c.Count("a", 1, "topic") },
		"counter a goes down":    func(c *actors.Ctx) { c.Count("a", -1) },
		"":                       func(c *actors.Ctx) { c.Count("a", 1, "x", "1"); c.Observe("a", -1); c.Count("a", 2, "x", "2") },
	} {
		w := mustStart(t, actors.HostOptions{Actors: []actors.Info{info("a", func() *actor {
			return &actor{receive: func(c *actors.Ctx, _ any) error {
				count(c)
				return nil
			}}
		})}})
		w.tell(&actors.Stopping{})
		got := ""
		if b := w.run.Blames(); len(b) > 0 {
			got = b[0].Error()
		}
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("want a bug with %q, got %q", want, got)
		}
	}
}

// An observer that hangs, on real goroutines, costs the sender nothing but the facts
// that it misses.
func TestAnObserverThatHangsHarmsNobody(t *testing.T) {
	sys := runtime.NewSystem(runtime.Options{OnBug: func(b *runtime.Blame) {
		if b.Decision == runtime.Exit {
			t.Error(b)
		}
	}})
	hang, entered := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var mu sync.Mutex
	heard := 0
	stuck := info("stuck", func() *actor {
		return &actor{receive: func(*actors.Ctx, any) error {
			once.Do(func() { close(entered) })
			<-hang
			return nil
		}}
	})
	stuck.Mailbox.CountMax = 10
	broken := info("broken", func() *actor { return &actor{receive: func(*actors.Ctx, any) error { panic("again") }} })
	well := info("well", func() *actor {
		return &actor{receive: func(*actors.Ctx, any) error {
			mu.Lock()
			defer mu.Unlock()
			heard++
			return nil
		}}
	})
	well.Mailbox.CountMax = 1 << 20
	h, err := actors.StartHost(t.Context(), actors.HostOptions{
		System: sys, Actors: []actors.Info{stuck, broken, well}, Enabled: []string{"observer.stuck", "observer.broken", "observer.well"},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := runtime.NewRunner(sys)
	h.Tell(r, &actors.Stopping{})
	<-entered
	const n = 1000
	for range n {
		h.Tell(r, &actors.Stopping{})
		r.Run()
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		mu.Lock()
		all := heard == n+1
		mu.Unlock()
		if all {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the healthy observer did not hear everything")
		}
	}
	lost := uint64(0)
	for _, s := range sys.Stats() {
		if s.Kind == "observer.stuck" {
			lost = s.Rejects
		}
	}
	if lost < n-20 {
		t.Errorf("%d facts were counted as lost, want about %d", lost, n-10)
	}
	close(hang)
	if err := sys.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAStopReachesTheActor(t *testing.T) {
	var log []string
	w := mustStart(t, actors.HostOptions{Actors: []actors.Info{info("a", func() *actor {
		return &actor{stop: func(c *actors.Ctx) {
			now, _ := c.Now()
			log = append(log, fmt.Sprintf("%s stops, time known: %v", c.ID(), now > 0))
		}}
	})}})
	ref, ok := w.Ref("observer.a")
	if !ok {
		t.Fatal("not running")
	}
	ref.Stop()
	w.run.Drain()
	if got := strings.Join(log, ";"); got != "observer.a stops, time known: true" {
		t.Errorf("got %q", got)
	}
	if _, ok := w.Ref("observer.b"); ok {
		t.Error("there is a b")
	}
}
