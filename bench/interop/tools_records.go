package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// console: records go in by the console and performance producers and come out by the console consumer, by partition
// and offset.
func (t *toolbox) console(ctx context.Context) {
	produce := func(name, stdin, line string) {
		t.pipe(ctx, "kafka-console-producer", consoleProducer, name, stdin, args(line), lacking(`ERROR|Exception`))
	}
	consume := func(name, line string, expected ...expect) {
		// Commits need a coordinator: one that reads a partition by itself has no use for them.
		t.run(ctx, "kafka-console-consumer", consoleConsumer, name, args("--partition 0 --timeout-ms 20000 --command-property enable.auto.commit=false "+line), expected...)
	}
	t.run(ctx, "kafka-topics", topicCommand, "--create for the console", args("--create --topic tools-console --partitions 1"), matches(`^Created topic`))
	produce("lines", "one\ntwo\nthree\n", "--topic tools-console --sync")
	produce("keys and headers", "h1:a,h2:b\tk1\tfour\nNULL\tk2\tfive\nh:x\tNULL\tsix\n",
		"--topic tools-console --reader-property parse.key=true --reader-property parse.headers=true --reader-property null.marker=NULL")
	produce("compressed by zstd, acks all", "seven\neight\n", "--topic tools-console --compression-codec zstd --request-required-acks all")
	produce("compressed by lz4, acks 0", "nine\n", "--topic tools-console --compression-codec lz4 --request-required-acks 0 --command-property enable.idempotence=false")
	consume("from offset 0", "--topic tools-console --offset 0 --max-messages 9",
		prints("one", "two", "three", "four", "five", "six", "seven", "eight", "nine"))
	consume("from earliest", "--topic tools-console --offset earliest --max-messages 2", prints("one", "two"))
	consume("with keys, headers, offsets", "--topic tools-console --offset 3 --max-messages 3 --formatter-property print.key=true"+
		" --formatter-property print.headers=true --formatter-property print.offset=true --formatter-property print.partition=true",
		prints("Partition:0\tOffset:3\th1:a,h2:b\tk1\tfour", "Partition:0\tOffset:4\tNO_HEADERS\tk2\tfive", "Partition:0\tOffset:5\th:x\tnull\tsix"))
	consume("timestamps", "--topic tools-console --offset 0 --max-messages 1 --formatter-property print.timestamp=true", matches(`^CreateTime:\d{13}\tone$`))
	consume("read_committed", "--topic tools-console --offset 7 --max-messages 2 --isolation-level read_committed", prints("eight", "nine"))
	t.run(ctx, "kafka-console-consumer", consoleConsumer, "waits at the end of the partition",
		args("--partition 0 --timeout-ms 1500 --command-property enable.auto.commit=false --topic tools-console --offset 9 --max-messages 1"), prints(), matches(`^Processed a total of 0 messages`))

	t.run(ctx, "kafka-console-consumer", consoleConsumer, "with commits", args("--partition 0 --timeout-ms 20000 --topic tools-console --offset 8 --max-messages 1"), prints("nine"))

	t.pipe(ctx, "kafka-console-producer", consoleProducer, "3 MB with keys, over several segments", manyLines(3000),
		args("--topic rolled --reader-property parse.key=true --reader-property key.separator=: --batch-size 16384"), lacking(`ERROR|Exception`))
	t.run(ctx, "kafka-producer-perf-test", producerPerformance, "20,000 records of 100 B, acks=all", args(
		"--topic tools-console --num-records 20000 --record-size 100 --throughput -1 --command-property acks=all"), matches(`^20000 records sent, .* ms 99\.9th\.?$`))
	t.run(ctx, "kafka-producer-perf-test", producerPerformance, "2,000 records of 1 KB, lz4, acks=1", args(
		"--topic tools-console --num-records 2000 --record-size 1000 --throughput 20000 --command-property acks=1 enable.idempotence=false compression.type=lz4"),
		matches(`^2000 records sent, `))
}

// queries: what kcat, the command line of the librdkafka world, asks besides records.
func (t *toolbox) queries(ctx context.Context, start int64) {
	for _, a := range t.actors {
		k, ok := a.client.(*kcat)
		if !ok {
			continue
		}
		ask := func(name, line, want string) {
			t.report.check(ctx, a.who(), name, func(ctx context.Context) error {
				out, err := k.run(ctx, nil, args(line)...)
				if err == nil && !strings.Contains(string(out), want) {
					err = fmt.Errorf("it printed\n%s\nand not %q", out, want)
				}
				return err
			})
		}
		ask("-L lists the topic", "-L -t tools-offsets", `topic "tools-offsets" with 2 partitions`)
		ask("-L lists the broker", "-L", " at "+t.target.addr)
		ask("-Q a record's timestamp", fmt.Sprintf("-Q -t tools-offsets:0:%d", start+3000), "tools-offsets [0] offset 3")
		ask("-Q earliest", "-Q -t tools-offsets:0:-2", "tools-offsets [0] offset 0")
		ask("-Q latest", "-Q -t tools-offsets:0:-1", "tools-offsets [0] offset 10")
		ask("-o from a timestamp", fmt.Sprintf("-C -q -t tools-offsets -p 0 -o s@%d -c 1 -f %%o;", start+5000), "5;")
		ask("-o from the end", "-C -q -t tools-offsets -p 0 -o -2 -c 1 -f %o;", "8;")
	}
}

// manyLines are n lines "key:value" of about a kilobyte.
func manyLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d:v%d-%s\n", i, i, strings.Repeat("x", 1000))
	}
	return b.String()
}

// offsets: kafka-get-offsets with each special time and with timestamps, and kafka-delete-records.
func (t *toolbox) offsets(ctx context.Context) {
	get := func(name, line string, expected ...expect) {
		t.run(ctx, "kafka-get-offsets", getOffsetShell, name, args(line), expected...)
	}
	const topic = "--topic tools-offsets"
	t.run(ctx, "kafka-topics", topicCommand, "--create for offsets", args("--create --topic tools-offsets --partitions 2"), matches(`^Created topic`))
	get("of an empty topic", topic, prints("tools-offsets:0:0", "tools-offsets:1:0"))
	get("greatest timestamp of an empty topic", topic+" --time max-timestamp", prints())
	start := time.Now().Add(-time.Hour).UnixMilli()
	java := javaOf(t.actors)
	t.report.check(ctx, java.who(), "produce records with known timestamps", func(ctx context.Context) error {
		records := make([]record, 10)
		for i := range records {
			records[i] = record{Value: []byte(strconv.Itoa(i)), Timestamp: start + int64(i)*1000}
		}
		// The greatest timestamp is not the last one.
		records[6].Timestamp = start + 60_000
		_, err := java.produce(ctx, "tools-offsets", 0, cell{Codec: "none", Acks: -1}, records)
		return err
	})
	get("by default the latest", topic, prints("tools-offsets:0:10", "tools-offsets:1:0"))
	get("latest", topic+" --time latest", prints("tools-offsets:0:10", "tools-offsets:1:0"))
	get("earliest", topic+" --time earliest", prints("tools-offsets:0:0", "tools-offsets:1:0"))
	get("greatest timestamp", topic+" --time max-timestamp", prints("tools-offsets:0:6"))
	get("earliest-local", topic+" --time earliest-local", prints("tools-offsets:0:0", "tools-offsets:1:0"))
	get("latest-tiered without tiers", topic+" --time latest-tiered", prints())
	get("earliest-pending-upload without tiers", topic+" --time earliest-pending-upload", prints())
	get("by number: -1", topic+" --time -1", prints("tools-offsets:0:10", "tools-offsets:1:0"))
	get("by number: -2", topic+" --time -2", prints("tools-offsets:0:0", "tools-offsets:1:0"))
	get("by number: -3", topic+" --time -3", prints("tools-offsets:0:6"))
	get("a timestamp before all", fmt.Sprintf("%s --time %d", topic, start-5000), prints("tools-offsets:0:0"))
	get("a record's timestamp", fmt.Sprintf("%s --time %d", topic, start+3000), prints("tools-offsets:0:3"))
	get("a timestamp between two", fmt.Sprintf("%s --time %d", topic, start+3001), prints("tools-offsets:0:4"))
	get("the greatest one as a timestamp", fmt.Sprintf("%s --time %d", topic, start+59_000), prints("tools-offsets:0:6"))
	get("a timestamp after all", fmt.Sprintf("%s --time %d", topic, start+60_001), prints())
	get("--partitions", topic+" --partitions 1", prints("tools-offsets:1:0"))
	get("--topic-partitions", "--topic-partitions tools-offsets:0", prints("tools-offsets:0:10"))
	get("of no topic", "--topic tools-none", fails(), matches(`Could not match any topic-partitions`))

	t.queries(ctx, start)

	records := func(name, json string, expected ...expect) {
		file := filepath.Join(t.env.run, "delete-records.json")
		if err := os.WriteFile(file, []byte(json), 0o644); err != nil {
			t.report.check(ctx, who{"kafka-delete-records", ""}, name, func(context.Context) error { return err })
			return
		}
		t.run(ctx, "kafka-delete-records", deleteRecordsCommand, name, []string{"--offset-json-file", file}, expected...)
	}
	const one = `{"partitions":[{"topic":"tools-offsets","partition":0,"offset":%d}],"version":1}`
	records("up to an offset", fmt.Sprintf(one, 4), matches(`^partition: tools-offsets-0\tlow_watermark: 4$`))
	get("earliest after it", topic+" --time earliest", prints("tools-offsets:0:4", "tools-offsets:1:0"))
	get("a timestamp that was deleted", fmt.Sprintf("%s --time %d", topic, start), prints("tools-offsets:0:4"))
	records("below the start is no change", fmt.Sprintf(one, 2), matches(`^partition: tools-offsets-0\tlow_watermark: 4$`))
	records("beyond the end", fmt.Sprintf(one, 11), matches(`^partition: tools-offsets-0\terror: .*OffsetOutOfRangeException`))
	records("up to the end", fmt.Sprintf(one, -1), matches(`^partition: tools-offsets-0\tlow_watermark: 10$`))
	get("earliest is the latest then", topic+" --time earliest", prints("tools-offsets:0:10", "tools-offsets:1:0"))
	for _, a := range t.actors {
		if a.hello.lacks(lacksOutOfRange) {
			continue
		}
		t.report.check(ctx, a.who(), "read below the log start is refused", func(ctx context.Context) error {
			_, err := a.read(ctx, "tools-offsets", 0, 3, 1)
			return wantOutOfRange(a, err)
		})
	}
}
