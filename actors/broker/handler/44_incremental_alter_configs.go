package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/config"
)

// IncrementalAlterConfigs (44), versions 0 and 1.
//
// As in Kafka: SET, DELETE, and for lists APPEND and SUBTRACT; appending what is there changes nothing; a config named twice is INVALID_REQUEST; resources
// fail one by one; validateOnly changes nothing. Different: as AlterConfigs.

func incrementalAlterConfigs(c *Call) {
	req := c.Request.(*kmsg.IncrementalAlterConfigsRequest)
	cmd := &cluster.IncrementalAlterConfigs{ValidateOnly: req.ValidateOnly}
	for i := range req.Resources {
		r := &req.Resources[i]
		change := cluster.ConfigChange{Resource: config.Resource{Type: config.ResourceType(r.ResourceType), Name: r.ResourceName}}
		for j := range r.Configs {
			op := &r.Configs[j]
			change.Ops = append(change.Ops, cluster.ConfigOp{Name: op.Name, Op: cluster.OpKind(op.Op), Value: op.Value})
		}
		cmd.Resources = append(cmd.Resources, change)
	}
	c.Env.Ports.Controller(cmd, &cmd.Ask, func(reply cluster.Reply) {
		resp := kmsg.NewPtrIncrementalAlterConfigsResponse()
		alteredConfigs(reply, len(cmd.Resources), func(i int) config.Resource { return cmd.Resources[i].Resource }, func(r config.Resource, code int16, message *string) {
			out := kmsg.NewIncrementalAlterConfigsResponseResource()
			out.ErrorCode, out.ErrorMessage = code, message
			out.ResourceType, out.ResourceName = kmsg.ConfigResourceType(r.Type), r.Name
			resp.Resources = append(resp.Resources, out)
		})
		c.Respond(resp)
	})
}
