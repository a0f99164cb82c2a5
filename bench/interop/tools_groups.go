package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-broker/troupe/bench/peer"
)

// Further classes of tools.
const (
	consumerGroupCommand = "consumer.group.ConsumerGroupCommand"
	groupsCommand        = "GroupsCommand"
	verifiableConsumer   = "VerifiableConsumer"
)

// groupTopic outlives the section, and so does what is committed of it. It has two partitions with ten records each, a minute apart, the first an hour old.
const groupTopic = "grouped"

// groups: kafka-consumer-groups with every option, kafka-groups, and the consumers that are tools.
func (t *toolbox) groups(ctx context.Context) {
	start := time.Now().Add(-time.Hour).Truncate(time.Second)
	java := javaOf(t.actors)
	t.run(ctx, "kafka-topics", topicCommand, "--create for groups", args("--create --topic "+groupTopic+" --partitions 2"), matches(`^Created topic`))
	t.report.check(ctx, java.who(), "produce records with known timestamps", func(ctx context.Context) error {
		for partition := range 2 {
			records := make([]record, 10)
			for i := range records {
				records[i] = record{Value: []byte(strconv.Itoa(i)), Timestamp: start.Add(time.Duration(i) * time.Minute).UnixMilli()}
			}
			if _, err := java.produce(ctx, groupTopic, partition, cell{Codec: "none", Acks: -1}, records); err != nil {
				return err
			}
		}
		return nil
	})
	t.consumers(ctx)
	t.activeGroup(ctx, "classic", "range", "tools-active")
	t.activeGroup(ctx, "consumer", "uniform", "tools-next")
	t.resets(ctx, start)
	t.groupConfigs(ctx)
	t.deletions(ctx)
}

func (t *toolbox) groupTool(ctx context.Context, name, line string, expected ...expect) {
	t.run(ctx, "kafka-consumer-groups", consumerGroupCommand, name, args(line), expected...)
}

// consumers: the console consumer and the verifiable one as members of groups.
func (t *toolbox) consumers(ctx context.Context) {
	t.run(ctx, "kafka-console-consumer", consoleConsumer, "--group, from the beginning",
		args("--topic "+groupTopic+" --group tools-console --from-beginning --max-messages 20 --timeout-ms 30000"), matches(`^Processed a total of 20 messages`))
	t.run(ctx, "kafka-console-consumer", consoleConsumer, "--group again, nothing is left",
		args("--topic "+groupTopic+" --group tools-console --from-beginning --timeout-ms 3000"), matches(`^Processed a total of 0 messages`))
	for _, protocol := range []string{"classic", "consumer"} {
		t.run(ctx, "kafka-verifiable-consumer", verifiableConsumer, "--group-protocol "+protocol,
			args("--topic "+groupTopic+" --group-id tools-verifiable-"+protocol+" --group-protocol "+protocol+" --reset-policy earliest --max-messages 20"),
			matches(`"name":"partitions_assigned"`, `"name":"records_consumed"`, `"name":"offsets_committed"`, `"name":"shutdown_complete"`), lacking(`"success":false`))
	}
}

// activeGroup: a group with one member, seen by every listing and description, and left alone by what must not touch it.
func (t *toolbox) activeGroup(ctx context.Context, protocol, assignor, group string) {
	m := membership{
		Member: group, Group: group, Topics: []string{groupTopic}, Protocol: protocol, Assignor: assignor, Reset: "earliest", SessionMs: 10_000,
		Log: filepath.Join(t.env.run, group+".journal"),
	}
	joined := t.report.check(ctx, javaOf(t.actors).who(), "a member of "+group, func(ctx context.Context) error {
		if err := t.driver.join(ctx, m); err != nil {
			return err
		}
		for {
			events, err := readJournal(m.Log)
			if err != nil {
				return err
			}
			committed := map[int32]int64{}
			for _, e := range events {
				if e.kind == "committed" {
					committed[e.tp.partition] = e.offset
				}
			}
			if committed[0] == 10 && committed[1] == 10 {
				return nil
			}
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
				return fmt.Errorf("%w: committed %v", ctx.Err(), committed)
			}
		}
	})
	if !joined {
		return
	}
	kind := map[string]string{"classic": "Classic", "consumer": "Consumer"}[protocol]
	row := func(partition int) string {
		return fmt.Sprintf(`^%s\s+%s\s+%d\s+10\s+10\s+0\s+\S+\s+/127\.0\.0\.1\s+interop-java`, group, groupTopic, partition)
	}
	tool := func(name, line string, expected ...expect) {
		t.groupTool(ctx, protocol+": "+name, line, expected...)
	}
	tool("--list", "--list", matches(`^`+group+`$`, `^tools-console$`))
	tool("--list --state", "--list --state", matches(`^GROUP\s+STATE`, `^`+group+`\s+Stable`, `^tools-console\s+Empty`))
	tool("--list --state stable", "--list --state stable", matches(`^`+group+`\s+Stable`), lacking(`tools-console`))
	tool("--list --type", "--list --type", matches(`^GROUP\s+TYPE`, `^`+group+`\s+`+kind))
	tool("--list --type "+protocol, "--list --type "+protocol, matches(`^`+group+`\s+`+kind))
	tool("--describe", "--describe --group "+group, matches(`^GROUP\s+TOPIC\s+PARTITION\s+CURRENT-OFFSET\s+LOG-END-OFFSET\s+LAG\s+CONSUMER-ID\s+HOST\s+CLIENT-ID`, row(0), row(1)))
	tool("--describe --offsets --verbose", "--describe --offsets --verbose --group "+group, matches(`\s+LEADER-EPOCH\s+`, `^`+group+`\s+`+groupTopic+`\s+0\s+0\s+10\s+10\s+0\s`))
	tool("--describe --members", "--describe --members --group "+group, matches(`^GROUP\s+CONSUMER-ID\s+HOST\s+CLIENT-ID\s+#PARTITIONS`, `^`+group+`\s+\S+\s+/127\.0\.0\.1\s+interop-java\s+2`))
	tool("--describe --members --verbose", "--describe --members --verbose --group "+group, matches(`ASSIGNMENT`, groupTopic+`(:0,1|\(0,1\))`))
	tool("--describe --state", "--describe --state --group "+group, matches(`^GROUP\s+COORDINATOR \(ID\)\s+ASSIGNMENT-STRATEGY\s+STATE\s+#MEMBERS`,
		`^`+group+`\s+`+strings.ReplaceAll(t.target.addr, ".", `\.`)+`\s+\(\d+\)\s+`+assignor+`\s+Stable\s+1`))
	tool("--describe --state --verbose", "--describe --state --verbose --group "+group, matches(`^`+group+`\s+.*\s+Stable\s+`))
	tool("--describe --all-groups", "--describe --all-groups", matches(row(0), `^tools-console\s+`+groupTopic+`\s+1\s+10\s+10\s+0\s+-`))
	tool("--reset-offsets of a group in use", "--reset-offsets --group "+group+" --all-topics --to-earliest --execute", matches(`(?i)inactive`))
	tool("--delete of a group in use", "--delete --group "+group, matches(`(?i)not empty|NonEmptyGroup`))
	tool("--delete-offsets in use", "--delete-offsets --group "+group+" --topic "+groupTopic, matches(`(?i)subscribed`))
	t.run(ctx, "kafka-groups", groupsCommand, protocol+": --list", args("--list"), matches(`^GROUP\s+TYPE\s+PROTOCOL`, `^`+group+`\s+`+kind+`\s+consumer`))
	t.run(ctx, "kafka-groups", groupsCommand, protocol+": --list --group-type", args("--list --group-type "+protocol), matches(`^`+group+`\s+`+kind))
	t.report.check(ctx, javaOf(t.actors).who(), "the member leaves "+group, func(ctx context.Context) error { return t.driver.leave(ctx, m, false) })
	tool("--describe without members", "--describe --group "+group, matches(`^Consumer group '`+group+`' has no active members`, `^`+group+`\s+`+groupTopic+`\s+0\s+10\s+10\s+0\s+-\s+-\s+-`))
	tool("--describe --state without members", "--describe --state --group "+group, matches(`^`+group+`\s+.*\s+Empty\s+0`))
}

// resets: each option moves both partitions where it says, as a dry run it moves nothing.
func (t *toolbox) resets(ctx context.Context, start time.Time) {
	const group = "tools-active"
	at := func(offsets ...int64) expect {
		var patterns []string
		for partition, offset := range offsets {
			patterns = append(patterns, fmt.Sprintf(`^(%s\s+)?%s\s+%d\s+%d$`, group, groupTopic, partition, offset))
		}
		return matches(patterns...)
	}
	reset := func(name, line string, expected ...expect) {
		t.groupTool(ctx, "--reset-offsets "+name, "--reset-offsets --group "+group+" "+line, expected...)
	}
	is := func(name string, zero, one int64) {
		t.groupTool(ctx, "--describe after "+name, "--describe --group "+group,
			matches(fmt.Sprintf(`^%s\s+%s\s+0\s+%d\s+10\s+%d\s`, group, groupTopic, zero, 10-zero), fmt.Sprintf(`^%s\s+%s\s+1\s+%d\s+10\s+%d\s`, group, groupTopic, one, 10-one)))
	}
	reset("--to-earliest, by default a dry run", "--all-topics --to-earliest", at(0, 0))
	reset("--to-earliest --dry-run", "--all-topics --to-earliest --dry-run", at(0, 0))
	is("dry runs", 10, 10)
	reset("--to-offset", "--topic "+groupTopic+" --to-offset 5 --execute", at(5, 5))
	reset("--topic with a partition", "--topic "+groupTopic+":1 --to-offset 7 --execute", matches(`\s+1\s+7$`), lacking(groupTopic+`\s+0\s`))
	is("--to-offset", 5, 7)
	reset("--to-offset beyond the end", "--topic "+groupTopic+" --to-offset 500", at(10, 10))
	reset("--shift-by", "--all-topics --shift-by -2 --execute", at(3, 5))
	reset("--shift-by below the start", "--all-topics --shift-by -50", at(0, 0))
	reset("--to-current", "--all-topics --to-current --execute", at(3, 5))
	reset("--to-datetime", "--all-topics --to-datetime "+start.Add(4*time.Minute).UTC().Format("2006-01-02T15:04:05.000Z")+" --execute", at(4, 4))
	reset("--to-datetime after all", "--all-topics --to-datetime "+time.Now().Add(time.Minute).UTC().Format("2006-01-02T15:04:05.000Z"), at(10, 10))
	reset("--by-duration", "--all-topics --by-duration PT"+strconv.Itoa(int(time.Since(start.Add(6*time.Minute+30*time.Second)).Seconds()))+"S --execute", at(7, 7))
	is("times", 7, 7)
	reset("--export", "--all-topics --to-current --export", matches(`^"?`+groupTopic+`"?,0,7$`, `^"?`+groupTopic+`"?,1,7$`))
	file := filepath.Join(t.env.run, "reset.csv")
	t.report.check(ctx, who{"kafka-consumer-groups", peer.KafkaVersion}, "a file of offsets", func(context.Context) error {
		return os.WriteFile(file, []byte(groupTopic+",0,2\n"+groupTopic+",1,1\n"), 0o600)
	})
	reset("--from-file", "--from-file "+file+" --execute", at(2, 1))
	is("--from-file", 2, 1)
	reset("--to-latest", "--all-topics --to-latest --execute", at(10, 10))
	is("--to-latest", 10, 10)
	t.groupTool(ctx, "--reset-offsets of a new group", "--reset-offsets --group tools-new --topic "+groupTopic+" --to-offset 6 --execute", matches(`\s+0\s+6$`))
	t.groupTool(ctx, "--describe of the new group", "--describe --group tools-new", matches(`^tools-new\s+`+groupTopic+`\s+0\s+6\s+10\s+4\s`))
}

// groupConfigs: kafka-configs for groups, which only the consumer protocol has.
func (t *toolbox) groupConfigs(ctx context.Context) {
	configs := func(name, line string, expected ...expect) {
		t.run(ctx, "kafka-configs", configCommand, "groups "+name, args("--entity-type groups "+line), expected...)
	}
	configs("--alter --add-config", "--entity-name tools-next --alter --add-config consumer.session.timeout.ms=5000,consumer.heartbeat.interval.ms=500", matches(`^Completed updating config for group tools-next\.$`))
	configs("--describe", "--entity-name tools-next --describe", matches(`consumer\.session\.timeout\.ms=5000`, `consumer\.heartbeat\.interval\.ms=500`))
	configs("--alter out of bounds", "--entity-name tools-next --alter --add-config consumer.session.timeout.ms=5", fails(), matches(`consumer\.session\.timeout\.ms`))
	configs("--alter unknown", "--entity-name tools-next --alter --add-config no.such=5", fails(), matches(`no\.such`))
	configs("--alter --delete-config", "--entity-name tools-next --alter --delete-config consumer.heartbeat.interval.ms", matches(`^Completed updating config for group tools-next\.$`))
	configs("--describe after it", "--entity-name tools-next --describe", matches(`consumer\.session\.timeout\.ms=5000`), lacking(`consumer\.heartbeat\.interval\.ms=500`))
}

// deletions: offsets and groups go, and are gone.
func (t *toolbox) deletions(ctx context.Context) {
	t.groupTool(ctx, "--delete-offsets", "--delete-offsets --group tools-console --topic "+groupTopic+":0", matches(`^TOPIC\s+PARTITION\s+STATUS`, `^`+groupTopic+`\s+0\s+Successful`))
	t.groupTool(ctx, "--describe after it", "--describe --group tools-console", matches(`^tools-console\s+`+groupTopic+`\s+1\s+10\s`), lacking(`^tools-console\s+`+groupTopic+`\s+0\s+10\s`))
	t.groupTool(ctx, "--delete", "--delete --group tools-console --group tools-new", matches(`^Deletion of requested consumer groups \(.*'tools-console'.*\) was successful\.$`))
	t.groupTool(ctx, "--delete of no group", "--delete --group tools-console", matches(`(?i)GroupIdNotFound|does not exist|not found`))
	t.groupTool(ctx, "--describe of no group", "--describe --group tools-none", matches(`(?i)tools-none.*(does not exist|not found)`))
	t.groupTool(ctx, "--list after it", "--list", matches(`^tools-active$`), lacking(`^tools-console$`, `^tools-new$`))
}

// offsetsOf is the partition of __consumer_offsets that has a group, by Java's hash of its name, which is ASCII here.
func offsetsOf(group string) int {
	const partitions = 50 // offsets.topic.num.partitions
	var hash int32
	for _, c := range group {
		hash = 31*hash + c
	}
	return int(hash&0x7fffffff) % partitions
}

// dumpOffsets: Kafka's decoder reads the groups out of the log of a broker that has stopped.
func (t *toolbox) dumpOffsets(ctx context.Context) {
	for _, group := range []string{"tools-active", "tools-next"} {
		t.report.check(ctx, who{"kafka-dump-log", peer.KafkaVersion}, "--offsets-decoder, "+group, func(ctx context.Context) error {
			file := t.target.segment("__consumer_offsets", offsetsOf(group), 0) + ".log"
			patterns := matches(`"group":"`+group+`","topic":"`+groupTopic+`","partition":1`, `"offset":10,"leaderEpoch":0`)
			if group == "tools-next" {
				patterns = matches(`"groupId":"`+group+`"`, `"group":"`+group+`"`)
			}
			r, err := t.want(ctx, dumpLogSegments, "", []string{"--offsets-decoder", "--files", file}, patterns)
			if err != nil {
				return err
			}
			if strings.Contains(r.Err+r.Out, "Exception") {
				return errors.New("the decoder stumbled:\n" + clip(r.Out+r.Err))
			}
			return nil
		})
	}
}
