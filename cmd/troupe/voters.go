package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire/ident"
)

// voterRow is one member of the metadata quorum, or a broker that could become one.
type voterRow struct {
	Broker    int32  `json:"broker"`
	Directory string `json:"directory"`
	Role      string `json:"role"`            // controller, voter or observer
	Metadata  int64  `json:"metadata_offset"` // -1: not heard of
}

// voterChange is what `troupe cluster voters add` and `remove` say.
type voterChange struct {
	Broker    int32  `json:"broker"`
	Directory string `json:"directory"`
	Done      string `json:"done"` // added or removed
}

// voterPause is between two attempts of a change that the controller cannot make yet.
const voterPause = 200 * time.Millisecond

func newVoters(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "voters",
		Short: "Show and change who votes in the metadata quorum",
		Long: "The voters elect the controller and keep the metadata. More than half of them must be there for anything to change in the cluster,\n" +
			"so 3 outlive one machine and 5 two. A voter is a broker with its data directory: a broker that lost its directory is another one.",
	}
	cmd.AddCommand(newVotersList(s), newVotersAdd(s), newVotersRemove(s))
	return cmd
}

func newVotersList(s *session) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List voters and observers with their directories",
		Example: "  troupe cluster voters list --bootstrap 10.0.0.11:9092",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.withClient(cmd.Context(), timeout, timeout, func(ctx context.Context, client *kgo.Client) error {
				rows, err := votersOf(ctx, client)
				if err != nil {
					return err
				}
				return s.show(rows, func(w io.Writer) {
					row(w, "BROKER", "ROLE", "METADATA", "DIRECTORY")
					for _, r := range rows {
						row(w, r.Broker, r.Role, r.Metadata, r.Directory)
					}
				})
			})
		},
	}
	timeoutFlag(cmd, &timeout)
	return cmd
}

// votersOf lists the voters, then the observers, each by broker.
func votersOf(ctx context.Context, client *kgo.Client) ([]voterRow, error) {
	q, err := quorumOf(ctx, client)
	if err != nil {
		return nil, shardError(err, "ask for the metadata quorum")
	}
	rows := []voterRow{}
	add := func(list []kmsg.DescribeQuorumResponseTopicPartitionReplicaState, role string) {
		from := len(rows)
		for _, r := range list {
			part := role
			if role == "voter" && r.ReplicaID == q.LeaderID {
				part = "controller"
			}
			rows = append(rows, voterRow{Broker: r.ReplicaID, Directory: ident.DirectoryID(r.ReplicaDirectoryID).String(), Role: part, Metadata: r.LogEndOffset})
		}
		slices.SortFunc(rows[from:], func(a, b voterRow) int { return int(a.Broker) - int(b.Broker) })
	}
	add(q.CurrentVoters, "voter")
	add(q.Observers, "observer")
	return rows, nil
}

func newVotersAdd(s *session) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "add BROKER",
		Short: "Give a vote to a broker that follows as an observer",
		Long: "Give a vote to a broker that follows the metadata as an observer, as one does that was started with --join and without\n" +
			"--bootstrap-expect. While it has not caught up, or another change is under way, it is tried again until the timeout.",
		Example: "  troupe cluster voters add 2 --bootstrap 10.0.0.11:9092",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.changeVoters(cmd, timeout, args[0], "", true,
				func(ctx context.Context, client *kgo.Client, id int32, directory [16]byte) (int16, *string, error) {
					req := kmsg.NewPtrAddRaftVoterRequest()
					req.VoterID, req.VoterDirectoryID, req.TimeoutMillis = id, directory, int32(timeout.Milliseconds())
					resp, err := req.RequestWith(ctx, client)
					if err != nil {
						return 0, nil, err
					}
					return resp.ErrorCode, resp.ErrorMessage, nil
				})
		},
	}
	timeoutFlag(cmd, &timeout)
	return cmd
}

func newVotersRemove(s *session) *cobra.Command {
	var timeout time.Duration
	var directory string
	cmd := &cobra.Command{
		Use:   "remove BROKER",
		Short: "Take the vote of a broker away, dead or alive",
		Long: "Take the vote of a broker away. One that lives goes on as an observer; one that is dead for good does not count as a missing\n" +
			"voter any more. A controller hands over first.",
		Example: "  troupe cluster voters remove 2 --bootstrap 10.0.0.11:9092",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.changeVoters(cmd, timeout, args[0], directory, false,
				func(ctx context.Context, client *kgo.Client, id int32, directory [16]byte) (int16, *string, error) {
					req := kmsg.NewPtrRemoveRaftVoterRequest()
					req.VoterID, req.VoterDirectoryID = id, directory
					resp, err := req.RequestWith(ctx, client)
					if err != nil {
						return 0, nil, err
					}
					return resp.ErrorCode, resp.ErrorMessage, nil
				})
		},
	}
	timeoutFlag(cmd, &timeout)
	cmd.Flags().StringVar(&directory, "directory", "", "only if the voter has this directory, as `list` shows it")
	return cmd
}

// voterCall is one attempt of a change: the answer's code and message.
type voterCall func(ctx context.Context, client *kgo.Client, id int32, directory [16]byte) (int16, *string, error)

// changeVoters gives a broker a vote, or takes it away.
func (s *session) changeVoters(cmd *cobra.Command, timeout time.Duration, broker, directory string, vote bool, call voterCall) error {
	id, err := parseBroker(cmd, broker)
	if err != nil {
		return err
	}
	return s.withClient(cmd.Context(), timeout, timeout, func(ctx context.Context, client *kgo.Client) error {
		c := changingVoters{
			broker: id, directory: directory, vote: vote,
			list: func() ([]voterRow, error) { return votersOf(ctx, client) },
			call: func(r *voterRow) (int16, *string, error) {
				key, err := ident.ParseDirectoryID(r.Directory)
				if err != nil {
					return 0, nil, fail(codeFailed, "", "directory %q of broker %d: %w", r.Directory, id, err)
				}
				return call(ctx, client, id, key)
			},
			rest: func() error { return rest(ctx, voterPause) },
		}
		r, err := c.run()
		if err != nil {
			return err
		}
		return s.show(voterChange{Broker: id, Directory: r.Directory, Done: c.done()}, func(w io.Writer) {
			row(w, "voter "+broker+" "+c.done()+", directory "+r.Directory)
		})
	})
}

// changingVoters is one change, made again while it is only too early for it.
type changingVoters struct {
	broker    int32
	directory string // empty: whichever it is
	vote      bool   // it is to have one
	list      func() ([]voterRow, error)
	call      func(*voterRow) (int16, *string, error) // the answer's code and message
	rest      func() error                            // between two attempts; an error: the time is up
}

func (c *changingVoters) done() string {
	if c.vote {
		return "added"
	}
	return "removed"
}

// run makes the change. An attempt that was not answered in time may have made it all the same: then the voters show it.
func (c *changingVoters) run() (*voterRow, error) {
	for asked := (*voterRow)(nil); ; {
		rows, err := c.list()
		if err != nil {
			return nil, err
		}
		if asked != nil && asked.votesIn(rows) == c.vote {
			return asked, nil
		}
		r, err := c.find(rows)
		if err != nil {
			return nil, err
		}
		code, message, err := c.call(r)
		if err != nil {
			return nil, shardError(err, "change the voters")
		}
		text := ""
		if message != nil {
			text = *message
		}
		refused := kerr.ErrorForCode(code)
		switch {
		case refused == nil:
			return r, nil
		case errors.Is(refused, kerr.RequestTimedOut):
		case asked != nil && (errors.Is(refused, kerr.DuplicateVoter) || errors.Is(refused, kerr.VoterNotFound)): // an earlier attempt may be why
		default:
			return nil, refusal(refused, text, "voter %d is not %s", c.broker, c.done())
		}
		if c.rest() != nil {
			return nil, refusal(refused, text, "voter %d is not %s in time", c.broker, c.done())
		}
		asked = r
	}
}

// votesIn tells whether the directory of this broker votes.
func (r *voterRow) votesIn(rows []voterRow) bool {
	return slices.ContainsFunc(rows, func(o voterRow) bool { return o.Broker == r.Broker && o.Directory == r.Directory && o.votes() })
}

func (r *voterRow) votes() bool { return r.Role != "observer" }

// find finds whom the command means.
func (c *changingVoters) find(rows []voterRow) (*voterRow, error) {
	other := ""
	for i := range rows {
		r := &rows[i]
		switch {
		case r.Broker != c.broker:
		case r.votes() != c.vote && (c.directory == "" || c.directory == r.Directory):
			return r, nil
		default:
			other = "; it is " + r.Role + " with directory " + r.Directory
		}
	}
	return nil, fail(codeNotFound, "`troupe cluster voters list` shows who votes and who could", "there is no such broker %d to change%s", c.broker, other)
}
