package broker_test

import (
	"context"
	"crypto/rand"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/troupe-broker/troupe/actors/broker"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/store"
)

// running is a broker in this process, on a free port of the loopback.
type running struct {
	*broker.Broker
	t       testing.TB
	dir     string
	sys     *runtime.System
	addr    string
	stopped bool
	harmed  bool // the test has broken something: stopping need not be clean
}

// start starts a broker in a new directory and waits until it serves.
func start(t testing.TB, pairs ...string) *running {
	t.Helper()
	return startIn(t, t.TempDir(), pairs...)
}

// startIn starts a broker in a directory. pairs are configs: "key=value".
func startIn(t testing.TB, dir string, pairs ...string) *running {
	t.Helper()
	return startOn(t, store.OS(), dir, pairs...)
}

// startOn starts a broker on a file system.
func startOn(t testing.TB, fs store.FS, dir string, pairs ...string) *running {
	t.Helper()
	entries := []config.Entry{{Name: "log.dir", Value: dir}, {Name: "listeners", Value: "PLAINTEXT://127.0.0.1:0"}}
	for _, p := range pairs {
		name, value, _ := strings.Cut(p, "=")
		entries = append(entries, config.Entry{Name: name, Value: value})
	}
	log := zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel)
	if os.Getenv("TROUPE_TEST_LOG") != "" {
		log = log.Level(zerolog.DebugLevel)
	}
	sys := runtime.NewSystem(runtime.Options{Log: log, OnBug: func(b *runtime.Blame) { t.Errorf("a bug: %v\n%s", b, b.Stack) }})
	b, err := broker.Start(broker.Options{Static: config.SetOf(entries...)}, broker.World{
		FS: fs, System: sys, Rand: rand.Reader, Log: log, BuildVersion: "test", Listen: broker.ListenTCP,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &running{Broker: b, t: t, dir: dir, sys: sys, addr: b.Addresses()[0].String()}
	select {
	case <-b.Serving():
	case <-time.After(10 * time.Second):
		t.Fatal("the broker does not serve after 10 s")
	}
	t.Cleanup(func() { r.stop() })
	return r
}

// stop stops the broker and fails the test if that is not clean.
func (r *running) stop() {
	r.t.Helper()
	if r.stopped {
		return
	}
	r.stopped = true
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := r.Stop(ctx); err != nil && !r.harmed {
		r.t.Errorf("stop: %v", err)
	}
	if err := r.sys.Shutdown(ctx); err != nil {
		r.t.Errorf("shutdown: %v", err)
	}
}

// client makes a franz-go client of the broker.
func (r *running) client(opts ...kgo.Opt) *kgo.Client {
	r.t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(r.addr)}, opts...)...)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(cl.Close)
	return cl
}

// dial opens a plain connection to the broker.
func (r *running) dial() net.Conn {
	r.t.Helper()
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}
