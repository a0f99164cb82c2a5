package handler

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/config"
)

// AlterConfigs (33), versions 0 to 2.
//
// As in Kafka: the configs of a resource are replaced as a whole, and what the request leaves out goes back to its default; resources fail one by one;
// validateOnly changes nothing. Different: a config that is accepted without effect succeeds, with a message that says so; broker loggers are refused.

func alterConfigs(c *Call) {
	req := c.Request.(*kmsg.AlterConfigsRequest)
	cmd := &cluster.AlterConfigs{ValidateOnly: req.ValidateOnly}
	for i := range req.Resources {
		r := &req.Resources[i]
		replacement := cluster.ConfigReplacement{Resource: config.Resource{Type: config.ResourceType(r.ResourceType), Name: r.ResourceName}}
		for j := range r.Configs {
			replacement.Configs = append(replacement.Configs, cluster.ConfigValue{Name: r.Configs[j].Name, Value: r.Configs[j].Value})
		}
		cmd.Resources = append(cmd.Resources, replacement)
	}
	c.Env.Ports.Controller(cmd, &cmd.Ask, func(reply cluster.Reply) {
		resp := kmsg.NewPtrAlterConfigsResponse()
		alteredConfigs(reply, len(cmd.Resources), func(i int) config.Resource { return cmd.Resources[i].Resource }, func(r config.Resource, code int16, message *string) {
			out := kmsg.NewAlterConfigsResponseResource()
			out.ErrorCode, out.ErrorMessage = code, message
			out.ResourceType, out.ResourceName = kmsg.ConfigResourceType(r.Type), r.Name
			resp.Resources = append(resp.Resources, out)
		})
		c.Respond(resp)
	})
}

// alteredConfigs hands the fate of each of n resources to add, in the order of the request.
func alteredConfigs(reply cluster.Reply, n int, resource func(int) config.Resource, add func(config.Resource, int16, *string)) {
	body, ok := reply.Body.(*cluster.AlterConfigsReply)
	if (!ok || len(body.Resources) != n) && reply.Err == nil {
		reply.Err = wrongBody()
	}
	for i := range n {
		if reply.Err != nil {
			code, message := refusal(reply.Err)
			add(resource(i), code, message)
			continue
		}
		r := &body.Resources[i]
		code, message := refusal(r.Err)
		if r.Err == nil && len(r.Warnings) > 0 {
			message = new(strings.Join(r.Warnings, "; "))
		}
		add(r.Resource, code, message)
	}
}
