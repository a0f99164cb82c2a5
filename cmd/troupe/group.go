package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

func newGroup(s *session) *cobra.Command {
	cmd := &cobra.Command{Use: "group", Aliases: []string{"groups"}, Short: "List, describe, reset and delete consumer groups"}
	cmd.AddCommand(newGroupList(s), newGroupDescribe(s), newGroupReset(s), newGroupDelete(s), newGroupDeleteOffsets(s))
	return cmd
}

// listedGroup is a row of `troupe group list`.
type listedGroup struct {
	Group        string `json:"group"`
	Type         string `json:"type"`
	State        string `json:"state"`
	ProtocolType string `json:"protocol_type"` // "" of a group that has only committed offsets
	Coordinator  int32  `json:"coordinator"`
}

func newGroupList(s *session) *cobra.Command {
	var states, types []string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List groups",
		Example: "  troupe group list\n  troupe group list --state Stable,PreparingRebalance --type classic -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmp.Or(checkWords("state", states, groupStates), checkWords("type", types, groupTypes)); err != nil {
				return err
			}
			return s.withAdmin(cmd, timeout, func(ctx context.Context, admin *kadm.Client) error {
				listed, err := admin.ListGroupsByType(ctx, types, states...)
				if err != nil {
					return shardError(err, "list groups")
				}
				rows := []listedGroup{}
				for _, g := range listed.Sorted() {
					rows = append(rows, listedGroup{
						Group: g.Group, Type: strings.ToLower(g.GroupType), State: g.State, ProtocolType: g.ProtocolType, Coordinator: g.Coordinator,
					})
				}
				return s.show(rows, func(w io.Writer) {
					row(w, "GROUP", "TYPE", "STATE", "COORDINATOR")
					for _, r := range rows {
						row(w, r.Group, r.Type, r.State, r.Coordinator)
					}
				})
			})
		},
	}
	cmd.Flags().StringSliceVar(&states, "state", nil, "only groups in these states, separated by commas: "+strings.Join(groupStates, ", "))
	cmd.Flags().StringSliceVar(&types, "type", nil, "only groups of these types: classic, consumer")
	must(cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(groupStates, cobra.ShellCompDirectiveNoFileComp)))
	must(cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(groupTypes, cobra.ShellCompDirectiveNoFileComp)))
	timeoutFlag(cmd, &timeout)
	return cmd
}

// The words of Kafka for states, of both protocols, and for types.
var (
	groupStates = []string{"Empty", "Stable", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Dead"}
	groupTypes  = []string{"classic", "consumer"}
)

// checkWords says which word is none of the known ones.
func checkWords(what string, given, known []string) error {
	for _, word := range given {
		if !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, word) }) {
			return usage(strings.Join(known, ", "), "there is no %s %q of a group", what, word)
		}
	}
	return nil
}

// findGroups gives the named groups, or says which one is not there.
func findGroups(ctx context.Context, admin *kadm.Client, names []string) (kadm.ListedGroups, error) {
	listed, err := admin.ListGroups(ctx)
	if err != nil {
		return nil, shardError(err, "list groups")
	}
	found := kadm.ListedGroups{}
	for _, name := range names {
		g, ok := listed[name]
		if !ok {
			return nil, noGroup(name)
		}
		found[name] = g
	}
	return found, nil
}

func noGroup(name string) error {
	return fail(codeNotFound, "`troupe group list` shows the groups; a group is there from the first member or commit on", "there is no group %q", name)
}

// shardError takes the answer of a broker out of the errors that the library collects from all of them.
func shardError(err error, format string, args ...any) error {
	if shards, ok := errors.AsType[*kadm.ShardErrors](err); ok && len(shards.Errs) > 0 {
		err = shards.Errs[0].Err
	}
	return refusal(err, "", format, args...)
}

// groupResult is what happened to one group, or to one partition of it.
type groupResult struct {
	Group     string `json:"group"`
	Topic     string `json:"topic,omitempty"`
	Partition *int32 `json:"partition,omitempty"`
	Done      string `json:"done,omitempty"` // deleted
	Error     string `json:"error,omitempty"`
}

// showGroupResults prints the results and gives back the first error. For people, the only result is not told twice when it
// is that error.
func (s *session) showGroupResults(results []groupResult, first error) error {
	if first != nil && len(results) == 1 && s.format == formatText {
		return first
	}
	err := s.show(results, func(w io.Writer) {
		for _, r := range results {
			what := r.Group
			if r.Partition != nil {
				what = fmt.Sprintf("%s\t%s-%d", r.Group, r.Topic, *r.Partition)
			}
			if r.Error == "" {
				row(w, what, r.Done)
			} else {
				row(w, what, "error: "+r.Error)
			}
		}
	})
	return cmpFirst(err, first)
}

func newGroupDelete(s *session) *cobra.Command {
	var yes bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "delete GROUP...",
		Short: "Delete groups that have no members, with their committed offsets",
		Long: "Delete groups that have no members, with their committed offsets. Consumers that come back under the same name begin\n" +
			"as their auto.offset.reset says.",
		Example:           "  troupe group delete billing\n  troupe group delete billing shipping --yes",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: s.completeGroups,
		RunE: func(cmd *cobra.Command, names []string) error {
			if !yes {
				if err := s.confirm(names, "committed offsets"); err != nil {
					return err
				}
			}
			return s.withAdmin(cmd, timeout, func(ctx context.Context, admin *kadm.Client) error {
				answers, err := admin.DeleteGroups(ctx, names...)
				if err != nil {
					return shardError(err, "delete groups")
				}
				var results []groupResult
				var first error
				for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
					a := answers[name]
					r := groupResult{Group: name, Done: "deleted"}
					if a.Err != nil {
						r.Done, r.Error = "", answerText(a.Err, a.ErrMessage)
						first = cmpFirst(first, groupRefusal(a.Err, a.ErrMessage, name, "delete group %s", name))
					}
					results = append(results, r)
				}
				return s.showGroupResults(results, first)
			})
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	timeoutFlag(cmd, &timeout)
	return cmd
}

// groupRefusal is refusal, with the words of an unknown group.
func groupRefusal(err error, message, group, format string, args ...any) error {
	if errors.Is(err, kerr.GroupIDNotFound) {
		return noGroup(group)
	}
	return refusal(err, message, format, args...)
}

func newGroupDeleteOffsets(s *session) *cobra.Command {
	var specs []string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "delete-offsets GROUP --topic TOPIC[:PARTITION,...]",
		Short: "Delete committed offsets of topics that no member subscribes to",
		Example: "  troupe group delete-offsets billing --topic orders\n" +
			"  troupe group delete-offsets billing --topic orders:0,1 --topic payments",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeGroups,
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen, err := parseTopicSpecs("--topic ", specs)
			if err != nil {
				return err
			}
			if len(chosen) == 0 {
				return usage("--topic TOPIC or --topic TOPIC:PARTITION,...", "which topics is not said")
			}
			return s.withAdmin(cmd, timeout, func(ctx context.Context, admin *kadm.Client) error {
				return s.deleteOffsets(ctx, admin, args[0], chosen)
			})
		},
	}
	topicSpecFlag(cmd, s, &specs)
	timeoutFlag(cmd, &timeout)
	return cmd
}

func (s *session) deleteOffsets(ctx context.Context, admin *kadm.Client, group string, chosen map[string][]int32) error {
	committed, err := admin.FetchOffsets(ctx, group)
	if err != nil {
		return groupRefusal(err, "", group, "fetch the offsets of %s", group)
	}
	set := kadm.TopicsSet{}
	for topic, partitions := range chosen {
		if len(partitions) == 0 { // all that it has
			for p := range committed[topic] {
				partitions = append(partitions, p)
			}
		}
		set.Add(topic, partitions...)
	}
	answers, err := admin.DeleteOffsets(ctx, group, set)
	if err != nil {
		return groupRefusal(err, "", group, "delete offsets of %s", group)
	}
	var results []groupResult
	var first error
	for _, list := range set.Sorted() {
		topic := list.Topic
		for _, p := range list.Partitions {
			r := groupResult{Group: group, Topic: topic, Partition: &p, Done: "deleted"}
			if err := answers[topic][p]; err != nil {
				r.Done, r.Error = "", err.Error()
				first = cmpFirst(first, refusal(err, "", "delete the offset of %s for %s-%d", group, topic, p))
			}
			results = append(results, r)
		}
	}
	if len(results) == 0 {
		return fail(codeNotFound, "`troupe group describe "+group+"` shows what it has committed", "group %s has committed nothing of that", group)
	}
	return s.showGroupResults(results, first)
}

// completeGroups offers the names of groups.
func (s *session) completeGroups(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	const patience = 300 * time.Millisecond
	var names []string
	err := s.withAdmin(cmd, patience, func(ctx context.Context, admin *kadm.Client) error {
		listed, err := admin.ListGroups(ctx)
		names = listed.Groups()
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
