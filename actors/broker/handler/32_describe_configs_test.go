package handler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire"
)

func setConfig(t config.ResourceType, name, key, value string) cluster.Record {
	return &cluster.ConfigRecord{Resource: config.Resource{Type: t, Name: name}, Name: key, Value: &value}
}

func configKit(t *testing.T) *kit {
	t.Helper()
	k := newKit(t, *withTopics()...)
	k.apply(
		setConfig(config.TopicResource, "a", "retention.ms", "777"),
		setConfig(config.BrokerResource, "", "log.retention.ms", "888"),
		setConfig(config.BrokerResource, "1", "log.segment.bytes", "2000000"),
		setConfig(config.GroupResource, "g", "consumer.session.timeout.ms", "46000"),
		setConfig(config.ClientMetricsResource, "m", "interval.ms", "5000"),
	)
	k.static = config.SetOf(config.Entry{Name: "log.retention.hours", Value: "2"})
	return k
}

// describe asks for one resource; no names means all.
func describe(k *kit, version int16, full bool, kind config.ResourceType, name string, names ...string) kmsg.DescribeConfigsResponseResource {
	k.t.Helper()
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.IncludeSynonyms, req.IncludeDocumentation = full, full
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.ConfigNames = kmsg.ConfigResourceType(kind), name, names
	req.Resources = append(req.Resources, r)
	resp := k.ask(version, req).(*kmsg.DescribeConfigsResponse)
	if len(resp.Resources) != 1 || resp.Resources[0].ResourceName != name || resp.Resources[0].ResourceType != kmsg.ConfigResourceType(kind) {
		k.t.Fatalf("%+v", resp.Resources)
	}
	return resp.Resources[0]
}

func find(t *testing.T, r kmsg.DescribeConfigsResponseResource, name string) kmsg.DescribeConfigsResponseResourceConfig {
	t.Helper()
	for i := range r.Configs {
		if r.Configs[i].Name == name {
			return r.Configs[i]
		}
	}
	t.Fatalf("%s is not described", name)
	return kmsg.DescribeConfigsResponseResourceConfig{}
}

// Behaviour 63.
func TestDescribeConfigsTellsValuesSourcesAndTheChain(t *testing.T) {
	versions(t, wire.KeyDescribeConfigs, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := configKit(t)
		all := describe(k, version, true, config.TopicResource, "a")
		described := 0
		for key := range config.Topic().All() {
			if !key.Internal {
				described++
			}
		}
		if len(all.Configs) != described {
			t.Errorf("%d configs, want all %d", len(all.Configs), described)
		}
		got := find(t, all, "retention.ms")
		same(t, "value", deref(got.Value), "777")
		if got.ReadOnly || got.IsSensitive || got.Source != kmsg.ConfigSourceDynamicTopicConfig {
			t.Errorf("%+v", got)
		}
		var chain []string
		for _, s := range got.ConfigSynonyms {
			chain = append(chain, fmt.Sprint(s.Name, "=", deref(s.Value), " ", s.Source))
		}
		same(t, "chain", strings.Join(chain, ", "), "retention.ms=777 DYNAMIC_TOPIC_CONFIG, log.retention.ms=888 DYNAMIC_DEFAULT_BROKER_CONFIG, "+
			"log.retention.hours=2 STATIC_BROKER_CONFIG, log.retention.hours=168 DEFAULT_CONFIG")
		if version >= 3 {
			if got.ConfigType != kmsg.ConfigTypeLong || len(deref(got.Documentation)) < 20 {
				t.Errorf("%+v", got)
			}
		}
		other := describe(k, version, false, config.TopicResource, "b", "retention.ms", "no.such.config")
		if len(other.Configs) != 1 || deref(other.Configs[0].Value) != "888" || other.Configs[0].Source != kmsg.ConfigSourceDynamicDefaultBrokerConfig ||
			len(other.Configs[0].ConfigSynonyms) != 0 || other.Configs[0].Documentation != nil {
			t.Errorf("%+v", other.Configs)
		}
	})
}

func TestABrokerDescribesItselfAndTheDefaultsThatAreSet(t *testing.T) {
	versions(t, wire.KeyDescribeConfigs, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := configKit(t)
		mine := describe(k, version, false, config.BrokerResource, "1")
		segment := find(t, mine, "log.segment.bytes")
		if deref(segment.Value) != "2000000" || segment.Source != kmsg.ConfigSourceDynamicBrokerConfig || segment.ReadOnly {
			t.Errorf("%+v", segment)
		}
		if id := find(t, mine, "broker.id"); !id.ReadOnly {
			t.Errorf("%+v", id)
		}
		for i := range mine.Configs {
			if c := &mine.Configs[i]; c.IsSensitive && c.Value != nil {
				t.Errorf("%s tells its secret", c.Name)
			}
		}
		defaults := describe(k, version, true, config.BrokerResource, "")
		if len(defaults.Configs) != 1 || defaults.Configs[0].Name != "log.retention.ms" || deref(defaults.Configs[0].Value) != "888" {
			t.Errorf("%+v", defaults.Configs)
		}
		refused := describe(k, version, false, config.BrokerResource, "2")
		code(t, "another broker", refused.ErrorCode, wire.InvalidRequest)
		if !strings.Contains(deref(refused.ErrorMessage), "broker 1") {
			t.Errorf("message %q", deref(refused.ErrorMessage))
		}
	})
}

func TestSecretsAreNull(t *testing.T) {
	var secret string
	for key := range config.Broker().All() {
		if key.Hidden && !key.Internal {
			secret = key.Name
			break
		}
	}
	k := configKit(t)
	k.static = config.SetOf(config.Entry{Name: secret, Value: "xyzzy"})
	got := describe(k, 4, true, config.BrokerResource, "1", secret).Configs[0]
	if !got.IsSensitive || got.Value != nil || len(got.ConfigSynonyms) == 0 {
		t.Errorf("%+v", got)
	}
	for _, s := range got.ConfigSynonyms {
		if s.Value != nil {
			t.Errorf("the chain tells the secret: %+v", s)
		}
	}
}

func TestGroupsAndClientMetricsHaveConfigs(t *testing.T) {
	versions(t, wire.KeyDescribeConfigs, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := configKit(t)
		for _, c := range []struct {
			kind             config.ResourceType
			name, key, value string
			source           config.Source
			table            *config.Table
		}{
			{config.GroupResource, "g", "consumer.session.timeout.ms", "46000", config.DynamicGroupConfig, config.Group()},
			{config.ClientMetricsResource, "m", "interval.ms", "5000", config.DynamicClientMetricsConfig, config.ClientMetrics()},
		} {
			r := describe(k, version, false, c.kind, c.name)
			if got := find(t, r, c.key); deref(got.Value) != c.value || config.Source(got.Source) != c.source {
				t.Errorf("%+v", got)
			}
			if len(r.Configs) == 0 || len(r.Configs) > c.table.Len() {
				t.Errorf("%d configs", len(r.Configs))
			}
			code(t, "without a name", describe(k, version, false, c.kind, "").ErrorCode, wire.InvalidRequest)
		}
	})
}

func TestWhatHasNoConfigsIsRefused(t *testing.T) {
	versions(t, wire.KeyDescribeConfigs, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := configKit(t)
		code(t, "no such topic", describe(k, version, false, config.TopicResource, "nope").ErrorCode, wire.UnknownTopicOrPartition)
		code(t, "no topic's name", describe(k, version, false, config.TopicResource, "no/pe").ErrorCode, wire.InvalidTopicException)
		code(t, "loggers", describe(k, version, false, config.BrokerLoggerResource, "1").ErrorCode, wire.InvalidRequest)
		code(t, "no type", describe(k, version, false, 99, "1").ErrorCode, wire.InvalidRequest)
	})
}

func TestConfigsWithoutEffectSayThatTheyHaveNone(t *testing.T) {
	k := configKit(t)
	r := describe(k, 4, true, config.BrokerResource, "1")
	seen := map[config.Class]bool{}
	for key := range config.Broker().All() {
		if key.Internal || seen[key.Class] {
			continue
		}
		seen[key.Class] = true
		doc := deref(find(t, r, key.Name).Documentation)
		if want := key.Class != config.Honoured; strings.Contains(doc, key.Reason) != want && key.Reason != "" {
			t.Errorf("%s is %v: %q", key.Name, key.Class, doc)
		}
	}
	if len(seen) != 3 {
		t.Errorf("the broker's table has keys of %d classes", len(seen))
	}
}

func TestOneAnswerHoldsABoundedNumberOfConfigs(t *testing.T) {
	k := configKit(t)
	req := kmsg.NewPtrDescribeConfigsRequest()
	for i := range 8000 {
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceType(config.GroupResource), fmt.Sprint(i)
		req.Resources = append(req.Resources, r)
	}
	resp := k.ask(4, req).(*kmsg.DescribeConfigsResponse)
	total := 0
	for i := range resp.Resources {
		total += len(resp.Resources[i].Configs)
	}
	if total > 100000 || total < 90000 {
		t.Errorf("%d configs in one answer", total)
	}
	if !slices.ContainsFunc(resp.Resources, func(r kmsg.DescribeConfigsResponseResource) bool { return r.ErrorCode == int16(wire.InvalidRequest) }) {
		t.Error("nobody was told to ask for less")
	}
	if len(resp.Resources) != 8000 {
		t.Errorf("%d resources", len(resp.Resources))
	}
}

func TestAResourceThatIsAskedForAgainAndAgainIsAnsweredOnce(t *testing.T) {
	k := configKit(t)
	req := kmsg.NewPtrDescribeConfigsRequest()
	for range 50_000 {
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName, r.ConfigNames = kmsg.ConfigResourceTypeBroker, "1", []string{"no such config"}
		req.Resources = append(req.Resources, r)
	}
	if resp := k.ask(4, req).(*kmsg.DescribeConfigsResponse); len(resp.Resources) != 1 || len(resp.Resources[0].Configs) != 0 {
		t.Errorf("%d resources are answered", len(resp.Resources))
	}
}

func TestConfigsThatAreAskedForByNameCountAsSoMany(t *testing.T) {
	k := configKit(t)
	req := kmsg.NewPtrDescribeConfigsRequest()
	for i := range 20_000 {
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceType(config.GroupResource), fmt.Sprint(i)
		r.ConfigNames = []string{"consumer.session.timeout.ms"}
		req.Resources = append(req.Resources, r)
	}
	resp := k.ask(4, req).(*kmsg.DescribeConfigsResponse)
	for i := range resp.Resources {
		if r := &resp.Resources[i]; r.ErrorCode != 0 || len(r.Configs) != 1 {
			t.Fatalf("resource %d: error %d, %d configs", i, r.ErrorCode, len(r.Configs))
		}
	}
}
