package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/troupe-broker/troupe/bench/load"
	"github.com/troupe-broker/troupe/bench/report"
)

// Who reads old records while the open loop runs.
const (
	besideNobody = "alone"
	besideWarm   = "beside a reader in memory"
	besideCold   = "beside a reader of the disk"
)

const (
	// coldSegmentBytes keeps nearly all of the log in closed segments, which can leave memory.
	coldSegmentBytes = 64 << 20
	// coldFetchBytes is what a consumer asks of a partition by default.
	coldFetchBytes = 1 << 20
)

// cold measures what a consumer that catches up takes from the live ones: the same open loop beside nobody, beside one that reads at a fixed pace from memory, and
// beside one that reads the same from the disk.
func (b *bench) cold(ctx context.Context, round int, class report.Class) error {
	order := append([]*server(nil), b.targets...)
	b.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for _, s := range order {
		for _, beside := range []string{besideNobody, besideWarm, besideCold} {
			if err := b.liveBeside(ctx, round, s, class, beside); err != nil {
				return fmt.Errorf("%s, %s: %w", s.name, beside, err)
			}
		}
	}
	return nil
}

func (b *bench) liveBeside(ctx context.Context, round int, s *server, class report.Class, beside string) error {
	switch beside {
	case besideWarm:
		if _, err := b.readOld(ctx, s, 0); err != nil {
			return err
		}
	case besideCold:
		if err := evict(filepath.Join(s.dataDir, b.coldTopic+"-0")); err != nil {
			return err
		}
	}
	topic := b.newTopic()
	if err := s.createTopic(ctx, topic, class); err != nil {
		return err
	}
	reading, enough := context.WithCancel(ctx)
	var reader sync.WaitGroup
	var read load.Drained
	var readErr error
	if beside != besideNobody {
		reader.Go(func() { read, readErr = b.readOld(reading, s, b.coldPace) })
	}
	w := report.Workload{Name: fmt.Sprintf("open loop %d/s %s", b.coldRate, beside), Class: class}
	err := b.sample(w, round, s, func() (measured, error) { return b.live(ctx, s, topic) })
	enough()
	reader.Wait()
	if err = errors.Join(err, readErr, s.deleteTopic(ctx, topic)); err != nil || beside == besideNobody {
		return err
	}
	w.Name = "the reader " + beside
	fmt.Printf("  round %d  %s: %.0f MB/s\n", round, w.Name, float64(read.Bytes)/1e6/read.Elapsed.Seconds())
	sample := report.Sample{Workload: w, Target: s.name, Round: round, Bytes: read.Bytes, Requests: read.Requests, Elapsed: read.Elapsed}
	if read.Bytes >= b.coldTotal() {
		sample.Void = "the reader came to the end of the log before the open loop did: give a larger -cold"
	}
	return b.log.Add(sample)
}

func (b *bench) live(ctx context.Context, s *server, topic string) (measured, error) {
	start := time.Now()
	lat, err := load.OpenLoop{
		Addr: s.addr, Topic: topic, Acks: -1, RecordBytes: b.recordBytes, RatePerSecond: b.coldRate, Duration: b.latencyTime, InFlightMax: 1000,
	}.Run(ctx)
	n := int64(b.coldRate) * int64(b.latencyTime) / int64(time.Second)
	return measured{bytes: n * int64(b.recordBytes), requests: n, elapsed: time.Since(start), lat: lat}, err
}

// coldTotal is what a reader reads at most, of a log that ends a little behind.
func (b *bench) coldTotal() int64 { return b.coldBytes * 9 / 10 }

// readOld reads the old log from its beginning, at a pace or as fast as it goes. That it is told to end before is no error.
func (b *bench) readOld(ctx context.Context, s *server, pace int64) (load.Drained, error) {
	_, records := b.fetchPayload().Batch()
	start := time.Now()
	d, err := load.Drain{
		Addr: s.addr, Topic: b.coldTopic, BytesMax: coldFetchBytes, BytesTotal: b.coldTotal(), End: b.coldBytes / fetchBatchBytes * int64(records),
		BytesPerSecond: pace,
	}.Run(ctx)
	d.Elapsed = time.Since(start)
	if ctx.Err() != nil && d.Bytes > 0 {
		return d, nil
	}
	return d, err
}

// fillCold makes the old log in each broker.
func (b *bench) fillCold(ctx context.Context) error {
	b.coldTopic = b.newTopic()
	for _, s := range b.targets {
		size := fmt.Sprint(coldSegmentBytes)
		if err := s.createTopicWith(ctx, b.coldTopic, report.Cached, map[string]string{"segment.bytes": size}); err != nil {
			return err
		}
		if _, err := (load.Replay{
			Addr: s.addr, Topic: b.coldTopic, Acks: -1, InFlight: b.inFlight, BytesTotal: b.coldBytes, Payload: b.fetchPayload(),
		}).Run(ctx); err != nil {
			return fmt.Errorf("fill %s: %w", s.name, err)
		}
	}
	return nil
}

// evict writes the segments of a partition to the disk and takes them out of memory.
func evict(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".log") {
			continue
		}
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		err = errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close())
		if err != nil {
			return fmt.Errorf("take %s out of memory: %w", f.Name(), err)
		}
	}
	return nil
}
