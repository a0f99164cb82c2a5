package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// consumeOptions is what the flags of `troupe consume` say.
type consumeOptions struct {
	topic      string
	partitions []int32
	from       string
	until      string
	count      int64
	follow     bool
	format     string
	committed  bool
	timeout    time.Duration
}

func newConsume(s *session) *cobra.Command {
	var o consumeOptions
	var partitions []int
	cmd := &cobra.Command{
		Use:   "consume TOPIC",
		Short: "Read records",
		Long: "Read records of a topic, from its start to the end that it has now, and stop there; --follow goes on.\n\n" +
			"Positions: " + positionSyntax + ".\n" +
			"Formats: " + formatSyntax + ".\n" +
			"With -o json each record is one line with all that it has; `troupe produce --format json` reads that form.",
		Example: "  troupe consume orders --partition 0 --from 40 --count 2\n" +
			"  troupe consume orders --from @-1h --format '%D %k: %v\\n'\n" +
			"  troupe consume orders --from end --follow -o json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeTopics,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.topic = args[0]
			for _, p := range partitions {
				o.partitions = append(o.partitions, int32(p))
			}
			return s.consume(cmd.Context(), &o)
		},
	}
	flags := cmd.Flags()
	flags.IntSliceVarP(&partitions, "partition", "p", nil, "partitions to read, separated by commas; all when left out")
	flags.StringVar(&o.from, "from", "start", "position to begin at")
	flags.StringVar(&o.until, "until", "end", "position to stop before")
	flags.Int64VarP(&o.count, "count", "n", 0, "stop after this many records; 0 is no limit")
	flags.BoolVarP(&o.follow, "follow", "f", false, "wait for new records until interrupted")
	flags.StringVar(&o.format, "format", "%v\\n", "form of a record with -o text")
	flags.BoolVar(&o.committed, "read-committed", false, "leave out records of open and aborted transactions")
	timeoutFlag(cmd, &o.timeout)
	return cmd
}

func (s *session) consume(ctx context.Context, o *consumeOptions) error {
	format, err := parseFormat(o.format)
	if err != nil {
		return err
	}
	now := time.Now()
	from, err := parsePosition(o.from, now)
	if err != nil {
		return err
	}
	until, err := parsePosition(o.until, now)
	if err != nil {
		return err
	}
	if o.follow {
		if o.until != "end" {
			return usage("leave one out", "--follow and --until contradict each other")
		}
		until.kind = neverReached
	}

	plan, err := s.plan(ctx, o, from, until)
	if err != nil {
		return err
	}
	starts := map[int32]kgo.Offset{}
	open := map[int32]int64{} // partitions with something left, and where they end
	for p, span := range plan {
		if o.follow || span.From < span.Until {
			starts[p] = kgo.NewOffset().At(span.From)
			open[p] = span.Until
		}
	}
	if len(open) == 0 {
		return nil
	}
	isolation := kgo.ReadUncommitted()
	if o.committed {
		isolation = kgo.ReadCommitted()
	}
	client, err := s.dial(ctx, o.timeout,
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{o.topic: starts}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), // an offset that is gone is an error, not a jump
		kgo.FetchIsolationLevel(isolation),
		kgo.KeepControlRecords(), // they move the position, and are not printed
		kgo.FetchMaxWait(500*time.Millisecond),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	return s.read(ctx, client, o, format, open)
}

// plan resolves the positions with a client of its own, since the reading one must know its partitions beforehand.
func (s *session) plan(ctx context.Context, o *consumeOptions, from, until position) (map[int32]span, error) {
	client, err := s.dial(ctx, o.timeout)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	return spans(ctx, kadm.NewClient(client), o.topic, o.partitions, from, until, o.committed)
}

// read prints records until every partition of open is read to its end, the count is reached, or ctx ends.
func (s *session) read(ctx context.Context, client *kgo.Client, o *consumeOptions, format recordFormat, open map[int32]int64) error {
	progress := s.newProgress()
	defer progress.done()
	counts := &readCount{}
	var line []byte
	for {
		fetches, err := s.poll(ctx, client, o)
		if err != nil {
			if errors.Is(err, context.Canceled) && o.follow {
				return nil // how following ends
			}
			return err
		}
		for iter := fetches.RecordIter(); !iter.Done(); {
			r := iter.Next()
			end, reading := open[r.Partition]
			if !reading {
				continue
			}
			if !o.follow && r.Offset >= end {
				delete(open, r.Partition)
				continue
			}
			if !r.Attrs.IsControl() {
				counts.add(r)
				if s.format == formatText {
					line = format.append(line[:0], r)
					if _, err := s.out.Write(line); err != nil {
						return wrapStdout(err)
					}
				} else if err := s.showLine(toJSON(r)); err != nil {
					return err
				}
			}
			if !o.follow && r.Offset+1 >= end {
				delete(open, r.Partition)
			}
			if counts.records == o.count || len(open) == 0 {
				return nil
			}
		}
		if err := s.flush(); err != nil {
			return wrapStdout(err)
		}
		progress.show(counts)
	}
}

// poll waits for records. Without --follow it gives up when nothing comes for the timeout, since what was asked for
// is there.
func (s *session) poll(ctx context.Context, client *kgo.Client, o *consumeOptions) (kgo.Fetches, error) {
	wait, cancel := ctx, context.CancelFunc(func() {})
	if !o.follow {
		wait, cancel = context.WithTimeout(ctx, o.timeout)
	}
	defer cancel()
	fetches := client.PollFetches(wait)
	failures := fetches.Errors()
	switch {
	case len(failures) == 0:
		return fetches, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(failures[0].Err, context.DeadlineExceeded):
		return nil, fail(codeTimeout, "the broker's log may say why; --timeout waits longer", "no record came for %s before the end was reached", o.timeout)
	}
	return nil, refusal(failures[0].Err, "", "read %s-%d", failures[0].Topic, failures[0].Partition)
}

type readCount struct{ records, bytes int64 }

// String tells what was read so far.
func (c *readCount) String() string {
	return plural(c.records, "record", "records") + ", " + byteCount(c.bytes)
}

func (c *readCount) add(r *kgo.Record) {
	c.records++
	c.bytes += int64(len(r.Key) + len(r.Value))
}
