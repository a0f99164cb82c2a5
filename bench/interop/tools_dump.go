package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-broker/troupe/bench/peer"
)

// dumpLog: Kafka's own reader of segment files accepts what the target wrote: batches, records, indexes, snapshots.
func (t *toolbox) dumpLog(ctx context.Context) {
	for partition := range 2 {
		var bases []int64
		found := t.report.check(ctx, who{"kafka-dump-log", peer.KafkaVersion}, fmt.Sprintf("partition %d has closed segments", partition), func(context.Context) (err error) {
			bases, err = segments(filepath.Join(t.target.data, fmt.Sprintf("%s-%d", rolled, partition)))
			if err == nil && len(bases) < 2 {
				err = fmt.Errorf("only the segments %v, want closed ones", bases)
			}
			return err
		})
		if !found {
			continue
		}
		for i, base := range bases {
			closed := i+1 < len(bases)
			path := t.target.segment(rolled, partition, base)
			name := fmt.Sprintf("partition %d, segment %d: ", partition, base)
			end := int64(-1) // unknown in the open segment
			if closed {
				end = bases[i+1]
			}
			if !closed && !t.target.isKafka() {
				t.report.deviates(who{"kafka-dump-log", peer.KafkaVersion}, name+"every record", deviationReserved)
				continue
			}
			t.dump(ctx, name+"every record", []string{"--files", path + ".log", "--deep-iteration", "--print-data-log"}, wholeSegment(base, end))
			if !closed {
				continue // its indexes are still being written
			}
			t.dump(ctx, name+"index against log", []string{"--files", path + ".index"}, indexEntries(), lacking(`(?i)mismatch|error|exception|out of order`))
			t.dump(ctx, name+"index sanity", []string{"--files", path + ".index", "--index-sanity-check"}, matches(`passed sanity check`))
			t.dump(ctx, name+"time index against log", []string{"--files", path + ".timeindex"}, matches(`^timestamp: \d{13} offset: \d+`), lacking(`(?i)mismatch|error|exception|out of order|^Indexed offset|^Found`))
			t.dump(ctx, name+"time index sanity", []string{"--files", path + ".timeindex", "--index-sanity-check"}, matches(`passed sanity check`))
		}
		snapshot := t.target.segment(rolled, partition, bases[1]) + ".snapshot"
		t.dump(ctx, fmt.Sprintf("partition %d: producer snapshot", partition), []string{"--files", snapshot},
			matches(`^producerId: \d+ producerEpoch: 0 coordinatorEpoch: -1 currentTxnFirstOffset: OptionalLong\.empty lastTimestamp: \d{13} firstSequence: \d+ lastSequence: \d+ lastOffset: `+strconv.FormatInt(bases[1]-1, 10)+` `))
	}
	t.dump(ctx, "headers, keys, codecs of the console's records", []string{"--files", t.target.segment("tools-console", 0, 0) + ".log", "--print-data-log", "--max-bytes", "2000"},
		matches(`offset: 3 CreateTime: \d{13} keySize: 2 valueSize: 4 sequence: \d+ headerKeys: \[h1,h2\] key: k1 payload: four$`,
			`offset: 5 CreateTime: \d{13} keySize: -1 valueSize: 3 sequence: \d+ headerKeys: \[h\] payload: six$`,
			`^baseOffset: 6 .*compresscodec: zstd crc: \d+ isvalid: true$`, `^baseOffset: 8 .*compresscodec: lz4 crc: \d+ isvalid: true$`))
}

// stopped: after an orderly stop the last segment is as good as the closed ones.
func (t *toolbox) stopped(ctx context.Context) {
	if _, err := os.Stat(t.target.segment(groupTopic, 0, 0) + ".log"); err == nil { // else the section that makes them did not run
		t.dumpOffsets(ctx)
	}
	for partition := range 2 {
		bases, err := segments(filepath.Join(t.target.data, fmt.Sprintf("%s-%d", rolled, partition)))
		if err != nil || len(bases) == 0 {
			continue // the section that makes them did not run, or has said why it could not
		}
		last := bases[len(bases)-1]
		path := t.target.segment(rolled, partition, last)
		name := fmt.Sprintf("partition %d, segment %d after the stop: ", partition, last)
		t.dump(ctx, name+"every record", []string{"--files", path + ".log", "--deep-iteration", "--print-data-log"}, wholeSegment(last, -1))
		t.dump(ctx, name+"index against log", []string{"--files", path + ".index"}, lacking(`(?i)mismatch|error|exception|out of order`))
		t.dump(ctx, name+"time index against log", []string{"--files", path + ".timeindex"}, lacking(`(?i)mismatch|error|exception|out of order|^Indexed offset|^Found`))
	}
}

func (t *toolbox) dump(ctx context.Context, name string, args []string, expected ...expect) {
	t.run(ctx, "kafka-dump-log", dumpLogSegments, name, args, expected...)
}

// segments lists the base offsets of a partition's segments, rising.
func segments(dir string) ([]int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var bases []int64
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".log"); ok {
			base, err := strconv.ParseInt(name, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("segment %s: %w", e.Name(), err)
			}
			bases = append(bases, base)
		}
	}
	slices.Sort(bases)
	return bases, nil
}

var (
	batchLine  = regexp.MustCompile(`^baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .*isTransactional: false isControl: false .* magic: 2 compresscodec: \S+ crc: \d+ isvalid: true$`)
	recordLine = regexp.MustCompile(`^\| offset: (\d+) CreateTime: \d{13} keySize: (\d+) valueSize: (\d+) sequence: \d+ headerKeys: \[\] key: k(\d+) payload: v(\d+)-x+$`)
	indexLine  = regexp.MustCompile(`^offset: (\d+) position: (\d+)$`)
)

// wholeSegment wants every batch valid, offsets without a gap from base to end, and each record what manyLines made.
// The end is not compared when it is -1.
func wholeSegment(base, end int64) expect {
	return expect{holds: func(r toolResult) error {
		nextBatch, next := base, base
		for _, line := range linesOf(r.Out) {
			if b := batchLine.FindStringSubmatch(line); b != nil {
				first, last, count := atoi(b[1]), atoi(b[2]), atoi(b[3])
				if first != nextBatch || last-first+1 != count {
					return fmt.Errorf("batch %d to %d with %d records where offset %d was due", first, last, count, nextBatch)
				}
				nextBatch = last + 1
				continue
			}
			if strings.HasPrefix(line, "baseOffset:") {
				return fmt.Errorf("batch line %q", line)
			}
			if !strings.HasPrefix(line, "| ") {
				continue
			}
			got := recordLine.FindStringSubmatch(line)
			if got == nil || got[4] != got[5] {
				return fmt.Errorf("record line %.200q", line)
			}
			if atoi(got[1]) != next {
				return fmt.Errorf("record at offset %s where %d was due", got[1], next)
			}
			next++
		}
		if next != nextBatch || end >= 0 && next != end || next == base {
			return fmt.Errorf("records from %d up to %d, batches up to %d, want %d", base, next, nextBatch, end)
		}
		return nil
	}}
}

// indexEntries wants rising offsets and positions, at least a few.
func indexEntries() expect {
	return expect{holds: func(r toolResult) error {
		offset, position, n := int64(-1), int64(-1), 0
		for _, line := range linesOf(r.Out) {
			if e := indexLine.FindStringSubmatch(line); e != nil {
				o, p := atoi(e[1]), atoi(e[2])
				if o <= offset || p <= position {
					return fmt.Errorf("entry %q after offset %d, position %d", line, offset, position)
				}
				offset, position, n = o, p, n+1
			}
		}
		if n < 3 {
			return fmt.Errorf("%d index entries in a segment of 1 MiB", n)
		}
		return nil
	}}
}

// atoi reads what a pattern has already found to be digits.
func atoi(digits string) int64 {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		panic("digits of a pattern: " + err.Error())
	}
	return n
}
