package broker

import (
	"cmp"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/group/coord"
)

// groupCounters count what coordinators do.
type groupCounters struct {
	load       histogram // of a shard, from its begin to its service
	loads      atomic.Int64
	skipped    atomic.Int64 // records that could not be read
	batches    atomic.Int64
	records    atomic.Int64
	timeouts   atomic.Int64 // answers given up because they were not committed in time
	commits    atomic.Int64 // offsets
	expired    atomic.Int64 // offsets
	rebalances atomic.Int64
	fenced     atomic.Int64 // members
	jumps      atomic.Int64 // records that consumers left unread
}

// note counts what happened, and logs what an operator may look for: a line a second of each kind, since clients can cause them at will.
func (c *coordinatorActor) note(n *coord.Note) {
	m := &c.shared.metrics.groups
	told := ""
	switch n.Kind {
	case coord.NoteCommitted:
		m.commits.Add(n.Count)
	case coord.NoteOffsetExpired:
		m.expired.Add(n.Count)
		told = "committed offsets expired"
	case coord.NoteRebalance:
		m.rebalances.Add(1)
		told = "the group rebalances"
	case coord.NoteStable:
		told = "the group is stable"
	case coord.NoteMemberFenced:
		m.fenced.Add(1)
		told = "a member was removed from its group"
	case coord.NoteEmpty:
		told = "the group is empty"
	case coord.NoteJump:
		m.jumps.Add(n.Count)
		told = "a consumer jumped over records"
	case coord.NoteConverted:
		told = "the group changed its protocol"
	}
	if told == "" {
		return
	}
	if skipped, ok := c.shared.sampled.due(told); ok {
		level := zerolog.InfoLevel
		if n.Kind == coord.NoteJump {
			level = zerolog.WarnLevel
		}
		c.log.WithLevel(level).Str("group", n.Group).Str("member", n.Member).Int64("count", n.Count).Str("reason", n.Text).Int("skipped", skipped).Msg(told)
	}
}

// The names and labels are those of kafka_exporter, so that dashboards made for it work.
var (
	descTopicPartitions = kafkaDesc("topic_partitions", "Number of partitions for this Topic", "topic")
	descTopicCurrent    = kafkaDesc("topic_partition_current_offset", "Current Offset of a Broker at Topic/Partition", "topic", "partition")
	descTopicOldest     = kafkaDesc("topic_partition_oldest_offset", "Oldest Offset of a Broker at Topic/Partition", "topic", "partition")
	descGroupMembers    = kafkaDesc("consumergroup_members", "Amount of members in a consumer group", "consumergroup")
	descGroupOffset     = kafkaDesc("consumergroup_current_offset", "Current Offset of a ConsumerGroup at Topic/Partition", "consumergroup", "topic", "partition")
	descGroupOffsets    = kafkaDesc("consumergroup_current_offset_sum", "Current Offset of a ConsumerGroup at Topic for all partitions", "consumergroup", "topic")
	descGroupLag        = kafkaDesc("consumergroup_lag", "Current Approximate Lag of a ConsumerGroup at Topic/Partition", "consumergroup", "topic", "partition")
	descGroupLags       = kafkaDesc("consumergroup_lag_sum", "Current Approximate Lag of a ConsumerGroup at Topic for all partitions", "consumergroup", "topic")

	descGroupLoad       = desc("group_load_seconds", "Time to load the groups of a partition of the offsets topic.")
	descGroupSkipped    = desc("group_skipped_records_total", "Group records that could not be read at a load.")
	descGroupBatches    = desc("group_append_batches_total", "Batches of group records that were committed.")
	descGroupRecords    = desc("group_append_records_total", "Group records that were committed.")
	descGroupTimeouts   = desc("group_timeouts_total", "Answers given up because what they said was not committed in time.")
	descGroupCommits    = desc("group_committed_offsets_total", "Offsets committed by groups.")
	descGroupExpired    = desc("group_expired_offsets_total", "Committed offsets that expired.")
	descGroupRebalances = desc("group_rebalances_total", "Rebalances of classic groups.")
	descGroupFenced     = desc("group_removed_members_total", "Members that were removed from their groups.")
	descGroupJumps      = desc("group_jumped_records_total", "Records that consumers without a usable offset left unread.")
	descGroupScrapes    = desc("group_scrape_missed", "Coordinators whose groups are missing in this scrape: they load, or are too busy.")
)

func kafkaDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName("kafka", "", name), help, labels, nil)
}

// scrapeMax is how long a scrape waits for the coordinators.
const scrapeMax = time.Second

// inspectGroups asks a coordinator for its groups, for a scrape. answer has room for all that are asked.
type inspectGroups struct{ answer chan<- coord.Answer }

// Bytes implements runtime.Message.
func (*inspectGroups) Bytes() int { return 0 }

// Reject implements runtime.Rejecter.
func (i *inspectGroups) Reject(error) { i.answer <- nil }

// asks implements inquiry.
func (*inspectGroups) asks() coord.Command { return &coord.Inspect{} }

// stepped implements inquiry.
func (*inspectGroups) stepped() {}

// answered implements inquiry.
func (i *inspectGroups) answered(_ *runtime.Turn, a coord.Answer) { i.answer <- a }

// groups tells of the groups that this broker coordinates. One that does not answer in time is left out: a scrape must not wait for a load.
func (c *collector) groups(out chan<- prometheus.Metric) {
	m := &c.shared.metrics.groups
	out <- histogramOf(descGroupLoad, &m.load)
	out <- counter(descGroupSkipped, m.skipped.Load())
	out <- counter(descGroupBatches, m.batches.Load())
	out <- counter(descGroupRecords, m.records.Load())
	out <- counter(descGroupTimeouts, m.timeouts.Load())
	out <- counter(descGroupCommits, m.commits.Load())
	out <- counter(descGroupExpired, m.expired.Load())
	out <- counter(descGroupRebalances, m.rebalances.Load())
	out <- counter(descGroupFenced, m.fenced.Load())
	out <- counter(descGroupJumps, m.jumps.Load())
	table := c.shared.topics.Load()
	refs := table.coordinators()
	answers := make(chan coord.Answer, len(refs))
	for _, ref := range refs {
		_ = ref.Post(&inspectGroups{answer: answers}) // Reject answers
	}
	expired := make(chan struct{})
	alarm := c.shared.system.Clock().NewAlarm(func() { close(expired) })
	alarm.Set(scrapeMax)
	defer alarm.Cancel()
	missed := len(refs)
	for range refs {
		select {
		case a := <-answers:
			if reply, ok := a.(*coord.InspectReply); ok {
				missed--
				tellGroups(out, table, reply)
			} else if coordinatesNot(a) {
				missed--
			}
			continue
		case <-expired:
		}
		break
	}
	out <- gauge(descGroupScrapes, int64(missed))
}

// tellGroups tells of the groups of one coordinator. Topics that are gone and partitions led elsewhere have no lag here.
func tellGroups(out chan<- prometheus.Metric, table *topicTable, a *coord.InspectReply) {
	for i := range a.Groups {
		g := &a.Groups[i]
		out <- gauge(descGroupMembers, int64(g.Members), g.Group)
		slices.SortFunc(g.Offsets, func(x, y coord.InspectedOffset) int {
			return cmp.Or(cmp.Compare(x.Topic, y.Topic), cmp.Compare(x.Partition, y.Partition))
		})
		for len(g.Offsets) > 0 {
			topic, sum, lags, lagKnown := g.Offsets[0].Topic, int64(0), int64(0), false
			for len(g.Offsets) > 0 && g.Offsets[0].Topic == topic {
				o := &g.Offsets[0]
				g.Offsets = g.Offsets[1:]
				if o.Offset < 0 {
					continue
				}
				number := strconv.Itoa(int(o.Partition))
				out <- gauge(descGroupOffset, int64(o.Offset), g.Group, topic, number)
				sum += int64(o.Offset)
				if high, ok := table.highWatermark(topic, o.Partition); ok {
					lag := max(high-int64(o.Offset), 0)
					out <- gauge(descGroupLag, lag, g.Group, topic, number)
					lags, lagKnown = lags+lag, true
				}
			}
			out <- gauge(descGroupOffsets, sum, g.Group, topic)
			if lagKnown {
				out <- gauge(descGroupLags, lags, g.Group, topic)
			}
		}
	}
}

// highWatermark is that of a partition which this broker leads.
func (t *topicTable) highWatermark(topic string, partition int32) (int64, bool) {
	e := t.byName[topic]
	if e == nil {
		return 0, false
	}
	r, _ := e.replica(partition)
	if r == nil || !r.stats.leading.Load() {
		return 0, false
	}
	return r.stats.high.Load(), true
}
