package cluster

import (
	"strings"

	"github.com/troupe-broker/troupe/wire/ident"
)

// unregister: broker=N.
func (s *script) unregister() {
	cmd := &UnregisterBroker{Broker: ident.BrokerID(s.number("broker", 1))}
	s.w.ask(s.target(), &cmd.Ask, cmd)
}

// reassign: fix-factor; one partition a line, "t-0 to=3,4", "t-0 to=" for nobody, or "t-0 cancel".
func (s *script) reassign() {
	cmd := &AlterReassignments{FixFactor: s.td.HasArg("fix-factor")}
	for line := range strings.Lines(s.td.Input) {
		name, args := named(line)
		i := strings.LastIndexByte(name, '-')
		want := Reassignment{PartitionRef: PartitionRef{Topic: name[:i], Partition: int32(atoi(name[i+1:], 0))}}
		if to, moved := args["to"]; moved {
			want.Replicas = append([]ident.BrokerID{}, brokers(to)...)
		}
		cmd.Partitions = append(cmd.Partitions, want)
	}
	s.w.ask(s.target(), &cmd.Ask, cmd)
}
