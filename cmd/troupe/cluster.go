package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/actors/broker"
	"github.com/troupe-broker/troupe/store"
)

func newCluster(s *session) *cobra.Command {
	cmd := &cobra.Command{Use: "cluster", Short: "Show a cluster, balance it, and release a directory from a promise to found one"}
	cmd.AddCommand(newClusterStatus(s), newBalance(s), newForgetBootstrap(s), newVoters(s))
	return cmd
}

// clusterStatus is what `troupe cluster status` says.
type clusterStatus struct {
	Cluster    string        `json:"cluster_id"`
	Controller int32         `json:"controller"`       // broker
	Epoch      int32         `json:"controller_epoch"` // Raft's term
	Committed  int64         `json:"metadata_offset"`  // newest committed entry of the metadata log
	Features   []featureRow  `json:"features"`         // that are finalised
	Brokers    []brokerRow   `json:"brokers"`
	Partitions partitionsRow `json:"partitions"`

	// Trouble says why the quorum is not known: nobody who was asked reaches a controller. Roles and offsets are left out then.
	Trouble string `json:"trouble,omitempty"`
}

// featureRow is one finalised feature. What brokers say to each other is gated by troupe.peer.version; the newest is what the broker that was asked serves.
type featureRow struct {
	Name   string `json:"name"`
	Level  int16  `json:"level"`
	Newest int16  `json:"newest"`
}

type brokerRow struct {
	Broker   int32  `json:"broker"`
	Host     string `json:"host,omitempty"`
	Port     int32  `json:"port,omitempty"`
	Rack     string `json:"rack,omitempty"`
	State    string `json:"state"` // serving, fenced or unregistered
	Role     string `json:"role"`  // controller, voter, observer, or voter lost: an observer that a voter was before it got another directory
	Metadata int64  `json:"metadata_offset"`
	Leads    int    `json:"leads"` // partitions
}

type partitionsRow struct {
	Topics          int `json:"topics"`
	Partitions      int `json:"partitions"`
	UnderReplicated int `json:"under_replicated"`
	Offline         int `json:"offline"` // nobody leads them
}

func newClusterStatus(s *session) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show brokers, the metadata quorum and partitions in need",
		Example: "  troupe cluster status\n  troupe cluster status --bootstrap 10.0.0.11:9092 -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.withClient(cmd.Context(), timeout, timeout, func(ctx context.Context, client *kgo.Client) error {
				status, err := statusOf(ctx, client)
				if err != nil {
					return err
				}
				if err := s.show(status, status.text); err != nil {
					return err
				}
				return status.failure()
			})
		},
	}
	timeoutFlag(cmd, &timeout)
	return cmd
}

// failure is why a part of the status is missing; nil: nothing is.
func (c *clusterStatus) failure() error {
	if c.Trouble == "" {
		return nil
	}
	return fail(codeTimeout, "a controller needs more than half of the voters: start those that are down; the log of each broker says what it waits for",
		"no controller answers the broker that was asked; what it knows is above")
}

// statusOf asks one broker for everything: it has the whole metadata, and asks the controller for the quorum. Where no controller answers, it tells what that
// broker knows, which may be old, and Trouble.
func statusOf(ctx context.Context, client *kgo.Client) (*clusterStatus, error) {
	c, err := describeCluster(ctx, client)
	if err != nil {
		return nil, err
	}
	m, err := readMetadata(ctx, client)
	if err != nil {
		return nil, err
	}
	status := &clusterStatus{Cluster: c.ClusterID, Controller: -1, Epoch: -1, Committed: -1, Brokers: []brokerRow{}}
	if status.Features, err = featuresOf(ctx, client); err != nil {
		return nil, shardError(err, "read the features")
	}
	quorum, err := quorumOf(ctx, client)
	if err != nil {
		status.Trouble = "no controller answers"
		if !errors.Is(err, context.DeadlineExceeded) {
			status.Trouble = err.Error()
		}
		quorum = &kmsg.DescribeQuorumResponseTopicPartition{}
	} else {
		status.Controller, status.Epoch, status.Committed = quorum.LeaderID, quorum.LeaderEpoch, quorum.HighWatermark
	}
	leads := status.count(m)
	for i := range c.Brokers {
		b := &c.Brokers[i]
		r := brokerRow{Broker: b.NodeID, Host: b.Host, Port: b.Port, State: "serving", Leads: leads[b.NodeID]}
		if b.Rack != nil {
			r.Rack = *b.Rack
		}
		if b.IsFenced {
			r.State = "fenced"
		}
		status.Brokers = append(status.Brokers, r)
	}
	status.seat(quorum.CurrentVoters, "voter")
	status.seat(quorum.Observers, "observer")
	slices.SortFunc(status.Brokers, func(a, b brokerRow) int { return int(a.Broker) - int(b.Broker) })
	return status, nil
}

func quorumOf(ctx context.Context, client *kgo.Client) (*kmsg.DescribeQuorumResponseTopicPartition, error) {
	req := kmsg.NewPtrDescribeQuorumRequest()
	topic := kmsg.NewDescribeQuorumRequestTopic()
	topic.Topic = "__cluster_metadata"
	topic.Partitions = append(topic.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		return nil, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return nil, kerr.UnknownServerError
	}
	return &resp.Topics[0].Partitions[0], nil
}

// featuresOf reads the finalised features, which travel with the versions of the protocol (KIP-584).
func featuresOf(ctx context.Context, client *kgo.Client) ([]featureRow, error) {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "troupe", buildVersion()
	resp, err := req.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		return nil, err
	}
	features := []featureRow{}
	for _, f := range resp.FinalizedFeatures {
		row := featureRow{Name: f.Name, Level: f.MaxVersionLevel}
		for _, s := range resp.SupportedFeatures {
			if s.Name == f.Name {
				row.Newest = s.MaxVersion
			}
		}
		features = append(features, row)
	}
	return features, nil
}

// count counts partitions, and how many each broker leads.
func (c *clusterStatus) count(m *kmsg.MetadataResponse) map[int32]int {
	leads := map[int32]int{}
	c.Partitions.Topics = len(m.Topics)
	for i := range m.Topics {
		for j := range m.Topics[i].Partitions {
			p := &m.Topics[i].Partitions[j]
			leads[p.Leader]++
			c.Partitions.Partitions++
			if len(p.ISR) < len(p.Replicas) {
				c.Partitions.UnderReplicated++
			}
			if p.Leader < 0 {
				c.Partitions.Offline++
			}
		}
	}
	return leads
}

// seat gives brokers their part in the quorum. A voter may be unregistered: it has not come back since its registration ended.
func (c *clusterStatus) seat(list []kmsg.DescribeQuorumResponseTopicPartitionReplicaState, role string) {
	for i := range list {
		id, part := list[i].ReplicaID, role
		if id == c.Controller {
			part = "controller"
		}
		at := slices.IndexFunc(c.Brokers, func(r brokerRow) bool { return r.Broker == id })
		if at < 0 {
			c.Brokers = append(c.Brokers, brokerRow{Broker: id, State: "unregistered"})
			at = len(c.Brokers) - 1
		}
		if c.Brokers[at].Role != "" && part == "observer" {
			part = "voter lost" // the voter was another directory of this broker
		}
		c.Brokers[at].Role, c.Brokers[at].Metadata = part, list[i].LogEndOffset
	}
}

func (c *clusterStatus) text(w io.Writer) {
	row(w, "cluster", c.Cluster)
	if c.Trouble == "" {
		row(w, "controller", c.Controller, "epoch", c.Epoch, "metadata offset", c.Committed)
	} else {
		row(w, "controller", "unknown: "+c.Trouble)
	}
	row(w, "partitions", c.Partitions.Partitions, "of topics", c.Partitions.Topics, "under-replicated", c.Partitions.UnderReplicated, "offline", c.Partitions.Offline)
	for _, f := range c.Features {
		if f.Newest > f.Level {
			row(w, "feature", f.Name, "level", f.Level, fmt.Sprintf("(this build serves %d: upgrade when all brokers do)", f.Newest))
		} else {
			row(w, "feature", f.Name, "level", f.Level)
		}
	}
	row(w)
	row(w, "BROKER", "STATE", "ROLE", "METADATA", "LEADS", "RACK", "ADDRESS")
	for _, b := range c.Brokers {
		where := ""
		if b.Host != "" {
			where = address(b.Host, uint16(b.Port))
		}
		role, metadata := b.Role, fmt.Sprint(b.Metadata)
		if c.Trouble != "" {
			role, metadata = "-", "-"
		}
		row(w, b.Broker, b.State, role, metadata, b.Leads, b.Rack, where)
	}
}

// forgotten is what `troupe cluster forget-bootstrap` says.
type forgotten struct {
	DataDir string  `json:"data_dir"`
	Cluster string  `json:"cluster_id,omitempty"` // that was promised; empty: nothing was
	Voters  []int32 `json:"voters,omitempty"`     // brokers
}

func newForgetBootstrap(s *session) *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "forget-bootstrap",
		Short: "Release a data directory from its promise to found a cluster",
		Long: "Release the data directory of a broker that is stopped from its promise to found a cluster with others: for example after one\n" +
			"of the machines died for good before all of them had promised. It is refused once the cluster has begun to work.\n" +
			"File, environment and flags are those of `troupe serve`.",
		Example: "  troupe cluster forget-bootstrap --broker-id 2 --data-dir /var/lib/troupe",
		RunE: func(*cobra.Command, []string) error {
			loaded, values, err := o.load(s)
			if err != nil {
				return err
			}
			if _, err := os.Stat(filepath.Join(values.DataDir, "meta.properties")); errors.Is(err, fs.ErrNotExist) {
				return fail(codeNotFound, "name the directory that the broker was started with", "%s is no data directory of a broker: it has no meta.properties", values.DataDir)
			}
			p, err := broker.ForgetPromise(store.OS(), rand.Reader, loaded.Static)
			if err != nil {
				return startFailure(err)
			}
			out := forgotten{DataDir: values.DataDir}
			if p != nil {
				out.Cluster = string(p.ClusterID)
				for _, v := range p.Voters {
					out.Voters = append(out.Voters, int32(v.Broker))
				}
			}
			return s.show(out, func(w io.Writer) {
				if p == nil {
					row(w, out.DataDir+" has promised nothing")
					return
				}
				row(w, out.DataDir+" has forgotten its promise of cluster "+out.Cluster)
			})
		},
	}
	o.register(cmd)
	return cmd
}
