package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// dial makes a client of the brokers that --bootstrap names, and asks one of them for a sign of life, so that a wrong
// address fails at once and not after a client's retries. The caller closes the client.
func (s *session) dial(ctx context.Context, timeout time.Duration, opts ...kgo.Opt) (*kgo.Client, error) {
	var seeds []string
	for seed := range strings.SplitSeq(s.bootstrap, ",") {
		if seed = strings.TrimSpace(seed); seed != "" {
			seeds = append(seeds, seed)
		}
	}
	if len(seeds) == 0 {
		return nil, usage("--bootstrap "+defaultBootstrap, "--bootstrap names no broker")
	}
	base := []kgo.Opt{
		kgo.SeedBrokers(seeds...),
		kgo.ClientID("troupe-cli"),
		kgo.SoftwareNameAndVersion("troupe-cli", buildVersion()),
		kgo.DialTimeout(min(timeout, 5*time.Second)),
		kgo.RetryTimeout(timeout),
		kgo.RequestTimeoutOverhead(timeout),
	}
	client, err := kgo.NewClient(append(base, opts...)...)
	if err != nil {
		return nil, usage("--bootstrap HOST:PORT", "%w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		client.Close()
		if ctx.Err() != nil && ctx.Err() != context.DeadlineExceeded {
			return nil, ctx.Err()
		}
		return nil, fail(codeUnreachable, hintUnreachable, "no broker answers at %s: %w", s.bootstrap, err)
	}
	return client, nil
}

// withAdmin calls work with an admin client and a context that ends after timeout.
func (s *session) withAdmin(cmd *cobra.Command, timeout time.Duration, work func(ctx context.Context, admin *kadm.Client) error) error {
	client, err := s.dial(cmd.Context(), timeout)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
	defer cancel()
	admin := kadm.NewClient(client)
	admin.SetTimeoutMillis(int32(timeout.Milliseconds()))
	return work(ctx, admin)
}

// completeTopics offers the names of topics, within the time a person waits for a tab, and nothing when no broker
// answers.
func (s *session) completeTopics(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	const patience = 300 * time.Millisecond
	var names []string
	err := s.withAdmin(cmd, patience, func(ctx context.Context, admin *kadm.Client) error {
		topics, err := admin.ListTopics(ctx)
		if err != nil {
			return err
		}
		names = topics.Names()
		return nil
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
