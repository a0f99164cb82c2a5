package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// roll is what `troupe roll` says.
type roll struct {
	Brokers []rollRow `json:"brokers"` // in the order in which they should be restarted: the controller's last
}

// rollRow says whether one broker may be stopped now.
type rollRow struct {
	Broker  int32    `json:"broker"`
	Safe    bool     `json:"safe"`
	Reasons []string `json:"reasons"` // why not; at most reasonsMax
	More    int      `json:"more_reasons"`
}

// reasonsMax bounds what is said of one broker.
const reasonsMax = 10

func (r *rollRow) because(format string, args ...any) {
	why := fmt.Sprintf(format, args...)
	switch r.Safe = false; {
	case slices.Contains(r.Reasons, why): // another broker has said it
	case len(r.Reasons) == reasonsMax:
		r.More++
	default:
		r.Reasons = append(r.Reasons, why)
	}
}

func (r *roll) text(w io.Writer) {
	row(w, "BROKER", "RESTART", "WHY NOT")
	for i := range r.Brokers {
		b := &r.Brokers[i]
		state, why := "safe", ""
		if !b.Safe {
			state, why = "not now", b.Reasons[0]
		}
		row(w, b.Broker, state, why)
		for _, more := range b.Reasons[min(1, len(b.Reasons)):] {
			row(w, "", "", more)
		}
		if b.More > 0 {
			row(w, "", "", fmt.Sprintf("and %d more", b.More))
		}
	}
}

// failure is the failure of the command when a broker may not be restarted; nil: all may.
func (r *roll) failure() error {
	for i := range r.Brokers {
		if b := &r.Brokers[i]; !b.Safe {
			f := fail(codeUnsafe, "--wait waits until it is; --accept-outage puts up with what no waiting mends", "restarting broker %d is not safe now: %s", b.Broker, b.Reasons[0])
			f.Exit = exitUnsafe
			return f
		}
	}
	return nil
}

func newRoll(s *session) *cobra.Command {
	var timeout, wait time.Duration
	var accept bool
	cmd := &cobra.Command{
		Use:   "roll [BROKER]",
		Short: "Say whether a broker may be restarted now, and wait until it may",
		Long: "Say whether brokers may be restarted: every replica is in sync, every partition has a leader, stopping the broker leaves each partition\n" +
			"min.insync.replicas others, and the controllers a majority. Every other broker has to answer, and to say so too: one that has died just\n" +
			"now is not missed yet, and one that is cut off has old news. Exit code 11: not now.\n" +
			"A rolling restart asks before each broker, in the order that is shown:\n\n" +
			"  for b in 1 2 3; do troupe roll $b --wait 10m && ssh host$b systemctl restart troupe || break; done; troupe roll --wait 10m",
		Example: "  troupe roll\n  troupe roll 2 --wait 10m\n  troupe roll -o json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			only := int32(-1)
			if len(args) == 1 {
				id, err := parseBroker(cmd, args[0])
				if err != nil {
					return err
				}
				only = id
			}
			client, err := s.dial(cmd.Context(), timeout)
			if err != nil {
				return err
			}
			defer client.Close()
			out, err := s.awaitRoll(cmd.Context(), client, only, accept, timeout, wait)
			if err != nil {
				return err
			}
			if err := s.show(out, out.text); err != nil {
				return err
			}
			return out.failure()
		},
	}
	f := cmd.Flags()
	f.DurationVar(&wait, "wait", 0, "how long to wait until it is safe")
	f.BoolVar(&accept, "accept-outage", false, "put up with partitions that have too few replicas to be served without one of them, and with a lone controller")
	timeoutFlag(cmd, &timeout)
	return cmd
}

// rollPause is how long nobody is asked whether a restart is safe.
const rollPause = 500 * time.Millisecond

// awaitRoll looks until a restart is safe, or until wait has passed, and says on stderr what it waits for, whenever that changes. That a broker does not answer
// meanwhile is no safe state.
func (s *session) awaitRoll(ctx context.Context, client *kgo.Client, only int32, accept bool, timeout, wait time.Duration) (*roll, error) {
	began, told := time.Now(), ""
	for {
		look, cancel := context.WithTimeout(ctx, timeout)
		out, err := rollOf(look, client, only, accept)
		cancel()
		why := err
		if err == nil {
			why = out.failure()
		}
		if why == nil {
			return out, nil
		}
		if what := asFailure(why).What; wait > 0 && what != told {
			_, _ = fmt.Fprintln(s.err, "waiting: "+what)
			told = what
		}
		if time.Since(began) >= wait {
			return out, err
		}
		if err := rest(ctx, rollPause); err != nil {
			return nil, err
		}
	}
}

// rollAnswer is how long a broker may take to say how it sees the cluster.
const rollAnswer = 2 * time.Second

// rollOf asks one broker for everything, and each of the others how it sees replicas and leaders.
func rollOf(ctx context.Context, client *kgo.Client, only int32, accept bool) (*roll, error) {
	c, err := describeCluster(ctx, client)
	if err != nil {
		return nil, err
	}
	m, err := readMetadata(ctx, client)
	if err != nil {
		return nil, err
	}
	quorum, err := quorumOf(ctx, client)
	if err != nil {
		return nil, shardError(err, "describe the quorum")
	}
	least, err := leastInSync(ctx, client, m)
	if err != nil {
		return nil, err
	}
	views := map[int32]*kmsg.MetadataResponse{} // of those who have answered
	for i := range c.Brokers {
		if o := &c.Brokers[i]; !o.IsFenced {
			ask, cancel := context.WithTimeout(ctx, rollAnswer)
			if view, err := readMetadata(ask, oneBroker{client.Broker(int(o.NodeID))}); err == nil {
				views[o.NodeID] = view
			}
			cancel()
		}
	}
	out := &roll{Brokers: []rollRow{}}
	for i := range c.Brokers {
		id := c.Brokers[i].NodeID
		if only >= 0 && id != only {
			continue
		}
		b := rollRow{Broker: id, Safe: true, Reasons: []string{}}
		b.judgeQuorum(quorum, accept)
		b.judgePartitions(m, least, accept)
		for j := range c.Brokers {
			switch o := c.Brokers[j].NodeID; {
			case o == id: // it may be in trouble: that is why it is restarted
			case c.Brokers[j].IsFenced:
				b.because("broker %d does not serve", o)
			case views[o] == nil:
				b.because("broker %d does not answer", o)
			default:
				b.judgePartitions(views[o], least, accept)
			}
		}
		out.Brokers = append(out.Brokers, b)
	}
	if only >= 0 && len(out.Brokers) == 0 {
		return nil, fail(codeNotFound, "`troupe cluster status` shows the brokers", "broker %d is not registered", only)
	}
	slices.SortFunc(out.Brokers, func(a, b rollRow) int {
		if x, y := a.Broker == quorum.LeaderID, b.Broker == quorum.LeaderID; x != y {
			if x {
				return 1
			}
			return -1
		}
		return int(a.Broker) - int(b.Broker)
	})
	return out, nil
}

// leastInSync asks for min.insync.replicas of each topic.
func leastInSync(ctx context.Context, client *kgo.Client, m *kmsg.MetadataResponse) (map[string]int, error) {
	const key = "min.insync.replicas"
	req := kmsg.NewPtrDescribeConfigsRequest()
	for i := range m.Topics {
		if m.Topics[i].Topic != nil {
			r := kmsg.NewDescribeConfigsRequestResource()
			r.ResourceType, r.ResourceName, r.ConfigNames = kmsg.ConfigResourceTypeTopic, *m.Topics[i].Topic, []string{key}
			req.Resources = append(req.Resources, r)
		}
	}
	least := map[string]int{}
	if len(req.Resources) == 0 {
		return least, nil
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, shardError(err, "read min.insync.replicas")
	}
	for i := range resp.Resources {
		r := &resp.Resources[i]
		least[r.ResourceName] = 1 // deleted meanwhile
		for j := range r.Configs {
			if v := r.Configs[j].Value; r.Configs[j].Name == key && v != nil {
				if least[r.ResourceName], err = strconv.Atoi(*v); err != nil {
					return nil, fail(codeFailed, "", "topic %s has %s=%s", r.ResourceName, key, *v)
				}
			}
		}
	}
	return least, nil
}

// voterQuiet is how long a voter may be silent and count as there: they speak ten times a second.
const voterQuiet = 3000

// judgeQuorum: without the broker a majority of the voters must be there and have the metadata log.
func (r *rollRow) judgeQuorum(q *kmsg.DescribeQuorumResponseTopicPartition, accept bool) {
	voters := q.CurrentVoters
	if !slices.ContainsFunc(voters, func(v kmsg.DescribeQuorumResponseTopicPartitionReplicaState) bool { return v.ReplicaID == r.Broker }) {
		return
	}
	if len(voters) < 3 {
		if !accept {
			r.because("of %d controllers none may stop", len(voters))
		}
		return
	}
	newest := int64(0)
	for i := range voters {
		newest = max(newest, voters[i].LastFetchTimestamp)
	}
	there := 0
	for i := range voters {
		if v := &voters[i]; v.ReplicaID != r.Broker && newest-v.LastFetchTimestamp <= voterQuiet && newest-v.LastCaughtUpTimestamp <= voterQuiet {
			there++
		}
	}
	if there <= len(voters)/2 {
		r.because("of %d controllers only %d others are there and up to date", len(voters), there)
	}
}

// judgePartitions: everything is in sync and led, and without the broker each partition has who it needs.
func (r *rollRow) judgePartitions(m *kmsg.MetadataResponse, least map[string]int, accept bool) {
	for i := range m.Topics {
		t := &m.Topics[i]
		if t.Topic == nil {
			continue
		}
		for j := range t.Partitions {
			p := &t.Partitions[j]
			need := max(1, min(least[*t.Topic], len(p.Replicas)))
			others := len(slices.DeleteFunc(slices.Clone(p.Replicas), func(b int32) bool { return b == r.Broker }))
			inSync := len(slices.DeleteFunc(slices.Clone(p.ISR), func(b int32) bool { return b == r.Broker }))
			switch holds := others < len(p.Replicas); {
			case p.Leader < 0:
				r.because("nobody leads %s-%d", *t.Topic, p.Partition)
			case len(p.ISR) < len(p.Replicas):
				r.because("%s-%d has %d of %d replicas in sync", *t.Topic, p.Partition, len(p.ISR), len(p.Replicas))
			case !holds || inSync >= need:
			case others < need && accept:
			case others == 0:
				r.because("%s-%d has its only replica there", *t.Topic, p.Partition)
			default:
				r.because("%s-%d needs %d replicas in sync and would have %d", *t.Topic, p.Partition, need, inSync)
			}
		}
	}
}
