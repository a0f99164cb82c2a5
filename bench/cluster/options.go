package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-broker/troupe/bench/report"
)

// options are the command line.
type options struct {
	targets, rows []string
	faults        []fault
	classes       []report.Class

	trials        int
	failoverClass report.Class
	patient       bool
	poll          time.Duration

	rounds      int
	rate, batch int
	recordBytes int
	warmUp      time.Duration
	latencyTime time.Duration

	manyPartitions, manyTrials int

	partitions       int
	settle, idleTime time.Duration

	out, workDir, troupe string
}

// The rows there are.
const (
	rowFailover = "failover"
	rowLatency  = "latency"
	rowIdle     = "idle"
	rowMany     = "many"
)

func parseOptions(args []string) (options, error) {
	o := options{}
	fs := flag.NewFlagSet("cluster", flag.ContinueOnError)
	targets := fs.String("target", nameTroupe, "what to measure: troupe, kafka (needs Java and Maven)")
	rows := fs.String("rows", "failover,latency,idle", "what to measure of them")
	named := fs.String("faults", strings.Join(faultNames(), ","), "faults to try")
	classes := fs.String("classes", "cached,synced", "durability classes of the latency runs")
	class := fs.String("failover-class", string(report.Synced), "durability class of the failover trials")
	fs.IntVar(&o.trials, "trials", 20, "trials of each fault")
	fs.BoolVar(&o.patient, "patient", true, "let a client with franz-go's defaults write beside the raw one")
	fs.DurationVar(&o.poll, "poll", 5*time.Millisecond, "how often the raw client asks each broker who leads")
	fs.IntVar(&o.rounds, "rounds", 3, "rounds of the latency runs")
	fs.IntVar(&o.rate, "rate", 10_000, "records a second of the open loop")
	fs.IntVar(&o.batch, "batch", 10, "records in each of its requests")
	fs.IntVar(&o.recordBytes, "record", 1024, "bytes of a record's value")
	fs.DurationVar(&o.warmUp, "warm-up", 20*time.Second, "unmeasured load before a latency run")
	fs.DurationVar(&o.latencyTime, "latency-time", 30*time.Second, "length of a latency run")
	fs.IntVar(&o.manyPartitions, "many", 10_000, "partitions of the row many, which is measured when -rows names it")
	fs.IntVar(&o.manyTrials, "many-trials", 3, "brokers of it that are killed, one after the other")
	fs.IntVar(&o.partitions, "partitions", 1000, "idle partitions")
	fs.DurationVar(&o.settle, "settle", 30*time.Second, "time without clients before the idle cluster is measured")
	fs.DurationVar(&o.idleTime, "idle-time", 30*time.Second, "how long it is measured")
	fs.StringVar(&o.out, "out", "bench/results", "directory for the results")
	fs.StringVar(&o.workDir, "work", "", "directory for data, on the file system to measure (default: a temporary one)")
	fs.StringVar(&o.troupe, "troupe", "", "troupe binary (default: built from this checkout)")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: everything is a flag, see -h", fs.Arg(0))
	}
	o.failoverClass = report.Class(*class)
	for _, c := range split(*classes) {
		o.classes = append(o.classes, report.Class(c))
	}
	o.targets, o.rows = split(*targets), split(*rows)
	err := errors.Join(known("-target", o.targets, nameTroupe, nameKafka), known("-rows", o.rows, rowFailover, rowLatency, rowIdle, rowMany),
		known("-faults", split(*named), faultNames()...), known("-classes", append(split(*classes), *class), string(report.Cached), string(report.Synced)))
	for _, f := range faults {
		if slices.Contains(split(*named), f.name) {
			o.faults = append(o.faults, f)
		}
	}
	if o.trials < 1 || o.rounds < 1 || o.batch < 1 || o.rate < o.batch || o.recordBytes < 8 || o.partitions < 1 || o.manyPartitions < 1 || o.manyTrials < 0 {
		err = errors.Join(err, errors.New("-trials, -rounds, -batch, -many and -partitions must be at least 1, -many-trials at least 0, -rate at least -batch, -record at least 8"))
	}
	return o, err
}

func split(list string) []string {
	var words []string
	for w := range strings.SplitSeq(list, ",") {
		if w = strings.TrimSpace(w); w != "" {
			words = append(words, w)
		}
	}
	return words
}

func known(name string, words []string, all ...string) error {
	for _, w := range words {
		if !slices.Contains(all, w) {
			return fmt.Errorf("%s: there is no %q, only %s", name, w, strings.Join(all, ", "))
		}
	}
	return nil
}
