package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/troupe-broker/troupe/bench/chaos/check"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// The drawing: one time axis for everything, in units of the picture.
const (
	axisLeft  = 140
	axisWidth = 1000
	rowHigh   = 16
	plotHigh  = 90
	binMicros = 250_000
)

// page is what the template draws.
type page struct {
	Title, Verdict, Sum string
	Good                bool
	Width, Axis         int
	Seconds             []mark
	Faults, Leaders     lanes
	Acks                plot
	Loads               []plot
	Violations          []string
	More                int
	Said                string
	Where               string
}

// mark is a place on the time axis.
type mark struct {
	X    float64
	Text string
}

// lanes are rows of bars.
type lanes struct {
	High int
	Rows []lane
}

type lane struct {
	Name string
	Y    int
	Bars []bar
}

type bar struct {
	X, Width float64
	Class    string
	Text     string
}

// plot is lines over time.
type plot struct {
	Name, Top string
	Lines     []curve
}

type curve struct {
	Name, Class, Points string
}

// axis turns microseconds into places.
type axis struct{ from, to int64 }

func (a axis) x(at int64) float64 {
	return axisLeft + axisWidth*float64(min(max(at, a.from), a.to)-a.from)/float64(max(a.to-a.from, 1))
}

// writePage writes a run as one page that needs nothing else.
func (r *result) writePage(path string, events []check.Event) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	return r.draw(f, events)
}

func (r *result) draw(w io.Writer, events []check.Event) error {
	a := axis{0, 1}
	for i := range events {
		if k := events[i].Kind; k == check.Send || k == check.Fault || k == check.Leader || k == check.Usage {
			a.to = max(a.to, events[i].T1)
		}
	}
	p := page{
		Title: fmt.Sprintf("chaos, seed %d", r.seed), Good: !r.failed(), Verdict: r.verdict(), Sum: r.sum(), Width: axisLeft + axisWidth + 20, Axis: axisLeft,
		Faults: a.faultLanes(events), Leaders: a.leaderLanes(events), Acks: a.acks(events), Loads: a.loads(events), Said: r.lines(), Where: r.dir,
	}
	const step = 5
	for s := int64(0); s*1e6 <= a.to; s += step {
		p.Seconds = append(p.Seconds, mark{a.x(s * 1e6), fmt.Sprint(s)})
	}
	const shown = 200
	for i, v := range r.violations {
		if i == shown {
			p.More = len(r.violations) - shown
			break
		}
		p.Violations = append(p.Violations, fmt.Sprintf("%.3f s  %v", float64(v.At)/1e6, v))
	}
	if r.err != nil {
		p.Violations = append([]string{"it did not come to its end: " + r.err.Error()}, p.Violations...)
	}
	return pageTemplate.Execute(w, p)
}

// faultLanes has a row for each kind of fault that came.
func (a axis) faultLanes(events []check.Event) lanes {
	rows := map[string][]bar{}
	for i := range events {
		if e := &events[i]; e.Kind == check.Fault {
			text := fmt.Sprintf("%.1f to %.1f s, %s: %s", float64(e.T0)/1e6, float64(e.T1)/1e6, e.Worker, e.Text)
			rows[e.Worker] = append(rows[e.Worker], bar{a.x(e.T0), max(a.x(e.T1)-a.x(e.T0), 2), "fault", text})
		}
	}
	return stack(rows)
}

// leaderLanes shows who led each partition, and who had the controller.
func (a axis) leaderLanes(events []check.Event) lanes {
	rows, last := map[string][]bar{}, map[string]*check.Event{}
	end := func(name string, at int64) {
		if e := last[name]; e != nil && e.Broker > 0 {
			text := fmt.Sprintf("%s, since %.1f s: %s", name, float64(e.T1)/1e6, e.Text)
			rows[name] = append(rows[name], bar{a.x(e.T1), max(a.x(at)-a.x(e.T1), 1), fmt.Sprintf("b%d", (e.Broker-1)%5), text})
		}
	}
	for i := range events {
		e := events[i]
		if e.Kind != check.Leader {
			continue
		}
		name := e.TP
		if name == "" {
			name = "controller"
		}
		end(name, e.T1)
		last[name] = &e
	}
	for name := range last {
		end(name, a.to)
	}
	return stack(rows)
}

func stack(rows map[string][]bar) lanes {
	l := lanes{High: len(rows) * rowHigh}
	for i, name := range slices.Sorted(maps.Keys(rows)) {
		l.Rows = append(l.Rows, lane{name, i * rowHigh, rows[name]})
	}
	return l
}

// acks is how many records were acknowledged, by topic.
func (a axis) acks(events []check.Event) plot {
	counts := map[string]map[int64]float64{}
	for i := range events {
		e := &events[i]
		if e.Kind != check.Send || e.Outcome != check.OK {
			continue
		}
		topic := e.TP[:strings.LastIndexByte(e.TP, '-')]
		if counts[topic] == nil {
			counts[topic] = map[int64]float64{}
		}
		counts[topic][e.T1/binMicros] += 1e6 / binMicros
	}
	for _, bins := range counts { // a bin without any is a gap, and not a straight line over it
		for bin := range a.to / binMicros {
			bins[bin] += 0
		}
	}
	return a.plot("acknowledged records per second", counts, func(bin int64) int64 { return bin*binMicros + binMicros/2 })
}

// loads are what the brokers held.
func (a axis) loads(events []check.Event) []plot {
	memory, goroutines, descriptors := map[string]map[int64]float64{}, map[string]map[int64]float64{}, map[string]map[int64]float64{}
	for i := range events {
		e := &events[i]
		if e.Kind != check.Usage || e.Load == nil {
			continue
		}
		for m, n := range map[*map[string]map[int64]float64]float64{&memory: float64(e.Load.Anon) / (1 << 20), &goroutines: float64(e.Load.Goroutines), &descriptors: float64(e.Load.Descriptors + e.Load.Files)} {
			if (*m)[e.Worker] == nil {
				(*m)[e.Worker] = map[int64]float64{}
			}
			(*m)[e.Worker][e.T1] = n
		}
	}
	same := func(at int64) int64 { return at }
	return []plot{a.plot("memory of their own, MiB", memory, same), a.plot("goroutines", goroutines, same), a.plot("open descriptors", descriptors, same)}
}

// plot draws a line for each name; time turns a key into microseconds.
func (a axis) plot(name string, values map[string]map[int64]float64, time func(int64) int64) plot {
	top := 1.0
	for _, v := range values {
		for _, n := range v {
			top = max(top, n)
		}
	}
	p := plot{Name: name, Top: fmt.Sprintf("%.0f", top)}
	for i, line := range slices.Sorted(maps.Keys(values)) {
		var points strings.Builder
		for _, at := range slices.Sorted(maps.Keys(values[line])) {
			fmt.Fprintf(&points, "%.1f,%.1f ", a.x(time(at)), plotHigh*(1-values[line][at]/top))
		}
		p.Lines = append(p.Lines, curve{line, fmt.Sprintf("l%d", i%5), points.String()})
	}
	return p
}

// pageName is where the page of a run goes.
func pageName(dir string, seed uint64, at time.Time) string {
	return filepath.Join(dir, fmt.Sprintf("chaos-%s-seed-%d.html", at.UTC().Format("20060102-1504"), seed))
}
