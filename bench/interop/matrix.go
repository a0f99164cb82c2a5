package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// suite is one run.
type suite struct {
	report   *report
	env      *environment
	commands *commands
	target   *target
	actors   []*actor
	full     bool // the whole matrix, not the smoke part
}

// cellsOf lists the ways in which a client can write: each codec it has with each acks level, and idempotently. Those
// without acknowledgement come last: Kafka may still be making the partitions when it has answered their creation, and
// what comes too early is then lost without a word.
func cellsOf(h hello, full bool) []cell {
	var cells []cell
	for _, acks := range []int{-1, 1, 0} {
		for _, codec := range h.Codecs {
			// The smoke part has each codec once and each acks level once.
			if full || acks == -1 || codec == "none" {
				cells = append(cells, cell{Codec: codec, Acks: acks})
			}
			if acks == -1 && h.Idempotent && (full || codec == "none" || codec == "zstd") {
				cells = append(cells, cell{Codec: codec, Acks: -1, Idempotent: true})
			}
		}
	}
	return cells
}

// clients is the section in which every client writes all its cells and every client reads them all.
func (s *suite) clients(ctx context.Context) {
	s.report.section("clients write")
	written := map[*actor]map[int][]record{}
	for _, a := range s.actors {
		a.cells = cellsOf(a.hello, s.full)
		if s.createTopic(ctx, a, a.topic(), len(a.cells), nil) {
			written[a] = s.writeCells(ctx, a)
		}
	}
	s.report.section("clients read")
	for _, reader := range s.actors {
		for _, writer := range s.actors {
			s.readCells(ctx, reader, writer, written[writer])
		}
	}
	s.report.section("clients delete")
	for _, a := range s.actors {
		if written[a] != nil {
			s.deleteTopic(ctx, a, a.topic())
		}
	}
}

// createTopic lets a client create a topic, or another one for it when it has no such request.
func (s *suite) createTopic(ctx context.Context, a *actor, topic string, partitions int, config map[string]string) bool {
	return s.report.check(ctx, a.who(), fmt.Sprintf("create %s, %d partitions", topic, partitions), func(ctx context.Context) error {
		err := a.create(ctx, topic, partitions, config)
		if errors.Is(err, errNoAdmin) {
			return s.actors[0].create(ctx, topic, partitions, config)
		}
		return err
	})
}

func (s *suite) deleteTopic(ctx context.Context, a *actor, topic string) {
	s.report.check(ctx, a.who(), "delete "+topic, func(ctx context.Context) error {
		by := a
		err := by.remove(ctx, topic)
		if errors.Is(err, errNoAdmin) {
			by = s.actors[0]
			err = by.remove(ctx, topic)
		}
		if err != nil {
			return err
		}
		return wantError(by.remove(ctx, topic), unknownTopic)
	})
}

// writeCells writes the corpus in each way and gives what was written, by partition; a cell that failed is left out.
func (s *suite) writeCells(ctx context.Context, a *actor) map[int][]record {
	written := map[int][]record{}
	for partition, c := range a.cells {
		var records []record
		ok := s.report.check(ctx, a.who(), "produce "+c.String(), func(ctx context.Context) (err error) {
			records, err = writeCorpus(ctx, a, a.topic(), partition, c)
			return err
		})
		if ok {
			written[partition] = records
		}
	}
	return written
}

// writeCorpus writes the corpus into an empty partition and checks the offsets that the client was told.
func writeCorpus(ctx context.Context, a *actor, topic string, partition int, c cell) ([]record, error) {
	// A minute ago: young enough for every retention and timestamp limit, and not what a broker's own clock would give.
	records := writable(a.hello, corpus(time.Now().Add(-time.Minute).UnixMilli()))
	offsets, err := a.produce(ctx, topic, partition, c, records)
	if err != nil {
		return nil, err
	}
	if len(offsets) != len(records) {
		return nil, fmt.Errorf("%d offsets for %d records", len(offsets), len(records))
	}
	for i, offset := range offsets {
		if offset != records[i].Offset && offset != -1 {
			return nil, fmt.Errorf("record %d was told offset %d", i, offset)
		}
		if offset == -1 && c.Acks != 0 && !slices.Contains([]string{"kcat"}, a.hello.Client) {
			return nil, fmt.Errorf("record %d was told no offset", i)
		}
	}
	return records, nil
}

// readCells lets one client read what another wrote. Reading one's own is the first thing; of others' the smoke part
// reads each codec once.
func (s *suite) readCells(ctx context.Context, reader, writer *actor, written map[int][]record) {
	for partition, c := range writer.cells {
		want, ok := written[partition]
		if !ok || reader != writer && !s.full && c.Acks != -1 {
			continue
		}
		name := "read " + c.String()
		if reader != writer {
			name += " of " + writer.hello.Client
		}
		s.report.check(ctx, reader.who(), name, func(ctx context.Context) error {
			got, err := reader.read(ctx, writer.topic(), partition, 0, len(want))
			if err != nil {
				return err
			}
			return differences(writer.hello, reader.hello, want, got)
		})
	}
}

// Error codes of the protocol that checks ask for.
const (
	offsetOutOfRange int16 = 1
	unknownTopic     int16 = 3
	messageTooLarge  int16 = 10
	invalidTopic     int16 = 17
	invalidTimestamp int16 = 32
	topicExists      int16 = 36
	invalidConfig    int16 = 40
	invalidRecord    int16 = 87
)

// wantError is nil when a client was refused with that code.
func wantError(err error, code int16) error {
	var refused *clientError
	switch {
	case err == nil:
		return fmt.Errorf("it was accepted, want error code %d", code)
	case !errors.As(err, &refused) || refused.Code == nil:
		return fmt.Errorf("want error code %d: %w", code, err)
	case *refused.Code != code:
		return fmt.Errorf("want error code %d, not %d: %w", code, *refused.Code, err)
	}
	return nil
}

// wantOutOfRange is nil when a read was refused because its offset is not in the log. Some clients say so by a kind of
// error of their own that has no code.
func wantOutOfRange(a *actor, err error) error {
	var refused *clientError
	if errors.As(err, &refused) && refused.Code == nil {
		for _, words := range []string{"OffsetOutOfRange", "out of range", "NoOffsetForPartition", "_AUTO_OFFSET_RESET"} {
			if strings.Contains(refused.Message, words) {
				return nil
			}
		}
	}
	if err := wantError(err, offsetOutOfRange); err != nil {
		return fmt.Errorf("%s: %w", a.hello.Client, err)
	}
	return nil
}
