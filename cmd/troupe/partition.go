package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/troupe-broker/troupe/wire/checkup"
)

// replicaRow is what `troupe partition` says of one replica. Offsets are -1 where they are not known.
type replicaRow struct {
	Topic       string          `json:"topic"`
	Partition   int32           `json:"partition"`
	Broker      int32           `json:"broker"`
	State       string          `json:"state"`  // leader, follower, offline (or its log is being opened) or unknown
	Leader      int32           `json:"leader"` // that it follows or is
	Start       int64           `json:"log_start"`
	High        int64           `json:"high_watermark"`
	End         int64           `json:"log_end"`
	Sound       bool            `json:"sound"`            // and the check, where there was one, came to its end
	Checked     int64           `json:"checked_bytes"`    // by the last check
	Compared    int64           `json:"compared_offsets"` // with the leader's, by the last check
	NotCompared string          `json:"not_compared,omitempty"`
	Found       []checkup.Range `json:"found_damaged"` // by the last check; what is not in Damaged was mended since
	Damaged     []checkup.Range `json:"damaged"`
	MoreDamage  int             `json:"more_damaged"` // ranges that are not in the list
	Divergent   []checkup.Range `json:"divergent"`
	MoreDiffer  int             `json:"more_divergent"`
	Repair      checkup.Mending `json:"repair"`
	Why         string          `json:"why,omitempty"`   // of Repair
	Error       string          `json:"error,omitempty"` // why the replica was not checked, or not mended
}

// replicaRows is what both commands print.
type replicaRows struct {
	Replicas []replicaRow `json:"replicas"`
}

func newPartition(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "partition",
		Short: "Check replicas on disk and against each other; fetch what is damaged again",
	}
	cmd.AddCommand(newVerify(s), newRepair(s))
	return cmd
}

// partitionOptions are the flags of both commands.
type partitionOptions struct {
	timeout   time.Duration
	broker    int32
	divergent bool
}

func (o *partitionOptions) register(cmd *cobra.Command, s *session, timeout time.Duration) {
	f := cmd.Flags()
	f.DurationVar(&o.timeout, "timeout", timeout, "how long to wait until it is done")
	f.Int32Var(&o.broker, "broker", -1, "only the replica that this broker keeps")
	cmd.ValidArgsFunction = s.completeTopics
}

func newVerify(s *session) *cobra.Command {
	var o partitionOptions
	cmd := &cobra.Command{
		Use:   "verify TOPIC[:PARTITION,...]...",
		Short: "Check all records of replicas now, and compare followers with their leaders",
		Long: "Have brokers read all records that replicas have on disk, look at the checksum of each batch, and compare what followers have with what\n" +
			"their leader has: the same record at the same offset. It is what brokers do by themselves every hour (log.scrub.interval.ms), at the same\n" +
			"pace: log.scrub.max.bytes.per.second of each broker. Exit code 1: not all is sound, or not all could be checked.",
		Example: "  troupe partition verify orders\n  troupe partition verify orders:0,3 --broker 2 -o json",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.withReplicas(cmd, args, false, &o, func(ctx context.Context, client *kgo.Client, keys []replicaKey) ([]replicaRow, error) {
				return s.verify(ctx, client, keys)
			})
		},
	}
	o.register(cmd, s, time.Hour)
	return cmd
}

func newRepair(s *session) *cobra.Command {
	var o partitionOptions
	cmd := &cobra.Command{
		Use:   "repair TOPIC:PARTITION,...",
		Short: "Have damaged records of replicas fetched again from a sound one, now",
		Long: "Have records that are known to be damaged fetched again from the leader, now, and wait until they are back. Brokers do that by themselves,\n" +
			"with growing pauses where it does not work; the command says what is in the way. A damaged leader hands over first.\n" +
			"Records that differ from the leader's, with a checksum that is right, are left as they are, unless --divergent says that the leader is right and\n" +
			"--broker whose copy goes: what only that one has is lost then. Look at both with `troupe dump` first.",
		Example: "  troupe partition repair orders:0\n  troupe partition repair orders:0 --broker 2 --divergent",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.divergent && o.broker < 0 {
				return usage("--divergent --broker ID", "whose copy is to be replaced by the leader's is not said: --divergent wants one broker")
			}
			return s.withReplicas(cmd, args, true, &o, func(ctx context.Context, client *kgo.Client, keys []replicaKey) ([]replicaRow, error) {
				return s.repair(ctx, client, keys, o.divergent)
			})
		},
	}
	o.register(cmd, s, 5*time.Minute)
	cmd.Flags().BoolVar(&o.divergent, "divergent", false, "replace records that the last check of the replica of --broker found to differ from the leader's by what the leader has")
	return cmd
}

// withReplicas calls work with the replicas that the command line names, and shows what it found.
func (s *session) withReplicas(
	cmd *cobra.Command, args []string, explicit bool, o *partitionOptions, work func(ctx context.Context, client *kgo.Client, keys []replicaKey) ([]replicaRow, error),
) error {
	chosen, err := parseTopicSpecs("", args)
	if err != nil {
		return err
	}
	if o.broker < 0 && cmd.Flags().Changed("broker") {
		return usage("--broker ID", "%d is no id of a broker", o.broker)
	}
	if o.timeout <= 0 {
		return usage("--timeout 10m", "a timeout of %s leaves no time", o.timeout)
	}
	for topic, partitions := range chosen {
		if explicit && len(partitions) == 0 {
			return usage("TOPIC:PARTITION,...", "which partitions of %q is not said", topic)
		}
	}
	return s.withClient(cmd.Context(), min(o.timeout, movePatience), o.timeout, func(ctx context.Context, client *kgo.Client) error {
		keys, err := replicasOf(ctx, client, chosen, o.broker)
		if err != nil {
			return err
		}
		rows, err := work(ctx, client, keys)
		if err != nil {
			return err
		}
		out := &replicaRows{Replicas: rows}
		if err := s.show(out, out.text); err != nil {
			return err
		}
		return out.failure()
	})
}

// partitionPause is how long nobody is asked whether a check or a repair is over.
const partitionPause = 200 * time.Millisecond

// checkedReplicas is how far checks or repairs are, for the progress line.
type checkedReplicas struct {
	done, all int
	verb      string
}

func (c checkedReplicas) String() string {
	return fmt.Sprintf("%d of %d replicas %s", c.done, c.all, c.verb)
}

// verify has replicas checked, and waits until they are, or the time is up. A broker that was restarted meanwhile is asked again. So is, once, who could not compare
// all since the partition got another leader: the check makes a leader that it finds to be damaged hand over.
func (s *session) verify(ctx context.Context, client *kgo.Client, keys []replicaKey) ([]replicaRow, error) {
	answers := map[replicaKey]checkupAnswer{}
	asked := map[replicaKey]checkup.Report{} // by which its check is known
	progress := s.newProgress()
	defer progress.done()
	order := func(some []replicaKey) {
		askReplicas(ctx, client, checkup.Order{Do: checkup.Verify}, some, answers)
		for _, k := range some {
			asked[k] = answers[k].Report
		}
	}
	order(keys)
	first := map[replicaKey][]checkup.Range{} // what was found before a check was repeated
	var over time.Time                        // when all checks were, for the first time
	for repeated := false; ; {
		var open, again []replicaKey
		for _, k := range keys {
			switch a := answers[k]; {
			case a.silent != "" || a.Done >= asked[k].Asked && a.Run == asked[k].Run && asked[k].Asked > 0:
			case a.Run != asked[k].Run || asked[k].Asked == 0:
				again = append(again, k)
			default:
				open = append(open, k)
			}
		}
		progress.show(checkedReplicas{len(keys) - len(open) - len(again), len(keys), "checked"})
		waits := false
		if len(open)+len(again) == 0 && !repeated {
			if over.IsZero() {
				over = time.Now()
			}
			look(ctx, client, besides(keys, answers), answers)
			again = ledAnew(keys, asked, answers)
			waits = len(again) == 0 && handsOver(keys, answers) && time.Since(over) < handoverMax
			repeated = !waits
			for _, k := range again {
				first[k] = answers[k].Found
			}
		}
		if len(open)+len(again) == 0 && !waits {
			for k, found := range first {
				a := answers[k]
				a.Found = append(found, slices.DeleteFunc(slices.Clone(a.Found), func(r checkup.Range) bool { return slices.Contains(found, r) })...)
				answers[k] = a
			}
			return rowsOf(keys, answers, true), nil
		}
		if rest(ctx, partitionPause) != nil {
			return outOfTime(ctx, keys, answers, append(open, again...), true, "the check is not over; it goes on without being waited for")
		}
		order(again)
		look(ctx, client, open, answers)
	}
}

// handoverMax is how long a leader that is damaged may take to hand over, when others wait to be compared.
const handoverMax = 5 * time.Second

// notCompared are the replicas whose check did not compare all.
func notCompared(keys []replicaKey, answers map[replicaKey]checkupAnswer) (of []replicaKey) {
	for _, k := range keys {
		if a := answers[k]; a.silent == "" && a.NotCompared != "" {
			of = append(of, k)
		}
	}
	return of
}

// besides are those of the partitions in which one was not compared, without the silent ones.
func besides(keys []replicaKey, answers map[replicaKey]checkupAnswer) (of []replicaKey) {
	partitions := map[partitionKey]bool{}
	for _, k := range notCompared(keys, answers) {
		partitions[k.partitionKey] = true
	}
	for _, k := range keys {
		if partitions[k.partitionKey] && answers[k].silent == "" {
			of = append(of, k)
		}
	}
	return of
}

// handsOver tells whether one of them was not compared with a leader that is damaged: another one leads soon, if there is one to.
func handsOver(keys []replicaKey, answers map[replicaKey]checkupAnswer) bool {
	return slices.ContainsFunc(notCompared(keys, answers), func(k replicaKey) bool {
		a := answers[replicaKey{k.partitionKey, answers[k].Leader}]
		return a.State == "leader" && len(a.Damaged) > 0 && a.Mending != checkup.Impossible
	})
}

// ledAnew are those of them whose partition has another leader than one of its replicas knew when the check was ordered.
func ledAnew(keys []replicaKey, asked map[replicaKey]checkup.Report, answers map[replicaKey]checkupAnswer) []replicaKey {
	return slices.DeleteFunc(notCompared(keys, answers), func(k replicaKey) bool {
		now := answers[k].Leader
		return now < 0 || !slices.ContainsFunc(keys, func(o replicaKey) bool {
			return o.partitionKey == k.partitionKey && asked[o].Asked > 0 && asked[o].Leader != now
		})
	})
}

// repair has damage mended, and waits until it is, or cannot be, or the time is up.
func (s *session) repair(ctx context.Context, client *kgo.Client, keys []replicaKey, divergent bool) ([]replicaRow, error) {
	answers := map[replicaKey]checkupAnswer{}
	progress := s.newProgress()
	defer progress.done()
	askReplicas(ctx, client, checkup.Order{Do: checkup.Repair, Divergent: divergent}, keys, answers)
	failed := map[replicaKey]string{}
	for k, a := range answers {
		failed[k] = a.Error
	}
	for {
		var open []replicaKey
		for _, k := range keys {
			if a := answers[k]; a.silent == "" && len(a.Damaged) > 0 && a.Mending != checkup.Impossible {
				open = append(open, k)
			}
		}
		progress.show(checkedReplicas{len(keys) - len(open), len(keys), "sound"})
		over := rest(ctx, partitionPause) != nil
		if over || len(open) == 0 {
			for k, a := range answers {
				if a.Error = failed[k]; a.silent == "" {
					answers[k] = a
				}
			}
		}
		switch {
		case over:
			return outOfTime(ctx, keys, answers, open, false, "it is not mended yet; the broker goes on trying")
		case len(open) == 0:
			return rowsOf(keys, answers, false), nil
		}
		look(ctx, client, open, answers)
	}
}

// look asks how replicas are. What was known of one that does not answer now is kept, unless nothing was.
func look(ctx context.Context, client *kgo.Client, keys []replicaKey, answers map[replicaKey]checkupAnswer) {
	fresh := map[replicaKey]checkupAnswer{}
	askReplicas(ctx, client, checkup.Order{Do: checkup.Look}, keys, fresh)
	for k, a := range fresh {
		if a.silent == "" || ctx.Err() == nil {
			answers[k] = a
		}
	}
}

// outOfTime shows what is known when nobody waits any longer; an interrupt shows nothing.
func outOfTime(ctx context.Context, keys []replicaKey, answers map[replicaKey]checkupAnswer, open []replicaKey, verified bool, why string) ([]replicaRow, error) {
	if ctx.Err() != context.DeadlineExceeded {
		return nil, ctx.Err()
	}
	for _, k := range open {
		a := answers[k]
		switch a.late = why; {
		case a.Error == "":
		case verified:
			a.late = a.Error // no check is under way
		default:
			a.late = a.Error + "; " + why
		}
		answers[k] = a
	}
	return rowsOf(keys, answers, verified), nil
}

// rowsOf makes the rows. verified: a replica is sound only if the check says so; else if nothing else is known.
func rowsOf(keys []replicaKey, answers map[replicaKey]checkupAnswer, verified bool) []replicaRow {
	rows := make([]replicaRow, 0, len(keys))
	for _, k := range keys {
		a := answers[k]
		r := replicaRow{
			Topic: k.topic, Partition: k.partition, Broker: k.broker, State: a.State, Leader: a.Leader, Start: a.Start, High: a.High, End: a.End, Checked: a.Checked,
			Compared: a.Compared, NotCompared: a.NotCompared, Found: a.Found, Damaged: a.Damaged, MoreDamage: a.MoreDamage, Divergent: a.Divergent, MoreDiffer: a.MoreDiffer,
			Repair: a.Mending, Why: a.Why, Error: a.Error,
		}
		switch {
		case a.silent != "":
			r.State, r.Leader, r.Start, r.High, r.End, r.Repair, r.Error = "unknown", -1, -1, -1, -1, checkup.Sound, a.silent
		case a.late != "":
			r.Error = a.late
		case verified && r.Error == "" && !a.Whole:
			r.Error = "the check did not come to the end of the log: the replica is out of service, or its log was cut"
		}
		for _, list := range []*[]checkup.Range{&r.Found, &r.Damaged, &r.Divergent} {
			if *list == nil {
				*list = []checkup.Range{}
			}
		}
		r.Sound = r.Error == "" && (r.NotCompared == "" || !verified) && len(r.Damaged)+r.MoreDamage+len(r.Divergent)+r.MoreDiffer == 0 && r.State != "offline"
		rows = append(rows, r)
	}
	return rows
}

// rangesInText is how many ranges of a kind are printed for people; -o json has all that the broker tells.
const rangesInText = 10

func (o *replicaRows) text(w io.Writer) {
	var table bytes.Buffer
	columns := newColumns(&table)
	row(columns, "PARTITION", "BROKER", "STATE", "START", "END", "CHECKED", "COMPARED", "SOUND", "REPAIR")
	for i := range o.Replicas {
		r := &o.Replicas[i]
		sound := "yes"
		if !r.Sound {
			sound = "no"
		}
		row(columns, fmt.Sprintf("%s-%d", r.Topic, r.Partition), r.Broker, r.State, r.Start, r.End, byteCount(r.Checked), r.Compared, sound, r.Repair)
	}
	_ = columns.Flush()                                                                  // a buffer takes all
	for i, line := range strings.Split(strings.TrimSuffix(table.String(), "\n"), "\n") { // the first is the head
		row(w, line)
		if i > 0 {
			for _, detail := range o.Replicas[i-1].details() { // not in the table: a column ends at a row that has none
				row(w, "    "+detail)
			}
		}
	}
}

// details are the lines below the row of a replica.
func (r *replicaRow) details() (lines []string) {
	ranges := func(what string, list []checkup.Range, more int) {
		for _, d := range list[:min(len(list), rangesInText)] {
			line := fmt.Sprintf("%s: offsets %d to %d", what, d.From, d.To-1)
			if d.Kind != "" {
				line += ", " + d.Kind
			}
			lines = append(lines, line)
		}
		if more += max(len(list)-rangesInText, 0); more > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s", what, plural(int64(more), "more range", "more ranges")))
		}
	}
	ranges("damaged", r.Damaged, r.MoreDamage)
	ranges("was damaged, and is mended", slices.DeleteFunc(slices.Clone(r.Found), func(f checkup.Range) bool {
		return slices.ContainsFunc(r.Damaged, func(d checkup.Range) bool { return d.From < f.To && f.From < d.To })
	}), 0)
	if r.Why != "" {
		lines = append(lines, "repair: "+r.Why)
	}
	ranges("divergent", r.Divergent, r.MoreDiffer)
	if r.NotCompared != "" {
		lines = append(lines, "not all was compared: "+r.NotCompared)
	}
	if r.Error != "" {
		lines = append(lines, r.Error)
	}
	return lines
}

// failure is the failure of the command when a replica is not known to be sound; nil: all are.
func (o *replicaRows) failure() error {
	bad, hint := []string{}, ""
	for i := range o.Replicas {
		r := &o.Replicas[i]
		if r.Sound {
			continue
		}
		name := fmt.Sprintf("%s-%d of broker %d", r.Topic, r.Partition, r.Broker)
		if r.Error != "" {
			name += " (" + r.Error + ")"
		}
		bad = append(bad, name)
		switch {
		case len(r.Damaged) > 0 && r.Repair != checkup.Impossible:
			hint = fmt.Sprintf("`troupe partition repair %s:%d` fetches what is damaged again", r.Topic, r.Partition)
		case len(r.Divergent)+r.MoreDiffer > 0 && hint == "":
			hint = "TRP-2112 in docs/errors.md says what to do about records that differ"
		}
	}
	if len(bad) == 0 {
		return nil
	}
	const named = 3
	text := strings.Join(bad[:min(len(bad), named)], ", ")
	if len(bad) > named {
		text += fmt.Sprintf(" and %d more", len(bad)-named)
	}
	return fail(codeUnsound, hint, "not known to be sound: %s", text)
}
