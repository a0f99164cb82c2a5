package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Text writes what the page shows, for a terminal and for diffs.
func (p Page) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n\n", p.Title, p.Command)
	for _, f := range p.Facts {
		fmt.Fprintf(&b, "%s: %s\n", f[0], f[1])
	}
	b.WriteString("\n")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	rows := [][]string{{"floor", "", "MB/s", "s/GB", "per call"}}
	if err := table(t, append(rows, p.Floors...)); err != nil {
		return err
	}
	for _, lines := range [][]Line{p.ToFloor, p.ToPeer} {
		b.WriteString("\n")
		if err := Print(&b, lines); err != nil {
			return err
		}
	}
	b.WriteString("\n")
	rows = [][]string{{"open loop, µs from the intended time", "class", "target", "round", "ack p50", "p99", "p99.9", "end to end p50", "p99", "p99.9", "records"}}
	for _, s := range p.Latency {
		us := func(m map[string]int64, q string) string {
			return fmt.Sprintf("%.0f", time.Duration(m[q]).Seconds()*1e6)
		}
		rows = append(rows, []string{
			s.Name, string(s.Class), s.Target, fmt.Sprint(s.Round),
			us(s.Ack, "50"), us(s.Ack, "99"), us(s.Ack, "99.9"),
			us(s.EndToEnd, "50"), us(s.EndToEnd, "99"), us(s.EndToEnd, "99.9"), fmt.Sprint(s.Ack["count"]),
		})
	}
	if err := table(t, rows); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// table aligns rows and flushes them.
func table(t *tabwriter.Writer, rows [][]string) error {
	for _, row := range rows {
		if _, err := io.WriteString(t, strings.Join(row, "\t")+"\n"); err != nil {
			return err
		}
	}
	return t.Flush()
}
