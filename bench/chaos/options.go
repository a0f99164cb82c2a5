package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/troupe-broker/troupe/bench/program"
)

// The clients that take part.
const (
	franzGo        = "franz-go"
	librdkafkaName = "librdkafka"
)

var clientNames = []string{franzGo, librdkafkaName}

// options are the command line.
type options struct {
	runs       int
	length     time.Duration
	nemeses    []string
	clients    []string
	insist     bool // on the clients: they were named
	seed       uint64
	brokers    int
	partitions int // of each of the two topics
	rate       int // records per second, of all producers
	enough     int // acknowledged per second, or the run says nothing
	size       int // of a record's filling, bytes
	hostile    int // connections to each broker
	settings   []string
	binary     string
	proving    string // the test build
	another    string // older binary, which founds the cluster and is kept by the last broker; empty: none
	rolling    bool   // all brokers are upgraded from another to binary under load
	out        string
	pages      string // directory of pages, of all runs
	dir        string
	keep       bool
	again      string // a history to judge once more
	show       bool   // the schedule, and nothing is run
}

// usage is what -h says before the flags.
func usage() string {
	var text strings.Builder
	text.WriteString(`Runs brokers as processes, lets clients work and faults come, and judges what the clients saw.

  go run ./bench/chaos                                  one run of a minute, all faults
  go run ./bench/chaos -runs 20 -seed 1 -pages DIR      a page with a timeline of each run
  go run ./bench/chaos -nemeses partition,kill-leader -brokers 5
  go run ./bench/chaos -schedule -seed 7                what would come, and when
  go run ./bench/chaos -check DIR/history -pages DIR    judge a history again, and draw it

A run founds a cluster of its own. Idempotent producers write to two topics with acks=all, one with write.caching=false and one with true; a reader and two
groups follow; topics come and go; hostile connections are there all the time. A seed draws which faults come, when, and for how long; whom they meet is decided
when they come. Then all is healed, everything is read from start to end, the brokers are stopped, and their disks are compared.

It fails when an acknowledged record is lost, doubled, moved or out of order; when readers, acknowledgements, replicas or the log disagree; when a committed
offset goes back; when a partition has two leaders in an epoch, or two members of a group for long; when the end of a log goes back; when a broker ends by itself, does not
stop in order, or holds more in the end than at first; and when too few records were acknowledged for a run to say anything.

The report has for each run: records acknowledged, how many nobody knows of, faults, the longest time in which a partition took nothing, the time until all replicas were in sync
again, the time until each partition and group went on, the time until groups were at the end, and what is wrong. What failed is kept, with a page.
Exit codes: 0 all passed, 1 not all did, or something is amiss with the machine.

Faults:
`)
	for _, f := range nemeses() {
		fmt.Fprintf(&text, "  %-16s %s%s\n", f.name, f.does, f.needs.note())
	}
	text.WriteString("\nFlags:\n")
	return text.String()
}

func parseOptions(args []string, messages io.Writer) (options, error) {
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.SetOutput(messages)
	var o options
	flags.IntVar(&o.runs, "runs", 1, "how many runs, each with a cluster of its own and the next seed")
	seconds := flags.Int("seconds", 60, "how long the load and the faults of a run last")
	names := flags.String("nemeses", strings.Join(nemesisNames(), ","), "which faults come, separated by commas")
	clients := flags.String("clients", strings.Join(clientNames, ","), "which clients produce and consume; one that is named here has to be there")
	flags.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "of the first run's schedule")
	flags.IntVar(&o.brokers, "brokers", 3, "brokers of the cluster, and replicas of each partition")
	flags.IntVar(&o.partitions, "partitions", 6, "of each of the two topics, synced and cached")
	flags.IntVar(&o.rate, "rate", 3000, "records per second, of all producers")
	flags.IntVar(&o.enough, "enough", 2000, "records acknowledged per second, or the run fails: it said nothing")
	flags.IntVar(&o.size, "size", 500, "bytes of the greatest record's filling")
	flags.IntVar(&o.hostile, "hostile", 4, "connections to each broker of clients that lie, dribble, or never read, all the time")
	flags.StringVar(&o.binary, "troupe", "", "the binary; empty: built from this tree")
	flags.StringVar(&o.another, "another", "", "binary of an older release: all brokers found the cluster with it, and all but the last one are upgraded to -troupe before the load; no run is of the test build then")
	flags.BoolVar(&o.rolling, "rolling", false, "with -another: all brokers are upgraded under load, by a rolling restart before the other faults")
	flags.StringVar(&o.out, "out", "", "a file to which the report is added, too")
	flags.StringVar(&o.pages, "pages", "", "a directory for a page of each run, with a timeline, to open in a browser; one of a run that failed lies beside its data in any case")
	flags.StringVar(&o.dir, "dir", "", "where data, logs and histories of the runs lie; empty: a temporary directory")
	flags.BoolVar(&o.keep, "keep", false, "keep them even when a run passed")
	flags.StringVar(&o.again, "check", "", "judge the history in this directory, and run nothing")
	flags.BoolVar(&o.show, "schedule", false, "print the schedules, and run nothing")
	flags.Usage = func() {
		_, _ = io.WriteString(messages, usage()) // an error of it would be told to the same place
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	o.length = time.Duration(*seconds) * time.Second
	flags.Visit(func(f *flag.Flag) { o.insist = o.insist || f.Name == "clients" })
	var err, err2 error
	o.nemeses, err = program.Choose("fault", *names, nemesisNames())
	o.clients, err2 = program.Choose("client", *clients, clientNames)
	if err := errors.Join(err, err2); err != nil {
		return o, err
	}
	if o.brokers != 1 && o.brokers != 3 && o.brokers != 5 {
		return o, fmt.Errorf("-brokers %d: a cluster is founded by 1, 3 or 5", o.brokers)
	}
	if o.another != "" && o.brokers == 1 {
		return o, errors.New("-another is for clusters: a broker alone is either upgraded or not")
	}
	if o.rolling && o.another == "" {
		return o, errors.New("-rolling is an upgrade, which takes -another")
	}
	if *seconds < 5 || o.runs < 1 || o.partitions < 1 || o.rate < 1 || o.size < 1 || o.hostile < 0 {
		return o, errors.New("-seconds is at least 5; -runs, -partitions, -rate and -size are at least 1, -hostile at least 0")
	}
	return o, nil
}
