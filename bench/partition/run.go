package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/troupe-broker/troupe/bench/floor"
	"github.com/troupe-broker/troupe/bench/load"
	"github.com/troupe-broker/troupe/bench/peer"
	"github.com/troupe-broker/troupe/bench/report"
)

// Bounds beyond which a sample counts for nothing.
const (
	otherShareMax = 0.10 // of one CPU, used by neither side
	stealShareMax = 0.01
	floorDiffMax  = 0.15 // between the two runs of the floor around a workload
)

const (
	fetchBatchBytes = 16 << 10
	fetchLogBytes   = 256 << 20
)

// bench holds what a run needs: the targets and the log of samples.
type bench struct {
	options
	dir     string
	log     *report.Log
	targets []*server // brokers
	null    *server
	d4, d5  *server
	d5Log   string
	d5End   int64

	coldTopic string // of the log that -cold asks for
	topics    int
	rng       *rand.Rand
}

// measured is what a run of the generator did.
type measured struct {
	bytes, requests int64
	elapsed         time.Duration
	lat             load.Latencies
}

// sample runs the generator against s and reads from outside what both used.
func (b *bench) sample(w report.Workload, round int, s *server, run func() (measured, error)) error {
	server0, err := s.Usage()
	if err != nil {
		return err
	}
	own0, err := peer.ReadUsage(os.Getpid())
	if err != nil {
		return err
	}
	machine0, err := peer.ReadMachine()
	if err != nil {
		return err
	}
	m, runErr := run()
	if runErr != nil {
		return fmt.Errorf("%s, %s: %w", s.name, w.Name, runErr)
	}
	machine1, err := peer.ReadMachine()
	if err != nil {
		return err
	}
	server1, err := s.Usage()
	if err != nil {
		return err
	}
	own1, err := peer.ReadUsage(os.Getpid())
	if err != nil {
		return err
	}
	used, own := server1.Sub(server0), own1.Sub(own0)
	busy, steal := machine1.Since(machine0)
	other := (busy - used.CPU() - own.CPU()).Seconds() / m.elapsed.Seconds()
	sm := report.Sample{
		Workload: w, Target: s.name, Round: round, Bytes: m.bytes, Requests: m.requests, Elapsed: m.elapsed,
		CPU: used.CPU(), CPUSystem: used.System, Generator: own.CPU(), Other: other, Steal: steal,
	}
	if m.lat.Ack != nil {
		sm.Ack, sm.EndToEnd, sm.Service = percentiles(m.lat.Ack), percentiles(m.lat.EndToEnd), percentiles(m.lat.Service)
	}
	switch {
	case other > otherShareMax:
		sm.Void = fmt.Sprintf("others used %.0f %% of a CPU", 100*other)
	case steal > stealShareMax:
		sm.Void = fmt.Sprintf("the hypervisor took %.1f %%", 100*steal)
	}
	fmt.Printf("  round %d  %-16s %-7s %-12s %8.0f MB/s %8.3f CPU-s/GB  %s\n",
		round, w.Name, w.Class, s.name, sm.MBPerSecond(), sm.CPUPerGB(), sm.Void)
	return b.log.Add(sm)
}

func percentiles(h *hdrhistogram.Histogram) map[string]int64 {
	return map[string]int64{
		"50": h.ValueAtQuantile(50), "90": h.ValueAtQuantile(90), "99": h.ValueAtQuantile(99),
		"99.9": h.ValueAtQuantile(99.9), "max": h.Max(), "count": h.TotalCount(),
	}
}

// between runs the targets in a shuffled order, with the floor before and after; when
// the two floors disagree the machine changed meanwhile, and all of it is void.
func (b *bench) between(floorServer *server, targets []*server, one func(*server) error) error {
	order := append([]*server(nil), targets...)
	b.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	order = append(append([]*server{floorServer}, order...), floorServer)
	from := len(b.log.Samples())
	for _, s := range order {
		if err := one(s); err != nil {
			return err
		}
	}
	round := b.log.Samples()[from:]
	first, last := round[0].CPUPerGB(), round[len(round)-1].CPUPerGB()
	if diff := max(first, last)/max(min(first, last), 1e-9) - 1; diff > floorDiffMax {
		fmt.Printf("  void: the floors differ by %.0f %%\n", 100*diff)
		return b.log.VoidFrom(from, fmt.Sprintf("the floors differ by %.0f %%", 100*diff))
	}
	return nil
}

func (b *bench) produce(ctx context.Context, round, size int, class report.Class) error {
	w := report.Workload{Name: "produce " + bytesText(size), Class: class}
	total := min(b.bytesPerCell, b.smallRequests*int64(size))
	if class == report.Synced {
		total /= 8 // each answer waits for the disk
	}
	return b.between(b.d4, append([]*server{b.null}, b.targets...), func(s *server) error {
		topic := b.newTopic()
		if err := s.createTopic(ctx, topic, class); err != nil {
			return err
		}
		if err := touch(total + total/4); err != nil {
			return err
		}
		err := b.sample(w, round, s, func() (measured, error) {
			p, err := load.Replay{
				Addr: s.addr, Topic: topic, Acks: -1, InFlight: b.inFlight, BytesTotal: total,
				Payload: load.Payload{RecordBytes: b.recordBytes, RequestBytes: size, Seed: b.seed},
			}.Run(ctx)
			return measured{bytes: p.Bytes, requests: p.Requests, elapsed: p.Elapsed}, err
		})
		return errors.Join(err, s.deleteTopic(ctx, topic))
	})
}

func (b *bench) newTopic() string {
	b.topics++
	return fmt.Sprintf("bench-%05d", b.topics)
}

// fill makes the topic that fetches read, the same batches in each broker.
func (b *bench) fill(ctx context.Context, topic string) error {
	for _, s := range b.targets {
		if err := s.createTopic(ctx, topic, report.Cached); err != nil {
			return err
		}
		if _, err := (load.Replay{
			Addr: s.addr, Topic: topic, Acks: -1, InFlight: b.inFlight, BytesTotal: fetchLogBytes, Payload: b.fetchPayload(),
		}).Run(ctx); err != nil {
			return fmt.Errorf("fill %s: %w", s.name, err)
		}
	}
	return nil
}

func (b *bench) fetchPayload() load.Payload {
	return load.Payload{RecordBytes: b.recordBytes, RequestBytes: fetchBatchBytes, Seed: b.seed}
}

func (b *bench) fetch(ctx context.Context, round, size int, topic string) error {
	w := report.Workload{Name: "fetch " + bytesText(size)}
	_, records := b.fetchPayload().Batch()
	// The last batch is left out, so that no read comes close to the long poll at the end.
	end := b.d5End - int64(2*records*max(1, size/fetchBatchBytes))
	return b.between(b.d5, b.targets, func(s *server) error {
		return b.sample(w, round, s, func() (measured, error) {
			d, err := load.Drain{
				Addr: s.addr, Topic: topic, BytesMax: int32(size), BytesTotal: b.bytesPerCell, End: end,
			}.Run(ctx)
			return measured{bytes: d.Bytes, requests: d.Requests, elapsed: d.Elapsed}, err
		})
	})
}

func (b *bench) latency(ctx context.Context, round, rate int, class report.Class) error {
	w := report.Workload{Name: fmt.Sprintf("open loop %d/s", rate), Class: class}
	order := append([]*server(nil), b.targets...)
	b.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for _, s := range order {
		topic := b.newTopic()
		if err := s.createTopic(ctx, topic, class); err != nil {
			return err
		}
		err := b.sample(w, round, s, func() (measured, error) {
			start := time.Now()
			lat, err := load.OpenLoop{
				Addr: s.addr, Topic: topic, Acks: -1, RecordBytes: b.recordBytes,
				RatePerSecond: rate, Duration: b.latencyTime, InFlightMax: 1000,
			}.Run(ctx)
			n := int64(rate) * int64(b.latencyTime) / int64(time.Second)
			return measured{bytes: n * int64(b.recordBytes), requests: n, elapsed: time.Since(start), lat: lat}, err
		})
		if err := errors.Join(err, s.deleteTopic(ctx, topic)); err != nil {
			return err
		}
	}
	return nil
}

// floors measures the floors that are no servers.
func (b *bench) floors(round int) error {
	figs := floor.Copy(1 << 30)
	figs = append(figs, floor.Checksum(1<<29, 61, 128, 1024, 16<<10)...)
	for _, size := range []int{1 << 10, 16 << 10, 256 << 10} {
		f, err := floor.Append(b.dir, 256<<20, size)
		if err != nil {
			return err
		}
		figs = append(figs, f...)
	}
	for _, size := range []int{4 << 10, 1 << 20} {
		f, err := floor.Sync(b.dir, size, 50)
		if err != nil {
			return err
		}
		figs = append(figs, f)
	}
	disk, err := floor.Disk(b.dir, 256<<20)
	if err != nil {
		return err
	}
	walk, err := floor.Walk(b.d5Log)
	if err != nil {
		return err
	}
	figs = append(append(figs, disk...), walk...)
	ping, err := load.Replay{
		Addr: b.null.addr, Topic: "ping", Acks: 1, InFlight: 1, BytesTotal: 20_000 * 125,
		Payload: load.Payload{RecordBytes: 16, RequestBytes: 64, Seed: b.seed},
	}.Run(context.Background())
	if err != nil {
		return err
	}
	figs = append(figs, floor.Figure{ID: "D6", Name: "round trip on loopback", Bytes: ping.Bytes, Calls: ping.Requests, Elapsed: ping.Elapsed})
	for _, f := range figs {
		if err := b.log.Add(report.Sample{
			Workload: report.Workload{Name: f.ID + " " + f.Name}, Target: machineTarget, Round: round,
			Bytes: f.Bytes, Requests: f.Calls, Elapsed: f.Elapsed,
		}); err != nil {
			return err
		}
	}
	return nil
}

// warm drives each broker for a while: a JVM's compiler has then seen the load, and a
// virtual machine's memory has come from its host, which the first use of each page
// pays for (ten times what the page costs later).
func (b *bench) warm(ctx context.Context) error {
	for _, s := range b.targets {
		fmt.Printf("warming %s for %v\n", s.name, b.warmUp)
		for end := time.Now().Add(b.warmUp); time.Now().Before(end); {
			for _, size := range b.produceSizes {
				topic := b.newTopic()
				if err := s.createTopic(ctx, topic, report.Cached); err != nil {
					return err
				}
				p := load.Payload{RecordBytes: b.recordBytes, RequestBytes: size, Seed: b.seed}
				total := min(b.bytesPerCell/4, b.smallRequests/4*int64(size))
				if _, err := (load.Replay{Addr: s.addr, Topic: topic, Acks: -1, InFlight: b.inFlight, BytesTotal: total, Payload: p}).Run(ctx); err != nil {
					return err
				}
				if err := s.deleteTopic(ctx, topic); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// start brings up everything the options ask for. What was started is in b even when
// it fails.
func (b *bench) start(ctx context.Context) (err error) {
	b.d5Log = filepath.Join(b.dir, "d5.log")
	if b.d5End, err = b.fetchPayload().WriteLog(b.d5Log, fetchLogBytes); err != nil {
		return err
	}
	if b.null, err = b.startFloor(ctx, nameNull, floor.Null, b.dir, ""); err != nil {
		return err
	}
	if b.d4, err = b.startFloor(ctx, nameD4, floor.D4, b.dir, ""); err != nil {
		return err
	}
	if b.d5, err = b.startFloor(ctx, nameD5, floor.D5, b.dir, b.d5Log); err != nil {
		return err
	}
	binary, err := peer.BuildTroupe(ctx, b.troupe, b.dir)
	if err != nil {
		return err
	}
	t, err := b.startTroupe(ctx, binary, b.dir)
	if err != nil {
		return err
	}
	b.targets = append(b.targets, t)
	for _, profile := range b.kafka {
		k, err := b.startKafka(ctx, profile, b.dir)
		if err != nil {
			return err
		}
		b.targets = append(b.targets, k)
	}
	return nil
}

func (b *bench) stop() error {
	var errs []error
	for _, s := range append(b.targets, b.null, b.d4, b.d5) {
		if s != nil {
			errs = append(errs, s.close())
		}
	}
	return errors.Join(errs...)
}

func awaitPort(ctx context.Context, p *peer.Process, addr string) error {
	d := net.Dialer{Timeout: time.Second}
	for {
		c, err := d.DialContext(ctx, "tcp", addr)
		if err == nil {
			return c.Close()
		}
		select {
		case <-p.Exited():
			return errors.Join(err, p.Err())
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
