package cluster

import (
	"fmt"
	"strings"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire/ident"
)

// How things draw themselves in transcripts.

func describeErr(e *Error) string { return fmt.Sprintf("%v: %s", e.Code, e.Message) }

func describeReply(r Reply) string {
	if r.Err != nil {
		return describeErr(r.Err)
	}
	var b strings.Builder
	line := func(name string, err *Error, format string, args ...any) {
		if b.Len() > 0 {
			b.WriteString("\n   ")
		}
		b.WriteString(name + ": ")
		if err != nil {
			b.WriteString(describeErr(err))
			return
		}
		fmt.Fprintf(&b, format, args...)
	}
	switch body := r.Body.(type) {
	case *CreateTopicsReply:
		for _, t := range body.Topics {
			line(t.Name, t.Err, "created id=%s partitions=%d factor=%d configs=%s", shortID(t.ID), t.Partitions, t.ReplicationFactor, describeOverrides(t.Configs))
		}
	case *DeleteTopicsReply:
		for _, t := range body.Topics {
			line(t.Name, t.Err, "deleted id=%s", shortID(t.ID))
		}
	case *CreatePartitionsReply:
		for _, t := range body.Topics {
			line(t.Name, t.Err, "enlarged")
		}
	case *AlterConfigsReply:
		for _, res := range body.Resources {
			line(res.Resource.String(), res.Err, "altered%s", strings.Join(append([]string{""}, res.Warnings...), "; "))
		}
	case *RegisterBrokerReply:
		fmt.Fprintf(&b, "registered with epoch %d", body.Epoch)
	case *HeartbeatReply:
		fmt.Fprintf(&b, "caught up=%t fenced=%t shut down=%t", body.CaughtUp, body.Fenced, body.ShouldShutDown)
	case *PullReply:
		fmt.Fprintf(&b, "%d entries, committed=%d leader=%d", len(body.Entries), body.Committed, body.Leader)
		if s := body.Snapshot; s != nil {
			fmt.Fprintf(&b, ", snapshot at %d from %d to %d of %d", s.Index, s.Offset, s.Offset+int64(len(s.Data)), s.Total)
		}
	case *MarkReplicasReply:
		b.WriteString("marked")
	case *AddVoterReply:
		b.WriteString("voter added")
	case *RemoveVoterReply:
		b.WriteString("voter removed")
	case *VerifiedReply:
		b.WriteString("verified")
	case *ChangeISRReply:
		for _, p := range body.Partitions {
			line(fmt.Sprintf("%s-%d", shortID(p.Topic), p.Partition), p.Err, "leader=%d epoch=%d partition epoch=%d isr=%v", p.Leader, p.LeaderEpoch, p.Epoch, p.ISR)
		}
	case *ElectLeadersReply:
		for _, p := range body.Partitions {
			line(fmt.Sprintf("%s-%d", p.Topic, p.Partition), p.Err, "elected")
		}
	case *AlterReassignmentsReply:
		for _, p := range body.Partitions {
			line(fmt.Sprintf("%s-%d", p.Topic, p.Partition), p.Err, "ok")
		}
	case *UnregisterBrokerReply:
		b.WriteString("unregistered")
	case *AllocateProducerIDsReply:
		fmt.Fprintf(&b, "producer ids %d to %d", body.First, int64(body.First)+int64(body.Count)-1)
	case *UpdateFeaturesReply:
		for _, f := range body.Features {
			line(f.Name, f.Err, "ok")
		}
	case *DescribeQuorumReply:
		fmt.Fprintf(&b, "leader=%d committed=%d", body.Leader, body.Committed)
		for _, v := range body.Voters {
			fmt.Fprintf(&b, "\n   voter broker=%d log end=%d", v.Broker, v.LogEnd)
		}
		for _, o := range body.Observers {
			fmt.Fprintf(&b, "\n   observer broker=%d log end=%d caught up=%t", o.Broker, o.LogEnd, o.LastCaughtUp >= 0)
		}
	default:
		panic(fmt.Sprintf("no drawing of a %T", body))
	}
	return b.String()
}

// describeOverrides shows configs that are not defaults.
func describeOverrides(configs []config.Effective) string {
	var out []string
	for _, e := range configs {
		if e.Source != config.DefaultConfig {
			out = append(out, fmt.Sprintf("%s=%s(%v)", e.Key.Name, e.Value, e.Source))
		}
	}
	return "[" + strings.Join(out, " ") + "]"
}

func shortID(id ident.TopicID) string {
	if id.IsZero() {
		return "-"
	}
	return fmt.Sprint(id[0])
}

var noteNames = map[NoteKind]string{
	NoteElected: "elected", NoteDeposed: "deposed", NoteLeaderChanged: "leader changed", NoteRegistered: "registered", NoteFenced: "fenced",
	NoteUnfenced: "unfenced", NoteElection: "leaders moved", NoteUnclean: "unclean election", NotePossibleLoss: "possible loss", NoteSnapshot: "snapshot", NoteRestored: "restored",
	NoteSilent: "silent", NoteDropped: "dropped", NoteFailed: "failed", NoteRaft: "raft",
	NoteVoters: "voters", NotePromoted: "promoted", NoteRetired: "retired",
}

// describeNote leaves out terms: elections are random.
func describeNote(n Note) string {
	out := noteNames[n.Kind]
	switch n.Kind {
	case NoteElected, NoteDeposed, NoteSilent:
	case NoteRegistered, NoteFenced, NoteUnfenced:
		out += fmt.Sprintf(" broker=%d index=%d", n.Broker, n.Index)
	case NoteElection:
		out += fmt.Sprintf(" count=%d index=%d", n.Count, n.Index)
	case NoteUnclean, NotePossibleLoss:
		out += fmt.Sprintf(" %s-%d to broker %d", n.Topic, n.Partition, n.Broker)
	case NoteSnapshot, NoteRestored, NoteVoters, NotePromoted, NoteRetired:
		out += fmt.Sprintf(" index=%d", n.Index)
	case NoteLeaderChanged:
		out += fmt.Sprintf(" node=%d", n.Node)
	case NoteDropped, NoteFailed, NoteRaft:
		out += " " + n.Text
	}
	return out
}

func describePartition(p *Partition) string {
	if p == nil {
		return "none"
	}
	mode := "cached"
	if p.Strict {
		mode = "strict"
	}
	out := fmt.Sprintf("leader=%d epoch=%d partition epoch=%d replicas=%v isr=%v %s", p.Leader, p.LeaderEpoch, p.Epoch, p.Replicas, p.ISR, mode)
	if p.MinISR > 1 {
		out += fmt.Sprintf(" min=%d", p.MinISR)
	}
	for _, l := range []struct {
		name string
		list []ident.BrokerID
	}{{"elr", p.ELR}, {"known", p.LastKnownELR}, {"unverified", p.Unverified}, {"adding", p.Adding}, {"removing", p.Removing}, {"offline", p.Offline}, {"damaged", p.Damaged}, {"full", p.Full}} {
		if len(l.list) > 0 {
			out += fmt.Sprintf(" %s=%v", l.name, l.list)
		}
	}
	for _, r := range p.Reports {
		out += fmt.Sprintf(" report=%d:%d@%d", r.Broker, r.End, r.LastEpoch)
	}
	if p.Leader != ident.NoBroker && p.Election != ElectionClean {
		out += []string{"", " unclean", " possible loss"}[p.Election]
	}
	return out
}

func describeDelta(d *Delta) string {
	var b strings.Builder
	for _, t := range d.Topics {
		switch {
		case t.From == nil:
			fmt.Fprintf(&b, "+topic %s id=%s\n", t.To.Name, shortID(t.To.ID))
		case t.To == nil:
			fmt.Fprintf(&b, "-topic %s id=%s\n", t.From.Name, shortID(t.From.ID))
		default:
			fmt.Fprintf(&b, "~topic %s partitions %d to %d\n", t.To.Name, len(t.From.Partitions), len(t.To.Partitions))
		}
	}
	for _, p := range d.Partitions {
		fmt.Fprintf(&b, " partition %s-%d: %s\n", p.Topic.Name, p.Partition, describePartition(p.To))
	}
	for _, br := range d.Brokers {
		if br.To == nil {
			fmt.Fprintf(&b, "-broker %d\n", br.ID)
			continue
		}
		fmt.Fprintf(&b, " broker %d epoch=%d fenced=%t leaving=%t\n", br.ID, br.To.Epoch, br.To.Fenced, br.To.ShuttingDown)
	}
	for _, r := range d.Configs {
		fmt.Fprintf(&b, " configs of %v\n", r)
	}
	if d.Features {
		b.WriteString(" features\n")
	}
	if d.Voters {
		b.WriteString(" voters\n")
	}
	return b.String()
}

// describeImage draws everything.
func describeImage(m *Image) string {
	var b strings.Builder
	fmt.Fprintf(&b, "index=%d cluster=%s topics=%d partitions=%d next producer id=%d features=%v\n", m.Index(), m.ClusterID(), m.TopicCount(), m.PartitionCount(), m.NextProducerID(), m.Features())
	for br := range m.Brokers() {
		fmt.Fprintf(&b, "broker %d epoch=%d rack=%q fenced=%t leaving=%t\n", br.ID, br.Epoch, br.Rack, br.Fenced, br.ShuttingDown)
	}
	for t := range m.Topics() {
		fmt.Fprintf(&b, "topic %s id=%s configs=%v\n", t.Name, shortID(t.ID), t.Configs)
		for i, p := range t.Partitions {
			fmt.Fprintf(&b, "  %d: %s\n", i, describePartition(p))
		}
	}
	for r, s := range m.configs.all() {
		fmt.Fprintf(&b, "configs of %v: %v\n", r, s)
	}
	return b.String()
}
