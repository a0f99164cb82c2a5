package broker_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/troupe-broker/troupe/actors"
	"github.com/troupe-broker/troupe/actors/broker"
	_ "github.com/troupe-broker/troupe/actors/observer/topichits"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
)

// heard is what the observers of this test binary have heard, as words.
var heard struct {
	sync.Mutex
	facts []string
}

func hear(format string, args ...any) {
	heard.Lock()
	defer heard.Unlock()
	heard.facts = append(heard.facts, fmt.Sprintf(format, args...))
}

func heardAll() string {
	heard.Lock()
	defer heard.Unlock()
	return strings.Join(heard.facts, "\n") + "\n"
}

type recorder struct{}

func init() {
	actors.Register(actors.Info{Kind: actors.Observer, Name: "recorder", Doc: "Writes down what it hears.", New: func() actors.Actor { return recorder{} }})
}

// Receive implements actors.Actor.
func (recorder) Receive(_ *actors.Ctx, msg any) error {
	switch f := msg.(type) {
	case *actors.Started:
		hear("started %d %v", f.Broker, f.Cluster != "")
	case *actors.Stopping:
		hear("stopping")
	case *actors.ControllerElected:
		hear("controller")
	case *actors.TopicCreated:
		hear("created %s %d", f.Topic, f.Partitions)
	case *actors.TopicDeleted:
		hear("deleted %s", f.Topic)
	case *actors.LeaderElected:
		hear("leads %s-%d", f.Topic, f.Partition)
	case *actors.Appended:
		hear("appended %s-%d %d records to %d", f.Topic, f.Partition, f.Records, f.End)
	case *actors.ConnectionOpened:
		hear("opened %v %s", f.Client != "", f.Listener)
	case *actors.DirectoryLost:
		hear("lost %s: %s", f.Path, f.Reason)
	case *actors.ConnectionClosed:
		hear("closed %s", f.Listener)
	default:
		return fmt.Errorf("unknown fact %T", msg)
	}
	return nil
}

// startObserved starts a broker with extension actors. Only a bug that would end the process fails the test.
func startObserved(t *testing.T, dir string, enabled []string, settings map[string]string) (*running, error) {
	t.Helper()
	return startObservedOn(t, store.OS(), dir, enabled, settings)
}

func startObservedOn(t *testing.T, fs store.FS, dir string, enabled []string, settings map[string]string) (*running, error) {
	t.Helper()
	log := zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.ErrorLevel)
	sys := runtime.NewSystem(runtime.Options{Log: log, OnBug: func(b *runtime.Blame) {
		if b.Decision == runtime.Exit {
			t.Errorf("a bug of the broker: %v\n%s", b, b.Stack)
		}
	}})
	b, err := broker.Start(broker.Options{
		Static: config.SetOf(config.Entry{Name: "log.dir", Value: dir}, config.Entry{Name: "listeners", Value: "PLAINTEXT://127.0.0.1:0"}),
		Actors: enabled, ActorSettings: settings,
	}, broker.World{FS: fs, System: sys, Rand: rand.Reader, Log: log, BuildVersion: "test", Listen: broker.ListenTCP})
	if err != nil {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return nil, errors.Join(err, sys.Shutdown(ctx))
	}
	r := &running{Broker: b, t: t, dir: dir, sys: sys, addr: b.Addresses()[0].String()}
	t.Cleanup(r.stop)
	<-b.Serving()
	return r, nil
}

// scrape reads /metrics.
func scrape(r *running) string {
	r.t.Helper()
	w := httptest.NewRecorder()
	r.MetricsHandler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 15 s: %s", what)
		}
	}
}

func TestObserversHearTheBrokerAndCannotHarmIt(t *testing.T) {
	dir := t.TempDir()
	r, err := startObserved(t, dir, []string{"observer.recorder", "observer.topichits"}, map[string]string{"observer.topichits.panic.after": "2"})
	if err != nil {
		t.Fatal(err)
	}
	ctx := within(t, 60*time.Second)
	cl := r.client(kgo.DefaultProduceTopic("hits"))
	if _, err := kadm.NewClient(cl).CreateTopic(ctx, 2, 1, nil, "hits"); err != nil {
		t.Fatal(err)
	}
	// Once a second the observer hears of appends; at each second time it panics.
	await(t, "two panics of the observer", func() bool {
		if err := cl.ProduceSync(ctx, &kgo.Record{Value: make([]byte, 100)}).FirstErr(); err != nil {
			t.Fatalf("an observer that panics harmed a client: %v", err)
		}
		return strings.Contains(scrape(r), `troupe_actor_panics_total{kind="observer.topichits"} 2`)
	})
	metrics := scrape(r)
	for _, want := range []string{
		`troupe_actor_observer_topichits_appended_bytes_total{topic="hits"}`, `troupe_actors{kind="core.partition"} 2`,
		`troupe_actors{kind="core.ioworker"}`, `troupe_actors{kind="core.facts"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	if _, err := kadm.NewClient(cl).DeleteTopic(ctx, "hits"); err != nil {
		t.Fatal(err)
	}
	cl.Close()
	r.stop()
	all := heardAll()
	for _, want := range []string{
		"started 1 true\n", "controller\n", "created hits 2\n", "leads hits-0\n", "leads hits-1\n", "appended hits-",
		"opened true PLAINTEXT\n", "closed PLAINTEXT\n", "deleted hits\n", "stopping\n",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("nobody heard %q", want)
		}
	}
	if t.Failed() {
		t.Logf("heard\n%s", all)
	}
}

func TestObserversHearOnceThatADirectoryIsLost(t *testing.T) {
	disk, dir := storetest.Faults(store.OS()), t.TempDir()
	r, err := startObservedOn(t, disk, dir, []string{"observer.recorder"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.harmed = true
	r.createTopic("gone", 3)
	c := r.raw()
	for partition := range int32(3) {
		c.fill("gone", partition, 1, 100)
	}
	if all := heardAll(); strings.Contains(all, "lost "+dir) {
		t.Fatalf("a sound directory is told to be lost:\n%s", all)
	}
	disk.Add("sync *: EIO")
	disk.Add("syncfs *: EIO")
	for partition := range int32(3) { // each of its replicas meets it
		if p := c.produced(produce(9, -1, "gone", partition, batch("x"))); p.ErrorCode != 56 {
			t.Fatalf("error %d, want KAFKA_STORAGE_ERROR", p.ErrorCode)
		}
	}
	await(t, "the observer hears of the loss", func() bool { return strings.Contains(heardAll(), "lost "+dir+": ") })
	r.stop()
	lost := ""
	for line := range strings.Lines(heardAll()) {
		if strings.HasPrefix(line, "lost "+dir) {
			lost += line
		}
	}
	if strings.Count(lost, "lost "+dir) != 1 || !strings.Contains(lost, "input/output error") {
		t.Errorf("heard %q, want one loss with its cause", lost)
	}
}

func TestAnActorThatDoesNotExistStopsTheStart(t *testing.T) {
	for want, o := range map[string]broker.Options{
		"TRP-5001": {Actors: []string{"observer.nobody"}},
		"TRP-5002": {Actors: []string{"observer.topichits"}, ActorSettings: map[string]string{"observer.topichits.panic.aftr": "1"}},
	} {
		dir := t.TempDir()
		_, err := startObserved(t, dir, o.Actors, o.ActorSettings)
		if bad := (*actors.ConfigError)(nil); !errors.As(err, &bad) || bad.Code != want {
			t.Errorf("start: %v", err)
		}
		if r, err := startObserved(t, dir, nil, nil); err != nil {
			t.Errorf("the start that failed left something behind: %v", err)
		} else {
			r.stop()
		}
	}
}
