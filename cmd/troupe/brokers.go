package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func newBroker(s *session) *cobra.Command {
	cmd := &cobra.Command{Use: "broker", Short: "Empty a broker, and take it out of the cluster for good"}
	cmd.AddCommand(newDrain(s), newDecommission(s))
	return cmd
}

// drainOptions are the flags of both commands.
type drainOptions struct {
	timeout time.Duration
	some    int
	shrink  bool
	dry     bool
}

func (o *drainOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.DurationVar(&o.timeout, "timeout", time.Hour, "how long to wait until it is done")
	f.IntVar(&o.some, "at-a-time", 50, "partitions that are moved at the same time")
	f.BoolVar(&o.shrink, "shrink", false, "let partitions that every other broker has already lose a replica")
	f.BoolVar(&o.dry, "dry-run", false, "show the moves and make none")
}

// drainedBroker is what `troupe broker drain` and `decommission` say.
type drainedBroker struct {
	Broker       int32       `json:"broker"`
	Moves        []placement `json:"moves"` // with the replicas that they lead to
	Done         bool        `json:"done"`  // false: --dry-run
	Unregistered bool        `json:"unregistered"`
}

func (d *drainedBroker) text(w io.Writer) {
	switch {
	case !d.Done:
		row(w, fmt.Sprintf("broker %d would give away %s", d.Broker, plural(int64(len(d.Moves)), "replica", "replicas")))
		for i := range d.Moves {
			row(w, fmt.Sprintf("%s-%d", d.Moves[i].Topic, d.Moves[i].Partition), fmt.Sprint(d.Moves[i].Replicas))
		}
	case d.Unregistered:
		row(w, fmt.Sprintf("broker %d holds nothing and is forgotten", d.Broker))
	default:
		row(w, fmt.Sprintf("broker %d holds nothing: %s", d.Broker, plural(int64(len(d.Moves)), "replica was moved", "replicas were moved")))
	}
}

func newDrain(s *session) *cobra.Command {
	var o drainOptions
	cmd := &cobra.Command{
		Use:   "drain BROKER",
		Short: "Move all replicas of a broker to others",
		Long: "Move all replicas of a broker to others, in racks that a partition does not use yet where there are some, and to whoever has fewest.\n" +
			"Each partition is written to and read from meanwhile. The broker itself may be dead, as long as another replica is in sync.\n" +
			"It may get replicas of new topics again: `troupe broker decommission` takes it out of the cluster.",
		Example: "  troupe broker drain 3\n  troupe broker drain 3 --dry-run -o json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := atATime(o.some); err != nil {
				return err
			}
			return s.withBroker(cmd, args[0], o.timeout, func(ctx context.Context, client *kgo.Client, id int32) error {
				out, err := s.drain(ctx, client, id, &o)
				if err != nil {
					return err
				}
				return s.show(out, out.text)
			})
		},
	}
	o.register(cmd)
	return cmd
}

func newDecommission(s *session) *cobra.Command {
	var o drainOptions
	cmd := &cobra.Command{
		Use:   "decommission BROKER",
		Short: "Move all replicas of a broker to others, and forget it when it has stopped",
		Long: "Move all replicas of a broker to others, wait until its process is stopped, and forget it.\n" +
			"The command says when it is time to stop the broker. One that votes is removed from the voters first.",
		Example: "  troupe broker decommission 3",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := atATime(o.some); err != nil {
				return err
			}
			return s.withBroker(cmd, args[0], o.timeout, func(ctx context.Context, client *kgo.Client, id int32) error {
				if err := noVoter(ctx, client, id); err != nil {
					return err
				}
				out, err := s.drain(ctx, client, id, &o)
				if err == nil && out.Done {
					err = s.unregister(ctx, client, id)
					out.Unregistered = err == nil
				}
				if err != nil {
					return err
				}
				return s.show(out, out.text)
			})
		},
	}
	o.register(cmd)
	return cmd
}

// withBroker calls work with the id of a broker that is registered.
func (s *session) withBroker(cmd *cobra.Command, text string, timeout time.Duration, work func(ctx context.Context, client *kgo.Client, id int32) error) error {
	id, err := parseBroker(cmd, text)
	if err != nil {
		return err
	}
	return s.withClient(cmd.Context(), min(timeout, movePatience), timeout, func(ctx context.Context, client *kgo.Client) error {
		l, err := layoutOf(ctx, client)
		if err != nil {
			return err
		}
		if !l.known(id) {
			return fail(codeNotFound, "`troupe cluster status` shows the brokers", "broker %d is not registered", id)
		}
		return work(ctx, client, id)
	})
}

// drain moves everything away. A topic that is made meanwhile may be put on the broker: it is looked at until nothing is left.
func (s *session) drain(ctx context.Context, client *kgo.Client, id int32, o *drainOptions) (*drainedBroker, error) {
	out := &drainedBroker{Broker: id, Moves: []placement{}}
	for {
		l, err := layoutOf(ctx, client)
		if err != nil {
			return nil, err
		}
		moves, stuck := drained(l.parts, l.seats, id, o.shrink)
		if len(stuck) > 0 {
			f := fail(codeRefused, "start another broker first; --shrink gives up a replica of each instead", "%s cannot leave broker %d: every other broker that serves has a replica of them, or none serves",
				plural(int64(len(stuck)), "partition", "partitions"), id)
			for i := range stuck[:min(len(stuck), 10)] {
				f.Details = append(f.Details, fmt.Sprintf("%s-%d on %v", stuck[i].Topic, stuck[i].Partition, stuck[i].Replicas))
			}
			return nil, f
		}
		leaving := l.leaving[id] // by an earlier command
		if out.Done = !o.dry && len(moves) == 0 && len(leaving) == 0; out.Done {
			return out, nil
		}
		out.Moves = append(out.Moves, moves...)
		if o.dry {
			return out, nil
		}
		if err := s.move(ctx, client, moves, o.some, true, o.shrink); err != nil {
			return nil, err
		}
		if err := s.move(ctx, client, leaving, max(len(leaving), 1), false, false); err != nil {
			return nil, err
		}
	}
}

// noVoter refuses a broker that votes: the quorum would count on it for ever.
func noVoter(ctx context.Context, client *kgo.Client, id int32) error {
	quorum, err := quorumOf(ctx, client)
	if err != nil {
		return shardError(err, "describe the quorum")
	}
	for i := range quorum.CurrentVoters {
		if quorum.CurrentVoters[i].ReplicaID == id {
			return fail(codeRefused, "`troupe cluster voters remove "+strconv.Itoa(int(id))+"` takes its vote away; docs/bare-metal.md has the whole way", "broker %d is a voter of the metadata quorum", id)
		}
	}
	return nil
}

// sessionMax is longer than a controller waits for a word of a broker before it counts as gone.
const sessionMax = 15 * time.Second

// unregister forgets a broker as soon as it has stopped.
func (s *session) unregister(ctx context.Context, client *kgo.Client, id int32) error {
	var fenced time.Time
	for told := false; ; {
		req := kmsg.NewPtrUnregisterBrokerRequest()
		req.BrokerID = id
		resp, err := req.RequestWith(ctx, client)
		if err != nil {
			return shardError(err, "forget the broker")
		}
		refused := kerr.ErrorForCode(resp.ErrorCode)
		if refused == nil {
			return nil
		}
		why := refused.Error()
		if resp.ErrorMessage != nil {
			why = *resp.ErrorMessage
		}
		if refused == kerr.UnsupportedVersion { //nolint:errorlint // ErrorForCode gives the very value
			return fail(codeRefused, "`kafka-features.sh upgrade --feature troupe.peer.version=2` raises it; docs/bare-metal.md says when", "%s", why)
		}
		if l, err := layoutOf(ctx, client); err == nil {
			switch _, serves := l.seats[id]; {
			case serves:
				fenced = time.Time{}
			case fenced.IsZero():
				fenced = time.Now()
			case time.Since(fenced) > sessionMax:
				return fail(codeRefused, "", "broker %d has stopped and is not forgotten: %s", id, why)
			}
		}
		if !told && fenced.IsZero() {
			_, _ = fmt.Fprintf(s.err, "broker %d holds nothing any more: stop it now (%s)\n", id, why)
			told = true
		}
		if rest(ctx, movePause) != nil {
			return fail(codeTimeout, "stop its process, and give the same command again", "broker %d is not forgotten: %s", id, why)
		}
	}
}
