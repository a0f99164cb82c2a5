// Proving is the broker as bench/chaos builds it when a fault needs a world that a real one does not offer: a wall clock that jumps, clocks that drift, a disk
// that forgets what was not synced. Beneath that it is the same cast, started in the same way, as `troupe serve` starts; the clock and the disk are
// arguments of broker.Start. It is no part of the product, and nobody should keep data with it.
//
//	proving serve --listen ADDR --data-dir DIR -X KEY=VALUE…
//
// The environment says what is different:
//
//   - TROUPE_TEST_CLOCK names a file with two numbers, by how many milliseconds the wall clock is ahead and by how many millionths all clocks are fast. It is
//     looked at all the time. The monotonic clock never jumps.
//   - TROUPE_TEST_PLATTER names the directory of the platter of bench/chaos/volatile. Empty: the disk is the machine's.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/broker"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/bench/chaos/volatile"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/store"
)

// Exit codes are those of `troupe serve`.
const (
	exitFailed = 1
	exitBug    = 3
)

const stopMax = 30 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "proving:", err)
		stop()
		os.Exit(exitFailed)
	}
}

// parse reads the arguments that the harness gives to either build.
func parse(args []string) (config.Set, error) {
	var given []config.Given
	for i := 1; i+1 < len(args); i += 2 {
		name, value := args[i], args[i+1]
		switch name {
		case "--listen":
			name = "listeners"
		case "--data-dir":
			name = "log.dirs"
		case "-X":
			name, value, _ = strings.Cut(value, "=")
		default:
			return config.Set{}, fmt.Errorf("unknown flag %s", name)
		}
		given = append(given, config.Given{Name: name, Value: value, Where: args[i]})
	}
	if len(args)%2 == 0 || args[0] != "serve" {
		return config.Set{}, errors.New("usage: proving serve --listen ADDR --data-dir DIR -X KEY=VALUE")
	}
	set, _, err := config.Static(given)
	return set, err
}

// run is the broker's life.
func run(ctx context.Context, args []string, out io.Writer) (err error) {
	set, err := parse(args)
	if err != nil {
		return err
	}
	values, err := config.BrokerOf(config.Stack{Static: set})
	if err != nil {
		return err
	}
	log := zerolog.New(out).Level(zerolog.InfoLevel).With().Timestamp().Logger()
	clock, err := newClock(os.Getenv("TROUPE_TEST_CLOCK"))
	if err != nil {
		return err
	}
	defer clock.stop()
	fs := store.OS()
	if dir := os.Getenv("TROUPE_TEST_PLATTER"); dir != "" {
		if fs, err = volatile.New(values.DataDir, dir); err != nil {
			return err
		}
	}
	jobs := runtime.NewBackground()
	defer jobs.Stop()
	system := runtime.NewSystem(runtime.Options{Log: log, Clock: clock, OnBug: func(blame *runtime.Blame) {
		if blame.Decision == runtime.Exit {
			os.Exit(exitBug) // what the bug is was logged before
		}
	}})
	b, err := broker.Start(broker.Options{Static: set}, broker.World{
		FS: fs, System: system, Rand: rand.Reader, Log: log, BuildVersion: "proving",
		Background: jobs.Do, Pause: time.Sleep, Listen: broker.ListenTCP, ListenPeers: broker.ListenPeers,
	})
	if err != nil {
		return errors.Join(err, shutDown(system))
	}
	monitor := &http.Server{Addr: values.MetricsListen, Handler: b.MetricsHandler(), ReadHeaderTimeout: 5 * time.Second}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := monitor.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			log.Error().Err(err).Msg("metrics are not served")
		}
	})
	defer func() { err = errors.Join(err, monitor.Close()); serving.Wait() }()
	select {
	case <-b.Failed():
		err = b.Failure()
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopMax)
	defer cancel()
	return errors.Join(err, b.Stop(stopping), shutDown(system))
}

func shutDown(system *runtime.System) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopMax)
	defer cancel()
	return system.Shutdown(ctx)
}
