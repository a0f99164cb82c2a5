package cluster

import (
	"strings"

	"github.com/troupe-broker/troupe/wire/ident"
)

// replicaRefs reads "t-0,t-1" against the controller's image.
func (s *script) replicaRefs(text string) []ReplicaRef {
	var out []ReplicaRef
	for w := range strings.SplitSeq(text, ",") {
		if w == "" {
			continue
		}
		i := strings.LastIndexByte(w, '-')
		ref := ReplicaRef{Partition: int32(atoi(w[i+1:], 0))}
		if t, ok := s.target().c.Image().Topic(w[:i]); ok {
			ref.Topic = t.ID
		}
		out = append(out, ref)
	}
	return out
}

// changeISR: broker=N epoch=E; one partition a line, "t-0 isr=1,2 partition-epoch=3 leader-epoch=0 member-epoch=2:9 directory=2:7", or "t-0 resign". What is not given is
// as the image has it. A proposal is kept under the name of "keep" and sent again by "again".
func (s *script) changeISR() {
	n := s.target()
	m := n.c.Image()
	cmd := &ChangeISR{Broker: ident.BrokerID(s.number("broker", 1))}
	if b, ok := m.Broker(cmd.Broker); ok {
		cmd.Epoch = b.Epoch
	}
	cmd.Epoch = ident.BrokerEpoch(s.number("epoch", int(cmd.Epoch)))
	for line := range strings.Lines(s.td.Input) {
		name, args := named(line)
		ref := s.replicaRefs(name)[0]
		want := ISRChange{Topic: ref.Topic, Partition: ref.Partition}
		if t, ok := m.TopicByID(ref.Topic); ok && int(ref.Partition) < len(t.Partitions) {
			p := t.Partitions[ref.Partition]
			want.LeaderEpoch, want.PartitionEpoch = p.LeaderEpoch, p.Epoch
		}
		want.LeaderEpoch = ident.LeaderEpoch(atoi(args["leader-epoch"], int(want.LeaderEpoch)))
		want.PartitionEpoch = ident.PartitionEpoch(atoi(args["partition-epoch"], int(want.PartitionEpoch)))
		_, want.Resign = args["resign"]
		for _, b := range brokers(args["isr"]) {
			want.ISR = append(want.ISR, memberOf(m, b, args))
		}
		cmd.Partitions = append(cmd.Partitions, want)
	}
	if s.td.HasArg("again") {
		cmd.Partitions = s.kept
	}
	s.kept = cmd.Partitions
	s.w.ask(n, &cmd.Ask, cmd)
}

func memberOf(m *Image, id ident.BrokerID, args map[string]string) Member {
	out := Member{Broker: id}
	if b, ok := m.Broker(id); ok {
		out.Epoch = b.Epoch
		if len(b.Directories) > 0 {
			out.Directory = b.Directories[0]
		}
	}
	if who, value, ok := strings.Cut(args["member-epoch"], ":"); ok && atoi(who, 0) == int(id) {
		out.Epoch = ident.BrokerEpoch(atoi(value, 0))
	}
	if who, value, ok := strings.Cut(args["directory"], ":"); ok && atoi(who, 0) == int(id) {
		out.Directory = ident.DirectoryID{0: byte(atoi(value, 0))}
	}
	return out
}

// markReplicas: broker=N; one replica a line, "t-0 offline", "t-0 damaged", "t-0 full" or "t-0 sound".
func (s *script) markReplicas() {
	n := s.target()
	cmd := &MarkReplicas{Broker: ident.BrokerID(s.number("broker", 1))}
	if b, ok := n.c.Image().Broker(cmd.Broker); ok {
		cmd.Epoch = b.Epoch
	}
	cmd.Epoch = ident.BrokerEpoch(s.number("epoch", int(cmd.Epoch)))
	for line := range strings.Lines(s.td.Input) {
		name, args := named(line)
		m := ReplicaMark{ReplicaRef: s.replicaRefs(name)[0]}
		if _, offline := args["offline"]; offline {
			m.Mark = MarkOffline
		} else if _, damaged := args["damaged"]; damaged {
			m.Mark = MarkDamaged
		}
		_, m.Full = args["full"]
		cmd.Replicas = append(cmd.Replicas, m)
	}
	s.w.ask(n, &cmd.Ask, cmd)
}

// verified: broker=N; one replica a line, "t-0 end=5 epoch=1", or with "lost".
func (s *script) verified() {
	n := s.target()
	cmd := &Verified{Broker: ident.BrokerID(s.number("broker", 1))}
	if b, ok := n.c.Image().Broker(cmd.Broker); ok {
		cmd.Epoch = b.Epoch
	}
	cmd.Epoch = ident.BrokerEpoch(s.number("epoch", int(cmd.Epoch)))
	for line := range strings.Lines(s.td.Input) {
		name, args := named(line)
		_, lost := args["lost"]
		cmd.Replicas = append(cmd.Replicas, Verdict{
			ReplicaRef: s.replicaRefs(name)[0], Whole: !lost, LastEpoch: ident.LeaderEpoch(atoi(args["epoch"], 0)), End: ident.Offset(atoi(args["end"], 0)),
		})
	}
	s.w.ask(n, &cmd.Ask, cmd)
}

// electLeaders: unclean, all; or one partition a line.
func (s *script) electLeaders() {
	cmd := &ElectLeaders{Unclean: s.td.HasArg("unclean"), All: s.td.HasArg("all")}
	for line := range strings.Lines(s.td.Input) {
		w := strings.TrimSpace(line)
		i := strings.LastIndexByte(w, '-')
		cmd.Partitions = append(cmd.Partitions, PartitionRef{Topic: w[:i], Partition: int32(atoi(w[i+1:], 0))})
	}
	s.w.ask(s.target(), &cmd.Ask, cmd)
}

// gossip: broker=N says to every voter that a run of it is dead, or up.
func (s *script) gossip() {
	for _, n := range s.w.nodes {
		if n.c == nil {
			continue
		}
		cmd := &GossipHint{Broker: ident.BrokerID(s.number("broker", 1)), Up: s.td.HasArg("up")}
		if b, ok := n.c.Image().Broker(cmd.Broker); ok {
			cmd.Incarnation = b.Incarnation
		}
		if i := s.number("incarnation", 0); i > 0 {
			cmd.Incarnation = Incarnation{byte(i), byte(cmd.Broker)}
		}
		n.step(cmd)
	}
	s.w.settle()
}

// linkDown: broker=N tells every voter that its connections are closed; refused: that nobody listens there.
func (s *script) linkDown() {
	for _, n := range s.w.nodes {
		if n.c == nil {
			continue
		}
		cmd := &LinkDown{Broker: ident.BrokerID(s.number("broker", 1)), Refused: s.td.HasArg("refused")}
		if b, ok := n.c.Image().Broker(cmd.Broker); ok {
			cmd.Epoch = b.Epoch
		}
		cmd.Epoch = ident.BrokerEpoch(s.number("epoch", int(cmd.Epoch)))
		n.step(cmd)
	}
	s.w.settle()
}

// beat lets brokers send heartbeats while time passes: "n=60 brokers=1,2".
func (s *script) beat() {
	for range s.number("n", 1) {
		for _, id := range brokers(s.list("brokers")) {
			s.w.beat(id)
		}
		s.w.ticks(1)
	}
}

// beat sends one heartbeat of a broker's present run to whoever acts; its image is the newest.
func (w *world) beat(id ident.BrokerID) {
	n := w.controller()
	if n == nil {
		return
	}
	b, ok := n.c.Image().Broker(id)
	if !ok {
		return
	}
	old := w.trace
	w.trace = func(format string, args ...any) {
		if len(args) > 1 && format == "%d> %s\n" {
			return
		}
		old(format, args...)
	}
	hb := &Heartbeat{Broker: id, Epoch: b.Epoch, Applied: n.c.Image().Index(), Arrived: w.now.Mono}
	w.request(n, &hb.Ask, hb)
	w.settle()
	w.trace = old
}
