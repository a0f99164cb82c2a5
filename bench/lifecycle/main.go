// Lifecycle measures what a broker costs before and after its work: the size of the
// binary, the time from exec to the first acknowledged record (of an existing and of a
// new data directory), the memory of an idle broker, and how long it takes until every
// partition serves again after kill -9, with a large log and with thousands of small ones.
//
//	go run ./bench/lifecycle
//	go run ./bench/lifecycle -log-bytes 10GiB -partitions 1
//
// The first acknowledgement is seen by a raw probe: a connection is tried again and
// again, a pre-encoded Produce request of one record is sent, and the clock stops when
// its answer has no error. Raw output goes to a file below -out, one JSON line a trial.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sys/unix"

	"github.com/troupe-broker/troupe/bench/load"
	"github.com/troupe-broker/troupe/bench/peer"
)

type options struct {
	troupe     string
	work, out  string
	trials     int
	idle       time.Duration
	logBytes   int64
	partitions int
	many       int
}

func main() {
	var o options
	size := "10GiB"
	flag.StringVar(&o.troupe, "troupe", "", "troupe binary (default: built from this checkout)")
	flag.StringVar(&o.work, "work", "", "directory for data (default: a temporary one)")
	flag.StringVar(&o.out, "out", "bench/results", "directory for the results")
	flag.IntVar(&o.trials, "trials", 20, "starts to measure")
	flag.DurationVar(&o.idle, "idle", 10*time.Second, "how long a broker idles before its memory is read")
	flag.StringVar(&size, "log-bytes", size, "size of the log for the kill -9 trial; 0 for none")
	flag.IntVar(&o.partitions, "partitions", 1, "partitions that share the log")
	flag.IntVar(&o.many, "many", 10_000, "partitions of the broker that has many; 0 for none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if o.logBytes, err = parseSize(size); err == nil {
		err = o.run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lifecycle:", err)
		os.Exit(1)
	}
}

func parseSize(s string) (int64, error) {
	unit := int64(1)
	for suffix, u := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if digits, ok := strings.CutSuffix(s, suffix); ok {
			s, unit = digits, u
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n * unit, err
}

// trials writes each figure as it is taken.
type trials struct{ w io.Writer }

func (t trials) add(what string, value any) error {
	fmt.Printf("%-40s %v\n", what, value)
	b, err := json.Marshal(map[string]any{"what": what, "value": value, "at": time.Now().UTC()})
	if err != nil {
		return err
	}
	_, err = t.w.Write(append(b, '\n'))
	return err
}

func (o options) run(ctx context.Context) (err error) {
	if o.work == "" {
		if o.work, err = os.MkdirTemp("", "troupe-lifecycle-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.work)) }()
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	raw, err := os.Create(filepath.Join(o.out, "lifecycle-"+time.Now().UTC().Format("20060102-150405")+".jsonl"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, raw.Close()) }()
	t := trials{raw}
	if o.troupe, err = peer.BuildTroupe(ctx, o.troupe, o.work); err != nil {
		return err
	}
	st, err := os.Stat(o.troupe)
	if err != nil {
		return err
	}
	return errors.Join(
		t.add("binary MB (10^6 bytes)", float64(st.Size())/1e6),
		o.newDirectory(ctx, t),
		o.idleMemory(ctx, t),
		o.existingDirectory(ctx, t),
		o.killed(ctx, t, false),
		o.killed(ctx, t, true),
		o.manyPartitions(ctx, t),
	)
}

type broker struct {
	*peer.Process
	addr    string
	started time.Time
}

func (o options) start(dir string) (broker, error) {
	t, err := peer.NewTroupe(o.troupe, dir, dir+".log")
	if err != nil {
		return broker{}, err
	}
	b := broker{addr: t.Addr, started: time.Now()}
	b.Process, err = peer.Start(t.Command)
	return b, err
}

func (b broker) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return b.Stop(ctx)
}

// firstAck is the time from exec until a record was acknowledged.
func (b broker) firstAck(ctx context.Context, topic string, partition int32) (time.Duration, error) {
	probe := load.Probe{Addr: b.addr, Topic: topic, Partition: partition}
	err := probe.Until(ctx, b.Exited())
	return time.Since(b.started), err
}

func (b broker) admin() (*kgo.Client, *kadm.Client, error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(b.addr))
	if err != nil {
		return nil, nil, err
	}
	return c, kadm.NewClient(c), nil
}

func (b broker) createTopic(ctx context.Context, topic string, partitions int, configs map[string]*string) error {
	c, admin, err := b.admin()
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = admin.CreateTopic(ctx, int32(partitions), 1, configs, topic)
	return err
}

// newDirectory: from exec on nothing to a record produced and read by a client.
func (o options) newDirectory(ctx context.Context, t trials) error {
	var took []float64
	for i := range 5 {
		b, err := o.start(filepath.Join(o.work, fmt.Sprintf("new-%d", i)))
		if err != nil {
			return err
		}
		if err := o.roundTrip(ctx, b); err != nil {
			return errors.Join(err, b.Kill())
		}
		took = append(took, ms(time.Since(b.started)))
		if err := b.stop(); err != nil {
			return err
		}
	}
	return t.add("new directory: first record read, ms", median(took))
}

func (o options) roundTrip(ctx context.Context, b broker) error {
	if err := peer.AwaitReady(ctx, b.Process, b.addr, 10*time.Second); err != nil {
		return err
	}
	c, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.AllowAutoTopicCreation(), kgo.ConsumeTopics("first"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.ProduceSync(ctx, &kgo.Record{Topic: "first", Value: []byte("hello")}).FirstErr(); err != nil {
		return err
	}
	for {
		f := c.PollFetches(ctx)
		if err := errors.Join(f.Err(), ctx.Err()); err != nil {
			return err
		}
		if f.NumRecords() > 0 {
			return nil
		}
	}
}

func (o options) idleMemory(ctx context.Context, t trials) error {
	b, err := o.start(filepath.Join(o.work, "idle"))
	if err != nil {
		return err
	}
	if err := peer.AwaitReady(ctx, b.Process, b.addr, 10*time.Second); err != nil {
		return errors.Join(err, b.Kill())
	}
	before, err := b.Usage()
	if err != nil {
		return err
	}
	time.Sleep(o.idle)
	after, err := b.Usage()
	if err != nil {
		return err
	}
	return errors.Join(
		t.add("idle RssAnon MB (10^6 bytes)", float64(after.RssAnonBytes)/1e6),
		t.add("idle CPU ms per second", ms(after.Sub(before).CPU())/o.idle.Seconds()),
		b.stop(),
	)
}

func (o options) existingDirectory(ctx context.Context, t trials) error {
	dir := filepath.Join(o.work, "existing")
	b, err := o.start(dir)
	if err != nil {
		return err
	}
	if err := peer.AwaitReady(ctx, b.Process, b.addr, 10*time.Second); err != nil {
		return errors.Join(err, b.Kill())
	}
	if err := b.createTopic(ctx, "probe", 1, nil); err != nil {
		return errors.Join(err, b.Kill())
	}
	if _, err := b.firstAck(ctx, "probe", 0); err != nil {
		return errors.Join(err, b.Kill())
	}
	if err := b.stop(); err != nil {
		return err
	}
	var took []float64
	for range o.trials {
		b, err := o.start(dir)
		if err != nil {
			return err
		}
		d, err := b.firstAck(ctx, "probe", 0)
		if err != nil {
			return errors.Join(err, b.Kill())
		}
		took = append(took, ms(d))
		if err := b.stop(); err != nil {
			return err
		}
	}
	return errors.Join(
		t.add("existing directory: exec to first ack, each ms", took),
		t.add("existing directory: exec to first ack, median ms", median(took)),
	)
}

// killed fills the log under load, kills the broker, and measures the restart until
// each partition has acknowledged a record.
func (o options) killed(ctx context.Context, t trials, cached bool) (err error) {
	if o.logBytes == 0 {
		return nil
	}
	class := "synced"
	if cached {
		class = "cached"
	}
	dir := filepath.Join(o.work, "killed-"+class)
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }() // the next class needs the room
	b, err := o.start(dir)
	if err != nil {
		return err
	}
	if err := peer.AwaitReady(ctx, b.Process, b.addr, 10*time.Second); err != nil {
		return errors.Join(err, b.Kill())
	}
	caching := strconv.FormatBool(cached)
	if err := b.createTopic(ctx, "big", o.partitions, map[string]*string{"write.caching": &caching}); err != nil {
		return errors.Join(err, b.Kill())
	}
	for p := range o.partitions {
		if _, err := (load.Replay{
			Addr: b.addr, Topic: "big", Partition: int32(p), Acks: -1, InFlight: 8, BytesTotal: o.logBytes / int64(o.partitions),
			Payload: load.Payload{RecordBytes: 1000, RequestBytes: 1 << 20},
		}).Run(ctx); err != nil {
			return errors.Join(err, b.Kill())
		}
	}
	if err := b.Kill(); err != nil {
		return err
	}
	// A cached log has to be synced once before it serves. What that sync costs is the
	// disk's figure, so it is taken apart from the broker's.
	if cached {
		d, err := syncAll(dir)
		if err != nil {
			return err
		}
		if err := t.add("kill -9, cached: one sync of the dirty bytes, ms", ms(d)); err != nil {
			return err
		}
	}
	b, err = o.start(dir)
	if err != nil {
		return err
	}
	var last time.Duration
	for p := range o.partitions {
		if last, err = b.firstAck(ctx, "big", int32(p)); err != nil {
			return errors.Join(err, b.Kill())
		}
	}
	return errors.Join(
		t.add(fmt.Sprintf("kill -9, %d partitions, %.1f GB, %s: serving again, ms", o.partitions, float64(o.logBytes)/1e9, class), ms(last)),
		b.stop(),
	)
}

// syncAll times one sync of the file system that holds dir.
func syncAll(dir string) (took time.Duration, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	start := time.Now()
	err = unix.Syncfs(int(f.Fd()))
	return time.Since(start), err
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
