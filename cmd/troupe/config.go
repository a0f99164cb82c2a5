package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/troupe-broker/troupe/cluster/config"
)

func newConfig(s *session) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Read and change settings of topics and brokers"}
	cmd.AddCommand(newConfigDescribe(s), newConfigAlter(s), newConfigCheck(s), newConfigExplain(s))
	return cmd
}

// describedConfig is one setting as the broker describes it.
type describedConfig struct {
	Name   string  `json:"name"`
	Value  *string `json:"value"`
	Source string  `json:"source"`
	Secret bool    `json:"secret,omitempty"`
}

func (c describedConfig) shown() string {
	switch {
	case c.Secret:
		return "(secret)"
	case c.Value == nil:
		return "(null)"
	}
	return *c.Value
}

// describeConfigs keeps what differs from the default, or everything, sorted by name.
func describeConfigs(resource kadm.ResourceConfig, all bool) []describedConfig {
	rows := []describedConfig{}
	for _, c := range resource.Configs {
		if source := c.Source.String(); all || source != "DEFAULT_CONFIG" {
			rows = append(rows, describedConfig{Name: c.Key, Value: c.Value, Source: source, Secret: c.Sensitive})
		}
	}
	slices.SortFunc(rows, func(a, b describedConfig) int { return cmp.Compare(a.Name, b.Name) })
	return rows
}

// configTarget reads the two words that name a resource: "topic NAME" or "broker ID"; "broker default" is the settings
// that hold for every broker.
func configTarget(args []string) (topic string, broker []int32, err error) {
	switch args[0] {
	case "topic":
		return args[1], nil, nil
	case "broker":
		if args[1] == "default" {
			return "", nil, nil
		}
		id, err := strconv.ParseInt(args[1], 10, 32)
		if err != nil {
			return "", nil, usage("`config describe broker 1`, or `broker default` for the settings of all", "%q is not the id of a broker", args[1])
		}
		return "", []int32{int32(id)}, nil
	}
	return "", nil, usage("topic NAME, broker ID or broker default", "settings belong to a topic or a broker, not to %q", args[0])
}

// noBroker finds out whether a request failed because the cluster has no such broker; else err it is.
func noBroker(ctx context.Context, admin *kadm.Client, ids []int32, err error) error {
	if len(ids) == 0 {
		return err
	}
	brokers, listErr := admin.ListBrokers(ctx)
	if listErr != nil || slices.Contains(brokers.NodeIDs(), ids[0]) {
		return err
	}
	return fail(codeNotFound, fmt.Sprintf("its brokers: %v", brokers.NodeIDs()), "the cluster has no broker %d", ids[0])
}

// completeTarget offers the words that configTarget reads.
func (s *session) completeTarget(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	switch {
	case len(args) == 0:
		return []string{"topic", "broker"}, cobra.ShellCompDirectiveNoFileComp
	case len(args) == 1 && args[0] == "topic":
		return s.completeTopics(cmd, nil, typed)
	case len(args) == 1 && args[0] == "broker":
		return []string{"default"}, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// completeTargetKeys offers the keys of the resource that the words before name.
func completeTargetKeys(suffix string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && args[0] == "broker" {
			changeable := func(k *config.Key) bool { return k.Update != config.ReadOnly }
			return completeKeys(config.Broker(), suffix, changeable)(cmd, args, typed)
		}
		return completeKeys(config.Topic(), suffix, anyKey)(cmd, args, typed)
	}
}

func newConfigDescribe(s *session) *cobra.Command {
	var all bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:     "describe topic NAME | broker ID | broker default",
		Short:   "Show settings and where they come from",
		Example: "  troupe config describe topic orders\n  troupe config describe broker 1 --all",
		Args:    cobra.ExactArgs(2),

		ValidArgsFunction: s.completeTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, broker, err := configTarget(args)
			if err != nil {
				return err
			}
			return s.withAdmin(cmd, timeout, func(ctx context.Context, admin *kadm.Client) error {
				var answers kadm.ResourceConfigs
				if topic != "" {
					answers, err = admin.DescribeTopicConfigs(ctx, topic)
				} else {
					answers, err = admin.DescribeBrokerConfigs(ctx, broker...)
				}
				if err != nil {
					return noBroker(ctx, admin, broker, fmt.Errorf("describe settings: %w", err))
				}
				rows := []describedConfig{}
				for _, a := range answers {
					if a.Err != nil {
						return refusal(a.Err, a.ErrMessage, "describe %s %s", args[0], args[1])
					}
					rows = append(rows, describeConfigs(a, all)...)
				}
				return s.show(rows, func(w io.Writer) {
					row(w, "KEY", "VALUE", "SOURCE")
					for _, r := range rows {
						row(w, r.Name, r.shown(), r.Source)
					}
				})
			})
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "show defaults too")
	timeoutFlag(cmd, &timeout)
	return cmd
}

// changedConfig is the result of `troupe config alter`.
type changedConfig struct {
	Resource string `json:"resource"`
	Changed  int    `json:"changed"`
	DryRun   bool   `json:"dry_run,omitempty"`
}

func newConfigAlter(s *session) *cobra.Command {
	var set, unset, appended, subtracted []string
	var dryRun bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "alter topic NAME | broker ID | broker default",
		Short: "Change settings; what is not named stays as it is",
		Example: "  troupe config alter topic orders --set retention.ms=3600000 --delete segment.ms\n" +
			"  troupe config alter broker default --set log.retention.ms=86400000",
		Args: cobra.ExactArgs(2),

		ValidArgsFunction: s.completeTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, broker, err := configTarget(args)
			if err != nil {
				return err
			}
			changes, err := parseChanges(set, unset, appended, subtracted)
			if err != nil {
				return err
			}
			if len(changes) == 0 {
				return usage("--set KEY=VALUE, --delete KEY, --append KEY=VALUE or --subtract KEY=VALUE", "nothing to change")
			}
			return s.withAdmin(cmd, timeout, func(ctx context.Context, admin *kadm.Client) error {
				answers, err := alterConfigs(ctx, admin, topic, broker, changes, dryRun)
				if err != nil {
					return noBroker(ctx, admin, broker, fmt.Errorf("change settings: %w", err))
				}
				for _, a := range answers {
					if a.Err != nil {
						return refusal(a.Err, a.ErrMessage, "change %s %s", args[0], args[1])
					}
				}
				done := changedConfig{Resource: args[0] + " " + args[1], Changed: len(changes), DryRun: dryRun}
				return s.show(done, func(w io.Writer) {
					verb := "changed"
					if dryRun {
						verb = "would be changed"
					}
					row(w, fmt.Sprintf("%s: %d %s", done.Resource, done.Changed, verb))
				})
			})
		},
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "set KEY=VALUE; may be given again")
	cmd.Flags().StringArrayVar(&unset, "delete", nil, "return KEY to its default; may be given again")
	cmd.Flags().StringArrayVar(&appended, "append", nil, "add to a list, KEY=VALUE")
	cmd.Flags().StringArrayVar(&subtracted, "subtract", nil, "take from a list, KEY=VALUE")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "check everything, change nothing")
	for flag, suffix := range map[string]string{"set": "=", "delete": "", "append": "=", "subtract": "="} {
		must(cmd.RegisterFlagCompletionFunc(flag, completeTargetKeys(suffix)))
	}
	timeoutFlag(cmd, &timeout)
	return cmd
}

func alterConfigs(ctx context.Context, admin *kadm.Client, topic string, broker []int32, changes []kadm.AlterConfig, dryRun bool) (kadm.AlterConfigsResponses, error) {
	switch {
	case topic != "" && dryRun:
		return admin.ValidateAlterTopicConfigs(ctx, changes, topic)
	case topic != "":
		return admin.AlterTopicConfigs(ctx, changes, topic)
	case dryRun:
		return admin.ValidateAlterBrokerConfigs(ctx, changes, broker...)
	}
	return admin.AlterBrokerConfigs(ctx, changes, broker...)
}
