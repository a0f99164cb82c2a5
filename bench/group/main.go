// Group measures consumer groups: how fast many members come together, what one more costs, and how many offsets are committed.
//
//	go run ./bench/group
//	go run ./bench/group -kafka stock,tuned
//	go run ./bench/group -rows commits -classes synced
//
// Members are raw connections of this process, so that a broker is measured and not a library; real Java consumers stand beside them in the classic group. All
// brokers are started here, one after the other, and get the same load. Every value goes to a file below -out, one JSON line each; a summary is printed.
package main

import (
	"cmp"
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
	"strings"
	"syscall"
	"time"

	"github.com/troupe-broker/troupe/bench/program"
)

type bench struct {
	troupe   string
	kafka    []string
	dir      string
	out      string
	members  int
	java     int
	joins    int
	rounds   int
	duration time.Duration
	pairs    int
	rows     []string
	classes  []string
	settings []string
	topic    string
	raw      *values
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == generatorWord {
		end(generate(ctx, os.Args[2:]))
		return
	}
	b := &bench{topic: "group-topic"}
	var kafka, rows, classes, settings string
	flag.StringVar(&b.troupe, "troupe", "", "troupe binary (default: built from this checkout); none: measure the peers alone")
	flag.StringVar(&kafka, "kafka", "", "Apache Kafka profiles to run as peers: stock, tuned (needs Java and Maven)")
	flag.StringVar(&b.dir, "work", "", "directory for data (default: a temporary one)")
	flag.StringVar(&b.out, "out", "bench/results", "directory for the results")
	flag.IntVar(&b.members, "members", 100, "raw members of a group")
	flag.IntVar(&b.java, "java", 0, "Java consumers beside them in the classic group (needs Java and Maven)")
	flag.IntVar(&b.joins, "joins", 10, "single joins to measure in a round")
	flag.IntVar(&b.rounds, "rounds", 3, "rounds of each measurement with a new group")
	flag.DurationVar(&b.duration, "duration", 5*time.Second, "length of a run of commits")
	flag.IntVar(&b.pairs, "pairs", 3, "runs of a producer alone and beside commits, one after the other")
	flag.StringVar(&rows, "rows", "members,commits", "what to measure")
	flag.StringVar(&classes, "classes", cached+","+synced, "durability classes of commits")
	flag.StringVar(&settings, "X", "", "settings of the Troupe broker: KEY=VALUE,…")
	flag.Parse()
	if kafka != "" {
		b.kafka = strings.Split(kafka, ",")
	}
	if settings != "" {
		b.settings = strings.Split(settings, ",")
	}
	var wrong, wrongClass error
	b.rows, wrong = program.Choose("row", rows, []string{"members", "commits"})
	b.classes, wrongClass = program.Choose("class", classes, []string{cached, synced})
	if err := errors.Join(wrong, wrongClass); err != nil {
		end(err)
	}
	end(b.run(ctx))
}

// end ends the process when something went wrong.
func end(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "group:", err)
		os.Exit(1)
	}
}

func (b *bench) run(ctx context.Context) (err error) {
	if b.dir == "" {
		if b.dir, err = os.MkdirTemp("", "troupe-group-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	}
	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(b.out, "group-"+time.Now().UTC().Format("20060102-150405")+".jsonl"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	b.raw = &values{w: file}
	var starts []func(context.Context) (*server, error)
	if b.troupe != "none" {
		starts = append(starts, b.startTroupe)
	}
	for _, profile := range b.kafka {
		starts = append(starts, func(ctx context.Context) (*server, error) { return b.startKafka(ctx, profile) })
	}
	for _, start := range starts {
		s, err := start(ctx)
		if err != nil {
			return err
		}
		if err := errors.Join(b.measure(ctx, s), s.close()); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	b.raw.print()
	fmt.Println("\nwritten:", file.Name())
	return nil
}

func (b *bench) measure(ctx context.Context, s *server) error {
	if err := s.createTopic(ctx, b.topic, partitions, cached); err != nil {
		return err
	}
	for round := range b.rounds {
		if !slices.Contains(b.rows, "members") {
			break
		}
		group := fmt.Sprintf("classic-%d", round)
		if err := awaitCoordinator(ctx, s.addr, group); err != nil {
			return err
		}
		java, err := b.startJava(ctx, s, group, b.topic, b.java)
		if err != nil {
			return err
		}
		if err := errors.Join(b.classic(ctx, s, group, b.topic, b.java), java.stop()); err != nil {
			return err
		}
		group = fmt.Sprintf("consumer-%d", round)
		if err := awaitCoordinator(ctx, s.addr, group); err != nil {
			return err
		}
		if err := b.consumer(ctx, s, group, b.topic); err != nil {
			return err
		}
	}
	for _, class := range b.classes {
		if !slices.Contains(b.rows, "commits") {
			break
		}
		// The topic of the offsets is made with the first group.
		if err := awaitCoordinator(ctx, s.addr, commitGroup(0)); err != nil {
			return err
		}
		if err := s.setClass(ctx, class); err != nil {
			return err
		}
		if err := b.commits(ctx, s, class); err != nil {
			return err
		}
	}
	return nil
}

// values collects what was measured and writes each value as it is taken.
type values struct {
	w   io.Writer
	all []value
}

type value struct {
	Target string    `json:"target"`
	What   string    `json:"what"`
	Value  float64   `json:"value"`
	At     time.Time `json:"at"`
}

func (v *values) add(target, what string, x float64) error {
	one := value{target, what, x, time.Now().UTC()}
	v.all = append(v.all, one)
	fmt.Printf("%-14s %-48s %.3f\n", target, what, x)
	line, err := json.Marshal(one)
	if err != nil {
		return err
	}
	_, err = v.w.Write(append(line, '\n'))
	return err
}

// print shows the median, the least and the greatest of each figure, target beside target.
func (v *values) print() {
	type key struct{ what, target string }
	by := make(map[key][]float64)
	for _, x := range v.all {
		by[key{x.What, x.Target}] = append(by[key{x.What, x.Target}], x.Value)
	}
	keys := make([]key, 0, len(by))
	for k := range by {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int { return cmp.Or(cmp.Compare(a.what, b.what), cmp.Compare(a.target, b.target)) })
	fmt.Printf("\n%-50s %-14s %10s %10s %10s %4s\n", "", "", "median", "min", "max", "n")
	for _, k := range keys {
		x := by[k]
		slices.Sort(x)
		fmt.Printf("%-50s %-14s %10.3f %10.3f %10.3f %4d\n", k.what, k.target, x[len(x)/2], x[0], x[len(x)-1], len(x))
	}
}
