package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// reassignCommand is the class of kafka-reassign-partitions.
const reassignCommand = "reassign.ReassignPartitionsCommand"

// moved is the topic whose replicas are moved: two partitions, two replicas each.
const moved = "moved"

// movesFile is a file for the tool that says where the topic's two partitions shall be, each as in JSON.
func (st *stage) movesFile(name, zero, one string) (string, error) {
	return st.env.file(name, fmt.Sprintf(`{"version":1,"partitions":[{"topic":%q,"partition":0,"replicas":[%s]},{"topic":%[1]q,"partition":1,"replicas":[%[3]s]}]}`, moved, zero, one))
}

// reassigns is a check of what the tool says to one of these files.
func (st *stage) reassigns(ctx context.Context, name, line, path string, expected ...expect) {
	st.awaits(ctx, "kafka-reassign-partitions", reassignCommand, name, line+" --reassignment-json-file "+path, expected...)
}

// movedValue is a record of the load: about a kilobyte.
func movedValue(n int64) []byte {
	return append(strconv.AppendInt(nil, n, 10), bytes.Repeat([]byte{' '}, 1_000)...)
}

// enough is how many records of each partition are more than what a throttle lets pass at once: three answers to a follower, of records that are not compressed.
const enough = 3_200

// movedLoad is an idempotent producer that writes numbered records into both partitions with acks=all until it is told to end. It tells how many there
// are in each and that none failed.
type movedLoad struct {
	end  context.CancelFunc
	done chan error
	sent [2]int64
}

func (st *stage) moveLoad(ctx context.Context) (*movedLoad, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(st.trio.nodes[0].addr, st.trio.nodes[1].addr, st.trio.nodes[2].addr), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.DefaultProduceTopic(moved), kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		return nil, err
	}
	l := &movedLoad{done: make(chan error, 1)}
	var run context.Context
	run, l.end = context.WithCancel(ctx)
	go func() {
		defer cl.Close()
		for run.Err() == nil {
			batch := make([]*kgo.Record, 0, 20)
			for p := range l.sent {
				for i := range int64(cap(batch) / len(l.sent)) {
					batch = append(batch, &kgo.Record{Partition: int32(p), Value: movedValue(l.sent[p] + i)})
				}
			}
			if err := cl.ProduceSync(ctx, batch...).FirstErr(); err != nil {
				l.done <- fmt.Errorf("a write failed after %v records: %w", l.sent, err)
				return
			}
			for p := range l.sent {
				l.sent[p] += int64(len(batch) / len(l.sent))
			}
		}
		l.done <- nil
	}()
	return l, nil
}

// readsMoved ends the load and wants exactly its records, in order.
func (st *stage) readsMoved(ctx context.Context, l *movedLoad) error {
	l.end()
	if err := <-l.done; err != nil {
		return err
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(st.trio.nodes[0].addr, st.trio.nodes[1].addr), kgo.ConsumeTopics(moved), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer cl.Close()
	var next [2]int64
	for next != l.sent {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("after %v of %v records: %w", next, l.sent, err)
		}
		var wrong error
		fetches.EachRecord(func(r *kgo.Record) {
			if want := next[r.Partition]; !bytes.Equal(r.Value, movedValue(want)) || r.Offset != want {
				wrong = errors.Join(wrong, fmt.Errorf("partition %d has %.20q at offset %d, want %d", r.Partition, r.Value, r.Offset, want))
			}
			next[r.Partition]++
		})
		if wrong != nil {
			return wrong
		}
	}
	if next[0] == 0 {
		return errors.New("nothing was written")
	}
	return nil
}

// moves: the tool plans, carries out, verifies and lists moves of partitions that are written to meanwhile.
func (st *stage) moves(ctx context.Context) *movedLoad {
	st.run(ctx, "kafka-topics", topicCommand, "--create of what is moved", args("--create --topic "+moved+" --replica-assignment 1:2,2:3 --config min.insync.replicas=2"), matches(`^Created topic`))
	load, err := st.moveLoad(ctx)
	topics, err2 := st.env.file("topics-to-move.json", `{"version":1,"topics":[{"topic":"`+moved+`"}]}`)
	there, err3 := st.movesFile("move-there.json", "3,1", "1,2")
	if err := errors.Join(err, err2, err3); err != nil {
		st.report.check(ctx, who{"suite", ""}, "the moves begin", func(context.Context) error { return err })
		return nil
	}
	st.awaits(ctx, "kafka-reassign-partitions", reassignCommand, "--generate", "--generate --broker-list 1,2,3 --topics-to-move-json-file "+topics,
		matches(`^Current partition replica assignment$`, `^\{"version":1,"partitions":\[\{"topic":"moved","partition":0,"replicas":\[1,2\],"log_dirs":\["any","any"\]\},`,
			`^Proposed partition reassignment configuration$`))
	st.reassigns(ctx, "--verify of what was not begun", "--verify --preserve-throttles", there,
		matches(`^There is no active reassignment of partition moved-0, but replica set is 1,2 rather than 3,1\.$`))
	st.reassigns(ctx, "--execute --throttle", "--execute --throttle 50000000", there,
		matches(`^The inter-broker throttle limit was set to 50000000 B/s$`, `^Successfully started partition reassignments for moved-0,moved-1$`))
	st.reassigns(ctx, "--verify until it is done", "--verify", there,
		matches(`^Reassignment of partition moved-0 is completed\.$`, `^Reassignment of partition moved-1 is completed\.$`,
			`^Clearing broker-level throttles on brokers 1,2,3$`, `^Clearing topic-level throttles on topic moved$`))
	st.topicTool(ctx, "--describe after the move", "--describe --topic "+moved, partitions("moved-0 leader 1 replicas 3,1 isr 1,3", "moved-1 leader 2 replicas 1,2 isr 1,2"))
	st.awaits(ctx, "kafka-configs", configCommand, "the throttles are gone", "--entity-type topics --entity-name "+moved+" --describe", lacking(`throttled`))
	st.awaits(ctx, "kafka-reassign-partitions", reassignCommand, "--list of none", "--list", prints("No partition reassignments found."))
	st.awaits(ctx, "kafka-reassign-partitions", reassignCommand, "--execute of a broker that is not there",
		"--execute --reassignment-json-file "+st.mustFile(ctx, "move-nowhere.json", "77,1", "1,2"), fails(), matches(`77`))
	return load
}

// mustFile is movesFile where an error is a failed check.
func (st *stage) mustFile(ctx context.Context, name, zero, one string) string {
	path, err := st.movesFile(name, zero, one)
	if err != nil {
		st.report.check(ctx, who{"suite", ""}, "a file is written", func(context.Context) error { return err })
	}
	return path
}

// slow is a rate, in bytes per second, at which a move does not end while the section lasts.
const slow = " --throttle 1000"

// cancels: a move that is slowed down to nearly nothing is listed, is not begun twice, can be changed, and is taken back. The load goes on, since those in
// sync are not slowed, and nothing of it is missing.
func (st *stage) cancels(ctx context.Context, load *movedLoad) {
	if load == nil {
		return
	}
	st.report.check(ctx, who{"suite", ""}, "there is enough to move", func(ctx context.Context) error {
		return within(ctx, after, func() error {
			ends, err := st.o.ends(ctx, []string{moved})
			if err == nil && (ends[topicPartition{moved, 0}] < enough || ends[topicPartition{moved, 1}] < enough) {
				err = fmt.Errorf("the log ends are %v", ends)
			}
			return err
		})
	})
	to, other := st.mustFile(ctx, "move-slowly.json", "1,2", "2,3"), st.mustFile(ctx, "move-other.json", "1,2", "1,3")
	st.reassigns(ctx, "--execute, slowly", "--execute"+slow, to, matches(`^Successfully started partition reassignments for moved-0,moved-1$`))
	st.awaits(ctx, "kafka-reassign-partitions", reassignCommand, "--list of what is under way", "--list",
		prints("Current partition reassignments:", "moved-0: replicas: 1,2,3. adding: 2. removing: 3.", "moved-1: replicas: 2,3,1. adding: 3. removing: 1."))
	st.reassigns(ctx, "--verify of what is under way", "--verify", to,
		matches(`^Reassignment of partition moved-0 is still in progress\.$`, `^Reassignment of partition moved-1 is still in progress\.$`))
	st.topicTool(ctx, "--describe of what is under way", "--describe --topic "+moved,
		matches(`Partition: 0\s+Leader: [13]\s+Replicas: 1,2,3\s+Isr: [13],[13]\s+Adding Replicas: 2\s+Removing Replicas: 3`))
	st.reassigns(ctx, "--execute while one is under way", "--execute"+slow, other, fails(), matches(`Cannot execute because there is an existing partition assignment`))
	st.reassigns(ctx, "--execute --additional", "--execute --additional"+slow, other, matches(`^Successfully started partition reassignments for moved-0,moved-1$`))
	st.awaits(ctx, "kafka-reassign-partitions", reassignCommand, "--list of what was changed", "--list",
		matches(`^moved-1: replicas: 1,3,2\. adding: 3\. removing: 2\.$`))
	st.reassigns(ctx, "--cancel", "--cancel", other, matches(`^Successfully cancelled partition reassignments for: moved-0,moved-1$`))
	st.reassigns(ctx, "--verify of what was cancelled", "--verify", other,
		matches(`^There is no active reassignment of partition moved-0, but replica set is 1,3 rather than 1,2\.$`, `^There is no active reassignment of partition moved-1, but replica set is 1,2 rather than 1,3\.$`))
	st.reassigns(ctx, "--cancel of nothing", "--cancel", other, matches(`^None of the specified partition reassignments are active\.$`))
	st.report.check(ctx, who{"franz-go", ""}, "every write was acknowledged, and all are there in order", func(ctx context.Context) error {
		return st.readsMoved(ctx, load)
	})
}
