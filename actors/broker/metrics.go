package broker

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/troupe-broker/troupe/actors"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// metrics are the counters of a broker. The hot path adds to atomics; everything else happens when somebody scrapes.
type metrics struct {
	cleaner     cleanerMetrics
	scrubRounds atomic.Int64
	scrubBytes  atomic.Int64
	latency     [keysMax]histogram // of requests, from their frame to their answer, by API key
	flush       histogram          // of flush rounds
	rounds      atomic.Int64
	works       atomic.Int64 // logs in all rounds
	accepted    atomic.Int64
	refused     atomic.Int64 // connections
	closed      atomic.Int64 // by this side, for a reason
	open        atomic.Int64
	groups      groupCounters
	leading     atomic.Bool  // the controller is here
	unclean     atomic.Int64 // elections of leaders that may miss records, while it was
	isr         isrCounters
}

// keysMax bounds the API keys that are counted.
const keysMax = 128

func (m *metrics) answered(key wire.Key, d ident.Instant) {
	if key >= 0 && key < keysMax {
		m.latency[key].observe(d)
	}
}

func (m *metrics) flushed(_ *dataDir, works int, d ident.Instant) {
	m.flush.observe(d)
	m.rounds.Add(1)
	m.works.Add(int64(works))
}

// observe counts the answer of an operation.
func (s *session) observe(t *runtime.Turn, op operation) {
	mono, _ := t.Now()
	r := op.requested()
	s.shared.metrics.answered(r.header.Key, mono-r.began)
}

// collector gives the metrics of a broker to Prometheus. It reads counters and the runtime's statistics when it is scraped, and keeps nothing.
type collector struct {
	shared *shared
	ready  func() bool
}

const namespace = "troupe"

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
}

var (
	descRequest      = desc("request_seconds", "Time from a request's frame to its answer.", "api")
	descFlush        = desc("flush_seconds", "Duration of flush rounds: one sync of all dirty logs of a directory.")
	descFlushLogs    = desc("flush_logs_total", "Logs that were synced, over all rounds.")
	descAppendBytes  = desc("partition_append_bytes_total", "Bytes of record batches appended.", "topic", "partition")
	descAppendRec    = desc("partition_append_records_total", "Records appended, as their batches count them.", "topic", "partition")
	descAppendBatch  = desc("partition_append_batches_total", "Record batches appended.", "topic", "partition")
	descFetchBytes   = desc("partition_fetch_bytes_total", "Bytes of record batches handed to readers.", "topic", "partition")
	descRefused      = desc("partition_refused_batches_total", "Record batches that did not pass validation.", "topic", "partition")
	descSize         = desc("partition_size_bytes", "Bytes of record batches in the log.", "topic", "partition")
	descStart        = desc("partition_log_start_offset", "First offset that can be read.", "topic", "partition")
	descEnd          = desc("partition_log_end_offset", "Offset of the next record.", "topic", "partition")
	descHigh         = desc("partition_high_watermark", "Offset below which records are committed.", "topic", "partition")
	descFlushed      = desc("partition_flushed_offset", "Offset below which records are on stable storage.", "topic", "partition")
	descSegments     = desc("partition_segments", "Segments of the log.", "topic", "partition")
	descDamaged      = desc("partition_damaged_ranges", "Ranges of records that are damaged and not served.", "topic", "partition")
	descDiffering    = desc("partition_divergent_ranges", "Ranges of records that are not what the leader has, though both have their checksum, by the last scrub.", "topic", "partition")
	descScrubRounds  = desc("scrub_rounds_total", "Rounds in which all records here were read and summed up.")
	descScrubBytes   = desc("scrub_read_bytes_total", "Bytes of records that were read and summed up to look for damage.")
	descRepaired     = desc("partition_repaired_ranges_total", "Damaged ranges of records that were fetched again from the leader.", "topic", "partition")
	descDamagedReads = desc("partition_damaged_reads_total", "Reads that were answered with CORRUPT_MESSAGE.", "topic", "partition")
	descOffline      = desc("partition_offline", "1 when the replica is out of service on this broker.", "topic", "partition")
	descLeader       = desc("partition_leader", "1 when this broker leads the partition.", "topic", "partition")
	descConnections  = desc("connections", "Open client connections.")
	descAccepted     = desc("connections_accepted_total", "Client connections accepted.")
	descNotAccepted  = desc("connections_refused_total", "Client connections refused by a limit.")
	descClosed       = desc("connections_closed_total", "Client connections closed by the broker: limits, malformed requests.")
	descCredit       = desc("request_memory_bytes", "Memory of requests under way.")
	descCreditSize   = desc("request_memory_limit_bytes", "Memory that requests may use together.")
	descCreditWait   = desc("request_memory_waiting", "Connections that wait for memory.")
	descCreditWaits  = desc("request_memory_waits_total", "Times that a connection waited for memory.")
	descCreditTaken  = desc("request_memory_revoked_total", "Reservations taken back from connections that stalled.")
	descSessions     = desc("fetch_sessions", "Incremental fetch sessions.")
	descSessionParts = desc("fetch_session_partitions", "Partitions in incremental fetch sessions.")
	descSessionOut   = desc("fetch_session_evictions_total", "Incremental fetch sessions that made room for others.")
	descActors       = desc("actors", "Actors that live.", "kind")
	descTurns        = desc("actor_turns_total", "Batches of messages handled.", "kind")
	descMessages     = desc("actor_messages_total", "Messages handled.", "kind")
	descRejects      = desc("actor_rejects_total", "Messages refused or answered by a stop.", "kind")
	descPanics       = desc("actor_panics_total", "Turns that failed.", "kind")
	descDepth        = desc("actor_mailbox_messages", "Messages in mailboxes and running turns.", "kind")
	descDepthHigh    = desc("actor_mailbox_messages_high", "The most messages that the mailbox of one actor ever held.", "kind")
	descDirOnline    = desc("directory_online", "1 while the data directory is in service.", "directory")
	descReady        = desc("ready", "1 while the broker serves.")
)

// Describe implements prometheus.Collector. The collector is unchecked: which partitions exist shows only when it is scraped.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	c.requests(out)
	c.partitions(out)
	c.groups(out)
	c.replication(out)
	c.connections(out)
	c.controller(out)
	c.actors(out)
	c.shared.metrics.cleaner.collect(out)
	out <- counter(descScrubRounds, c.shared.metrics.scrubRounds.Load())
	out <- counter(descScrubBytes, c.shared.metrics.scrubBytes.Load())
	for _, d := range c.shared.directories {
		out <- gauge(descDirOnline, oneIf(d.store.Offline() == nil), d.store.Path())
	}
	out <- gauge(descReady, oneIf(c.ready()))
}

func counter(d *prometheus.Desc, v int64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

func gauge(d *prometheus.Desc, v int64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
}

func histogramOf(d *prometheus.Desc, h *histogram, labels ...string) prometheus.Metric {
	buckets, count, sum := h.read()
	return prometheus.MustNewConstHistogram(d, count, sum, buckets, labels...)
}

func oneIf(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (c *collector) requests(out chan<- prometheus.Metric) {
	m := c.shared.metrics
	for _, api := range wire.APIs() {
		out <- histogramOf(descRequest, &m.latency[api.Key], api.Name)
	}
	out <- histogramOf(descFlush, &m.flush)
	out <- counter(descFlushLogs, m.works.Load())
}

func (c *collector) partitions(out chan<- prometheus.Metric) {
	for _, topic := range c.shared.topics.Load().byID {
		out <- gauge(descTopicPartitions, int64(len(topic.replicas)), topic.name)
		for _, r := range topic.replicas {
			if r == nil {
				continue
			}
			s, name, number := &r.stats, r.tp.Topic, strconv.Itoa(int(r.tp.Partition))
			out <- counter(descAppendBytes, s.appendedBytes.Load(), name, number)
			out <- counter(descAppendRec, s.appendedRecords.Load(), name, number)
			out <- counter(descAppendBatch, s.appendedBatches.Load(), name, number)
			out <- counter(descFetchBytes, s.fetchedBytes.Load(), name, number)
			out <- counter(descRefused, s.refused.Load(), name, number)
			out <- gauge(descSize, s.sizeBytes.Load(), name, number)
			out <- gauge(descStart, s.start.Load(), name, number)
			out <- gauge(descEnd, s.end.Load(), name, number)
			out <- gauge(descHigh, s.high.Load(), name, number)
			out <- gauge(descFlushed, s.flushed.Load(), name, number)
			out <- gauge(descSegments, s.segments.Load(), name, number)
			out <- gauge(descDamaged, s.damaged.Load(), name, number)
			out <- gauge(descDiffering, s.differing.Load(), name, number)
			out <- counter(descRepaired, s.repaired.Load(), name, number)
			out <- counter(descDamagedReads, s.damagedReads.Load(), name, number)
			out <- gauge(descOffline, oneIf(s.offline.Load()), name, number)
			out <- gauge(descLeader, oneIf(s.leading.Load()), name, number)
			out <- gauge(descTopicCurrent, s.high.Load(), name, number)
			out <- gauge(descTopicOldest, s.start.Load(), name, number)
		}
	}
}

func (c *collector) connections(out chan<- prometheus.Metric) {
	m := c.shared.metrics
	out <- gauge(descConnections, m.open.Load())
	out <- counter(descAccepted, m.accepted.Load())
	out <- counter(descNotAccepted, m.refused.Load())
	out <- counter(descClosed, m.closed.Load())
	use := c.shared.credit.use()
	out <- gauge(descCredit, use.UsedBytes)
	out <- gauge(descCreditSize, use.SizeBytes)
	out <- gauge(descCreditWait, int64(use.Waiting))
	out <- counter(descCreditWaits, c.shared.credit.waits.Load())
	out <- counter(descCreditTaken, c.shared.credit.revoked.Load())
	sessions := c.shared.fetches.use()
	out <- gauge(descSessions, int64(sessions.Sessions))
	out <- gauge(descSessionParts, int64(sessions.Partitions))
	out <- counter(descSessionOut, c.shared.fetches.evictions.Load())
}

func (c *collector) actors(out chan<- prometheus.Metric) {
	for _, k := range c.shared.system.Stats() {
		out <- gauge(descActors, int64(k.Live), k.Kind)
		out <- counter(descTurns, int64(k.Turns), k.Kind)
		out <- counter(descMessages, int64(k.Messages), k.Kind)
		out <- counter(descRejects, int64(k.Rejects), k.Kind)
		out <- counter(descPanics, int64(k.Panics), k.Kind)
		out <- gauge(descDepth, int64(k.Depth), k.Kind)
		out <- gauge(descDepthHigh, int64(k.DepthHigh), k.Kind)
	}
	for _, s := range c.shared.facts.host.Samples() {
		out <- sampleOf(s)
	}
}

// wordsOf makes a part of a metric's name of the id of an actor.
var wordsOf = strings.NewReplacer(".", "_", "-", "_")

// sampleOf is what an extension actor counts or observes. The names were checked when it first did.
func sampleOf(s actors.Sample) prometheus.Metric {
	var names, values []string
	for i := 0; i < len(s.Labels); i += 2 {
		names, values = append(names, s.Labels[i]), append(values, s.Labels[i+1])
	}
	name := "actor_" + wordsOf.Replace(s.Actor) + "_" + s.Name
	if s.Counter {
		return prometheus.MustNewConstMetric(desc(name+"_total", "Counted by "+s.Actor+".", names...), prometheus.CounterValue, s.Sum, values...)
	}
	return prometheus.MustNewConstSummary(desc(name, "Observed by "+s.Actor+".", names...), s.N, s.Sum, nil, values...)
}

// MetricsHandler serves the broker's metrics, and those of the Go runtime and the process, in Prometheus' format.
func (b *Broker) MetricsHandler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(&collector{shared: b.shared, ready: b.Ready}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// ReadyHandler answers 200 while the broker serves, else 503 with a word. Asked with ?restart it answers 503 also while another broker should not be restarted,
// and says why: what restarts brokers one after the other waits for that.
func (b *Broker) ReadyHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, text := http.StatusOK, "ready\n"
		if !b.Ready() {
			status, text = http.StatusServiceUnavailable, "not ready: the broker is starting, stopping or has lost its data directories\n"
		} else if r.URL.Query().Has("restart") {
			if why := unrest(b.shared.image.Load()); why != "" {
				status, text = http.StatusServiceUnavailable, "restart no other broker now: "+why+"\n"
			}
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		if _, err := w.Write([]byte(text)); err != nil {
			return // whoever asked has gone
		}
	})
}
