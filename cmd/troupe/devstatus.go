package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// reached are the addresses of brokers that can answer: of those that serve, the side of a partition that has most.
func (d *dev) reached() (addresses string, n int) {
	var out []string
	least := len(d.brokers)
	for _, b := range d.brokers {
		cut := len(d.network.cutOff(b.id))
		if b.state != devServing || cut > least {
			continue
		}
		if cut < least {
			least, out = cut, nil
		}
		out = append(out, b.client)
	}
	return strings.Join(out, ","), len(out)
}

// settle waits until everything that can be well is.
func (d *dev) settle(ctx context.Context, _ []*devBroker) error {
	const patience, pause = 60 * time.Second, 100 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	why := "a broker that was started does not serve"
	for ctx.Err() == nil {
		if err := d.await(ctx, d.allServe); err != nil {
			return err
		}
		addresses, n := d.reached()
		if n == 0 {
			return fail(codeRefused, "start or resume one", "no broker serves")
		}
		if ctx.Err() == nil {
			if why = d.unwell(ctx, addresses, n); why == "" {
				d.say("%d of %d brokers serve, and their replicas are in sync", n, len(d.brokers))
				return nil
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	return fail(codeTimeout, "`status` and `logs N` show more", "after %s: %s", patience, why)
}

// unwell says what is not yet as it can be with n brokers; empty: nothing.
func (d *dev) unwell(ctx context.Context, addresses string, n int) string {
	status, err := d.ask(ctx, addresses)
	if err != nil {
		return err.Error()
	}
	if status.Trouble != "" {
		return status.Trouble
	}
	serving := 0
	for _, b := range status.Brokers {
		if b.State == "serving" {
			serving++
		}
	}
	switch p := &status.Partitions; {
	case serving != n:
		return fmt.Sprintf("%d brokers can serve and the controller says %d do", n, serving)
	case p.Offline > 0:
		return fmt.Sprintf("%d partitions have no leader", p.Offline)
	case n == len(d.brokers) && p.UnderReplicated > 0:
		return fmt.Sprintf("%d partitions are under-replicated", p.UnderReplicated)
	}
	return ""
}

// ask asks brokers for the state of the cluster.
func (d *dev) ask(ctx context.Context, addresses string) (*clusterStatus, error) {
	const patience = 5 * time.Second
	s := *d.session
	s.bootstrap = addresses
	var status *clusterStatus
	err := s.withClient(ctx, patience, patience, func(ctx context.Context, client *kgo.Client) (err error) {
		status, err = statusOf(ctx, client)
		return err
	})
	return status, err
}

// devStatus is what the verb status shows.
type devStatus struct {
	Processes []devProcess   `json:"processes"`
	Cluster   *clusterStatus `json:"cluster,omitempty"` // null: nobody told
}

type devProcess struct {
	Broker int    `json:"broker"`
	State  string `json:"state"` // down, starting, serving or paused
	PID    int    `json:"pid,omitempty"`
	Cut    []int  `json:"cut_off_from,omitempty"` // brokers
}

func (d *dev) status(ctx context.Context, _ []*devBroker) error {
	var out devStatus
	for _, b := range d.brokers {
		p := devProcess{Broker: b.id, State: string(b.state), Cut: d.network.cutOff(b.id)}
		if b.cmd != nil {
			p.PID = b.cmd.Process.Pid
		}
		out.Processes = append(out.Processes, p)
	}
	var trouble error
	if addresses, n := d.reached(); n > 0 {
		if out.Cluster, trouble = d.ask(ctx, addresses); trouble == nil {
			trouble = out.Cluster.failure()
		}
	} else {
		trouble = fail(codeRefused, "start or resume one", "no broker serves")
	}
	err := d.session.show(out, func(w io.Writer) {
		row(w, "PROCESS", "STATE", "PID", "CUT OFF FROM")
		for _, p := range out.Processes {
			pid := ""
			if p.PID != 0 {
				pid = fmt.Sprint(p.PID)
			}
			row(w, p.Broker, p.State, pid, numbers(p.Cut))
		}
		row(w)
		if out.Cluster != nil {
			out.Cluster.text(w)
		}
	})
	if err != nil {
		return err
	}
	return errors.Join(wrapStdout(d.session.flush()), trouble)
}
