package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// summary writes a table for each row that was measured.
func (r *rawLog) summary(w io.Writer) error {
	for _, rows := range [][][]string{r.failoverTable(), r.latencyTable(), r.idleTable(), r.manyTable()} {
		if len(rows) == 1 {
			continue
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, row := range rows {
			if _, err := io.WriteString(t, strings.Join(row, "\t")+"\n"); err != nil {
				return err
			}
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// quantile is the least value that a share q of all are not above. With twenty trials the 99th percentile is the greatest.
func quantile(values []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

func (r *rawLog) failoverTable() [][]string {
	rows := [][]string{{"gap in acknowledgements, ms", "class", "client", "target", "trials", "p50", "p99", "max", "leader shown p50", "wanted", ""}}
	for _, f := range faults {
		type key struct{ client, target string }
		gaps, shown := map[key][]time.Duration{}, map[key][]time.Duration{}
		class := ""
		for _, l := range r.trials {
			if l.Fault == f.name {
				k := key{l.Client, l.Target}
				gaps[k], class = append(gaps[k], l.Gap), string(l.Class)
				if l.Shown > 0 {
					shown[k] = append(shown[k], l.Shown)
				}
			}
		}
		keys := make([]key, 0, len(gaps))
		for k := range gaps {
			keys = append(keys, k)
		}
		slices.SortFunc(keys, func(a, b key) int { return cmp.Or(-cmp.Compare(a.client, b.client), -cmp.Compare(a.target, b.target)) })
		for _, k := range keys {
			p50, p99 := quantile(gaps[k], 0.5), quantile(gaps[k], 0.99)
			row := []string{f.text, class, k.client, k.target, strconv.Itoa(len(gaps[k])), whole(p50), whole(p99), whole(quantile(gaps[k], 1)), "", "", ""}
			if len(shown[k]) > 0 {
				row[8] = whole(quantile(shown[k], 0.5))
			}
			if k.client == clientRaw && k.target == nameTroupe {
				row[9], row[10] = f.wanted(), verdict(f.p50 == 0 || p50 <= f.p50, p99 <= f.p99)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func (f fault) wanted() string {
	if f.p50 == 0 {
		return "≤ " + whole(f.p99)
	}
	return "p50 ≤ " + whole(f.p50) + ", p99 ≤ " + whole(f.p99)
}

func verdict(good ...bool) string {
	if slices.Contains(good, false) {
		return "missed"
	}
	return "met"
}

func whole(d time.Duration) string {
	return strconv.FormatInt(d.Round(time.Millisecond).Milliseconds(), 10)
}

func (r *rawLog) latencyTable() [][]string {
	rows := [][]string{{"ms from the time each was due", "class", "target", "round", "ack p50", "p99", "p99.9", "end to end p50", "p99", "p99.9", "CPU-s/GB", "RssAnon MB", "", ""}}
	for _, l := range r.latency {
		of := func(m map[string]int64, q string) string { return fmt.Sprintf("%.2f", float64(m[q])/1e6) }
		var rss []int64
		for _, bytes := range l.RssAnon {
			rss = append(rss, bytes)
		}
		rows = append(rows, []string{
			l.Name, string(l.Class), l.Target, strconv.Itoa(l.Round), of(l.Ack, "50"), of(l.Ack, "99"), of(l.Ack, "99.9"),
			of(l.EndToEnd, "50"), of(l.EndToEnd, "99"), of(l.EndToEnd, "99.9"), fmt.Sprintf("%.2f", l.CPUPerGB()), fmt.Sprintf("%.0f–%.0f", float64(slices.Min(rss))/1e6, float64(slices.Max(rss))/1e6),
			r.besideKafka(l), l.Void,
		})
	}
	return rows
}

// besideKafka compares a run of Troupe with Kafka's in the same round.
func (r *rawLog) besideKafka(l latencyLine) string {
	for _, k := range r.latency {
		if l.Target == nameTroupe && k.Target == nameKafka && k.Workload == l.Workload && k.Round == l.Round {
			return fmt.Sprintf("p99 %.2f of Kafka's, CPU %.2f", float64(l.Ack["99"])/float64(k.Ack["99"]), l.CPUPerGB()/k.CPUPerGB())
		}
	}
	return ""
}

func (r *rawLog) idleTable() [][]string {
	rows := [][]string{{"idle", "broker", "partitions", "% of a CPU", "RssAnon MB", "KB a partition", "threads"}}
	for _, l := range r.idle {
		name := strconv.Itoa(int(l.Broker))
		if l.Controller {
			name += " (controller)"
		}
		state := "as it was made"
		if l.Fresh {
			state = "started with it"
		}
		row := []string{l.Target + ", " + state, name, strconv.Itoa(l.Partitions), fmt.Sprintf("%.2f", 100*l.CPU), fmt.Sprintf("%.1f", float64(l.RssAnon)/1e6), "", strconv.Itoa(l.Threads)}
		for _, base := range r.idle {
			if l.Partitions > 0 && base.Target == l.Target && base.Broker == l.Broker && base.Partitions == 0 {
				row[5] = fmt.Sprintf("%.1f", float64(l.RssAnon-base.RssAnon)/1e3/float64(l.Partitions))
			}
		}
		rows = append(rows, row)
	}
	return rows
}
