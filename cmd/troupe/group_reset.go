package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

// resetOptions is what the flags of `troupe group reset` say.
type resetOptions struct {
	topics    []string
	allTopics bool

	earliest, latest, current bool
	offset, shift             int64
	datetime, duration, file  string

	execute, dryRun, export bool
}

// resetScenarios are the flags of which exactly one says where to.
var resetScenarios = []string{"to-earliest", "to-latest", "to-current", "to-offset", "shift-by", "to-datetime", "by-duration", "from-file"}

func newGroupReset(s *session) *cobra.Command {
	var o resetOptions
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "reset GROUP",
		Short: "Move the committed offsets of a group without members",
		Long: "Move the committed offsets of a group without members, or commit the first ones of a group that is not there yet. Without\n" +
			"--execute nothing is changed and what would be is shown.\n\n" +
			"Times: 2026-01-31T12:00:00Z, 2026-01-31T12:00:00 (UTC), 2026-01-31, or milliseconds since 1970. Durations before now: PT1H30M, P2D, 90m.\n" +
			"Files have lines TOPIC,PARTITION,OFFSET, or GROUP,TOPIC,PARTITION,OFFSET, as --export and Kafka's tool write them.",
		Example: "  troupe group reset billing --topic orders --to-earliest\n" +
			"  troupe group reset billing --all-topics --to-datetime 2026-01-31T12:00:00Z --execute\n" +
			"  troupe group reset billing --all-topics --to-current --export > before.csv\n" +
			"  troupe group reset billing --from-file before.csv --execute",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeGroups,
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := newResetPlan(args[0], &o, chosenScenarios(cmd), time.Now())
			if err != nil {
				return err
			}
			if err := plan.read(s); err != nil {
				return err
			}
			return s.withAdmin(cmd, timeout, func(ctx context.Context, admin *kadm.Client) error { return s.reset(ctx, admin, &o, plan) })
		},
	}
	flags := cmd.Flags()
	topicSpecFlag(cmd, s, &o.topics)
	flags.BoolVar(&o.allTopics, "all-topics", false, "every partition that the group has committed")
	flags.BoolVar(&o.earliest, "to-earliest", false, "to the log start")
	flags.BoolVar(&o.latest, "to-latest", false, "to the end")
	flags.BoolVar(&o.current, "to-current", false, "to what is committed now; to the end where nothing is")
	flags.Int64Var(&o.offset, "to-offset", 0, "to this offset, or the nearest that is there")
	flags.Int64Var(&o.shift, "shift-by", 0, "by so many records: forward, or back when negative")
	flags.StringVar(&o.datetime, "to-datetime", "", "to the first record that is not older than this time")
	flags.StringVar(&o.duration, "by-duration", "", "to the first record that is not older than this long ago")
	flags.StringVar(&o.file, "from-file", "", "to the offsets of a file; - is standard input")
	flags.BoolVar(&o.execute, "execute", false, "change the offsets")
	flags.BoolVar(&o.dryRun, "dry-run", false, "change nothing (the default)")
	flags.BoolVar(&o.export, "export", false, "print lines TOPIC,PARTITION,OFFSET in place of a table")
	timeoutFlag(cmd, &timeout)
	return cmd
}

// chosenScenarios are the flags given that say where to.
func chosenScenarios(cmd *cobra.Command) []string {
	return slices.DeleteFunc(slices.Clone(resetScenarios), func(name string) bool { return !cmd.Flags().Changed(name) })
}

// resetRow is what a reset does to one partition.
type resetRow struct {
	Group     string `json:"group"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Old       *int64 `json:"old_offset"` // null: no commit
	New       int64  `json:"new_offset"`
	Done      string `json:"done,omitempty"` // reset, would be reset
	Error     string `json:"error,omitempty"`
}

func (s *session) reset(ctx context.Context, admin *kadm.Client, o *resetOptions, plan *resetPlan) error {
	if o.execute {
		if err := activeGroup(ctx, admin, plan.group); err != nil {
			return err
		}
	}
	rows, err := plan.resolve(ctx, admin)
	if err != nil {
		return err
	}
	var first error
	if o.execute {
		first = commitReset(ctx, admin, plan.group, rows)
	}
	if o.export {
		return cmpFirst(exportReset(s.out, rows), first)
	}
	err = s.show(rows, func(w io.Writer) {
		row(w, "TOPIC", "PARTITION", "FROM", "TO", "")
		for _, r := range rows {
			row(w, r.Topic, r.Partition, shownNumber(r.Old), r.New, cmp.Or(r.Error, r.Done))
		}
	})
	if err == nil && first == nil && !o.execute && s.format == formatText {
		_, _ = fmt.Fprintln(s.err, "nothing was changed; --execute does it")
	}
	return cmpFirst(err, first)
}

// commitReset commits the new offsets and writes into the rows what came of each.
func commitReset(ctx context.Context, admin *kadm.Client, group string, rows []resetRow) error {
	var offsets kadm.Offsets
	for _, r := range rows {
		offsets.Add(kadm.Offset{Topic: r.Topic, Partition: r.Partition, At: r.New, LeaderEpoch: -1})
	}
	answers, err := admin.CommitOffsets(ctx, group, offsets)
	if err != nil {
		return groupRefusal(err, "", group, "reset the offsets of %s", group)
	}
	var first error
	for i := range rows {
		r := &rows[i]
		a, ok := answers.Lookup(r.Topic, r.Partition)
		switch {
		case !ok:
			a.Err = errors.New("the broker gave no answer for it")
		case a.Err == nil:
			r.Done = "reset"
			continue
		}
		r.Done, r.Error = "", a.Err.Error()
		first = cmpFirst(first, refusal(a.Err, "", "reset the offset of %s for %s-%d", group, r.Topic, r.Partition))
	}
	return first
}

// exportReset prints the new offsets in the form that --from-file reads, which is that of Kafka's tool.
func exportReset(out io.Writer, rows []resetRow) error {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%s,%d,%d\n", r.Topic, r.Partition, r.New)
	}
	_, err := io.WriteString(out, b.String())
	return wrapStdout(err)
}
