package cluster

import (
	"slices"
	"strconv"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// configPlan collects the records of one request and the image they lead to.
type configPlan struct {
	c         *Controller
	image     *Image
	records   []Record
	changed   []config.Resource
	mentioned map[config.Resource]int // how often the request names each; read by key only
	reply     *AlterConfigsReply
}

func (c *Controller) newConfigPlan() *configPlan {
	return &configPlan{c: c, image: c.next, mentioned: map[config.Resource]int{}, reply: &AlterConfigsReply{}}
}

// alterConfigs replaces whole sets.
func (c *Controller) alterConfigs(cmd *AlterConfigs) decision {
	p := c.newConfigPlan()
	for _, r := range cmd.Resources {
		p.mentioned[r.Resource]++
	}
	for _, r := range cmd.Resources {
		p.resource(r.Resource, func(_ config.Set, result *ResourceResult) (config.Set, *Error) {
			return p.replacement(r, result)
		})
	}
	return p.decide(cmd.ValidateOnly)
}

// incrementalAlterConfigs changes single configs.
func (c *Controller) incrementalAlterConfigs(cmd *IncrementalAlterConfigs) decision {
	p := c.newConfigPlan()
	for _, r := range cmd.Resources {
		p.mentioned[r.Resource]++
	}
	for _, r := range cmd.Resources {
		p.resource(r.Resource, func(s config.Set, result *ResourceResult) (config.Set, *Error) {
			return p.operations(r, s, result)
		})
	}
	return p.decide(cmd.ValidateOnly)
}

// decide adds what the changed configs ask of the partitions, in the same batch.
func (p *configPlan) decide(validateOnly bool) decision {
	if validateOnly {
		return decision{body: p.reply}
	}
	return decision{records: append(p.records, p.c.consequences(p.c.next, p.image, p.changed)...), body: p.reply}
}

// resource plans the change of one resource; others are not touched by its failure.
func (p *configPlan) resource(r config.Resource, change func(config.Set, *ResourceResult) (config.Set, *Error)) {
	result := ResourceResult{Resource: r}
	defer func() { p.reply.Resources = append(p.reply.Resources, result) }()
	if p.mentioned[r] > 1 {
		result.Err = refuse(wire.InvalidRequest, "%v is in the request more than once", r)
		return
	}
	if result.Err = p.image.configurable(r); result.Err != nil {
		return
	}
	before := p.image.Configs(r)
	after, err := change(before, &result)
	if err != nil {
		result.Err, result.Warnings = err, nil
		return
	}
	if result.Err = together(r.Type, p.c.stackOf(p.image, after)); result.Err != nil {
		result.Warnings = nil
		return
	}
	records := configRecords(r, before, after)
	if len(records) == 0 {
		return
	}
	image, _, applyErr := p.image.Apply(p.image.index, p.image.term, records)
	if applyErr != nil {
		panic("cluster: planned configs contradict the image: " + applyErr.Error())
	}
	p.image = image
	p.records = append(p.records, records...)
	p.changed = append(p.changed, r)
}

// stackOf is what holds for a resource with these configs of its own, as far as the controller knows: what a broker's file says may differ from its own.
func (c *Controller) stackOf(m *Image, override config.Set) config.Stack {
	return config.Stack{Override: override, Cluster: m.Configs(config.Resource{Type: config.BrokerResource}), Static: c.options.Static}
}

// together checks configs that are good each by itself.
func together(t config.ResourceType, s config.Stack) *Error {
	var err error
	switch t {
	case config.GroupResource:
		err = config.CheckGroup(s)
	case config.TopicResource:
		err = config.CheckTopic(s)
	case config.BrokerResource, config.ClientMetricsResource, config.BrokerLoggerResource:
	}
	if err != nil {
		return refuse(wire.InvalidConfig, "%v", err)
	}
	return nil
}

// configRecords makes the records that lead from one set to another.
func configRecords(r config.Resource, before, after config.Set) []Record {
	var records []Record
	for _, e := range before {
		if _, kept := after.Get(e.Name); !kept {
			records = append(records, &ConfigRecord{Resource: r, Name: e.Name})
		}
	}
	for i, e := range after {
		if old, ok := before.Get(e.Name); !ok || old != e.Value {
			records = append(records, &ConfigRecord{Resource: r, Name: e.Name, Value: &after[i].Value})
		}
	}
	return records
}

// configurable checks that a resource exists and keeps its configs in the metadata log.
func (m *Image) configurable(r config.Resource) *Error {
	switch r.Type {
	case config.TopicResource:
		_, err := m.find(TopicRef{Name: r.Name})
		return err
	case config.BrokerResource:
		if r.Name == "" {
			return nil
		}
		id, err := strconv.ParseInt(r.Name, 10, 32)
		if err != nil || strconv.FormatInt(id, 10) != r.Name {
			return refuse(wire.InvalidRequest, "%.100q is no broker id: it must be a number, or empty for the default of all brokers", r.Name)
		}
		if _, ok := m.Broker(ident.BrokerID(id)); !ok {
			return refuse(wire.BrokerIDNotRegistered, "broker %d is not registered", id)
		}
		return nil
	case config.GroupResource, config.ClientMetricsResource:
		if r.Name == "" {
			return refuse(wire.InvalidRequest, "a %v needs a name", r.Type)
		}
		return nil
	case config.BrokerLoggerResource: // a broker's own business, and here nobody's
	}
	return refuse(wire.InvalidRequest, "configs of a %v are not kept by the controller", r.Type)
}

// replacement builds the set that AlterConfigs asks for.
func (p *configPlan) replacement(r ConfigReplacement, result *ResourceResult) (config.Set, *Error) {
	var s config.Set
	for _, v := range r.Configs {
		if v.Value == nil {
			return nil, refuse(wire.InvalidRequest, "config %.250s of %v has no value; leave it out to return to the default", v.Name, r.Resource)
		}
		if _, twice := s.Get(v.Name); twice {
			return nil, refuse(wire.InvalidRequest, "config %.250s of %v is in the request more than once", v.Name, r.Resource)
		}
		text, err := checked(r.Resource, v.Name, *v.Value, result)
		if err != nil {
			return nil, err
		}
		s = s.With(v.Name, text)
	}
	return s, nil
}

// operations changes a set as IncrementalAlterConfigs asks.
func (p *configPlan) operations(r ConfigChange, s config.Set, result *ResourceResult) (config.Set, *Error) {
	for i, op := range r.Ops {
		if slices.ContainsFunc(r.Ops[:i], func(o ConfigOp) bool { return o.Name == op.Name }) {
			return nil, refuse(wire.InvalidRequest, "config %.250s of %v is in the request more than once", op.Name, r.Resource)
		}
		k, err := config.For(r.Resource).Dynamic(op.Name, r.Resource)
		if err != nil {
			return nil, refuse(codeOf(err), "%v", err)
		}
		if op.Op == OpDelete {
			s = s.Without(op.Name)
			continue
		}
		if op.Value == nil {
			return nil, refuse(wire.InvalidRequest, "config %s of %v has no value; use the delete operation to return to the default", op.Name, r.Resource)
		}
		value := *op.Value
		switch op.Op {
		case OpSet:
		case OpAppend, OpSubtract:
			if k.Type != config.List {
				return nil, refuse(wire.InvalidConfig, "config %s is no list; only lists take append and subtract", op.Name)
			}
			value = k.Combine(p.current(r.Resource, k, s), value, op.Op == OpAppend)
		default:
			return nil, refuse(wire.InvalidRequest, "operation %d on config %s is unknown", op.Op, op.Name)
		}
		text, refusal := checked(r.Resource, op.Name, value, result)
		if refusal != nil {
			return nil, refusal
		}
		s = s.With(op.Name, text)
	}
	return s, nil
}

// current is the value a list operation starts from: the override, else what holds without it.
func (p *configPlan) current(r config.Resource, k *config.Key, s config.Set) string {
	stack := config.Stack{Static: p.c.options.Static, Cluster: p.image.Configs(config.Resource{Type: config.BrokerResource})}
	switch {
	case r.Type != config.BrokerResource:
		stack.Override = s
		return stack.ForTopic(k).Value
	case r.Name == "":
		stack.Cluster = s
	default:
		stack.Broker = s
	}
	return stack.ForBroker(k).Value
}

// checked judges one value and returns its canonical text.
func checked(r config.Resource, name, value string, result *ResourceResult) (string, *Error) {
	k, err := config.For(r).Dynamic(name, r)
	if err != nil {
		return "", refuse(codeOf(err), "%v", err)
	}
	v, err := k.Parse(value)
	if err != nil {
		return "", refuse(wire.InvalidConfig, "%v", err)
	}
	if k.Class == config.Accepted {
		result.Warnings = append(result.Warnings, "config "+name+" has no effect: "+k.Reason)
	}
	return v.Text, nil
}

// codeOf turns a configuration error into the code Kafka answers.
func codeOf(err error) wire.ErrorCode {
	if config.IsNotDynamic(err) {
		return wire.InvalidRequest
	}
	return wire.InvalidConfig
}
