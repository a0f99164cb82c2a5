package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

// resetPlan is where the offsets of a group shall go.
type resetPlan struct {
	group    string
	topics   map[string][]int32 // an empty list is every partition; nil: all that are committed
	scenario string
	n        int64     // to-offset, shift-by
	at       time.Time // to-datetime, by-duration
	file     string
	listed   map[partitionKey]int64 // from-file, once it is read
}

// newResetPlan checks what can be checked without a broker.
func newResetPlan(group string, o *resetOptions, scenarios []string, now time.Time) (*resetPlan, error) {
	flags := "--" + strings.Join(resetScenarios, ", --")
	switch {
	case len(scenarios) == 0:
		return nil, usage("one of "+flags, "where to is not said")
	case len(scenarios) > 1:
		return nil, usage("one of "+flags, "--%s and --%s contradict each other", scenarios[0], scenarios[1])
	case o.execute && o.dryRun:
		return nil, usage("leave one out", "--execute and --dry-run contradict each other")
	case o.allTopics && len(o.topics) > 0:
		return nil, usage("leave one out", "--all-topics and --topic contradict each other")
	case scenarios[0] != "from-file" && !o.allTopics && len(o.topics) == 0:
		return nil, usage("--topic TOPIC, --topic TOPIC:PARTITION,... or --all-topics", "which topics is not said")
	case scenarios[0] == "from-file" && (o.allTopics || len(o.topics) > 0):
		return nil, usage("leave --topic and --all-topics out", "the file says which partitions")
	case o.offset < 0:
		return nil, usage("--shift-by moves by a number of records", "there is no offset %d", o.offset)
	}
	p := &resetPlan{group: group, scenario: scenarios[0], n: cmp.Or(o.offset, o.shift), file: o.file}
	var err error
	if len(o.topics) > 0 {
		if p.topics, err = parseTopicSpecs("--topic ", o.topics); err != nil {
			return nil, err
		}
	}
	switch p.scenario {
	case "to-datetime":
		if p.at, err = parseTime(o.datetime, now); err != nil {
			return nil, usage("2026-01-31T12:00:00Z, 2026-01-31 or milliseconds since 1970", "%q is not a time", o.datetime)
		}
	case "by-duration":
		before, err := parseISODuration(o.duration)
		if err != nil {
			return nil, usage("PT1H30M, P2D or 90m", "%q is not a duration", o.duration)
		}
		p.at = now.Add(-before)
	}
	return p, nil
}

var isoDuration = regexp.MustCompile(`^P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,9})?)S)?)?$`)

// parseISODuration reads a duration of ISO 8601 from weeks down to seconds, or one of Go's; not a negative one.
func parseISODuration(text string) (time.Duration, error) {
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return d, nil
	}
	m := isoDuration.FindStringSubmatch(text)
	if m == nil || strings.Join(m[1:], "") == "" || strings.HasSuffix(text, "T") {
		return 0, fmt.Errorf("%q is not a duration", text)
	}
	var total time.Duration
	for i, unit := range []time.Duration{7 * 24 * time.Hour, 24 * time.Hour, time.Hour, time.Minute, time.Second} {
		if m[i+1] == "" {
			continue
		}
		n, err := strconv.ParseFloat(m[i+1], 64)
		if err != nil || n*float64(unit)+float64(total) > float64(1<<62) {
			return 0, fmt.Errorf("%q is too long", text)
		}
		total += time.Duration(n * float64(unit))
	}
	return total, nil
}

// topicSpecFlag is --topic TOPIC[:PARTITION,…], which may be given again.
func topicSpecFlag(cmd *cobra.Command, s *session, specs *[]string) {
	cmd.Flags().StringArrayVar(specs, "topic", nil, "TOPIC, or TOPIC:PARTITION,... for some of its partitions; may be given again")
	must(cmd.RegisterFlagCompletionFunc("topic", s.completeTopics))
}

// parseTopicSpecs reads TOPIC and TOPIC:PARTITION,…; a topic without partitions has an empty list. before is what comes before each on the command line.
func parseTopicSpecs(before string, specs []string) (map[string][]int32, error) {
	chosen := map[string][]int32{}
	for _, spec := range specs {
		topic, list, some := strings.Cut(spec, ":")
		have, again := chosen[topic]
		if topic == "" || again && (!some || len(have) == 0) {
			return nil, usage(before+"TOPIC or "+before+"TOPIC:PARTITION,...", "%q names no topic, or one that is named already", spec)
		}
		chosen[topic] = have
		if !some {
			continue
		}
		for text := range strings.SplitSeq(list, ",") {
			n, err := strconv.ParseInt(text, 10, 32)
			if err != nil || n < 0 {
				return nil, usage(before+"TOPIC:PARTITION,...", "%q of %q is not a partition", text, spec)
			}
			if !slices.Contains(chosen[topic], int32(n)) {
				chosen[topic] = append(chosen[topic], int32(n))
			}
		}
	}
	return chosen, nil
}

// topicSpecs writes partitions as parseTopicSpecs reads them, a topic each, in order.
func topicSpecs(set kadm.TopicsSet) []string {
	specs := []string{}
	for _, t := range set.Sorted() {
		parts := make([]string, len(t.Partitions))
		for i, p := range t.Partitions {
			parts[i] = strconv.Itoa(int(p))
		}
		specs = append(specs, t.Topic+":"+strings.Join(parts, ","))
	}
	return specs
}

// resetFileMax bounds a file of offsets.
const resetFileMax = 64 << 20

// read reads the file of --from-file.
func (p *resetPlan) read(s *session) (err error) {
	if p.scenario != "from-file" {
		return nil
	}
	in := s.in
	if p.file != "-" {
		f, err := os.Open(p.file)
		if err != nil {
			return fail(codeLocalFile, "", "read the offsets: %w", err)
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	p.listed, err = readResetFile(io.LimitReader(in, resetFileMax), p.group)
	return err
}

// readResetFile reads lines TOPIC,PARTITION,OFFSET or GROUP,TOPIC,PARTITION,OFFSET; those of other groups are passed over, as
// Kafka's tool writes files for many.
func readResetFile(in io.Reader, group string) (map[partitionKey]int64, error) {
	listed := map[partitionKey]int64{}
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		cells := strings.Split(text, ",")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), `"`)
		}
		bad := func(what string) (map[partitionKey]int64, error) {
			return nil, fail(codeInput, "lines are TOPIC,PARTITION,OFFSET or GROUP,TOPIC,PARTITION,OFFSET", "line %d, %q: %s", n, text, what)
		}
		if len(cells) == 4 {
			if cells[0] != group {
				continue
			}
			cells = cells[1:]
		}
		if len(cells) != 3 || cells[0] == "" {
			return bad("it has not 3 or 4 fields")
		}
		partition, err := strconv.ParseInt(cells[1], 10, 32)
		if err != nil || partition < 0 {
			return bad("its partition is not a number")
		}
		offset, err := strconv.ParseInt(cells[2], 10, 64)
		if err != nil || offset < 0 {
			return bad("its offset is not a number")
		}
		key := partitionKey{cells[0], int32(partition)}
		if _, twice := listed[key]; twice {
			return bad("the partition is there twice")
		}
		listed[key] = offset
	}
	if err := lines.Err(); err != nil {
		return nil, fail(codeInput, "", "read the offsets: %w", err)
	}
	if len(listed) == 0 {
		return nil, fail(codeInput, "lines are TOPIC,PARTITION,OFFSET or GROUP,TOPIC,PARTITION,OFFSET", "the file has no offsets of group %s", group)
	}
	return listed, nil
}

// resolve finds the new offsets, in the order of topics and partitions.
func (p *resetPlan) resolve(ctx context.Context, admin *kadm.Client) ([]resetRow, error) {
	committed, err := admin.FetchOffsets(ctx, p.group)
	if err != nil {
		return nil, groupRefusal(err, "", p.group, "fetch the offsets of %s", p.group)
	}
	topics := map[string]bool{}
	for topic := range p.topics {
		topics[topic] = true
	}
	for key := range p.listed {
		topics[key.topic] = true
	}
	if p.topics == nil && p.listed == nil {
		for topic := range committed {
			topics[topic] = true
		}
		if len(topics) == 0 {
			return nil, fail(codeNotFound, "--topic names the topics of a group that has committed nothing", "group %s has committed nothing", p.group)
		}
	}
	bounds, err := boundsOf(ctx, admin, topics)
	if err != nil {
		return nil, err
	}
	keys, err := p.keys(bounds, committed)
	if err != nil {
		return nil, err
	}
	byTime := kadm.ListedOffsets{}
	if !p.at.IsZero() {
		if byTime, err = admin.ListOffsetsAfterMilli(ctx, p.at.UnixMilli(), slices.Sorted(maps.Keys(topics))...); err != nil {
			return nil, fmt.Errorf("list offsets by time: %w", err)
		}
	}
	rows := make([]resetRow, 0, len(keys))
	for _, key := range keys {
		r := resetRow{Group: p.group, Topic: key.topic, Partition: key.partition, Done: "would be reset"}
		if c, ok := committed.Lookup(key.topic, key.partition); ok && c.Err == nil && c.At >= 0 {
			r.Old = &c.At
		}
		if r.New, err = p.offset(key, bounds[key], r.Old, byTime); err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// keys are the partitions of the plan, each of which must be there.
func (p *resetPlan) keys(bounds map[partitionKey]span, committed kadm.OffsetResponses) ([]partitionKey, error) {
	chosen := map[partitionKey]bool{}
	for key := range p.listed {
		chosen[key] = true
	}
	for topic, partitions := range p.topics {
		for _, partition := range partitions {
			chosen[partitionKey{topic, partition}] = true
		}
		if len(partitions) == 0 {
			found := false
			for key := range bounds {
				if key.topic == topic {
					chosen[key], found = true, true
				}
			}
			if !found {
				return nil, noTopic(topic)
			}
		}
	}
	if p.topics == nil && p.listed == nil {
		committed.Each(func(c kadm.OffsetResponse) {
			key := partitionKey{c.Topic, c.Partition}
			if _, there := bounds[key]; there { // what is left of a deleted topic has nowhere to go
				chosen[key] = true
			}
		})
	}
	keys := slices.SortedFunc(maps.Keys(chosen), func(a, b partitionKey) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
	})
	for _, key := range keys {
		if _, there := bounds[key]; !there {
			return nil, fail(codeNotFound, "`troupe topic describe "+key.topic+"` shows its partitions", "there is no partition %s-%d, or it has no leader", key.topic, key.partition)
		}
	}
	return keys, nil
}

// offset is where one partition goes. What lies outside the log becomes its nearest end, as with Kafka's tool.
func (p *resetPlan) offset(key partitionKey, b span, old *int64, byTime kadm.ListedOffsets) (int64, error) {
	within := func(offset int64) int64 { return min(max(offset, b.From), b.Until) }
	switch p.scenario {
	case "to-earliest":
		return b.From, nil
	case "to-latest":
		return b.Until, nil
	case "to-current":
		if old == nil {
			return b.Until, nil
		}
		return *old, nil
	case "to-offset":
		return within(p.n), nil
	case "shift-by":
		if old == nil {
			return 0, fail(codeNotFound, "--to-earliest, --to-latest or --to-offset need none", "group %s has no committed offset of %s-%d to shift", p.group, key.topic, key.partition)
		}
		return within(*old + p.n), nil
	case "from-file":
		return within(p.listed[key]), nil
	}
	found, ok := byTime.Lookup(key.topic, key.partition)
	if !ok {
		return 0, fail(codeRefused, "", "the broker gave no offset for %s-%d", key.topic, key.partition)
	}
	if found.Err != nil {
		return 0, refusal(found.Err, "", "find the time in %s-%d", key.topic, key.partition)
	}
	if found.Offset < 0 { // nothing is that young
		return b.Until, nil
	}
	return found.Offset, nil
}
