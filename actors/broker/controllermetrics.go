package broker

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-broker/troupe/wire/ident"
)

// Kafka's metrics of the controller, under the names that the JMX exporter of Strimzi gives them. As there, only the controller's broker counts partitions
// without a leader, so that a sum over brokers is right.
var (
	descActiveController  = prometheus.NewDesc("kafka_controller_kafkacontroller_activecontrollercount", "1 on the broker that has the controller.", nil, nil)
	descOfflinePartitions = prometheus.NewDesc("kafka_controller_kafkacontroller_offlinepartitionscount", "Partitions without a leader; 0 where the controller is not.", nil, nil)
	descUncleanElections  = prometheus.NewDesc("kafka_controller_controllerstats_uncleanleaderelections_total", "Elections of leaders that may miss records, by the controller in this broker.", nil, nil)
)

// controller gives the metrics of the controller.
func (c *collector) controller(out chan<- prometheus.Metric) {
	m := c.shared.metrics
	leading := m.leading.Load()
	offline := int64(0)
	if leading {
		for t := range c.shared.image.Load().Topics() {
			for _, p := range t.Partitions {
				if p.Leader == ident.NoBroker {
					offline++
				}
			}
		}
	}
	out <- gauge(descActiveController, oneIf(leading))
	out <- gauge(descOfflinePartitions, offline)
	out <- counter(descUncleanElections, m.unclean.Load())
}
