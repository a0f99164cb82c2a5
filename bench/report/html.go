package report

import (
	"fmt"
	"html/template"
	"io"
	"slices"
	"time"
)

// Page is what the HTML report shows: one self-contained file.
type Page struct {
	Title string
	// Facts describe the machine, the settings and the versions, in order.
	Facts [][2]string
	// Floors are the figures that have no target, already formatted.
	Floors [][]string
	// ToFloor and ToPeer are the summaries with the floor and the peer as the base.
	ToFloor, ToPeer []Line
	// Latency lists the open-loop samples.
	Latency []Sample
	// Commands that made the page, and the raw file beside it.
	Command, Raw string
}

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"width": func(l Line, all []Line) string { return fmt.Sprintf("%.1f%%", 100*l.CPUPerGB.Median/largest(l, all)) },
	"us":    func(ns int64) string { return fmt.Sprintf("%.0f", time.Duration(ns).Seconds()*1e6) },
}).Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{{.Title}}</title>
<style>
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;color:#1c2430}
h2{margin-top:2.2rem}table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #dde3ea;white-space:nowrap}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.bar{background:#3f6fb5;height:.8rem;min-width:2px}.bars{width:12rem}
.note{color:#5a6675}
</style>
<h1>{{.Title}}</h1>
<p class="note">Ratios are taken inside each round; a cell shows the median and, in brackets, the extremes. Made by <code>{{.Command}}</code>; raw output: <code>{{.Raw}}</code>. One small virtual machine shows ratios of CPU cost well, and says nothing of network cards, many cores or power loss.</p>
<table>{{range .Facts}}<tr><td>{{index . 0}}</td><td>{{index . 1}}</td></tr>{{end}}</table>
<h2>What the machine charges</h2>
<table><tr><th>floor</th><th></th><th class="n">MB/s</th><th class="n">s/GB</th><th class="n">per call</th></tr>
{{range .Floors}}<tr>{{range $i, $c := .}}<td{{if gt $i 1}} class="n"{{end}}>{{$c}}</td>{{end}}</tr>{{end}}</table>
{{define "lines"}}<table><tr><th>workload</th><th>class</th><th>target</th><th class="n">rounds (void)</th><th class="n">MB/s</th><th class="n">CPU-s/GB</th><th></th><th>base</th><th class="n">CPU ÷ base</th><th class="n">speed ÷ base</th></tr>
{{$all := .}}{{range .}}<tr><td>{{.Name}}</td><td>{{.Class}}</td><td>{{.Target}}</td><td class="n">{{.Rounds}} ({{.Void}})</td>
{{if .Rounds}}<td class="n">{{.MBPerSecond}}</td><td class="n">{{.CPUPerGB}}</td><td class="bars"><div class="bar" style="width:{{width . $all}}"></div></td>
{{if and .Paired (ne .Base .Target)}}<td>{{.Base}}</td><td class="n">{{.CPURatio}}</td><td class="n">{{.SpeedRatio}}</td>{{else}}<td></td><td></td><td></td>{{end}}{{end}}</tr>{{end}}</table>{{end}}
<h2>Against the floor</h2>{{template "lines" .ToFloor}}
{{if .ToPeer}}<h2>Against the peer</h2>{{template "lines" .ToPeer}}{{end}}
{{if .Latency}}<h2>Latency, open loop, from the intended time (µs)</h2>
<table><tr><th>workload</th><th>class</th><th>target</th><th class="n">round</th><th class="n">ack p50</th><th class="n">p99</th><th class="n">p99.9</th><th class="n">end to end p50</th><th class="n">p99</th><th class="n">p99.9</th></tr>
{{range .Latency}}<tr><td>{{.Name}}</td><td>{{.Class}}</td><td>{{.Target}}</td><td class="n">{{.Round}}</td>
<td class="n">{{us (index .Ack "50")}}</td><td class="n">{{us (index .Ack "99")}}</td><td class="n">{{us (index .Ack "99.9")}}</td>
<td class="n">{{us (index .EndToEnd "50")}}</td><td class="n">{{us (index .EndToEnd "99")}}</td><td class="n">{{us (index .EndToEnd "99.9")}}</td></tr>{{end}}</table>{{end}}
</html>
`))

// largest is the highest CPU cost among the lines of l's workload, the bars' scale.
func largest(l Line, all []Line) float64 {
	most := slices.MaxFunc(all, func(a, b Line) int {
		switch {
		case a.Name != l.Name:
			return -1
		case b.Name != l.Name:
			return 1
		case a.CPUPerGB.Median < b.CPUPerGB.Median:
			return -1
		default:
			return 1
		}
	})
	return max(most.CPUPerGB.Median, l.CPUPerGB.Median, 1e-9)
}

// HTML writes the page.
func (p Page) HTML(w io.Writer) error { return page.Execute(w, p) }
