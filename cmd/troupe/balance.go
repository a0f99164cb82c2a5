package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// balance is what `troupe cluster balance` says.
type balance struct {
	Brokers  []share     `json:"brokers"`
	Astray   int         `json:"led_by_others"` // partitions that another than the preferred replica leads
	Moves    []placement `json:"moves"`         // that would even the replicas, or did
	Repaired bool        `json:"repaired"`
}

// share is what one broker has of the work.
type share struct {
	Broker    int32  `json:"broker"`
	Rack      string `json:"rack,omitempty"`
	Leads     int    `json:"leads"`
	Preferred int    `json:"preferred"` // partitions it is to lead
	Replicas  int    `json:"replicas"`
}

func (b *balance) text(w io.Writer) {
	row(w, "BROKER", "LEADS", "PREFERRED", "REPLICAS", "RACK")
	for _, s := range b.Brokers {
		row(w, s.Broker, s.Leads, s.Preferred, s.Replicas, s.Rack)
	}
	row(w)
	verb := "would be"
	if b.Repaired {
		verb = "were"
		if len(b.Moves) == 1 {
			verb = "was"
		}
	}
	row(w, fmt.Sprintf("%s led by another than the preferred replica; %s %s moved", plural(int64(b.Astray), "partition is", "partitions are"), plural(int64(len(b.Moves)), "partition", "partitions"), verb))
}

// balanceOf makes what is said of a layout.
func balanceOf(l *layout, moves []placement, repaired bool) *balance {
	out := &balance{Brokers: []share{}, Astray: l.astray, Moves: moves, Repaired: repaired}
	if moves == nil {
		out.Moves = []placement{}
	}
	n := l.seats.loads(l.parts)
	for _, id := range slices.Sorted(maps.Keys(l.seats)) {
		out.Brokers = append(out.Brokers, share{Broker: id, Rack: l.seats[id], Leads: l.leaders[id], Preferred: l.first[id], Replicas: n[id]})
	}
	return out
}

func newBalance(s *session) *cobra.Command {
	var timeout time.Duration
	var some int
	var repair bool
	cmd := &cobra.Command{
		Use:   "balance",
		Short: "Show how leaders and replicas are spread, and even them out",
		Long: "Show how many partitions each broker leads, is to lead, and has replicas of. With --repair replicas are moved from brokers that have\n" +
			"more to those that have fewer, and preferred replicas lead again.",
		Example: "  troupe cluster balance\n  troupe cluster balance --repair",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := atATime(some); err != nil {
				return err
			}
			return s.withClient(cmd.Context(), min(timeout, movePatience), timeout, func(ctx context.Context, client *kgo.Client) error {
				l, err := layoutOf(ctx, client)
				if err != nil {
					return err
				}
				moves := evened(l.parts, l.seats)
				if repair {
					if err := s.move(ctx, client, moves, some, true, false); err != nil {
						return err
					}
					if err := prefer(ctx, client); err != nil {
						return err
					}
					if l, err = layoutOf(ctx, client); err != nil {
						return err
					}
				}
				out := balanceOf(l, moves, repair)
				return s.show(out, out.text)
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&repair, "repair", false, "move replicas and leaderships until they are even")
	f.IntVar(&some, "at-a-time", 50, "partitions that are moved at the same time")
	f.DurationVar(&timeout, "timeout", time.Hour, "how long to wait until it is done")
	return cmd
}

// prefer lets preferred replicas lead. One that is not in sync stays as it is: balance shows it.
func prefer(ctx context.Context, client *kgo.Client) error {
	req := kmsg.NewPtrElectLeadersRequest()
	req.TimeoutMillis = 30_000
	resp, err := req.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		return shardError(err, "elect preferred leaders")
	}
	var errs []error
	for i := range resp.Topics {
		for _, p := range resp.Topics[i].Partitions {
			switch err := kerr.ErrorForCode(p.ErrorCode); {
			case err == nil, errors.Is(err, kerr.PreferredLeaderNotAvailable), errors.Is(err, kerr.ElectionNotNeeded):
			default:
				errs = append(errs, fmt.Errorf("%s-%d: %w", resp.Topics[i].Topic, p.Partition, err))
			}
		}
	}
	return errors.Join(errs...)
}
