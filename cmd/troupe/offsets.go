package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// position is a place in a partition as a person writes it.
type position struct {
	kind positionKind
	n    int64     // offset, or how many records from the start or before the end
	at   time.Time // for atTime
}

type positionKind uint8

const (
	atStart      positionKind = iota
	atEnd                     // the high watermark of this moment
	atOffset                  // n
	afterStart                // n records after the first
	beforeEnd                 // n records before the end
	atTime                    // the first record that is not older
	neverReached              // --follow: no end
)

const positionSyntax = "start, end, 42, +3 (after the start), -3 (before the end), @2026-01-31T12:00:00Z, @2026-01-31, @1769860800000 or @-90m"

// parsePosition reads a position; relative times count from now.
func parsePosition(text string, now time.Time) (position, error) {
	bad := func() (position, error) {
		return position{}, usage(positionSyntax, "%q is not a position", text)
	}
	switch {
	case text == "start" || text == "earliest":
		return position{kind: atStart}, nil
	case text == "end" || text == "latest":
		return position{kind: atEnd}, nil
	case strings.HasPrefix(text, "@"):
		at, err := parseTime(text[1:], now)
		if err != nil {
			return bad()
		}
		return position{kind: atTime, at: at}, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return bad()
	}
	switch text[0] {
	case '+':
		return position{kind: afterStart, n: n}, nil
	case '-':
		return position{kind: beforeEnd, n: -n}, nil
	}
	return position{kind: atOffset, n: n}, nil
}

// parseTime reads a date, a time, milliseconds since 1970, or a duration before now.
func parseTime(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil && (text[0] == '-' || text[0] == '+') {
		return now.Add(d), nil
	}
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.UnixMilli(ms), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time", text)
}

// span is what to read of one partition: offsets from From to before Until.
type span struct {
	From, Until int64
}

// spans resolves positions for partitions of a topic (all when partitions is empty), with the bounds of this moment.
func spans(ctx context.Context, admin *kadm.Client, topic string, partitions []int32, from, until position, committed bool) (map[int32]span, error) {
	bounds, err := partitionBounds(ctx, admin, topic, committed)
	if err != nil {
		return nil, err
	}
	if len(partitions) == 0 {
		partitions = slices.Sorted(maps.Keys(bounds))
	}
	result := map[int32]span{}
	for _, p := range partitions {
		b, ok := bounds[p]
		if !ok {
			return nil, fail(codeNotFound, fmt.Sprintf("it has %d, from 0", len(bounds)), "topic %s has no partition %d", topic, p)
		}
		result[p] = b
	}
	resolve := func(pos position, set func(s *span, offset int64)) error {
		var times kadm.ListedOffsets
		if pos.kind == atTime {
			if times, err = admin.ListOffsetsAfterMilli(ctx, pos.at.UnixMilli(), topic); err != nil {
				return fmt.Errorf("list offsets by time: %w", err)
			}
		}
		for _, p := range slices.Sorted(maps.Keys(result)) { // of several errors, always the same is told
			s := result[p]
			offset, err := pos.resolve(bounds[p], func() (int64, error) {
				o, ok := times.Lookup(topic, p)
				if !ok {
					return 0, fail(codeRefused, "", "the broker gave no offset for %s-%d", topic, p)
				}
				return o.Offset, o.Err
			})
			if f, ok := errors.AsType[*failure](err); ok {
				f.What = fmt.Sprintf("%s-%d: %s", topic, p, f.What)
			}
			if err != nil {
				return fmt.Errorf("find the position in %s-%d: %w", topic, p, err)
			}
			set(&s, offset)
			result[p] = s
		}
		return nil
	}
	if err := resolve(from, func(s *span, o int64) { s.From = o }); err != nil {
		return nil, err
	}
	if until.kind == neverReached {
		return result, nil
	}
	return result, resolve(until, func(s *span, o int64) { s.Until = o })
}

// resolve gives the offset of a position in a partition with the bounds b.
func (pos position) resolve(b span, byTime func() (int64, error)) (int64, error) {
	switch pos.kind {
	case atStart:
		return b.From, nil
	case atEnd, neverReached:
		return b.Until, nil
	case afterStart:
		return min(b.From+pos.n, b.Until), nil
	case beforeEnd:
		return max(b.Until-pos.n, b.From), nil
	case atTime:
		offset, err := byTime()
		if err != nil || offset >= 0 {
			return offset, err
		}
		return b.Until, nil // nothing is that young
	case atOffset:
		if pos.n < b.From || pos.n > b.Until {
			return 0, fail(codeNotFound, "start and end are always there; --partition reads one partition", "it has the offsets %d to %d, not %d", b.From, b.Until, pos.n)
		}
		return pos.n, nil
	}
	panic("unknown kind of position")
}

// partitionBounds lists log start and high watermark (or last stable offset) of every partition of a topic.
func partitionBounds(ctx context.Context, admin *kadm.Client, topic string, committed bool) (map[int32]span, error) {
	starts, err := admin.ListStartOffsets(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("list first offsets: %w", err)
	}
	list := admin.ListEndOffsets
	if committed {
		list = admin.ListCommittedOffsets
	}
	ends, err := list(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("list last offsets: %w", err)
	}
	bounds := map[int32]span{}
	for _, start := range starts[topic] {
		end, ok := ends.Lookup(topic, start.Partition)
		for _, err := range []error{start.Err, end.Err} {
			if err != nil {
				if errors.Is(err, kerr.UnknownTopicOrPartition) {
					return nil, noTopic(topic)
				}
				return nil, refusal(err, "", "list the offsets of %s", topic)
			}
		}
		if !ok {
			return nil, fail(codeRefused, "", "the broker gave no end for %s-%d", topic, start.Partition)
		}
		bounds[start.Partition] = span{From: start.Offset, Until: end.Offset}
	}
	if len(bounds) == 0 {
		return nil, noTopic(topic)
	}
	return bounds, nil
}
