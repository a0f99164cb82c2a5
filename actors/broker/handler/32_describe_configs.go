package handler

import (
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire"
)

// DescribeConfigs (32), versions 1 to 4.
//
// As in Kafka: all configs of a resource, or those asked for by name; where each value comes from and, on request, the whole chain and a sentence about it
// (version 3); secrets are null; a broker tells its own configs only, and with an empty name the cluster-wide defaults that were set. Different: a config
// that has no effect here says so in its documentation; broker loggers have no configs here, they are INVALID_REQUEST; a resource that is asked for twice
// is answered once; one request may ask for at most configsMax configs, and resources beyond that are INVALID_REQUEST.

// configsMax bounds what one request may ask for: some thousands of topics with all their configs. A short request could otherwise ask for a very long
// answer, by naming groups that nobody knows, or for much work and no answer, by naming configs that do not exist.
const configsMax = 100_000

var errTooManyConfigs = &cluster.Error{
	Code: wire.InvalidRequest, Message: "one request may ask for " + strconv.Itoa(configsMax) + " configs; ask for fewer resources at a time",
}

func describeConfigs(c *Call) {
	req := c.Request.(*kmsg.DescribeConfigsRequest)
	resp := kmsg.NewPtrDescribeConfigsResponse()
	left := configsMax
	answered := make(map[config.Resource]bool)
	for i := range req.Resources {
		r := &req.Resources[i]
		asked := config.Resource{Type: config.ResourceType(r.ResourceType), Name: r.ResourceName}
		if answered[asked] {
			continue
		}
		answered[asked] = true
		out := kmsg.NewDescribeConfigsResponseResource()
		out.ResourceType, out.ResourceName = r.ResourceType, r.ResourceName
		var effective []config.Effective
		err := errTooManyConfigs
		if left > 0 {
			effective, err = resourceConfigs(c, asked, r.ConfigNames)
		}
		if left -= max(len(effective), 1); left < 0 {
			effective, err = nil, errTooManyConfigs
		}
		if err != nil {
			out.ErrorCode, out.ErrorMessage = refusal(err)
			resp.Resources = append(resp.Resources, out)
			continue
		}
		for j := range effective {
			out.Configs = append(out.Configs, describedConfig(&effective[j], req))
		}
		resp.Resources = append(resp.Resources, out)
	}
	c.Respond(resp)
}

// resourceConfigs resolves the configs of a resource that have these names, all when there are none.
func resourceConfigs(c *Call, r config.Resource, names []string) ([]config.Effective, *cluster.Error) {
	image := c.Env.Image
	switch r.Type {
	case config.TopicResource:
		if _, ok := image.Topic(r.Name); !ok {
			return nil, &cluster.Error{Code: unknownTopic(r.Name), Message: "there is no topic " + strconv.Quote(r.Name)}
		}
		return resolve(config.Topic(), names, image.Stack(r.Name, c.Env.Broker, c.Env.Static).ForTopic), nil
	case config.BrokerResource:
		stack := image.Stack("", c.Env.Broker, c.Env.Static)
		switch r.Name {
		case "":
			return setDefaults(stack, names), nil
		case strconv.Itoa(int(c.Env.Broker)):
			return resolve(config.Broker(), names, stack.ForBroker), nil
		}
		return nil, &cluster.Error{Code: wire.InvalidRequest, Message: "this is broker " + c.Env.Broker.String() +
			"; it tells its own configs, or with an empty name the defaults of all brokers, not those of " + strconv.Quote(r.Name)}
	case config.GroupResource, config.ClientMetricsResource:
		if r.Name == "" {
			return nil, &cluster.Error{Code: wire.InvalidRequest, Message: "a " + r.Type.String() + " needs a name"}
		}
		stack := image.Stack("", c.Env.Broker, c.Env.Static)
		stack.Override = image.Configs(r)
		if r.Type == config.GroupResource {
			return resolve(config.Group(), names, stack.ForGroup), nil
		}
		return resolve(config.ClientMetrics(), names, stack.ForClientMetrics), nil
	case config.BrokerLoggerResource:
		return nil, &cluster.Error{Code: wire.InvalidRequest, Message: "this broker has one log level for everything, no loggers with levels of their own"}
	}
	return nil, &cluster.Error{Code: wire.InvalidRequest, Message: "resource type " + strconv.Itoa(int(r.Type)) + " has no configs"}
}

func resolve(t *config.Table, names []string, one func(*config.Key) config.Effective) []config.Effective {
	var out []config.Effective
	for k := range t.All() {
		if wanted(k, names) {
			out = append(out, one(k))
		}
	}
	return out
}

// wanted tells whether a key is to be described. Nobody is told of internal ones.
func wanted(k *config.Key, names []string) bool {
	return !k.Internal && (len(names) == 0 || slices.Contains(names, k.Name))
}

// setDefaults are the cluster-wide defaults that somebody set.
func setDefaults(stack config.Stack, names []string) []config.Effective {
	stack = config.Stack{Cluster: stack.Cluster}
	var out []config.Effective
	for k := range config.Broker().All() {
		if _, ok := stack.Cluster.Get(k.Name); ok && wanted(k, names) {
			out = append(out, stack.ForBroker(k))
		}
	}
	return out
}

func describedConfig(e *config.Effective, req *kmsg.DescribeConfigsRequest) kmsg.DescribeConfigsResponseResourceConfig {
	out := kmsg.NewDescribeConfigsResponseResourceConfig()
	out.Name, out.Value, out.ReadOnly, out.IsSensitive = e.Key.Name, shown(e), e.ReadOnly(), e.Key.Hidden
	out.IsDefault = e.Source == config.DefaultConfig
	out.Source, out.ConfigType = kmsg.ConfigSource(e.Source), kmsg.ConfigType(e.Key.Type)
	if req.IncludeSynonyms {
		for _, o := range e.Chain {
			s := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
			s.Name, s.Source = o.Name, kmsg.ConfigSource(o.Source)
			if !e.Key.Hidden {
				s.Value = new(o.Value)
			}
			out.ConfigSynonyms = append(out.ConfigSynonyms, s)
		}
	}
	if req.IncludeDocumentation {
		out.Documentation = new(documentation(e.Key))
	}
	return out
}

// documentation is what a key does, and that it does nothing here, or only its neutral value is let through.
func documentation(k *config.Key) string {
	switch k.Class {
	case config.Accepted:
		return k.Doc + " Accepted without effect: " + k.Reason
	case config.Refused:
		return k.Doc + " Other values are refused: " + k.Reason
	case config.Honoured:
	}
	return k.Doc
}
