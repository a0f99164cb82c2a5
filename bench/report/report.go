package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"
)

// Class is what an acknowledged record has survived when the figure was taken. Figures
// of two classes are never compared.
type Class string

// The durability classes. None is for floors that store nothing a reader could ask for.
const (
	None   Class = ""
	Cached Class = "cached"
	Synced Class = "synced"
)

// Workload is what was done, the same for every target.
type Workload struct {
	// Name says the operation and size: "produce 64 KiB".
	Name  string `json:"workload"`
	Class Class  `json:"class"`
}

// Sample is one run.
type Sample struct {
	Workload
	Target   string        `json:"target"`
	Round    int           `json:"round"`
	Bytes    int64         `json:"bytes"`
	Requests int64         `json:"requests"`
	Elapsed  time.Duration `json:"elapsed_ns"`
	// CPU is the server's time, Generator the client's.
	CPU       time.Duration `json:"cpu_ns"`
	CPUSystem time.Duration `json:"cpu_system_ns"`
	Generator time.Duration `json:"generator_cpu_ns"`
	// Other is the share of the machine that was neither, Steal what the hypervisor took.
	Other float64 `json:"other_share"`
	Steal float64 `json:"steal_share"`
	// Latencies in nanoseconds from the intended time, by percentile; open loop only.
	Ack      map[string]int64 `json:"ack_ns,omitempty"`
	EndToEnd map[string]int64 `json:"end_to_end_ns,omitempty"`
	Service  map[string]int64 `json:"service_ns,omitempty"`
	// Void says why the sample counts for nothing.
	Void string `json:"void,omitempty"`
}

// MBPerSecond is 10^6 payload bytes a second.
func (s Sample) MBPerSecond() float64 { return float64(s.Bytes) / 1e6 / s.Elapsed.Seconds() }

// CPUPerGB is the server's CPU-seconds for 10^9 payload bytes.
func (s Sample) CPUPerGB() float64 { return s.CPU.Seconds() / (float64(s.Bytes) / 1e9) }

// CPUPerRequest is the server's CPU time for one request.
func (s Sample) CPUPerRequest() time.Duration { return s.CPU / time.Duration(max(1, s.Requests)) }

// RequestsPerSecond the target answered.
func (s Sample) RequestsPerSecond() float64 { return float64(s.Requests) / s.Elapsed.Seconds() }

// Log writes samples as JSON lines.
type Log struct {
	w   io.Writer
	all []Sample
}

// NewLog writes to w, which stays the caller's to close.
func NewLog(w io.Writer) *Log { return &Log{w: w} }

// Add writes one sample.
func (l *Log) Add(s Sample) error {
	l.all = append(l.all, s)
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = l.w.Write(append(b, '\n'))
	return err
}

// VoidFrom marks every sample since the i-th as void, in the summary and by a line in
// the raw output.
func (l *Log) VoidFrom(i int, why string) error {
	for j := i; j < len(l.all); j++ {
		if l.all[j].Void == "" {
			l.all[j].Void = why
		}
	}
	b, err := json.Marshal(map[string]any{"void_since_sample": i, "to_sample": len(l.all) - 1, "void": why})
	if err != nil {
		return err
	}
	_, err = l.w.Write(append(b, '\n'))
	return err
}

// Samples added so far.
func (l *Log) Samples() []Sample { return l.all }

// Spread is a median with its extremes.
type Spread struct{ Median, Min, Max float64 }

func spreadOf(v []float64) Spread {
	slices.Sort(v)
	mid := v[len(v)/2]
	if len(v)%2 == 0 {
		mid = (mid + v[len(v)/2-1]) / 2
	}
	return Spread{mid, v[0], v[len(v)-1]}
}

// String prints the median and, in brackets, the extremes.
func (s Spread) String() string { return fmt.Sprintf("%.3g [%.3g–%.3g]", s.Median, s.Min, s.Max) }

// Line is a summary of one target in one workload, beside a base.
type Line struct {
	Workload
	Target      string
	Rounds      int
	Void        int
	MBPerSecond Spread
	CPUPerGB    Spread
	Requests    Spread // a second
	// Base is the target that the ratios are to; empty if it did not run.
	Base string
	// CPURatio and SpeedRatio are this target over the base, inside each round.
	CPURatio, SpeedRatio Spread
	Paired               int
}

// Summarise makes a line for each workload and target, with ratios to the base that
// baseOf names for the workload.
func Summarise(all []Sample, baseOf func(Workload) string) []Line {
	type cell struct {
		Workload
		target string
	}
	cells := map[cell][]Sample{}
	for _, s := range all {
		c := cell{s.Workload, s.Target}
		cells[c] = append(cells[c], s)
	}
	keys := slices.SortedFunc(maps.Keys(cells), func(a, b cell) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Class, b.Class), cmp.Compare(a.target, b.target))
	})
	var lines []Line
	for _, k := range keys {
		l := Line{Workload: k.Workload, Target: k.target, Base: baseOf(k.Workload)}
		// A floor that ran twice in a round counts as one longer run.
		bases := map[int]Sample{}
		for _, s := range cells[cell{k.Workload, l.Base}] {
			if s.Void == "" {
				b := bases[s.Round]
				b.Bytes, b.CPU, b.Elapsed = b.Bytes+s.Bytes, b.CPU+s.CPU, b.Elapsed+s.Elapsed
				bases[s.Round] = b
			}
		}
		var mb, cpu, req, cpuRatio, speedRatio []float64
		for _, s := range cells[k] {
			if s.Void != "" {
				l.Void++
				continue
			}
			l.Rounds++
			mb, cpu, req = append(mb, s.MBPerSecond()), append(cpu, s.CPUPerGB()), append(req, s.RequestsPerSecond())
			if b, ok := bases[s.Round]; ok && b.CPU > 0 {
				cpuRatio = append(cpuRatio, s.CPUPerGB()/b.CPUPerGB())
				speedRatio = append(speedRatio, s.MBPerSecond()/b.MBPerSecond())
			}
		}
		if l.Rounds > 0 {
			l.MBPerSecond, l.CPUPerGB, l.Requests = spreadOf(mb), spreadOf(cpu), spreadOf(req)
		}
		if l.Paired = len(cpuRatio); l.Paired > 0 {
			l.CPURatio, l.SpeedRatio = spreadOf(cpuRatio), spreadOf(speedRatio)
		}
		lines = append(lines, l)
	}
	return lines
}

// Print writes lines as a table.
func Print(w io.Writer, lines []Line) error {
	rows := [][]string{{"workload", "class", "target", "rounds", "MB/s", "CPU-s/GB", "req/s", "base", "CPU ÷ base", "speed ÷ base"}}
	for _, l := range lines {
		row := []string{l.Name, string(l.Class), l.Target, strconv.Itoa(l.Rounds), "", "", "", "", "", ""}
		if l.Void > 0 {
			row[3] += fmt.Sprintf(" (%d void)", l.Void)
		}
		if l.Rounds > 0 {
			row[4], row[5], row[6] = l.MBPerSecond.String(), l.CPUPerGB.String(), fmt.Sprintf("%.0f", l.Requests.Median)
			if l.Paired > 0 && l.Base != l.Target {
				row[7], row[8], row[9] = l.Base, l.CPURatio.String(), l.SpeedRatio.String()
			}
		}
		rows = append(rows, row)
	}
	return table(tabwriter.NewWriter(w, 0, 0, 2, ' ', 0), rows)
}
