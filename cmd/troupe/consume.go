package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
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
	if o.count < 0 {
		return usage("--count 0 is no limit", "--count %d", o.count)
	}
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
	starts, next := map[int32]kgo.Offset{}, map[int32]int64{}
	open := map[int32]int64{} // partitions with something left, and where they end
	for p, span := range plan {
		if o.follow || span.From < span.Until {
			starts[p], next[p] = kgo.NewOffset().At(span.From), span.From
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
		kgo.KeepRetryableFetchErrors(), // a damaged batch is one, and no trying again mends it
	)
	if err != nil {
		return err
	}
	defer client.Close()
	return s.read(ctx, client, o, format, open, next)
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

// read prints records until every partition of open is read to its end, the count is reached, or ctx ends. next are the offsets that the partitions are read at.
func (s *session) read(ctx context.Context, client *kgo.Client, o *consumeOptions, format recordFormat, open, next map[int32]int64) error {
	progress := s.newProgress()
	defer progress.done()
	counts := &readCount{}
	var line []byte
	for {
		fetches, failed := s.poll(ctx, client, o)
		for iter := fetches.RecordIter(); !iter.Done(); {
			r := iter.Next()
			next[r.Partition] = r.Offset + 1
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
		if failed != nil {
			if errors.Is(failed.Err, context.Canceled) && o.follow {
				return nil // how following ends
			}
			return o.failure(failed, next)
		}
		progress.show(counts)
	}
}

// poll waits for records, and for what ends the reading. Without --follow it gives up when nothing comes for the timeout, since what was asked for is there.
func (s *session) poll(ctx context.Context, client *kgo.Client, o *consumeOptions) (kgo.Fetches, *kgo.FetchError) {
	wait, cancel := ctx, context.CancelFunc(func() {})
	if !o.follow {
		wait, cancel = context.WithTimeout(ctx, o.timeout)
	}
	defer cancel()
	for unknown := 0; ; {
		fetches := client.PollFetches(wait)
		if ctx.Err() != nil {
			return nil, &kgo.FetchError{Err: ctx.Err()}
		}
		for _, failed := range fetches.Errors() {
			if errors.Is(failed.Err, kerr.UnknownTopicID) {
				unknown++
			}
			if damaged(failed.Err) || !kerr.IsRetriable(failed.Err) || unknown > unknownMax {
				return fetches, &failed
			}
		}
		if fetches.NumRecords() > 0 {
			return fetches, nil
		}
		_ = rest(wait, retryPause) // where it ends early, the next poll says why
	}
}

// unknownMax is how often a broker may not know the topic before it counts as deleted: it may not have heard of a new one yet.
const unknownMax = 5

// retryPause is how long the client, which fetches again when its last answer is taken, is made to wait after one without records.
const retryPause = 100 * time.Millisecond

// damaged tells whether a batch did not pass its checksum: the broker's look at it, or the client's, which has no error of its own for that.
func damaged(err error) bool {
	return errors.Is(err, kerr.CorruptMessage) || strings.HasPrefix(err.Error(), "encoded crc ")
}

// failure is what a person reads of what ended the reading.
func (o *consumeOptions) failure(failed *kgo.FetchError, next map[int32]int64) error {
	switch {
	case damaged(failed.Err):
		return fail(codeDamagedRecords, fmt.Sprintf("`troupe partition verify %s:%d` says what is damaged, and whether it comes back", failed.Topic, failed.Partition),
			"read %s-%d: the batch at offset %d does not pass its checksum", failed.Topic, failed.Partition, next[failed.Partition])
	case errors.Is(failed.Err, context.DeadlineExceeded):
		return fail(codeTimeout, "the broker's log may say why; --timeout waits longer", "no record came for %s before the end was reached", o.timeout)
	case errors.Is(failed.Err, context.Canceled):
		return failed.Err
	}
	return refusal(failed.Err, "", "read %s-%d", failed.Topic, failed.Partition)
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
