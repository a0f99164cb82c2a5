package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
)

// produceOptions is what the flags of `troupe produce` say.
type produceOptions struct {
	topic       string
	file        string
	format      string
	separator   string
	key         string
	null        string
	headers     []string
	partition   int32
	acks        string
	compression string
	rate        float64 // records per second; 0: as fast as it goes
	batchBytes  int32
	linger      time.Duration
	idempotent  bool
	timeout     time.Duration
}

func newProduce(s *session) *cobra.Command {
	var o produceOptions
	cmd := &cobra.Command{
		Use:   "produce TOPIC",
		Short: "Write records, one a line",
		Long: "Write records, one a line, from a file or from the standard input.\n\n" +
			"A line is the value. With --key-separator it is key and value; with --format json it is an object with key, value,\n" +
			"headers, partition and timestamp, the form that `troupe consume -o json` prints. Records with a key go to the partition\n" +
			"where Kafka's own clients send them; one that names its partition goes there, so the topic must have it. A topic that does\n" +
			"not exist is created if the broker allows it.",
		Example: "  echo hello | troupe produce greetings\n" +
			"  printf 'C-14:paid\\n' | troupe produce orders --key-separator :\n" +
			"  troupe topic create copy --partitions 3\n" +
			"  troupe consume orders -o json | troupe produce copy --format json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeTopics,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.topic = args[0]
			return s.produce(cmd.Context(), &o, cmd.Flags().Changed("key"))
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "file", "f", "-", "file to read; - is the standard input")
	flags.StringVar(&o.format, "format", "line", "form of a line: line or json")
	flags.StringVarP(&o.separator, "key-separator", "K", "", "what separates key and value in a line")
	flags.StringVarP(&o.key, "key", "k", "", "key of every record that has none")
	flags.StringVar(&o.null, "null", "", "word that stands for a null key or value")
	flags.StringArrayVarP(&o.headers, "header", "H", nil, "header of every record, NAME=VALUE; may be given again")
	flags.Int32VarP(&o.partition, "partition", "p", noPartition, "partition of every record that names none; -1 lets the key decide")
	flags.StringVar(&o.acks, "acks", "all", "who must have a record before it counts: all, 1 or 0")
	flags.StringVarP(&o.compression, "compression", "z", "none", "none, gzip, snappy, lz4 or zstd")
	flags.Float64Var(&o.rate, "rate", 0, "records per second at most; 0 is no limit")
	flags.Int32Var(&o.batchBytes, "batch-bytes", 1_000_000, "greatest batch")
	flags.DurationVar(&o.linger, "linger", 5*time.Millisecond, "how long to wait for a batch to fill")
	flags.BoolVar(&o.idempotent, "idempotent", true, "no duplicates when a request is sent again (needs --acks all)")
	flags.DurationVar(&o.timeout, "timeout", 30*time.Second, "how long to try to deliver a record")
	must(cmd.RegisterFlagCompletionFunc("acks", cobra.FixedCompletions([]string{"all", "1", "0"}, cobra.ShellCompDirectiveNoFileComp)))
	must(cmd.RegisterFlagCompletionFunc("compression", cobra.FixedCompletions(codecNames, cobra.ShellCompDirectiveNoFileComp)))
	must(cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"line", "json"}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

// What the client takes as --batch-bytes; a request has at most 100 MiB.
const (
	batchBytesMin = 512
	batchBytesMax = 100 << 20
)

var codecNames = []string{"none", "gzip", "snappy", "lz4", "zstd"}

// lines says how the options read a line.
func (o *produceOptions) lines(keyGiven bool) (*lineFormat, error) {
	f := &lineFormat{separator: o.separator, null: o.null, partition: o.partition}
	switch o.format {
	case "line":
	case "json":
		f.json = true
		if o.separator != "" {
			return nil, usage("leave one out", "--key-separator and --format json contradict each other")
		}
	default:
		return nil, usage("--format line or --format json", "there is no form %q", o.format)
	}
	if o.batchBytes < batchBytesMin || o.batchBytes > batchBytesMax {
		return nil, usage(fmt.Sprintf("--batch-bytes %d to %d", batchBytesMin, batchBytesMax), "--batch-bytes %d", o.batchBytes)
	}
	if !(o.rate >= 0) { // NaN is none
		return nil, usage("--rate 0 is no limit", "--rate %v", o.rate)
	}
	if o.partition < noPartition {
		return nil, usage("--partition 0 or more", "there is no partition %d", o.partition)
	}
	if keyGiven {
		if o.separator != "" {
			return nil, usage("leave one out", "--key and --key-separator contradict each other")
		}
		f.key = []byte(o.key)
	}
	for _, h := range o.headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return nil, usage("for example --header source=test", "header %q is not NAME=VALUE", h)
		}
		f.headers = append(f.headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
	return f, nil
}

// client turns the options into those of the client; wrong hears of records without a place.
func (o *produceOptions) client(wrong *misplaced) ([]kgo.Opt, error) {
	opts := []kgo.Opt{
		kgo.AllowAutoTopicCreation(),
		kgo.RecordPartitioner(partitioner(wrong)),
		kgo.ProducerBatchMaxBytes(o.batchBytes),
		kgo.ProducerLinger(o.linger),
		kgo.MaxBufferedBytes(64 << 20),
		kgo.AllowIdempotentProduceCancellation(), // giving up means giving up
	}
	switch o.acks {
	case "all", "-1":
		opts = append(opts, kgo.RequiredAcks(kgo.AllISRAcks()))
		if !o.idempotent {
			opts = append(opts, kgo.DisableIdempotentWrite())
		}
	case "1":
		opts = append(opts, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	case "0":
		opts = append(opts, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite())
	default:
		return nil, usage("--acks all, 1 or 0", "there is no acks %q", o.acks)
	}
	codecs := []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()}
	i := slices.Index(codecNames, o.compression)
	if i < 0 {
		return nil, usage("one of: "+strings.Join(codecNames, ", "), "there is no compression %q", o.compression)
	}
	return append(opts, kgo.ProducerBatchCompression(codecs[i])), nil
}

// produced is the result of `troupe produce`.
type produced struct {
	Topic      string              `json:"topic"`
	Records    int64               `json:"records"` // acknowledged, or sent with acks 0
	Bytes      int64               `json:"bytes"`   // of their keys and values
	Seconds    float64             `json:"seconds"`
	Partitions []producedPartition `json:"partitions"`
}

type producedPartition struct {
	Partition int32 `json:"partition"`
	Records   int64 `json:"records"`
	First     int64 `json:"first_offset"` // -1 with acks 0: the broker does not say
	Last      int64 `json:"last_offset"`
}

// tally counts answers. The client calls promises from a goroutine of its own.
type tally struct {
	mu         sync.Mutex
	records    int64
	bytes      int64
	failed     int64
	first      error // of those that failed
	partitions map[int32]*producedPartition

	silent   bool        // acks 0: the offsets that the client makes up mean nothing
	watch    *time.Timer // ends the delivery when it is not reset
	patience time.Duration
}

// String tells what was acknowledged so far.
func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return plural(t.records, "record", "records") + ", " + byteCount(t.bytes)
}

// watchOver calls late when nothing was acknowledged for the patience, and again as long as it returns true.
func (t *tally) watchOver(patience time.Duration, late func() bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.patience = patience
	t.watch = time.AfterFunc(patience, func() {
		if late() {
			t.mu.Lock()
			t.watch.Reset(patience)
			t.mu.Unlock()
		}
	})
}

func (t *tally) add(r *kgo.Record, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.failed++
		t.first = cmpFirst(t.first, err)
		return
	}
	t.watch.Reset(t.patience)
	offset := r.Offset
	if t.silent {
		offset = -1
	}
	t.records++
	t.bytes += int64(len(r.Key) + len(r.Value))
	p := t.partitions[r.Partition]
	if p == nil {
		p = &producedPartition{Partition: r.Partition, First: offset}
		t.partitions[r.Partition] = p
	}
	p.Records++
	p.Last = offset
}

func (t *tally) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.first
}

func (s *session) produce(ctx context.Context, o *produceOptions, keyGiven bool) error {
	lines, err := o.lines(keyGiven)
	if err != nil {
		return err
	}
	wrong := &misplaced{}
	opts, err := o.client(wrong)
	if err != nil {
		return err
	}
	in := s.in
	if o.file != "-" {
		f, err := os.Open(o.file)
		if err != nil {
			return fail(codeLocalFile, "", "read records: %w", err)
		}
		defer func() { _ = f.Close() }() // read only
		in = f
	}
	client, err := s.dial(ctx, min(o.timeout, 10*time.Second), opts...)
	if err != nil {
		return err
	}
	defer client.Close()

	began := time.Now()
	counts := &tally{partitions: map[int32]*producedPartition{}, silent: o.acks == "0"}
	// An interrupt stops the reading; what was read is still delivered, unless nothing is acknowledged for the timeout.
	// The client's own limit counts from a record's timestamp, which may be long past.
	delivery, giveUp := context.WithCancelCause(context.WithoutCancel(ctx))
	defer giveUp(nil)
	counts.watchOver(o.timeout, func() bool {
		if client.BufferedProduceRecords() == 0 {
			return true // nothing waits
		}
		giveUp(fmt.Errorf("nothing was acknowledged for %s: %w", o.timeout, context.DeadlineExceeded))
		return false
	})
	defer counts.watch.Stop()
	readErr := s.send(ctx, delivery, client, o, readRecords(ctx, in, lines), counts)
	flushErr := client.Flush(delivery)
	if cause := context.Cause(delivery); cause != nil {
		flushErr = cause
	}
	if err := s.showProduced(o, counts, time.Since(began)); err != nil {
		return err
	}
	return counts.verdict(wrong.failure(o.topic), readErr, flushErr)
}

// send hands records to the client until the input ends, a record fails, or ctx does.
func (s *session) send(ctx, delivery context.Context, client *kgo.Client, o *produceOptions, runs <-chan input, counts *tally) error {
	progress := s.newProgress()
	defer progress.done()
	began, sent := time.Now(), 0
	for {
		var run input
		select {
		case run = <-runs:
		case <-ctx.Done():
			return ctx.Err()
		}
		for _, r := range run.records {
			if o.rate > 0 {
				due := began.Add(time.Duration(float64(sent) / o.rate * float64(time.Second)))
				if !sleepUntil(ctx, due) {
					return ctx.Err()
				}
			}
			r.Topic = o.topic
			client.Produce(delivery, r, counts.add)
			sent++
			progress.show(counts)
		}
		if err := counts.failure(); err != nil {
			return nil // told by showProduced
		}
		if run.err != nil {
			if errors.Is(run.err, io.EOF) {
				return nil
			}
			return run.err
		}
	}
}

// sleepUntil waits, and reports whether ctx lived.
func sleepUntil(ctx context.Context, due time.Time) bool {
	wait := time.Until(due)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *session) showProduced(o *produceOptions, counts *tally, took time.Duration) error {
	counts.mu.Lock()
	defer counts.mu.Unlock()
	result := produced{Topic: o.topic, Records: counts.records, Bytes: counts.bytes, Seconds: took.Seconds(), Partitions: []producedPartition{}}
	for _, p := range counts.partitions {
		result.Partitions = append(result.Partitions, *p)
	}
	slices.SortFunc(result.Partitions, func(a, b producedPartition) int { return int(a.Partition - b.Partition) })
	return s.show(result, func(w io.Writer) {
		for _, p := range result.Partitions {
			if p.First < 0 {
				row(w, fmt.Sprintf("%s-%d", o.topic, p.Partition), plural(p.Records, "record", "records"), "offsets unknown (acks 0)")
			} else {
				row(w, fmt.Sprintf("%s-%d", o.topic, p.Partition), plural(p.Records, "record", "records"), fmt.Sprintf("offsets %d to %d", p.First, p.Last))
			}
		}
	})
}

// verdict is the error of the command, nil when all was acknowledged. wrong is what misplaced has to say.
func (t *tally) verdict(wrong *failure, readErr, flushErr error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.first != nil:
		lost := plural(t.failed, "record was", "records were") + " not acknowledged"
		if wrong != nil {
			wrong.What = lost + ": " + wrong.What
			return wrong
		}
		cause := t.first
		if flushErr != nil {
			cause = flushErr
		}
		return fail(codeUnconfirmed, asFailure(cause).Hint, "%s: %w", lost, cause)
	case flushErr != nil:
		return fail(codeUnconfirmed, "", "not every record was acknowledged in time: %w", flushErr)
	}
	return readErr
}
