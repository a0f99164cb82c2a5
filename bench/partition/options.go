package main

import (
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-broker/troupe/bench/report"
)

// options are the command line.
type options struct {
	rounds        int
	produceSizes  []int
	fetchSizes    []int
	classes       []report.Class
	kafka         []string
	rates         []int
	latencyTime   time.Duration
	warmUp        time.Duration
	inFlight      int
	recordBytes   int
	bytesPerCell  int64
	smallRequests int64
	coldBytes     int64 // of the log that a reader catches up on; 0: none
	coldPace      int64 // bytes a second that it reads
	coldRate      int   // records a second of the open loop beside it
	seed          uint64
	out, workDir  string
	troupe        string
	pin           bool

	floorRole, floorAddr, floorLog, floorDir string
}

func parseOptions(args []string) (options, error) {
	o := options{}
	fs := flag.NewFlagSet("partition", flag.ContinueOnError)
	produce := fs.String("produce", "1KiB,64KiB,256KiB,1MiB", "request sizes to produce; empty for none")
	fetch := fs.String("fetch", "64KiB,256KiB", "fetch sizes; empty for none")
	classes := fs.String("classes", "cached,synced", "durability classes to produce in")
	kafka := fs.String("kafka", "", "Apache Kafka profiles to run as peers: stock, tuned (needs Java and Maven)")
	rates := fs.String("rates", "1000,10000", "records a second of the open-loop latency runs; empty for none")
	fs.IntVar(&o.rounds, "rounds", 7, "rounds")
	fs.DurationVar(&o.latencyTime, "latency-time", 5*time.Second, "length of one open-loop run")
	fs.DurationVar(&o.warmUp, "warm-up", 30*time.Second, "unmeasured load for each broker before the first round")
	fs.IntVar(&o.inFlight, "in-flight", 8, "produce requests that wait for an answer")
	fs.IntVar(&o.recordBytes, "record", 1000, "bytes of a record's value")
	fs.Int64Var(&o.bytesPerCell, "bytes", 1<<30, "payload bytes of one run")
	fs.Int64Var(&o.smallRequests, "small-requests", 100_000, "bound on the requests of one run")
	cold := fs.String("cold", "0", "size of a log that is read from the disk beside an open loop, in each class; 0 for none")
	pace := fs.String("cold-pace", "256MiB", "bytes a second that its reader takes")
	fs.IntVar(&o.coldRate, "cold-rate", 1000, "records a second of the open loop beside it")
	fs.Uint64Var(&o.seed, "seed", 1, "seed of the payload and of the shuffled order")
	fs.StringVar(&o.out, "out", "bench/results", "directory for the results")
	fs.StringVar(&o.workDir, "work", "", "directory for data, on the file system to measure (default: a temporary one)")
	fs.StringVar(&o.troupe, "troupe", "", "troupe binary (default: built from this checkout)")
	fs.BoolVar(&o.pin, "pin", true, "servers on CPU 0, the generator on CPU 1")
	fs.StringVar(&o.floorRole, "floor", "", "serve this floor and nothing else (used by the program itself)")
	fs.StringVar(&o.floorAddr, "floor-addr", "127.0.0.1:0", "where -floor listens")
	fs.StringVar(&o.floorLog, "floor-log", "", "the log that -floor d5 serves")
	fs.StringVar(&o.floorDir, "floor-dir", "", "the directory of -floor d4's mapping")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: everything is a flag, see -h", fs.Arg(0))
	}
	var errs [6]error
	o.produceSizes, errs[0] = each(*produce, parseBytes)
	o.fetchSizes, errs[1] = each(*fetch, parseBytes)
	o.rates, errs[2] = each(*rates, strconv.Atoi)
	o.classes, errs[3] = each(*classes, func(s string) (report.Class, error) {
		c := report.Class(s)
		if c != report.Cached && c != report.Synced {
			return c, fmt.Errorf("class %q: want cached or synced", s)
		}
		return c, nil
	})
	o.coldBytes, errs[4] = parseSize(*cold)
	o.coldPace, errs[5] = parseSize(*pace)
	o.kafka, _ = each(*kafka, func(s string) (string, error) { return s, nil })
	if o.rounds < 1 || o.inFlight < 1 || o.recordBytes < 16 {
		errs[0] = errors.Join(errs[0], errors.New("-rounds and -in-flight must be at least 1, -record at least 16"))
	}
	return o, errors.Join(errs[:]...)
}

func each[T any](list string, parse func(string) (T, error)) ([]T, error) {
	var out []T
	for s := range strings.SplitSeq(list, ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		v, err := parse(s)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func parseSize(s string) (int64, error) {
	n, err := parseBytes(s)
	return int64(n), err
}

func parseBytes(s string) (int, error) {
	for suffix, unit := range map[string]int{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if digits, ok := strings.CutSuffix(s, suffix); ok {
			n, err := strconv.Atoi(digits)
			return n * unit, err
		}
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, fmt.Errorf("size %q: want bytes, KiB, MiB or GiB: %w", s, err)
	}
	return n, nil
}

func bytesText(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	default:
		return fmt.Sprintf("%d B", n)
	}
}
