package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/troupe-broker/troupe/actors"
	"github.com/troupe-broker/troupe/actors/broker"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/cmd/troupe/settings"
	"github.com/troupe-broker/troupe/store"
)

// stopMax is how long a broker that was asked to stop may take.
const stopMax = 30 * time.Second

// served is what `troupe serve` says when it is ready; with -o json it is the first line of its output.
type served struct {
	Listeners []string `json:"listeners"` // addresses that are open
	DataDir   string   `json:"data_dir"`
	Cluster   string   `json:"cluster_id"`
	Broker    int32    `json:"broker_id"`
	Peer      string   `json:"peer,omitempty"` // address for other brokers
	Metrics   string   `json:"metrics,omitempty"`
	ReadyMs   int64    `json:"ready_ms"`
	Version   string   `json:"version"`
}

func newServe(s *session) *cobra.Command {
	var o serveOptions
	var level string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a broker",
		Long: "Run a broker in the foreground. A configuration is not needed: it listens on 127.0.0.1:9092 and keeps its data in\n" +
			"./troupe-data. File, environment (TROUPE_LOG_RETENTION_MS) and flags (-X log.retention.ms=…) use Kafka's names; the later\n" +
			"wins. `troupe config check` tries them without starting.\n\n" +
			"SIGTERM or SIGINT stops the broker in order; a second one ends it at once, and the next start recovers.\n" +
			"Exit codes: 0 stopped in order, 1 it could not start or go on, 2 the configuration is wrong, 3 a bug, 130 second signal.",
		Example: "  troupe serve\n  troupe serve --config /etc/troupe.yaml -X log.retention.hours=48\n" +
			"  troupe serve --listen 0.0.0.0:9092 --advertise broker-1.example.com:9092\n" +
			"  troupe serve --broker-id 1 --listen 10.0.0.11:9092 --peer-listen 10.0.0.11:9094 --insecure \\\n" +
			"    --join 10.0.0.11:9094,10.0.0.12:9094,10.0.0.13:9094 --bootstrap-expect 3",
		RunE: func(cmd *cobra.Command, _ []string) error {
			began := time.Now()
			loaded, values, err := o.load(s)
			if err != nil {
				return err
			}
			log, err := s.logger(level)
			if err != nil {
				return err
			}
			return s.serve(cmd.Context(), loaded, &values, log, began)
		},
	}
	o.register(cmd)
	cmd.Flags().StringVar(&level, "log-level", "info", "least severe `LEVEL` that is logged: debug, info, warn or error")
	must(cmd.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions([]string{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

// logger writes to stderr: text for a terminal, else an object a line.
func (s *session) logger(level string) (zerolog.Logger, error) {
	least, err := zerolog.ParseLevel(level)
	if err != nil || least == zerolog.NoLevel {
		return zerolog.Logger{}, usage("--log-level debug, info, warn or error", "there is no log level %q", level)
	}
	log := zerolog.New(s.err)
	if s.terminal {
		log = log.Output(zerolog.ConsoleWriter{Out: s.err, TimeFormat: time.TimeOnly})
	}
	return log.Level(least).With().Timestamp().Logger(), nil
}

// serve runs a broker until ctx ends or it cannot go on.
func (s *session) serve(ctx context.Context, loaded *settings.Loaded, values *config.BrokerValues, log zerolog.Logger, began time.Time) (err error) {
	for _, w := range loaded.Warnings {
		log.Warn().Msg(w.String())
	}
	for _, door := range openDoors(values.Listeners) {
		log.Warn().Msg("clients are not authenticated: whoever reaches " + door + " can read, write and delete")
	}
	if values.Peer.Exposed() {
		log.Warn().Msg("--insecure: whoever reaches the peer port " + values.Peer.Listen + " can speak as a broker")
	}
	doors, err := openListeners(values.Listeners) // before the monitor: where another broker runs, these addresses are what a person knows
	if err != nil {
		return startFailure(err)
	}
	defer doors.close()
	watch, err := startMonitor(ctx, values.MetricsListen)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, watch.stop()) }()

	jobs := runtime.NewBackground()
	defer jobs.Stop()
	defer newMemoryKeeper().stop()
	system := newSystem(log, values.DataDir)
	b, err := broker.Start(broker.Options{Static: loaded.Static, Actors: loaded.Actors, ActorSettings: loaded.ActorSettings}, broker.World{
		FS: store.OS(), System: system, Rand: rand.Reader, Log: log, BuildVersion: buildVersion(),
		Background: jobs.Do, Pause: time.Sleep, Listen: doors.take, ListenPeers: broker.ListenPeers,
	})
	if err != nil {
		return errors.Join(startFailure(actorFailure(err, loaded)), shutDown(system))
	}
	watch.attach(b.MetricsHandler(), b.ReadyHandler(), b.GroupHandler())
	select {
	case <-b.Serving():
		err = s.announce(b, values, watch, began)
	case <-b.Failed():
	case <-ctx.Done():
	}
	if err == nil {
		select {
		case <-b.Failed():
			err = startFailure(b.Failure())
		case <-ctx.Done():
			log.Info().Msg("stopping")
		}
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopMax)
	defer cancel()
	if stopErr := b.Stop(stopping); stopErr != nil && err == nil {
		err = fail(codeStop, "", "stop: %w", stopErr)
	}
	return errors.Join(err, shutDown(system))
}

// newSystem makes the real actor system. A bug in an actor that may not be restarted ends the process: what it left behind
// must not be served (docs/adr/0004). What the bug is was logged before.
func newSystem(log zerolog.Logger, dataDir string) *runtime.System {
	clock := runtime.NewRealClock()
	return runtime.NewSystem(runtime.Options{
		Log: log, Clock: clock,
		OnBug: func(blame *runtime.Blame) {
			if blame.Decision != runtime.Exit {
				return
			}
			_, wall := clock.Now()
			if err := broker.RecordBlame(store.OS(), dataDir, blame, wall); err != nil {
				log.Error().Err(err).Msg("the bug could not be noted in the data directory")
			}
			os.Exit(exitBug)
		},
	})
}

func shutDown(system *runtime.System) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopMax)
	defer cancel()
	if err := system.Shutdown(ctx); err != nil {
		return fail(codeStop, "", "stop: %w", err)
	}
	return nil
}

// announce says that the broker is ready.
func (s *session) announce(b *broker.Broker, values *config.BrokerValues, watch *monitor, began time.Time) error {
	ready := served{
		DataDir: values.DataDir, Cluster: string(b.ClusterID()), Broker: values.BrokerID,
		ReadyMs: time.Since(began).Milliseconds(), Version: buildVersion(), Peer: b.PeerAddress(),
	}
	for _, a := range b.Addresses() {
		ready.Listeners = append(ready.Listeners, a.String())
	}
	also := ""
	if ready.Peer != "" {
		also = ", peers at " + ready.Peer
	}
	if watch != nil {
		ready.Metrics = watch.Address.String()
		also += ", metrics at http://" + ready.Metrics + "/metrics"
	}
	if s.format != formatText {
		if err := s.showLine(ready); err != nil {
			return err
		}
		return wrapStdout(s.flush())
	}
	_, err := fmt.Fprintf(s.out, "troupe %s listens on %s, data in %s, cluster %s, broker %d%s, ready in %d ms\n",
		ready.Version, strings.Join(ready.Listeners, ", "), ready.DataDir, ready.Cluster, ready.Broker, also, ready.ReadyMs)
	if err != nil {
		return wrapStdout(err)
	}
	return wrapStdout(s.flush())
}

// actorFailure gives an error about extension actors the place where the setting was given; other errors stay.
func actorFailure(err error, loaded *settings.Loaded) error {
	if bad, ok := errors.AsType[*actors.ConfigError](err); ok {
		return &failure{Code: bad.Code, What: placed(loaded.Where(bad.Key), bad.Key+": "+bad.Reason), Exit: exitUsage, cause: err}
	}
	return err
}

// placed puts the place at which something was given before what is wrong with it.
func placed(where, what string) string {
	if where == "" {
		return what
	}
	return where + ": " + what
}

// coded finds the code at the beginning of an error's text, codedWithin the first one and what is before it.
var (
	coded       = regexp.MustCompile(`^(TRP-\d{4}): (?s:(.*))$`)
	codedWithin = regexp.MustCompile(`^((?s:.*?))(TRP-\d{4}): ((?s:.*))$`)
)

// startFailure is what a person reads when a broker cannot start, or go on.
func startFailure(err error) error {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if kept, ok := errors.AsType[*store.Error](err); ok {
		f := &failure{Code: string(kept.Code), What: kept.Message, Exit: exitFailed, cause: err}
		if kept.Code == store.CodeForeign {
			f.Hint = "--broker-id N says who this broker is, --data-dir DIR where its data is"
		}
		return f
	}
	if m := codedWithin.FindStringSubmatch(err.Error()); m != nil {
		return &failure{Code: m[2], What: m[1] + m[3], Exit: exitFailed, cause: err}
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "listen" {
		return fail(codeListen, "is another broker running? --listen HOST:PORT, --peer-listen HOST:PORT take another address", "%w", err)
	}
	return fail(codeStart, "", "the broker cannot start: %w", err)
}
