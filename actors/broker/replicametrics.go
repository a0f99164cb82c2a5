package broker

import (
	"github.com/prometheus/client_golang/prometheus"
)

// replicaDesc describes a metric of Kafka's ReplicaManager, under the name that the rules of Strimzi's exporter give it, so that dashboards made for it work.
func replicaDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("kafka_server_replicamanager_"+name, help, nil, nil)
}

var (
	descUnderReplicated = replicaDesc("underreplicatedpartitions", "Partitions led here with replicas that are not in sync.")
	descUnderMinISR     = replicaDesc("underminisrpartitioncount", "Partitions led here with fewer in-sync replicas than min.insync.replicas: nothing is acknowledged to acks=all.")
	descAtMinISR        = replicaDesc("atminisrpartitioncount", "Partitions led here with just as many in-sync replicas as min.insync.replicas.")
	descReassigning     = replicaDesc("reassigningpartitions", "Partitions led here whose replicas are being moved.")
	descLeaderCount     = replicaDesc("leadercount", "Partitions led here.")
	descReplicaCount    = replicaDesc("partitioncount", "Partitions with a replica here.")
	descOfflineReplicas = replicaDesc("offlinereplicacount", "Replicas here that are out of service.")
	descISRShrinks      = replicaDesc("isrshrinks_total", "Replicas that leaders here proposed to take out of the in-sync ones.")
	descISRExpands      = replicaDesc("isrexpands_total", "Replicas that leaders here proposed to take into the in-sync ones.")
	descISRFailed       = replicaDesc("failedisrupdates_total", "Changes of in-sync replicas that the controller refused.")

	descReplicationIn  = prometheus.NewDesc("kafka_server_brokertopicmetrics_replicationbytesin_total", "Bytes of record batches taken from leaders.", nil, nil)
	descReplicationOut = prometheus.NewDesc("kafka_server_brokertopicmetrics_replicationbytesout_total", "Bytes of record batches given to followers.", nil, nil)
	descDamagedAnswers = desc("replica_damaged_answers_total", "Answers of leaders with records that did not have their checksum.")
)

// replicated counts how well the partitions led here are replicated, as Kafka does: by the committed ISR.
type replicated struct {
	hosted, led, offline              int64
	underReplicated, underMin, atMin  int64
	reassigning                       int64
	bytesIn, bytesOut, damagedAnswers int64
}

// replicated reads the replicas of this broker. Nothing is kept for it between two scrapes.
func (s *shared) replicated() (n replicated) {
	for _, e := range s.topics.Load().byID {
		for i, r := range e.replicas {
			if r == nil {
				continue
			}
			n.hosted++
			n.offline += oneIf(r.stats.offline.Load())
			n.bytesIn += r.stats.replicatedBytes.Load()
			n.bytesOut += r.stats.repliedBytes.Load()
			n.damagedAnswers += r.stats.damagedAnswers.Load()
			p := e.image.Partitions[i]
			if p.Leader != s.identity.Broker {
				continue
			}
			inSync := len(p.ISR)
			n.led++
			n.underReplicated += oneIf(inSync < len(p.Replicas)-len(p.Adding))
			n.underMin += oneIf(inSync < int(p.MinISR))
			n.atMin += oneIf(inSync == int(p.MinISR))
			n.reassigning += oneIf(p.Reassigning())
		}
	}
	return n
}

func (c *collector) replication(out chan<- prometheus.Metric) {
	n, isr := c.shared.replicated(), &c.shared.metrics.isr
	out <- gauge(descUnderReplicated, n.underReplicated)
	out <- gauge(descUnderMinISR, n.underMin)
	out <- gauge(descAtMinISR, n.atMin)
	out <- gauge(descReassigning, n.reassigning)
	out <- gauge(descLeaderCount, n.led)
	out <- gauge(descReplicaCount, n.hosted)
	out <- gauge(descOfflineReplicas, n.offline)
	out <- counter(descISRShrinks, isr.shrinks.Load())
	out <- counter(descISRExpands, isr.expands.Load())
	out <- counter(descISRFailed, isr.refused.Load())
	out <- counter(descReplicationIn, n.bytesIn)
	out <- counter(descReplicationOut, n.bytesOut)
	out <- counter(descDamagedAnswers, n.damagedAnswers)
}
