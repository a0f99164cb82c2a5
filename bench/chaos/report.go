package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/troupe-broker/troupe/bench/chaos/check"
)

// result is one run, and what is said of it.
type result struct {
	seed   uint64
	dir    string // data, logs, history
	length time.Duration
	enough int // acknowledged records per second
	with   need

	acked, unknown int
	byClient       map[string]int
	reasons        map[string]int // why records were not acknowledged, in the clients' words
	faults         []check.Event
	gaps           map[string]gap // by partition
	served         int64          // when all was healed and all brokers served again
	progress       progress       // since then
	healed         time.Duration  // from the end of faults and load to all replicas in sync
	rot            rotted
	damaged        int // 1: damage was there a minute after the end; of several runs, in how many
	fills          fills
	slow           int           // of several runs, in how many something did not go on in time
	notes          []string      // what is told and fails no run
	groups         time.Duration // from the end of the producers' work to all groups at the ends of the logs, at most
	events         []check.Event // for the timeline
	violations     []check.Violation
	err            error // what kept the run from coming to its end
}

// gap is the longest time in which nothing of a partition was acknowledged.
type gap struct{ from, to int64 }

func (g gap) length() time.Duration { return time.Duration(g.to-g.from) * time.Microsecond }

// measure counts, and takes the gaps between began and ended, in microseconds.
func (r *result) measure(events []check.Event, began, ended int64) {
	r.byClient, r.reasons, r.gaps = map[string]int{}, map[string]int{}, map[string]gap{}
	acks := map[string][]int64{}
	for i := range events {
		switch e := &events[i]; e.Kind {
		case check.Send:
			switch e.Outcome {
			case check.OK:
				r.acked++
				r.byClient[strings.TrimRight(e.Worker, "0123456789")]++
				acks[e.TP] = append(acks[e.TP], e.T1)
			default:
				r.unknown++
				r.reasons[strings.TrimRight(e.Worker, "0123456789")+": "+e.Text]++
			}
		case check.Fault:
			r.faults = append(r.faults, *e)
			r.events = append(r.events, *e)
		case check.Leader:
			r.events = append(r.events, *e)
		default:
		}
	}
	r.progress = progressSince(events, r.served)
	r.fills = fillsIn(events)
	for tp, times := range acks {
		slices.Sort(times)
		longest, last := gap{}, max(began, times[0])
		for _, t := range append(times, min(ended, times[len(times)-1])) {
			if t = min(t, ended); t-last > longest.to-longest.from {
				longest = gap{last, t}
			}
			last = max(last, t)
		}
		r.gaps[tp] = longest
	}
}

func (r *result) failed() bool {
	return r.err != nil || len(r.violations) > 0 || r.perSecond() < r.enough
}

func (r *result) perSecond() int {
	if r.length == 0 {
		return 0
	}
	return int(float64(r.acked) / r.length.Seconds())
}

// add sums up what matters of several runs.
func (r *result) add(o result) {
	r.acked += o.acked
	r.unknown += o.unknown
	r.faults = append(r.faults, o.faults...)
	r.violations = append(r.violations, o.violations...)
	if o.progress.missed() != "" {
		r.slow++
	}
	r.damaged += o.damaged
	r.rot.add(o.rot)
	r.fills = append(r.fills, o.fills...)
	if r.byClient == nil {
		r.byClient = map[string]int{}
	}
	for name, n := range o.byClient {
		r.byClient[name] += n
	}
}

func (r *result) sum() string {
	var clients []string
	for _, name := range slices.Sorted(maps.Keys(r.byClient)) {
		clients = append(clients, fmt.Sprintf("%s %d", name, r.byClient[name]))
	}
	counts := check.Count(r.violations)
	var text strings.Builder
	fmt.Fprintf(&text, "%d records acknowledged (%s), %d unknown, %d faults; %d lost, %d duplicate, %d reordered, %d divergent", r.acked, strings.Join(clients, ", "), r.unknown, len(r.faults),
		counts[check.Lost], counts[check.Duplicate], counts[check.Reordered], counts[check.Divergent])
	for _, a := range slices.Sorted(maps.Keys(counts)) {
		if !slices.Contains([]check.Anomaly{check.Lost, check.Duplicate, check.Reordered, check.Divergent}, a) {
			fmt.Fprintf(&text, ", %d %s", counts[a], a)
		}
	}
	for _, more := range []string{r.rot.text(), r.fills.text()} {
		if more != "" {
			text.WriteString("; " + more)
		}
	}
	if r.slow > 0 || r.damaged > 0 {
		fmt.Fprintf(&text, "; runs without progress within %v: %d, with damage that stayed: %d", progressMax, r.slow, r.damaged)
	}
	return text.String()
}

func reportHead() string {
	return fmt.Sprintf("%-20s %8s %7s %7s %6s %8s %8s %8s %8s  %5s %5s %7s %8s %5s  %s", "seed", "acked", "per s", "unknown", "faults", "gap max", "healed", "progress", "groups", "lost", "dup", "reorder", "diverged", "other", "verdict")
}

// verdict is the run in a word or two.
func (r *result) verdict() string {
	switch {
	case r.err != nil:
		return "BROKEN"
	case len(r.violations) > 0:
		return "FAILED"
	case r.failed():
		return fmt.Sprintf("TOO FEW, below %d/s", r.enough)
	}
	return "ok"
}

// lines are what is said of each run, good or bad.
func (r *result) lines() string {
	counts, verdict := check.Count(r.violations), r.verdict()
	other := len(r.violations)
	for _, a := range []check.Anomaly{check.Lost, check.Duplicate, check.Reordered, check.Divergent} {
		other -= counts[a]
	}
	var worst time.Duration
	for _, g := range r.gaps {
		worst = max(worst, g.length())
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%-20d %8d %7d %7d %6d %6.1f s %6.1f s %6.1f s %6.1f s  %5d %5d %7d %8d %5d  %s\n", r.seed, r.acked, r.perSecond(), r.unknown, len(r.faults), worst.Seconds(), r.healed.Seconds(), r.progress.worst().Seconds(), r.groups.Seconds(),
		counts[check.Lost], counts[check.Duplicate], counts[check.Reordered], counts[check.Divergent], other, verdict)
	text.WriteString("  gaps, s:")
	topic := ""
	for _, tp := range slices.Sorted(maps.Keys(r.gaps)) {
		if of := tp[:strings.LastIndex(tp, "-")]; of != topic {
			topic = of
			text.WriteString("  " + topic)
		}
		fmt.Fprintf(&text, " %.1f", r.gaps[tp].length().Seconds())
	}
	names := map[string]int{}
	for _, f := range r.faults {
		names[f.Worker]++
	}
	text.WriteString("\n  faults: ")
	for _, name := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(&text, " %s %d", name, names[name])
	}
	text.WriteString(r.with.words())
	text.WriteString("\n")
	for _, more := range []string{r.rot.text(), r.fills.text()} {
		if more != "" {
			text.WriteString("  " + more + "\n")
		}
	}
	if missed := r.progress.missed(); missed != "" {
		fmt.Fprintf(&text, "  no progress within %v of the end of all faults: %s\n", progressMax, missed)
	}
	for _, note := range r.notes {
		fmt.Fprintf(&text, "  %s\n", note)
	}
	for _, why := range slices.Sorted(maps.Keys(r.reasons)) {
		fmt.Fprintf(&text, "  not acknowledged: %d, %s\n", r.reasons[why], why)
	}
	return text.String()
}

// story is what is said of a run that failed: what is wrong, a timeline, and where to look.
func (r *result) story() string {
	var b strings.Builder
	if r.err != nil {
		fmt.Fprintf(&b, "  it did not come to its end: %v\n", r.err)
	}
	const shown = 8 // of each anomaly
	counts := map[check.Anomaly]int{}
	for _, v := range r.violations {
		if counts[v.Anomaly]++; counts[v.Anomaly] <= shown {
			at := ""
			if v.At > 0 {
				at = fmt.Sprintf(" [%.3f s]", float64(v.At)/1e6)
			}
			fmt.Fprintf(&b, "  %v%s\n", v, at)
		}
	}
	for _, a := range slices.Sorted(maps.Keys(counts)) {
		if counts[a] > shown {
			fmt.Fprintf(&b, "  … and %d more %s\n", counts[a]-shown, a)
		}
	}
	fmt.Fprintf(&b, "  timeline, s since the run began:\n")
	type line struct {
		at   int64
		text string
	}
	var lines []line
	var about []string // partitions with whom something is wrong, the first few
	for _, v := range r.violations {
		if v.TP != "" && len(about) < 3 && !slices.Contains(about, v.TP) {
			about = append(about, v.TP)
		}
	}
	for i := range r.events {
		switch e := &r.events[i]; e.Kind {
		case check.Fault:
			lines = append(lines, line{e.T0, fmt.Sprintf("%s: %s, until %.3f", e.Worker, e.Text, float64(e.T1)/1e6)})
		case check.Leader:
			if e.TP == "" || slices.Contains(about, e.TP) { // the controller always matters

				lines = append(lines, line{e.T1, strings.TrimSpace(e.TP + " " + e.Text)})
			}
		default:
		}
	}
	counts = map[check.Anomaly]int{}
	for _, v := range r.violations {
		if counts[v.Anomaly]++; v.At > 0 && counts[v.Anomaly] <= shown {
			first, _, _ := strings.Cut(v.String(), "\n") // all of it stands above
			lines = append(lines, line{v.At, "!! " + first})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return int(a.at - b.at) })
	for _, l := range lines {
		fmt.Fprintf(&b, "  %9.3f  %s\n", float64(l.at)/1e6, l.text)
	}
	fmt.Fprintf(&b, "  data and logs of brokers: %s; logs of clients: %s; histories: %s (judge them again with -check)\n",
		filepath.Join(r.dir, "broker-*"), filepath.Join(r.dir, "*.log"), filepath.Join(r.dir, "history"))
	return b.String()
}
