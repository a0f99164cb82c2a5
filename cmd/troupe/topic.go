package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire/ident"
)

func newTopic(s *session) *cobra.Command {
	cmd := &cobra.Command{Use: "topic", Aliases: []string{"topics"}, Short: "Create, list, describe, alter and delete topics"}
	cmd.AddCommand(newTopicCreate(s), newTopicList(s), newTopicDescribe(s), newTopicAlter(s), newTopicDelete(s))
	return cmd
}

// topicResult is what happened to one topic of a command.
type topicResult struct {
	Topic      string `json:"topic"`
	ID         string `json:"id,omitempty"`
	Partitions int32  `json:"partitions,omitempty"`
	Replicas   int16  `json:"replication_factor,omitempty"`
	Done       string `json:"done,omitempty"` // created, would be created, existed, deleted, altered
	Error      string `json:"error,omitempty"`
}

// showResults prints the results and turns the first error into the command's own. For people, the only result is not told
// twice when it is that error.
func (s *session) showResults(results []topicResult, first error) error {
	if first != nil && len(results) == 1 && s.format == formatText {
		return first
	}
	err := s.show(results, func(w io.Writer) {
		for _, r := range results {
			if r.Error == "" {
				row(w, r.Topic, r.Done)
			} else {
				row(w, r.Topic, "error: "+r.Error)
			}
		}
	})
	if err != nil {
		return err
	}
	return first
}

func newTopicCreate(s *session) *cobra.Command {
	var (
		partitions  int32
		replication int16
		settings    []string
		ifNotExists bool
		dryRun      bool
		timeout     time.Duration
	)
	cmd := &cobra.Command{
		Use:     "create NAME...",
		Short:   "Create topics",
		Example: "  troupe topic create orders --partitions 6 --config retention.ms=86400000",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			configs, err := parseSettings(settings)
			if err != nil {
				return err
			}
			return s.withAdmin(cmd, timeout, func(ctx context.Context, admin *kadm.Client) error {
				create, done := admin.CreateTopics, "created"
				if dryRun {
					create, done = admin.ValidateCreateTopics, "would be created"
				}
				answers, err := create(ctx, partitions, replication, configs, names...)
				if err != nil {
					return fmt.Errorf("create topics: %w", err)
				}
				var results []topicResult
				var first error
				for _, a := range answers.Sorted() {
					r := topicResult{Topic: a.Topic, Done: done, Partitions: a.NumPartitions, Replicas: a.ReplicationFactor}
					if a.ID != (kadm.TopicID{}) {
						r.ID = ident.TopicID(a.ID).String()
					}
					switch {
					case a.Err != nil && ifNotExists && errors.Is(a.Err, kerr.TopicAlreadyExists):
						r.Done = "existed"
					case a.Err != nil:
						r.Done, r.Error = "", answerText(a.Err, a.ErrMessage)
						first = cmpFirst(first, refusal(a.Err, a.ErrMessage, "create topic %s", a.Topic))
					}
					results = append(results, r)
				}
				return s.showResults(results, first)
			})
		},
	}
	cmd.Flags().Int32VarP(&partitions, "partitions", "p", -1, "number of partitions; -1 is the broker's default")
	cmd.Flags().Int16VarP(&replication, "replication-factor", "r", -1, "number of replicas; -1 is the broker's default")
	cmd.Flags().StringArrayVarP(&settings, "config", "c", nil, "setting of the topic, KEY=VALUE; may be given again")
	cmd.Flags().BoolVar(&ifNotExists, "if-not-exists", false, "a topic that exists is no error")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "check everything, create nothing")
	must(cmd.RegisterFlagCompletionFunc("config", completeKeys(config.Topic(), "=", anyKey)))
	timeoutFlag(cmd, &timeout)
	return cmd
}

// listedTopic is a row of `troupe topic list`.
type listedTopic struct {
	Topic      string `json:"topic"`
	ID         string `json:"id"`
	Partitions int    `json:"partitions"`
	Replicas   int    `json:"replication_factor"`
	Internal   bool   `json:"internal,omitempty"`
}

func newTopicList(s *session) *cobra.Command {
	var internal bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List topics",
		Example: "  troupe topic list\n  troupe topic list -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.withAdmin(cmd, timeout, func(ctx context.Context, admin *kadm.Client) error {
				list := admin.ListTopics
				if internal {
					list = admin.ListTopicsWithInternal
				}
				topics, err := list(ctx)
				if err != nil {
					return fmt.Errorf("list topics: %w", err)
				}
				rows := []listedTopic{}
				for _, t := range topics.Sorted() {
					rows = append(rows, listedTopic{
						Topic: t.Topic, ID: ident.TopicID(t.ID).String(), Partitions: len(t.Partitions),
						Replicas: t.Partitions.NumReplicas(), Internal: t.IsInternal,
					})
				}
				return s.show(rows, func(w io.Writer) {
					row(w, "TOPIC", "PARTITIONS", "REPLICAS")
					for _, r := range rows {
						row(w, r.Topic, r.Partitions, r.Replicas)
					}
				})
			})
		},
	}
	cmd.Flags().BoolVar(&internal, "internal", false, "list the broker's own topics too")
	timeoutFlag(cmd, &timeout)
	return cmd
}

func newTopicAlter(s *session) *cobra.Command {
	var (
		partitions int
		set        []string
		unset      []string
		timeout    time.Duration
	)
	cmd := &cobra.Command{
		Use:               "alter NAME...",
		Short:             "Add partitions, change settings",
		Example:           "  troupe topic alter orders --partitions 12\n  troupe topic alter orders --config retention.ms=3600000 --delete-config segment.ms",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: s.completeTopics,
		RunE: func(cmd *cobra.Command, names []string) error {
			changes, err := parseChanges(set, unset, nil, nil)
			if err != nil {
				return err
			}
			if len(changes) == 0 && partitions == 0 {
				return usage("--partitions N, --config KEY=VALUE or --delete-config KEY", "nothing to alter")
			}
			return s.withAdmin(cmd, timeout, func(ctx context.Context, admin *kadm.Client) error {
				return s.alterTopics(ctx, admin, names, partitions, changes)
			})
		},
	}
	cmd.Flags().IntVarP(&partitions, "partitions", "p", 0, "new total number of partitions; it can only grow")
	cmd.Flags().StringArrayVarP(&set, "config", "c", nil, "set KEY=VALUE; may be given again")
	cmd.Flags().StringArrayVar(&unset, "delete-config", nil, "return KEY to its default; may be given again")
	must(cmd.RegisterFlagCompletionFunc("config", completeKeys(config.Topic(), "=", anyKey)))
	must(cmd.RegisterFlagCompletionFunc("delete-config", completeKeys(config.Topic(), "", anyKey)))
	timeoutFlag(cmd, &timeout)
	return cmd
}

func (s *session) alterTopics(ctx context.Context, admin *kadm.Client, names []string, partitions int, changes []kadm.AlterConfig) error {
	results := map[string]*topicResult{}
	for _, name := range names {
		results[name] = &topicResult{Topic: name, Done: "altered"}
	}
	var first error
	note := func(topic, message string, err error) {
		if err == nil {
			return
		}
		results[topic].Done, results[topic].Error = "", answerText(err, message)
		first = cmpFirst(first, refusal(err, message, "alter topic %s", topic))
	}
	if partitions != 0 {
		answers, err := admin.UpdatePartitions(ctx, partitions, names...)
		if err != nil {
			return fmt.Errorf("add partitions: %w", err)
		}
		for _, a := range answers.Sorted() {
			note(a.Topic, a.ErrMessage, a.Err)
		}
	}
	if len(changes) > 0 {
		answers, err := admin.AlterTopicConfigs(ctx, changes, names...)
		if err != nil {
			return fmt.Errorf("change settings: %w", err)
		}
		for _, a := range answers {
			note(a.Name, a.ErrMessage, a.Err)
		}
	}
	rows := make([]topicResult, 0, len(results))
	for _, name := range slices.Sorted(maps.Keys(results)) {
		rows = append(rows, *results[name])
	}
	return s.showResults(rows, first)
}

func newTopicDelete(s *session) *cobra.Command {
	var yes bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:               "delete NAME...",
		Short:             "Delete topics and their records",
		Example:           "  troupe topic delete orders\n  troupe topic delete orders payments --yes",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: s.completeTopics,
		RunE: func(cmd *cobra.Command, names []string) error {
			if !yes {
				if err := s.confirm(names, "records"); err != nil {
					return err
				}
			}
			return s.withAdmin(cmd, timeout, func(ctx context.Context, admin *kadm.Client) error {
				answers, err := admin.DeleteTopics(ctx, names...)
				if err != nil {
					return fmt.Errorf("delete topics: %w", err)
				}
				var results []topicResult
				var first error
				for _, a := range answers.Sorted() {
					r := topicResult{Topic: a.Topic, Done: "deleted"}
					if a.Err != nil {
						r.Done, r.Error = "", answerText(a.Err, a.ErrMessage)
						first = cmpFirst(first, refusal(a.Err, a.ErrMessage, "delete topic %s", a.Topic))
					}
					results = append(results, r)
				}
				return s.showResults(results, first)
			})
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	timeoutFlag(cmd, &timeout)
	return cmd
}

// confirm asks for the name to be typed; where nobody can be asked, it refuses.
func (s *session) confirm(names []string, what string) error {
	want := strings.Join(names, " ")
	if !s.asks {
		return fail(codeNotConfirmed, "--yes does it without asking", "deleting %s takes its %s with it, and nobody can be asked here", want, what)
	}
	_, _ = fmt.Fprintf(s.err, "This deletes all %s. Type %q to go on: ", what, want)
	line, err := bufio.NewReader(s.in).ReadString('\n')
	if err != nil && line == "" {
		return fail(codeNotConfirmed, "", "no answer: %w", err)
	}
	if strings.TrimSpace(line) != want {
		return fail(codeNotConfirmed, "", "nothing was deleted")
	}
	return nil
}

// parseSettings reads KEY=VALUE pairs.
func parseSettings(pairs []string) (map[string]*string, error) {
	settings := make(map[string]*string, len(pairs))
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, usage("for example --config retention.ms=3600000", "%q is not KEY=VALUE", pair)
		}
		if settings[key] != nil {
			return nil, usage("", "%s is given twice", key)
		}
		settings[key] = &value
	}
	return settings, nil
}

// parseChanges makes an incremental change of settings out of flags.
func parseChanges(set, unset, appended, subtracted []string) ([]kadm.AlterConfig, error) {
	var changes []kadm.AlterConfig
	for _, op := range []struct {
		pairs []string
		op    kadm.IncrementalOp
	}{{set, kadm.SetConfig}, {appended, kadm.AppendConfig}, {subtracted, kadm.SubtractConfig}} {
		settings, err := parseSettings(op.pairs)
		if err != nil {
			return nil, err
		}
		for _, key := range slices.Sorted(maps.Keys(settings)) {
			changes = append(changes, kadm.AlterConfig{Op: op.op, Name: key, Value: settings[key]})
		}
	}
	for _, key := range unset {
		changes = append(changes, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: key})
	}
	return changes, nil
}

// answerText joins a Kafka error with the broker's words for it.
func answerText(err error, message string) string {
	if message != "" {
		return message
	}
	return err.Error()
}

// refusal is the failure for an error that the broker answered.
func refusal(err error, message, format string, args ...any) error {
	doing := fmt.Sprintf(format, args...)
	if refused, ok := err.(*kerr.Error); ok { //nolint:errorlint // kadm hands the bare value of the table out
		if message == "" {
			message = refused.Description
		}
		f := fail(codeRefused, hintFor(refused), "%s: %s: %s", doing, refused.Message, message)
		if m := coded.FindStringSubmatch(message); m != nil { // the broker says it with a code of its own
			f.Code, f.What = m[1], fmt.Sprintf("%s: %s: %s", doing, refused.Message, m[2])
		}
		return f
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// cmpFirst keeps the first error.
func cmpFirst(first, err error) error {
	if first != nil {
		return first
	}
	return err
}
