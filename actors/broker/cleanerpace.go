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

	mu     sync.Mutex
	issued float64 // bytes that were used or are waited for
	paid   float64 // bytes of them that are due, in their order
	at     ident.Instant
}

const (
	// unpaced is a rate that no disk has.
	unpaced = 1e12
	// pauseMax is how long a run waits before it looks whether it is cancelled, or the rate has changed.
	pauseMax = 100 * time.Millisecond
)

// take uses n bytes, and waits until they are due or cancelled says so. What is owed is bytes, not time: a rate that changes counts for what waits already.
func (p *pacer) take(n int, cancelled func() bool) {
	ticket := p.issue(n)
	for {
		wait := p.settle(ticket)
		switch {
		case wait <= 0:
			return
		case cancelled():
			p.forgive(min(float64(n), p.owed(ticket)))
			return
		}
		p.pause(min(wait, pauseMax))
	}
}

// issue gives a place behind all bytes that were asked for before.
func (p *pacer) issue(n int) (ticket float64) {
	p.settle(0) // what nobody used is not saved up
	p.mu.Lock()
	defer p.mu.Unlock()
	p.issued += float64(n)
	return p.issued
}

// settle counts what has become due by now, and says how long the ticket still has to wait at the present rate.
func (p *pacer) settle(ticket float64) time.Duration {
	rate := p.rate()
	now, _ := p.clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if rate >= unpaced {
		p.paid = p.issued
	} else if now > p.at {
		p.paid = min(p.paid+rate*time.Duration(now-p.at).Seconds(), p.issued)
	}
	p.at = max(p.at, now)
	if p.paid >= ticket {
		return 0
	}
	return time.Duration(min((ticket-p.paid)/rate, pauseMax.Seconds())*float64(time.Second)) + 1
}

func (p *pacer) owed(ticket float64) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(ticket-p.paid, 0)
}

// forgive takes bytes of a run that was cancelled off those that the others wait for.
func (p *pacer) forgive(n float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paid = min(p.paid+n, p.issued)
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
