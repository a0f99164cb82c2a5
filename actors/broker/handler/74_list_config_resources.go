package handler

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire"
)

// ListConfigResources (74), versions 0 and 1.
//
// As in Kafka: version 0 is the old ListClientMetricsResources and lists those alone; in version 1 no types means all of them, and a type that has no
// configs is UNSUPPORTED_VERSION; topics and brokers are listed whether or not configs were set on them. Different: broker loggers are an empty kind.

func listConfigResources(c *Call) {
	req := c.Request.(*kmsg.ListConfigResourcesRequest)
	resp := kmsg.NewPtrListConfigResourcesResponse()
	all := []config.ResourceType{
		config.TopicResource, config.BrokerResource, config.BrokerLoggerResource, config.ClientMetricsResource, config.GroupResource,
	}
	wanted := all
	switch {
	case c.Version == 0:
		wanted = []config.ResourceType{config.ClientMetricsResource}
	case len(req.ResourceTypes) > 0:
		wanted = nil
		for _, t := range req.ResourceTypes {
			if !slices.Contains(all, config.ResourceType(t)) {
				resp.ErrorCode = int16(wire.UnsupportedVersion)
				c.Respond(resp)
				return
			}
			if !slices.Contains(wanted, config.ResourceType(t)) {
				wanted = append(wanted, config.ResourceType(t))
			}
		}
	}
	for _, t := range wanted {
		for _, name := range configResources(c, t) {
			out := kmsg.NewListConfigResourcesResponseConfigResource()
			out.Name, out.Type = name, int8(t)
			resp.ConfigResources = append(resp.ConfigResources, out)
		}
	}
	c.Respond(resp)
}

// configResources names the resources of a type.
func configResources(c *Call, t config.ResourceType) []string {
	var names []string
	switch t {
	case config.TopicResource:
		for topic := range c.Env.Image.Topics() {
			names = append(names, topic.Name)
		}
	case config.BrokerResource:
		for b := range c.view().brokers(true) {
			names = append(names, b.ID.String())
		}
	case config.GroupResource, config.ClientMetricsResource:
		for r := range c.Env.Image.ConfigResources(t) {
			names = append(names, r.Name)
		}
	case config.BrokerLoggerResource:
	}
	return names
}
