package broker

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire/ident"
)

// pacer spreads the bytes of compaction over time: log.cleaner.io.max.bytes.per.second, of all runs together. It makes goroutines of the pool wait.
type pacer struct {
	clock runtime.Clock
	pause func(time.Duration)
	rate  func() float64 // bytes per second

	mu   sync.Mutex
	free ident.Instant // until then all that may be used is used
}

const (
	// unpaced is a rate that no disk has.
	unpaced = 1e12
	// pauseMax is how long a run waits before it looks whether it is cancelled, or the rate has changed.
	pauseMax = 100 * time.Millisecond
)

// take uses n bytes, and waits until they are due or cancelled says so.
func (p *pacer) take(n int, cancelled func() bool) {
	rate := p.rate()
	if rate >= unpaced {
		return
	}
	now, _ := p.clock.Now()
	p.mu.Lock()
	p.free = max(p.free, now) + ident.Instant(float64(n)/rate*float64(time.Second))
	until := p.free
	p.mu.Unlock()
	for ; now < until && !cancelled() && p.rate() == rate; now, _ = p.clock.Now() {
		p.pause(min(time.Duration(until-now), pauseMax))
	}
}

// cleanerMetrics are the counters of compaction.
type cleanerMetrics struct {
	runs, aborted          atomic.Int64
	read, written, dropped atomic.Int64
	uncleanable, dirtiest  atomic.Int64
	lastNanos              atomic.Int64
}

var (
	descCleanRuns    = desc("cleaner_runs_total", "Compactions of a log that went to their end.")
	descCleanAborted = desc("cleaner_aborted_total", "Compactions that were given up: a full disk, a changed policy, a log that was cut or deleted.")
	descCleanRead    = desc("cleaner_read_bytes_total", "Bytes that compaction has read.")
	descCleanWritten = desc("cleaner_written_bytes_total", "Bytes that compaction has written.")
	descCleanDropped = desc("cleaner_dropped_records_total", "Records that compaction has dropped.")
	descCleanLast    = desc("cleaner_last_run_seconds", "Duration of the last compaction of a log.")
	descCleanDirty   = desc("cleaner_max_dirty_percent", "Dirty share of the dirtiest log, when it was last looked at.")
	descCleanBad     = desc("cleaner_uncleanable_partitions", "Logs that are not compacted because of damage.")
)

// collect gives the counters to Prometheus.
func (m *cleanerMetrics) collect(out chan<- prometheus.Metric) {
	out <- counter(descCleanRuns, m.runs.Load())
	out <- counter(descCleanAborted, m.aborted.Load())
	out <- counter(descCleanRead, m.read.Load())
	out <- counter(descCleanWritten, m.written.Load())
	out <- counter(descCleanDropped, m.dropped.Load())
	out <- prometheus.MustNewConstMetric(descCleanLast, prometheus.GaugeValue, float64(m.lastNanos.Load())/1e9)
	out <- gauge(descCleanDirty, m.dirtiest.Load())
	out <- gauge(descCleanBad, m.uncleanable.Load())
}
