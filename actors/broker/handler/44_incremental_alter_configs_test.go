package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire"
)

// alterReplies are the fates of the two resources of the tests below, and how both APIs show them.
func alterReplies(k *kit, want func(cluster.Command)) func(bool) cluster.Reply {
	topic, group := config.Resource{Type: config.TopicResource, Name: "a"}, config.Resource{Type: config.GroupResource, Name: "g"}
	body := &cluster.AlterConfigsReply{Resources: []cluster.ResourceResult{
		{Resource: topic, Warnings: []string{"x has no effect", "y has none"}},
		{Resource: group, Err: &cluster.Error{Code: wire.InvalidConfig, Message: "why"}, Warnings: []string{"never shown"}},
	}}
	reply := cluster.Reply{Body: body}
	k.ports.controller = func(cmd cluster.Command) cluster.Reply {
		want(cmd)
		return reply
	}
	return func(refuse bool) cluster.Reply {
		reply = cluster.Reply{Body: body}
		if refuse {
			reply = cluster.Reply{Err: &cluster.Error{Code: wire.NotController, Message: "elsewhere"}}
		}
		return reply
	}
}

// Behaviour 64, as far as it is translation.
func TestIncrementalAlterConfigsHandsEachOperationOn(t *testing.T) {
	versions(t, wire.KeyIncrementalAlterConfigs, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := newKit(t)
		set := alterReplies(k, func(cmd cluster.Command) {
			got := cmd.(*cluster.IncrementalAlterConfigs)
			same(t, "resources", got.Resources, []cluster.ConfigChange{
				{Resource: config.Resource{Type: config.TopicResource, Name: "a"}, Ops: []cluster.ConfigOp{
					{Name: "k0", Op: cluster.OpSet, Value: new("v")},
					{Name: "k1", Op: cluster.OpDelete},
					{Name: "k2", Op: cluster.OpAppend, Value: new("w")},
					{Name: "k3", Op: cluster.OpSubtract, Value: new("u")},
					{Name: "k4", Op: 9, Value: new("")},
				}},
				{Resource: config.Resource{Type: config.GroupResource, Name: "g"}},
			})
			if !got.ValidateOnly {
				t.Error("validateOnly was lost")
			}
		})
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		req.ValidateOnly = true
		r := kmsg.NewIncrementalAlterConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, "a"
		for i, value := range []*string{new("v"), nil, new("w"), new("u"), new("")} {
			c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
			c.Name, c.Op, c.Value = "k"+string(rune('0'+i)), kmsg.IncrementalAlterConfigOp(i), value
			if i == 4 {
				c.Op = 9
			}
			r.Configs = append(r.Configs, c)
		}
		g := kmsg.NewIncrementalAlterConfigsRequestResource()
		g.ResourceType, g.ResourceName = kmsg.ConfigResourceTypeGroupConfig, "g"
		req.Resources = append(req.Resources, r, g)
		set(false)
		got := k.ask(version, req).(*kmsg.IncrementalAlterConfigsResponse).Resources
		same(t, "answer", got, []kmsg.IncrementalAlterConfigsResponseResource{
			{ErrorMessage: new("x has no effect; y has none"), ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: "a"},
			{ErrorCode: int16(wire.InvalidConfig), ErrorMessage: new("why"), ResourceType: kmsg.ConfigResourceTypeGroupConfig, ResourceName: "g"},
		})
		set(true)
		for _, r := range k.ask(version, req).(*kmsg.IncrementalAlterConfigsResponse).Resources {
			code(t, r.ResourceName, r.ErrorCode, wire.NotController)
			same(t, "message", deref(r.ErrorMessage), "elsewhere")
		}
	})
}

func TestAlterConfigsHandsWholeSetsOn(t *testing.T) {
	versions(t, wire.KeyAlterConfigs, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := newKit(t)
		set := alterReplies(k, func(cmd cluster.Command) {
			got := cmd.(*cluster.AlterConfigs)
			same(t, "resources", got.Resources, []cluster.ConfigReplacement{
				{Resource: config.Resource{Type: config.TopicResource, Name: "a"}, Configs: []cluster.ConfigValue{{Name: "k0", Value: new("v")}, {Name: "k1"}}},
				{Resource: config.Resource{Type: config.GroupResource, Name: "g"}},
			})
			if !got.ValidateOnly {
				t.Error("validateOnly was lost")
			}
		})
		req := kmsg.NewPtrAlterConfigsRequest()
		req.ValidateOnly = true
		r := kmsg.NewAlterConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, "a"
		for i, value := range []*string{new("v"), nil} {
			c := kmsg.NewAlterConfigsRequestResourceConfig()
			c.Name, c.Value = "k"+string(rune('0'+i)), value
			r.Configs = append(r.Configs, c)
		}
		g := kmsg.NewAlterConfigsRequestResource()
		g.ResourceType, g.ResourceName = kmsg.ConfigResourceTypeGroupConfig, "g"
		req.Resources = append(req.Resources, r, g)
		set(false)
		same(t, "answer", k.ask(version, req).(*kmsg.AlterConfigsResponse).Resources, []kmsg.AlterConfigsResponseResource{
			{ErrorMessage: new("x has no effect; y has none"), ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: "a"},
			{ErrorCode: int16(wire.InvalidConfig), ErrorMessage: new("why"), ResourceType: kmsg.ConfigResourceTypeGroupConfig, ResourceName: "g"},
		})
		set(true)
		for _, r := range k.ask(version, req).(*kmsg.AlterConfigsResponse).Resources {
			code(t, r.ResourceName, r.ErrorCode, wire.NotController)
		}
	})
}
