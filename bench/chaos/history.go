package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Seen is one record as a reader was given it.
type Seen struct {
	Offset int64
	Writer string
	Number int
}

// History is what was read of each partition, by rising offset.
type History map[Place][]Seen

// Read reads all partitions of topics from their start to the high watermark of this moment; addr may be several, separated by commas. writers are asked what each
// value should be; another value is an error.
func Read(ctx context.Context, addr string, topics []string, writers map[string]*Writer) (History, error) {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(addr, ",")...), kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.ConsumeTopics())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	starts, err := admin.ListStartOffsets(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("list first offsets: %w", err)
	}
	ends, err := admin.ListEndOffsets(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("list last offsets: %w", err)
	}
	if err := errors.Join(starts.Error(), ends.Error()); err != nil {
		return nil, fmt.Errorf("list offsets: %w", err)
	}
	open, history := map[Place]int64{}, History{}
	from := map[string]map[int32]kgo.Offset{}
	starts.Each(func(o kadm.ListedOffset) {
		p := Place{o.Topic, o.Partition}
		end, _ := ends.Lookup(o.Topic, o.Partition)
		history[p] = nil
		if o.Offset < end.Offset {
			open[p] = end.Offset
			if from[o.Topic] == nil {
				from[o.Topic] = map[int32]kgo.Offset{}
			}
			from[o.Topic][o.Partition] = kgo.NewOffset().At(o.Offset)
		}
	})
	client.AddConsumePartitions(from)
	for len(open) > 0 {
		fetches := client.PollFetches(ctx)
		for _, e := range fetches.Errors() {
			return nil, fmt.Errorf("read %s-%d, %d partitions are left: %w", e.Topic, e.Partition, len(open), e.Err)
		}
		var bad error
		fetches.EachRecord(func(r *kgo.Record) {
			p := Place{r.Topic, r.Partition}
			end, reading := open[p]
			if !reading || r.Offset >= end || bad != nil {
				return
			}
			seen, err := recognise(r, writers)
			if err != nil {
				bad = err
				return
			}
			history[p] = append(history[p], seen)
			if r.Offset+1 == end {
				delete(open, p)
			}
		})
		if bad != nil {
			return nil, bad
		}
	}
	return history, nil
}

func recognise(r *kgo.Record, writers map[string]*Writer) (Seen, error) {
	name, n, err := parseValue(r.Value)
	if err != nil {
		return Seen{}, fmt.Errorf("%s-%d offset %d: %w", r.Topic, r.Partition, r.Offset, err)
	}
	w := writers[name]
	if w == nil || !bytes.Equal(w.Value(n), r.Value) || string(r.Key) != name {
		return Seen{}, fmt.Errorf("%s-%d offset %d: record %d of %s has key %q and %d bytes that were not sent", r.Topic, r.Partition, r.Offset, n, name, r.Key, len(r.Value))
	}
	return Seen{r.Offset, name, n}, nil
}

// Check holds a history against what was acknowledged before it was read. Every violation is listed, the first of each
// kind for a partition in full.
func (h History) Check(acked map[string][]int64, writers map[string]*Writer) error {
	var problems []error
	for place, log := range h {
		at := map[string]map[int]int64{}
		last := map[string]int{}
		for i, s := range log {
			if i > 0 && s.Offset != log[i-1].Offset+1 {
				problems = append(problems, fmt.Errorf("%v: offset %d follows %d", place, s.Offset, log[i-1].Offset))
			}
			if at[s.Writer] == nil {
				at[s.Writer] = map[int]int64{}
				last[s.Writer] = -1
			}
			if before := last[s.Writer]; s.Number != before+1 {
				problems = append(problems, fmt.Errorf("%v: at offset %d, record %d of %s follows record %d", place, s.Offset, s.Number, s.Writer, before))
			}
			last[s.Writer] = s.Number
			at[s.Writer][s.Number] = s.Offset
		}
		for name, offsets := range acked {
			if writers[name].Place != place {
				continue
			}
			lost, moved := 0, 0
			for n, offset := range offsets {
				if offset == unknown {
					continue
				}
				found, ok := at[name][n]
				switch {
				case !ok:
					if lost++; lost == 1 {
						problems = append(problems, fmt.Errorf("%v: record %d of %s, acknowledged at offset %d, is lost; the log ends at %d", place, n, name, offset, h.end(place)))
					}
				case found != offset:
					if moved++; moved == 1 {
						problems = append(problems, fmt.Errorf("%v: record %d of %s was acknowledged at offset %d and is at %d", place, n, name, offset, found))
					}
				}
			}
			if lost > 1 || moved > 1 {
				problems = append(problems, fmt.Errorf("%v: %d records of %s are lost, %d have moved", place, lost, name, moved))
			}
		}
	}
	return errors.Join(problems...)
}

// Extends checks that everything of an earlier history is in this one, at its place.
func (h History) Extends(earlier History) error {
	var problems []error
	for place, before := range earlier {
		now := h[place]
		if len(now) < len(before) {
			problems = append(problems, fmt.Errorf("%v: a reader had %d records, and now there are %d", place, len(before), len(now)))
			continue
		}
		for i, s := range before {
			if now[i] != s {
				problems = append(problems, fmt.Errorf("%v: a reader was given %+v, and now there is %+v", place, s, now[i]))
				break
			}
		}
	}
	return errors.Join(problems...)
}

// Records counts the records of all partitions.
func (h History) Records() int {
	n := 0
	for _, log := range h {
		n += len(log)
	}
	return n
}

func (h History) end(p Place) int64 {
	if log := h[p]; len(log) > 0 {
		return log[len(log)-1].Offset + 1
	}
	return 0
}
