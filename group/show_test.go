package group_test

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
)

// show draws an entry on a line.
func show(e records.Entry) string {
	switch e := e.(type) {
	case *records.OffsetCommit:
		key := fmt.Sprintf("offset %q %s-%d", e.Group, e.Topic, e.Partition)
		if e.Value == nil {
			return key + " gone"
		}
		return key + " = " + showOffset(e.Value)
	case *records.GroupMetadata:
		if e.Value == nil {
			return fmt.Sprintf("group %q gone", e.Group)
		}
		return fmt.Sprintf("group %q = %s", e.Group, showGeneration(e.Value))
	case *records.ConsumerGroup:
		return line("epoch", e.Group, "", e.Value == nil, e.Value)
	case *records.PartitionMetadata:
		return line("partition-metadata", e.Group, "", true, nil)
	case *records.ConsumerMember:
		return line("member", e.Group, e.Member, e.Value == nil, e.Value)
	case *records.Target:
		return line("target", e.Group, "", e.Value == nil, e.Value)
	case *records.TargetMember:
		return line("target-member", e.Group, e.Member, e.Value == nil, e.Value)
	case *records.Current:
		return line("current", e.Group, e.Member, e.Value == nil, e.Value)
	case *records.Regex:
		return line("regex", e.Group, e.Pattern, e.Value == nil, e.Value)
	}
	return fmt.Sprintf("%T", e)
}

func line(kind, group, name string, gone bool, value any) string {
	key := fmt.Sprintf("%s %q", kind, group)
	if name != "" {
		key += " " + name
	}
	if gone {
		return key + " gone"
	}
	return key + " = " + strings.TrimPrefix(plain(value), "&")
}

// plain prints a value; pointers to texts are followed, ids are read as the names they were made of.
func plain(value any) string {
	switch v := value.(type) {
	case *records.GroupEpoch:
		return fmt.Sprintf("epoch=%d", v.Epoch) // the hash depends on the topics' ids
	case *records.Subscription:
		return fmt.Sprintf("topics=%v regex=%s classic=%v", v.Topics, text(v.Regex), v.Classic != nil)
	case *records.TargetEpoch:
		return fmt.Sprintf("epoch=%d", v.Epoch)
	case *records.Partitions:
		return showPartitions(v.Topics)
	case *records.CurrentAssignment:
		return fmt.Sprintf("epoch=%d previous=%d state=%d has %s revokes %s", v.MemberEpoch, v.PreviousEpoch, v.State, showPartitions(v.Assigned), showPartitions(v.Revoking))
	}
	return fmt.Sprintf("%+v", value)
}

func showPartitions(topics []records.TopicPartitions) string {
	var parts []string
	for _, t := range topics {
		parts = append(parts, fmt.Sprintf("%s%v", nameOf(t.Topic[:]), t.Partitions))
	}
	return "{" + strings.Join(parts, " ") + "}"
}

// nameOf reads an id of topicID.
func nameOf(id []byte) string { return strings.TrimRight(string(id[:15]), "\x00") }

func text(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

func showOffset(o *records.Offset) string {
	s := fmt.Sprintf("%d at=%d", o.Offset, o.CommitTime)
	if o.LeaderEpoch >= 0 {
		s += fmt.Sprintf(" epoch=%d", o.LeaderEpoch)
	}
	if o.Metadata != "" {
		s += " " + showText(o.Metadata)
	}
	if o.ExpireTime >= 0 {
		s += fmt.Sprintf(" expires=%d", o.ExpireTime)
	}
	if !o.TopicID.IsZero() {
		s += fmt.Sprintf(" id=%s.%d", nameOf(o.TopicID[:]), o.TopicID[15])
	}
	return s + showJump(o.Jump)
}

// showText shortens what is long.
func showText(s string) string {
	if len(s) > 40 {
		return fmt.Sprintf("%q... of %d", s[:10], len(s))
	}
	return strconv.Quote(s)
}

func showJump(j *records.Jump) string {
	if j == nil {
		return ""
	}
	return fmt.Sprintf(" jump(%v: %d to %d at %d)", j.Reason, j.From, j.To, j.At)
}

func showGeneration(g *records.Generation) string {
	s := fmt.Sprintf("%d type=%q protocol=%s leader=%s since=%d", g.Generation, g.ProtocolType, text(g.Protocol), text(g.Leader), g.StateTime)
	for _, m := range g.Members {
		s += fmt.Sprintf(" %s:%q", m.Member, m.Assignment)
	}
	return s
}

// showAnswer draws an answer, its lists indented below it.
func showAnswer(a coord.Answer) string {
	var b strings.Builder
	switch a := a.(type) {
	case *coord.CommitReply:
		b.WriteString("commit" + showCodes(a.Topics))
	case *coord.DeleteOffsetsReply:
		b.WriteString("delete-offsets " + a.Code.String() + showCodes(a.Topics))
	case *coord.FetchOffsetsReply:
		fmt.Fprintf(&b, "fetch %q %v", a.Group, a.Code)
		for _, t := range a.Topics {
			for _, p := range t.Partitions {
				fmt.Fprintf(&b, " %s-%d=%d", t.Name, p.Partition, p.Offset)
				if p.Metadata != "" {
					b.WriteString(showText(p.Metadata))
				}
				if p.LeaderEpoch >= 0 {
					fmt.Fprintf(&b, "@%d", p.LeaderEpoch)
				}
				if p.Code != wire.NoError {
					b.WriteString(" " + p.Code.String())
				}
			}
		}
	case *coord.DescribeReply:
		fmt.Fprintf(&b, "describe %q %v %s type=%q protocol=%q", a.Group, a.Code, a.State, a.ProtocolType, a.Protocol)
		for _, m := range a.Members {
			fmt.Fprintf(&b, " %s:%q", m.Member, m.Assignment)
		}
	case *coord.ConsumerDescribeReply:
		fmt.Fprintf(&b, "consumer-describe %q %v %s epoch=%d/%d assignor=%q", a.Group, a.Code, a.State, a.GroupEpoch, a.AssignmentEpoch, a.Assignor)
		for _, m := range a.Members {
			fmt.Fprintf(&b, " %s@%d type=%d has %s shall %s", m.Member, m.Epoch, m.Type, showAssignment(m.Assignment), showAssignment(m.Target))
		}
	case *coord.ListReply:
		b.WriteString("list")
		for _, g := range a.Groups {
			fmt.Fprintf(&b, " %q %s/%s/%q", g.Group, g.Type, g.State, g.ProtocolType)
		}
	case *coord.InspectReply:
		b.WriteString("inspect")
		for _, g := range a.Groups {
			fmt.Fprintf(&b, "\n  %q %s/%s members=%d", g.Group, g.Type, g.State, g.Members)
			for _, o := range g.Offsets {
				fmt.Fprintf(&b, " %s-%d=%d%s", o.Topic, o.Partition, o.Offset, showJump(o.Jump))
			}
		}
	case *coord.JoinReply:
		fmt.Fprintf(&b, "join %v generation=%d type=%q protocol=%q leader=%q member=%q members=", a.Code, a.Generation, a.ProtocolType, a.Protocol, a.Leader, a.Member)
		for i, m := range a.Members {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString(m.Member)
		}
	case *coord.SyncReply:
		fmt.Fprintf(&b, "sync %v type=%q protocol=%q %q", a.Code, a.ProtocolType, a.Protocol, a.Assignment)
	case *coord.HeartbeatReply:
		fmt.Fprintf(&b, "heartbeat %v", a.Code)
	case *coord.LeaveReply:
		fmt.Fprintf(&b, "leave %v", a.Code)
		for _, m := range a.Members {
			fmt.Fprintf(&b, " %s=%v", m.Member, m.Code)
		}
	case *coord.ConsumerHeartbeatReply:
		fmt.Fprintf(&b, "consumer-heartbeat %v member=%q epoch=%d interval=%d", a.Code, a.Member, a.MemberEpoch, a.HeartbeatInterval)
		if a.Assigned {
			b.WriteString(" assignment=" + showAssignment(a.Assignment))
		}
	case *coord.CodeReply:
		b.WriteString("code " + a.Code.String())
	case *coord.ErrorReply:
		b.WriteString("error " + a.Code.String())
	}
	return b.String()
}

func showAssignment(topics []coord.TopicPartitions) string {
	var parts []string
	for _, t := range topics {
		parts = append(parts, fmt.Sprintf("%s%v", nameOf(t.Topic[:]), t.Partitions))
	}
	return "{" + strings.Join(parts, " ") + "}"
}

func showCodes(topics []coord.CommitTopicReply) string {
	var b strings.Builder
	for _, t := range topics {
		for _, p := range t.Partitions {
			fmt.Fprintf(&b, " %s-%d=%v", t.Name, p.Partition, p.Code)
		}
	}
	return b.String()
}
