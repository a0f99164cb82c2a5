package sim

import (
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// adjust changes a config of a group, or takes it back. A shorter session counts from the request on: nobody knows when it is carried out.
func (o *operator) adjust(g *ghostGroup) {
	e := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	e.Name = one(o.rand, sessionConfig, sessionConfig, "consumer.heartbeat.interval.ms", "consumer.assignment.interval.ms")
	values := map[string][]string{
		sessionConfig: {"500", "900", "4000"}, "consumer.heartbeat.interval.ms": {"30", "100", "300"}, "consumer.assignment.interval.ms": {"0", "150"},
	}
	if e.Op = kmsg.IncrementalAlterConfigOpDelete; chance(o.rand, 70) {
		e.Op, e.Value = kmsg.IncrementalAlterConfigOpSet, new(one(o.rand, values[e.Name]...))
	}
	if e.Name == sessionConfig && e.Value != nil {
		ms, err := strconv.Atoi(*e.Value)
		if err != nil {
			panic("sim: " + err.Error())
		}
		if asked := time.Duration(ms) * time.Millisecond; g.shortest == 0 || asked < g.shortest {
			g.shortest = asked
		}
	}
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.Configs = kmsg.ConfigResourceTypeGroupConfig, g.name, append(r.Configs, e)
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources = append(req.Resources, r)
	o.request("", req, func(resp kmsg.Response) {
		code := resp.(*kmsg.IncrementalAlterConfigsResponse).Resources[0].ErrorCode
		if code == 0 {
			o.run.counted("configs of a group changed")
			return
		}
		o.run.allow(o.name, "IncrementalAlterConfigs", code, passing...)
	})
}

const sessionConfig = "consumer.session.timeout.ms"
