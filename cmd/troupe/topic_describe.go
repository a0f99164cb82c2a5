package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/troupe-broker/troupe/wire/ident"
)

// describedTopic is what `troupe topic describe` says of one topic.
type describedTopic struct {
	Topic      string               `json:"topic"`
	ID         string               `json:"id"`
	Internal   bool                 `json:"internal,omitempty"`
	Replicas   int                  `json:"replication_factor"`
	Partitions []describedPartition `json:"partitions"`
	Configs    []describedConfig    `json:"configs"` // those that are not at their default, or all with --all-configs
}

type describedPartition struct {
	Partition int32   `json:"partition"`
	Leader    int32   `json:"leader"`
	Epoch     int32   `json:"leader_epoch"`
	Replicas  []int32 `json:"replicas"`
	ISR       []int32 `json:"isr"`
	Start     int64   `json:"log_start_offset"`
	End       int64   `json:"high_watermark"`
	Error     string  `json:"error,omitempty"`
}

func newTopicDescribe(s *session) *cobra.Command {
	var allConfigs bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:               "describe NAME...",
		Short:             "Show partitions, offsets and settings of topics",
		Example:           "  troupe topic describe orders\n  troupe topic describe orders payments --all-configs -o yaml",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: s.completeTopics,
		RunE: func(cmd *cobra.Command, names []string) error {
			return s.withAdmin(cmd, timeout, func(ctx context.Context, admin *kadm.Client) error {
				topics, err := describeTopics(ctx, admin, names, allConfigs)
				if err != nil {
					return err
				}
				return s.show(topics, func(w io.Writer) {
					for i, t := range topics {
						if i > 0 {
							row(w)
						}
						t.text(w)
					}
				})
			})
		},
	}
	cmd.Flags().BoolVar(&allConfigs, "all-configs", false, "show every setting, not only those that were changed")
	timeoutFlag(cmd, &timeout)
	return cmd
}

func describeTopics(ctx context.Context, admin *kadm.Client, names []string, allConfigs bool) ([]describedTopic, error) {
	details, err := admin.ListTopicsWithInternal(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("describe topics: %w", err)
	}
	for _, name := range names {
		if t, ok := details[name]; !ok || t.Err != nil {
			if ok && !errors.Is(t.Err, kerr.UnknownTopicOrPartition) {
				return nil, refusal(t.Err, "", "describe topic %s", name)
			}
			return nil, noTopic(name)
		}
	}
	starts, err := admin.ListStartOffsets(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("list first offsets: %w", err)
	}
	ends, err := admin.ListEndOffsets(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("list last offsets: %w", err)
	}
	settings, err := admin.DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("describe settings: %w", err)
	}
	var topics []describedTopic
	for _, t := range details.Sorted() {
		d := describedTopic{Topic: t.Topic, ID: ident.TopicID(t.ID).String(), Internal: t.IsInternal, Replicas: t.Partitions.NumReplicas(), Configs: []describedConfig{}}
		for _, p := range t.Partitions.Sorted() {
			dp := describedPartition{Partition: p.Partition, Leader: p.Leader, Epoch: p.LeaderEpoch, Replicas: p.Replicas, ISR: p.ISR, Start: -1, End: -1}
			for _, listed := range []struct {
				from kadm.ListedOffsets
				to   *int64
			}{{starts, &dp.Start}, {ends, &dp.End}} {
				o, ok := listed.from.Lookup(t.Topic, p.Partition)
				switch {
				case ok && o.Err == nil:
					*listed.to = o.Offset
				case ok:
					dp.Error = o.Err.Error()
				}
			}
			if p.Err != nil {
				dp.Error = p.Err.Error()
			}
			d.Partitions = append(d.Partitions, dp)
		}
		resource, err := settings.On(t.Topic, nil)
		if err != nil {
			return nil, refusal(err, resource.ErrMessage, "describe the settings of %s", t.Topic)
		}
		d.Configs = describeConfigs(resource, allConfigs)
		topics = append(topics, d)
	}
	return topics, nil
}

func noTopic(name string) error {
	return fail(codeNotFound, "`troupe topic list` shows the topics; `troupe topic create NAME` makes one", "there is no topic %q", name)
}

func (t *describedTopic) text(w io.Writer) {
	row(w, "topic", t.Topic)
	row(w, "id", t.ID)
	row(w, "partitions", len(t.Partitions))
	row(w, "replicas", t.Replicas)
	for _, c := range t.Configs {
		row(w, "config", c.Name+"="+c.shown())
	}
	row(w)
	row(w, "PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "LOG START", "HIGH WATERMARK")
	for _, p := range t.Partitions {
		cells := []any{p.Partition, p.Leader, p.Epoch, p.Replicas, p.ISR, p.Start, p.End}
		if p.Error != "" {
			cells = append(cells, p.Error)
		}
		row(w, cells...)
	}
}
