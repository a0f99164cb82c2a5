package cluster

import (
	"fmt"
	"strings"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire/ident"
)

// resourceOf reads "topic:orders", "broker:1", "broker:" (the default of all), "group:g", "client-metrics:m", "broker-logger:1".
func resourceOf(word string) config.Resource {
	kind, name, _ := strings.Cut(word, ":")
	for _, t := range []config.ResourceType{config.TopicResource, config.BrokerResource, config.BrokerLoggerResource, config.ClientMetricsResource, config.GroupResource} {
		if t.String() == kind {
			return config.Resource{Type: t, Name: name}
		}
	}
	panic("no resource type " + kind)
}

// alterConfigs: one resource a line, "topic:orders config.retention.ms=5".
func (s *script) alterConfigs() {
	cmd := &AlterConfigs{ValidateOnly: s.td.HasArg("validate")}
	for line := range strings.Lines(s.td.Input) {
		cmd.Resources = append(cmd.Resources, ConfigReplacement{Resource: resourceOf(strings.Fields(line)[0]), Configs: configValues(line)})
	}
	s.w.ask(s.target(), &cmd.Ask, cmd)
}

// incremental: one resource a line, "topic:orders set:retention.ms=5 delete:flush.ms append:cleanup.policy=delete subtract:… op9:…".
func (s *script) incremental() {
	ops := map[string]OpKind{"set": OpSet, "delete": OpDelete, "append": OpAppend, "subtract": OpSubtract, "op9": 9}
	cmd := &IncrementalAlterConfigs{ValidateOnly: s.td.HasArg("validate")}
	for line := range strings.Lines(s.td.Input) {
		words := strings.Fields(line)
		change := ConfigChange{Resource: resourceOf(words[0])}
		for _, w := range words[1:] {
			op, rest, _ := strings.Cut(w, ":")
			kind, ok := ops[op]
			if !ok {
				panic("no operation " + op)
			}
			name, value, given := strings.Cut(rest, "=")
			o := ConfigOp{Name: name, Op: kind}
			if given {
				o.Value = &value
			}
			change.Ops = append(change.Ops, o)
		}
		cmd.Resources = append(cmd.Resources, change)
	}
	s.w.ask(s.target(), &cmd.Ask, cmd)
}

func (s *script) allocate() {
	cmd := &AllocateProducerIDs{Broker: ident.BrokerID(s.number("broker", 1)), Epoch: ident.BrokerEpoch(s.number("epoch", -1))}
	n := s.target()
	if b, ok := n.c.Image().Broker(cmd.Broker); ok && cmd.Epoch == -1 {
		cmd.Epoch = b.Epoch
	}
	s.w.ask(n, &cmd.Ask, cmd)
}

// updateFeatures: "name level=2 kind=1".
func (s *script) updateFeatures() {
	cmd := &UpdateFeatures{ValidateOnly: s.td.HasArg("validate")}
	for line := range strings.Lines(s.td.Input) {
		name, args := named(line)
		cmd.Updates = append(cmd.Updates, FeatureUpdate{Name: name, Level: int16(atoi(args["level"], 0)), Kind: UpgradeKind(atoi(args["kind"], 1))})
	}
	s.w.ask(s.target(), &cmd.Ask, cmd)
}

func (s *script) describeQuorum() {
	cmd := &DescribeQuorum{}
	s.w.ask(s.target(), &cmd.Ask, cmd)
}

func (s *script) image() {
	s.b.WriteString(describeImage(s.target().c.Image()))
}

// same verifies that all nodes that are up have the same image.
func (s *script) same() {
	var first *member
	for _, n := range s.w.nodes {
		if n.c == nil {
			continue
		}
		if first == nil {
			first = n
		} else if !first.c.Image().Equal(n.c.Image()) {
			fmt.Fprintf(&s.b, "node %d differs from node %d:\n%s", n.number, first.number, describeImage(n.c.Image()))
		}
	}
	if s.b.Len() == 0 {
		s.b.WriteString("all the same\n")
	}
}

// holdDisk sends the create-topics lines of its input while the controller's disk does not answer, deadline-ms after now.
func (s *script) holdDisk() {
	n := s.w.await()
	for line := range strings.Lines(s.td.Input) {
		name, args := named(line)
		s.nextID++
		cmd := &CreateTopics{Topics: []NewTopic{{Name: name, ID: ident.TopicID{0: s.nextID}, Partitions: int32(atoi(args["partitions"], 1)), ReplicationFactor: 1}}}
		if ms := s.number("deadline-ms", 0); ms > 0 {
			cmd.Deadline = s.w.now.Mono + ident.Instant(ms)*millisecond
		}
		s.w.request(n, &cmd.Ask, cmd)
	}
	for range s.number("ticks", 0) {
		s.w.now.Mono += 100 * millisecond
		n.tick()
	}
	s.b.WriteString("-- the disk answers\n")
	s.w.settle()
}

// failDisk fails a topic's save.
func (s *script) failDisk() {
	n := s.w.await()
	s.nextID++
	cmd := &CreateTopics{Topics: []NewTopic{{Name: "lost", ID: ident.TopicID{0: s.nextID}, Partitions: 1, ReplicationFactor: 1}}}
	s.w.request(n, &cmd.Ask, cmd)
	save := n.saves[0]
	n.saves = nil
	n.step(&PersistFailed{Save: save.ID, Reason: "input/output error"})
	s.w.settle()
	again := &CreateTopics{Topics: cmd.Topics}
	s.w.request(n, &again.Ask, again)
}

// letter delivers bytes that no voter wrote.
func (s *script) letter() {
	s.target().step(&Receive{Data: []byte(strings.TrimSpace(s.td.Input))})
}
