package main

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
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
		return nil, fail(codeUnreachable, hintOfPing(err), "no broker answers at %s: %w", s.bootstrap, err)
	}
	return client, nil
}

// hintOfPing says what to do about a broker that gives no sign of life.
func hintOfPing(err error) string {
	var waited net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &waited) && waited.Timeout():
		return "a broker that does not serve yet answers nobody: its log says what it waits for; --bootstrap HOST:PORT names another"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF):
		return "is it the address for clients (--listen of the broker), and not the one for brokers (--peer-listen)?"
	}
	return hintUnreachable
}

// withClient calls work with a client and a context that ends after timeout. patience is how long one answer may take.
func (s *session) withClient(ctx context.Context, patience, timeout time.Duration, work func(ctx context.Context, client *kgo.Client) error) error {
	client, err := s.dial(ctx, patience)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return work(ctx, client)
}

// withAdmin calls work with an admin client and a context that ends after timeout.
func (s *session) withAdmin(cmd *cobra.Command, timeout time.Duration, work func(ctx context.Context, admin *kadm.Client) error) error {
	return s.withClient(cmd.Context(), timeout, timeout, func(ctx context.Context, client *kgo.Client) error {
		admin := kadm.NewClient(client)
		admin.SetTimeoutMillis(int32(timeout.Milliseconds()))
		return work(ctx, admin)
	})
}

// describeCluster asks for the brokers, fenced ones among them.
func describeCluster(ctx context.Context, client *kgo.Client) (*kmsg.DescribeClusterResponse, error) {
	req := kmsg.NewPtrDescribeClusterRequest()
	req.EndpointType, req.IncludeFencedBrokers = 1, true
	resp, err := req.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		return nil, shardError(err, "describe the cluster")
	}
	return resp, nil
}

// readMetadata asks for all topics.
func readMetadata(ctx context.Context, whom kmsg.Requestor) (*kmsg.MetadataResponse, error) {
	resp, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, whom)
	if err != nil {
		return nil, shardError(err, "read the metadata")
	}
	return resp, nil
}

// rest waits before somebody is asked again, unless ctx ends first: then it says why.
func rest(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
		return nil
	}
}

// parseBroker reads the id of a broker.
func parseBroker(cmd *cobra.Command, text string) (int32, error) {
	id, err := strconv.ParseInt(text, 10, 32)
	if err != nil || id < 0 {
		return 0, usage("usage: "+cmd.UseLine(), "%q is no id of a broker", text)
	}
	return int32(id), nil
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
