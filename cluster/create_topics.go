package cluster

import (
	"slices"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// partitionsPerRequestMax bounds one request, and with it one entry of the metadata log.
const partitionsPerRequestMax = 10_000

// createTopics decides each topic against what the topics before it in the request will have made of the image.
func (c *Controller) createTopics(cmd *CreateTopics) decision {
	reply := &CreateTopicsReply{}
	plan := &topicPlan{c: c, image: c.next, entropy: cmd.Entropy}
	mentioned := count(cmd.Topics, func(t NewTopic) string { return t.Name })
	for _, t := range cmd.Topics {
		n := mentioned[t.Name]
		delete(mentioned, t.Name)
		switch {
		case n == 0:
			continue // its first mention has the answer
		case n > 1:
			reply.Topics = append(reply.Topics, CreatedTopic{Name: t.Name, Err: refuse(wire.InvalidRequest, "topic %s is in the request more than once", t.Name)})
			continue
		}
		made, err := plan.create(t)
		if err != nil {
			made = CreatedTopic{Name: t.Name, Err: err}
		}
		if cmd.ValidateOnly {
			made.ID = ident.TopicID{}
		}
		reply.Topics = append(reply.Topics, made)
	}
	if cmd.ValidateOnly {
		return decision{body: reply}
	}
	return decision{records: plan.records, body: reply}
}

// count tells how often each name is in a list. The map is for lookups: its order is nobody's business.
func count[T any](list []T, name func(T) string) map[string]int {
	n := make(map[string]int, len(list))
	for _, x := range list {
		n[name(x)]++
	}
	return n
}

// topicPlan collects the records of one CreateTopics or CreatePartitions.
type topicPlan struct {
	c          *Controller
	image      *Image // with everything planned so far
	records    []Record
	partitions int
	entropy    uint64
}

// create plans one topic.
func (p *topicPlan) create(t NewTopic) (CreatedTopic, *Error) {
	if old, ok := p.image.Topic(t.Name); ok && !t.ID.IsZero() && sameCommand(old.ID, t.ID) {
		// The same command again: its answer was lost with a controller, or with the connection to one.
		t.ID = old.ID
		stack := p.c.stack(p.image, t.Name)
		return created(t, len(old.Partitions), len(old.Partitions[0].Replicas), stack), nil
	}
	if err := p.image.newName(t.Name); err != nil {
		return CreatedTopic{}, err
	}
	if _, taken := p.image.TopicByID(t.ID); taken || t.ID.IsZero() {
		return CreatedTopic{}, refuse(wire.UnknownServerError, "topic %s was given the id %v, which is taken or zero; try again", t.Name, t.ID)
	}
	if limit := p.c.options.TopicsMax; p.image.TopicCount() >= limit {
		return CreatedTopic{}, refuse(wire.PolicyViolation, "the cluster has %d topics, and that is its limit", limit)
	}
	configs, err := topicConfigs(t.Configs)
	if err == nil {
		err = together(config.TopicResource, p.c.stackOf(p.image, configs))
	}
	if err != nil {
		return CreatedTopic{}, err
	}
	placed, err := p.place(t)
	if err != nil {
		return CreatedTopic{}, err
	}
	records := []Record{&TopicRecord{Name: t.Name, ID: t.ID}}
	for i := range configs {
		records = append(records, &ConfigRecord{Resource: config.Resource{Type: config.TopicResource, Name: t.Name}, Name: configs[i].Name, Value: &configs[i].Value})
	}
	stack := p.c.stack(p.image, t.Name)
	stack.Override = configs
	records = append(records, p.fresh(t.ID, 0, placed, rulesOf(stack))...)
	p.take(records, len(placed))

	return created(t, len(placed), len(placed[0]), stack), nil
}

// created is what is told of a topic that was made.
func created(t NewTopic, partitions, factor int, stack config.Stack) CreatedTopic {
	c := CreatedTopic{Name: t.Name, ID: t.ID, Partitions: int32(partitions), ReplicationFactor: int16(factor)}
	for k := range config.Topic().All() {
		if !k.Internal {
			c.Configs = append(c.Configs, stack.ForTopic(k))
		}
	}
	return c
}

// place decides where the partitions go: by hand or by Place.
func (p *topicPlan) place(t NewTopic) ([][]ident.BrokerID, *Error) {
	if len(t.Assignment) > 0 {
		return p.manual(t)
	}
	partitions, factor := int(t.Partitions), int(t.ReplicationFactor)
	stack := p.c.stack(p.image, "")
	if partitions == -1 {
		partitions = int(stack.BrokerInt("num.partitions"))
	}
	if factor == -1 {
		factor = int(stack.BrokerInt("default.replication.factor"))
	}
	if partitions <= 0 {
		return nil, refuse(wire.InvalidPartitions, "topic %s: the number of partitions must be at least 1, or -1 for the broker's default; it is %d", t.Name, partitions)
	}
	if factor <= 0 {
		return nil, refuse(wire.InvalidReplicationFactor, "topic %s: the replication factor must be at least 1, or -1 for the broker's default; it is %d", t.Name, factor)
	}
	if live := len(p.image.seats()); t.Internal && live > 0 {
		factor = min(factor, live)
	}
	return p.automatic(t.Name, 0, partitions, factor)
}

// automatic places partitions of a topic evenly.
func (p *topicPlan) automatic(topic string, first int32, partitions, factor int) ([][]ident.BrokerID, *Error) {
	if err := p.room(topic, partitions); err != nil {
		return nil, err
	}
	seats := p.image.seats()
	placed, err := Place(seats, first, partitions, factor, p.entropy)
	if err != nil {
		return nil, refuse(wire.InvalidReplicationFactor, "topic %s: replication factor %d needs as many live brokers, there are %d", topic, factor, len(seats))
	}
	p.entropy++ // the next topic begins at the next broker
	return placed, nil
}

// room checks the caps before anything is sized by the request.
func (p *topicPlan) room(topic string, partitions int) *Error {
	if partitions > partitionsPerRequestMax-p.partitions {
		return refuse(wire.PolicyViolation, "topic %s: one request may create %d partitions; ask for fewer at a time", topic, partitionsPerRequestMax)
	}
	if have, limit := p.image.PartitionCount(), p.c.options.PartitionsMax; partitions > limit-have {
		return refuse(wire.PolicyViolation, "topic %s: the cluster may have %d partitions and has %d; %d more do not fit", topic, limit, have, partitions)
	}
	return nil
}

// manual checks a placement made by hand.
func (p *topicPlan) manual(t NewTopic) ([][]ident.BrokerID, *Error) {
	if t.ReplicationFactor != -1 {
		return nil, refuse(wire.InvalidRequest, "topic %s: with a manual assignment the replication factor must be -1", t.Name)
	}
	if t.Partitions != -1 {
		return nil, refuse(wire.InvalidRequest, "topic %s: with a manual assignment the number of partitions must be -1", t.Name)
	}
	if err := p.room(t.Name, len(t.Assignment)); err != nil {
		return nil, err
	}
	placed := make([][]ident.BrokerID, len(t.Assignment))
	for _, a := range t.Assignment {
		switch {
		case a.Partition < 0 || int(a.Partition) >= len(placed):
			return nil, refuse(wire.InvalidReplicaAssignment, "topic %s: a manual assignment numbers its partitions from 0 without a gap; %d of %d does not fit", t.Name, a.Partition, len(placed))
		case placed[a.Partition] != nil:
			return nil, refuse(wire.InvalidReplicaAssignment, "topic %s: partition %d is assigned twice", t.Name, a.Partition)
		}
		if err := p.image.assignable(t.Name, a.Partition, a.Brokers, 0); err != nil {
			return nil, err
		}
		placed[a.Partition] = slices.Clone(a.Brokers)
	}
	for i, brokers := range placed {
		if len(brokers) != len(placed[0]) {
			return nil, refuse(wire.InvalidReplicaAssignment, "topic %s: partition %d has %d replicas and partition 0 has %d", t.Name, i, len(brokers), len(placed[0]))
		}
	}
	return placed, nil
}

// assignable checks one partition's replicas made by hand. factor 0 means any number of them.
func (m *Image) assignable(topic string, partition int32, brokers []ident.BrokerID, factor int) *Error {
	if len(brokers) == 0 {
		return refuse(wire.InvalidReplicaAssignment, "topic %s: partition %d is assigned to no broker", topic, partition)
	}
	if factor > 0 && len(brokers) != factor {
		return refuse(wire.InvalidReplicaAssignment, "topic %s: partition %d is assigned to %d brokers, the topic has %d replicas", topic, partition, len(brokers), factor)
	}
	live := false
	for i, b := range brokers {
		if slices.Contains(brokers[:i], b) {
			return refuse(wire.InvalidReplicaAssignment, "topic %s: partition %d is assigned to broker %d twice", topic, partition, b)
		}
		broker, ok := m.Broker(b)
		if !ok {
			return refuse(wire.InvalidReplicaAssignment, "topic %s: partition %d is assigned to broker %d, which is not registered", topic, partition, b)
		}
		live = live || broker.active()
	}
	if !live {
		return refuse(wire.InvalidReplicaAssignment, "topic %s: partition %d is assigned to brokers that are all fenced or shutting down", topic, partition)
	}
	return nil
}

// fresh makes the records of new partitions. Only live brokers start in the ISR.
func (p *topicPlan) fresh(id ident.TopicID, first int, placed [][]ident.BrokerID, rules rules) []Record {
	records := make([]Record, 0, len(placed))
	for i, brokers := range placed {
		part := Partition{Replicas: brokers, Leader: ident.NoBroker, Strict: rules.strict, MinISR: int32(min(rules.minISR, len(brokers)))}
		for _, b := range brokers {
			broker, ok := p.image.Broker(b)
			directory := ident.DirectoryID{}
			if ok && len(broker.Directories) == 1 {
				directory = broker.Directories[0]
			}
			part.Directories = append(part.Directories, directory)
			if !ok || !broker.active() {
				continue
			}
			part.ISR = append(part.ISR, b)
			if part.Leader == ident.NoBroker {
				part.Leader = b
			}
		}
		records = append(records, &PartitionRecord{Topic: id, Number: int32(first + i), Partition: part})
	}
	return records
}

// take adds records to the plan and to its image.
func (p *topicPlan) take(records []Record, partitions int) {
	image, _, err := p.image.Apply(p.image.index, p.image.term, records)
	if err != nil {
		panic("cluster: a planned topic contradicts the image: " + err.Error())
	}
	p.image = image
	p.records = append(p.records, records...)
	p.partitions += partitions
}

// topicConfigs checks the overrides of a new topic. Of several values for one name the last counts, as in Kafka.
func topicConfigs(values []ConfigValue) (config.Set, *Error) {
	var entries []config.Entry
	for _, v := range values {
		if v.Value == nil {
			return nil, refuse(wire.InvalidConfig, "config %s has no value", v.Name)
		}
		text, err := config.Topic().Normalise(v.Name, *v.Value)
		if err != nil {
			return nil, refuse(wire.InvalidConfig, "%v", err)
		}
		entries = append(entries, config.Entry{Name: v.Name, Value: text})
	}
	return config.SetOf(entries...), nil
}
