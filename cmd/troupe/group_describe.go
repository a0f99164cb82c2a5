package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

// describedGroup is what `troupe group describe` says of one group.
type describedGroup struct {
	Group       string            `json:"group"`
	Type        string            `json:"type"`
	State       string            `json:"state"`
	Assignor    string            `json:"assignor,omitempty"`
	Epoch       int32             `json:"epoch,omitempty"` // consumer groups
	Coordinator int32             `json:"coordinator"`
	MemberCount int               `json:"member_count"`
	Lag         int64             `json:"lag"`         // records, over all partitions with a commit
	LagSeconds  *float64          `json:"lag_seconds"` // the greatest of all partitions; null: not known
	Members     []describedMember `json:"members,omitempty"`
	Offsets     []describedOffset `json:"offsets,omitempty"`
	NotAsked    string            `json:"jumps_not_known,omitempty"` // why what the group skipped is not in Offsets
}

// describedMember is one member. Target is what it shall have, where the broker says so.
type describedMember struct {
	Member   string   `json:"member"`
	Instance string   `json:"instance,omitempty"`
	Client   string   `json:"client"`
	Host     string   `json:"host"`
	Epoch    *int32   `json:"epoch,omitempty"`    // consumer groups
	Protocol string   `json:"protocol,omitempty"` // by which it came: classic or consumer
	Topics   []string `json:"topics,omitempty"`
	Pattern  string   `json:"pattern,omitempty"`
	Assigned []string `json:"assigned"` // TOPIC:PARTITION,…
	Target   []string `json:"target,omitempty"`
}

// describedOffset is one partition of a group: what is committed, what is there, who reads it. A nil number is not known, or
// is not there.
type describedOffset struct {
	Topic      string   `json:"topic"`
	Partition  int32    `json:"partition"`
	Committed  *int64   `json:"committed"`
	Start      *int64   `json:"log_start_offset"`
	End        *int64   `json:"high_watermark"`
	Lag        *int64   `json:"lag"`
	LagSeconds *float64 `json:"lag_seconds"`
	Metadata   string   `json:"metadata,omitempty"`
	Member     string   `json:"member,omitempty"`
	Client     string   `json:"client,omitempty"`
	Host       string   `json:"host,omitempty"`
	Jump       *jump    `json:"jump,omitempty"`
	Error      string   `json:"error,omitempty"`
}

// describeParts are what is shown.
type describeParts struct{ state, members, offsets bool }

func newGroupDescribe(s *session) *cobra.Command {
	var parts describeParts
	var timeout time.Duration
	var monitor string
	cmd := &cobra.Command{
		Use:   "describe GROUP...",
		Short: "Show state, members, committed offsets and lag of groups",
		Long: "Show state, members, committed offsets and lag of groups. Without a flag: state and offsets.\n\n" +
			"The lag in seconds is the age of the first record that was not yet read: how long ago the timestamp of the record at the\n" +
			"committed offset is; 0 when there is none, \"-\" where it is not known.\n" +
			"Records that a group jumped over by its auto.offset.reset are told by the monitor (metrics.listen) of the broker that coordinates\n" +
			"the group; the output says when --monitor is another broker's. Where it cannot be reached, nothing is said of them.",
		Example:           "  troupe group describe billing\n  troupe group describe billing shipping --members -o json",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: s.completeGroups,
		RunE: func(cmd *cobra.Command, names []string) error {
			if parts == (describeParts{}) {
				parts = describeParts{state: true, offsets: true}
			}
			names = slices.Compact(slices.Sorted(slices.Values(names)))
			return s.withAdmin(cmd, timeout, func(ctx context.Context, admin *kadm.Client) error {
				groups, err := s.describeGroups(ctx, admin, names, parts, monitor)
				if err != nil {
					return err
				}
				return s.show(groups, func(w io.Writer) {
					for i := range groups {
						if i > 0 {
							row(w)
						}
						groups[i].text(w, parts)
					}
				})
			})
		},
	}
	cmd.Flags().BoolVar(&parts.state, "state", false, "show the state")
	cmd.Flags().BoolVar(&parts.members, "members", false, "show the members and what each has")
	cmd.Flags().BoolVar(&parts.offsets, "offsets", false, "show committed offsets and lag")
	monitorFlag(cmd, s, &monitor)
	timeoutFlag(cmd, &timeout)
	return cmd
}

func (s *session) describeGroups(ctx context.Context, admin *kadm.Client, names []string, parts describeParts, monitor string) ([]describedGroup, error) {
	listed, err := findGroups(ctx, admin, names)
	if err != nil {
		return nil, err
	}
	groups := make([]describedGroup, 0, len(names))
	for _, name := range names {
		l := listed[name]
		g := describedGroup{Group: name, Type: strings.ToLower(l.GroupType), State: l.State, Coordinator: l.Coordinator}
		if err := g.fill(ctx, admin); err != nil {
			return nil, err
		}
		groups = append(groups, g)
	}
	if parts.offsets || parts.state {
		if err := s.fillOffsets(ctx, admin, groups); err != nil {
			return nil, err
		}
	}
	for i := range groups {
		if parts.offsets {
			groups[i].fillJumps(ctx, monitor)
		} else {
			groups[i].Offsets = nil
		}
		if !parts.members {
			groups[i].Members = nil
		}
	}
	return groups, nil
}

// fill asks for the members, by the request that is for the group's type.
func (g *describedGroup) fill(ctx context.Context, admin *kadm.Client) error {
	if g.Type == "consumer" {
		described, err := admin.DescribeConsumerGroups(ctx, g.Group)
		if err != nil {
			return shardError(err, "describe group %s", g.Group)
		}
		d := described[g.Group]
		if d.Err != nil {
			return groupRefusal(d.Err, "", g.Group, "describe group %s", g.Group)
		}
		g.State, g.Assignor, g.Epoch, g.MemberCount = d.State, d.AssignorName, d.Epoch, len(d.Members)
		for _, m := range d.Members {
			member := describedMember{
				Member: m.MemberID, Instance: textOf(m.InstanceID), Client: m.ClientID, Host: m.ClientHost, Epoch: &m.MemberEpoch,
				Topics: slices.Sorted(slices.Values(m.SubscribedTopics)), Pattern: textOf(m.SubscribedTopicRegex), Assigned: topicSpecs(m.Assignment),
			}
			if m.MemberType >= 0 {
				member.Protocol = groupTypes[m.MemberType&1]
			}
			if target := topicSpecs(m.TargetAssignment); !slices.Equal(target, member.Assigned) {
				member.Target = target
			}
			g.Members = append(g.Members, member)
		}
		return nil
	}
	described, err := admin.DescribeGroups(ctx, g.Group)
	if err != nil {
		return shardError(err, "describe group %s", g.Group)
	}
	d := described[g.Group]
	if d.Err != nil {
		return groupRefusal(d.Err, d.ErrMessage, g.Group, "describe group %s", g.Group)
	}
	g.State, g.Assignor, g.MemberCount = d.State, d.Protocol, len(d.Members)
	for _, m := range d.Members {
		member := describedMember{Member: m.MemberID, Instance: textOf(m.InstanceID), Client: m.ClientID, Host: m.ClientHost, Assigned: []string{}}
		if joined, ok := m.Join.AsConsumer(); ok {
			member.Topics = slices.Sorted(slices.Values(joined.Topics))
		}
		if assigned, ok := m.Assigned.AsConsumer(); ok {
			set := kadm.TopicsSet{}
			for _, t := range assigned.Topics {
				set.Add(t.Topic, t.Partitions...)
			}
			member.Assigned = topicSpecs(set)
		}
		g.Members = append(g.Members, member)
	}
	return nil
}

// fillOffsets finds what is committed and what is there, for each partition that is committed or assigned.
func (s *session) fillOffsets(ctx context.Context, admin *kadm.Client, groups []describedGroup) error {
	topics := map[string]bool{}
	for i := range groups {
		g := &groups[i]
		committed, err := admin.FetchOffsets(ctx, g.Group)
		if err != nil {
			return groupRefusal(err, "", g.Group, "fetch the offsets of %s", g.Group)
		}
		rows := map[partitionKey]*describedOffset{}
		at := func(topic string, partition int32) *describedOffset {
			key := partitionKey{topic, partition}
			if rows[key] == nil {
				rows[key] = &describedOffset{Topic: topic, Partition: partition}
				topics[topic] = true
			}
			return rows[key]
		}
		committed.Each(func(r kadm.OffsetResponse) {
			o := at(r.Topic, r.Partition)
			o.Metadata = r.Metadata
			if r.Err != nil {
				o.Error = r.Err.Error()
			} else if r.At >= 0 {
				o.Committed = &r.At
			}
		})
		for _, m := range g.Members {
			chosen, err := parseTopicSpecs("--topic ", m.Assigned)
			if err != nil {
				return fmt.Errorf("what %s has: %w", m.Member, err)
			}
			for topic, partitions := range chosen {
				for _, p := range partitions {
					o := at(topic, p)
					o.Member, o.Client, o.Host = m.Member, m.Client, m.Host
				}
			}
		}
		for _, o := range rows {
			g.Offsets = append(g.Offsets, *o)
		}
		slices.SortFunc(g.Offsets, func(a, b describedOffset) int {
			return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
		})
	}
	if len(topics) == 0 {
		return nil
	}
	bounds, err := boundsOf(ctx, admin, topics)
	if err != nil {
		return err
	}
	for i := range groups {
		groups[i].fillLag(bounds)
	}
	return s.fillLagSeconds(ctx, groups)
}

// partitionKey names a partition.
type partitionKey struct {
	topic     string
	partition int32
}

// bounds are the log start and the high watermark of partitions; one that has an error is not there.
func boundsOf(ctx context.Context, admin *kadm.Client, topics map[string]bool) (map[partitionKey]span, error) {
	names := make([]string, 0, len(topics))
	for topic := range topics {
		names = append(names, topic)
	}
	starts, err := admin.ListStartOffsets(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("list first offsets: %w", err)
	}
	ends, err := admin.ListEndOffsets(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("list last offsets: %w", err)
	}
	bounds := map[partitionKey]span{}
	starts.Each(func(start kadm.ListedOffset) {
		if end, ok := ends.Lookup(start.Topic, start.Partition); ok && start.Err == nil && end.Err == nil {
			bounds[partitionKey{start.Topic, start.Partition}] = span{From: start.Offset, Until: end.Offset}
		}
	})
	return bounds, nil
}

// fillLag counts the records that the group has not read. Without a commit the lag is not known: it depends on where its
// consumers would begin.
func (g *describedGroup) fillLag(bounds map[partitionKey]span) {
	for i := range g.Offsets {
		o := &g.Offsets[i]
		b, ok := bounds[partitionKey{o.Topic, o.Partition}]
		if !ok {
			o.Error = cmp.Or(o.Error, "the partition is not there")
			continue
		}
		o.Start, o.End = &b.From, &b.Until
		if o.Committed != nil {
			lag := max(b.Until-*o.Committed, 0)
			o.Lag = &lag
			g.Lag += lag
		}
	}
}

func (g *describedGroup) text(w io.Writer, parts describeParts) {
	row(w, "group", g.Group)
	if parts.state {
		row(w, "type", g.Type)
		row(w, "state", g.State)
		row(w, "assignor", cmp.Or(g.Assignor, "-"))
		row(w, "coordinator", g.Coordinator)
		row(w, "members", g.MemberCount)
		row(w, "lag", g.shownLag())
	}
	if parts.members {
		row(w)
		row(w, "MEMBER", "INSTANCE", "CLIENT", "HOST", "ASSIGNED")
		for _, m := range g.Members {
			assigned := cmp.Or(strings.Join(m.Assigned, " "), "-")
			if m.Target != nil {
				assigned += " (shall have " + cmp.Or(strings.Join(m.Target, " "), "nothing") + ")"
			}
			row(w, m.Member, cmp.Or(m.Instance, "-"), m.Client, m.Host, assigned)
		}
	}
	if parts.offsets {
		row(w)
		row(w, "TOPIC", "PARTITION", "COMMITTED", "LOG START", "HIGH WATERMARK", "LAG", "LAG SECONDS", "CLIENT", "HOST")
		for _, o := range g.Offsets {
			cells := []any{
				o.Topic, o.Partition, shownNumber(o.Committed), shownNumber(o.Start), shownNumber(o.End), shownNumber(o.Lag), shownSeconds(o.LagSeconds),
				cmp.Or(o.Client, "-"), cmp.Or(o.Host, "-"),
			}
			if o.Error != "" {
				cells = append(cells, o.Error)
			}
			row(w, cells...)
		}
		for _, o := range g.Offsets {
			if o.Jump != nil {
				row(w, fmt.Sprintf("%s-%d %s", o.Topic, o.Partition, o.Jump))
			}
		}
		if g.NotAsked != "" {
			row(w, g.NotAsked)
		}
	}
}

// shownLag is the lag of the whole group, in records and, where it is known, in seconds.
func (g *describedGroup) shownLag() string {
	lag := plural(g.Lag, "record", "records")
	if g.LagSeconds != nil {
		lag += ", " + shownSeconds(g.LagSeconds) + " s"
	}
	return lag
}

func shownNumber(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

func shownSeconds(n *float64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", *n)
}

func textOf(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// activeGroup says how a group is not to be changed now, nil when it may be: only one without members may.
func activeGroup(ctx context.Context, admin *kadm.Client, group string) error {
	listed, err := admin.ListGroups(ctx)
	if err != nil {
		return shardError(err, "list groups")
	}
	g, ok := listed[group]
	if !ok || g.State == "Empty" || g.State == "Dead" {
		return nil // offsets can be committed for a group that is not there yet
	}
	d := describedGroup{Group: group, Type: strings.ToLower(g.GroupType)}
	if err := d.fill(ctx, admin); err != nil {
		return err
	}
	var hosts []string
	for _, m := range d.Members {
		hosts = append(hosts, m.Client+" on "+strings.TrimPrefix(m.Host, "/"))
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	hint := "stop its consumers first: " + strings.Join(hosts, ", ")
	if len(hosts) == 0 {
		hint = "a member was there a moment ago; try again when its session has ended"
	}
	return fail(codeRefused, hint, "group %s is %s with %d members, which would go on from where they are", group, g.State, d.MemberCount)
}
