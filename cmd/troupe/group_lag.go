package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ageWait bounds how long the first unread records are looked for: where a compacted topic has none left there, none comes.
const ageWait = 3 * time.Second

// fillLagSeconds finds out how old the first record is that a group has not read, by reading it. Many groups that stand at the
// same offset cost one read.
func (s *session) fillLagSeconds(ctx context.Context, groups []describedGroup) error {
	type place struct {
		partitionKey
		offset int64
	}
	wanted := map[place]bool{}
	at := func(o *describedOffset) place {
		// Below the log start, what is there first is what is read next.
		return place{partitionKey{o.Topic, o.Partition}, max(*o.Committed, *o.Start)}
	}
	for i := range groups {
		for j := range groups[i].Offsets {
			if o := &groups[i].Offsets[j]; o.Lag != nil && *o.Lag > 0 {
				wanted[at(o)] = true
			}
		}
	}
	ages := map[place]time.Time{}
	for len(wanted) > 0 { // one place of each partition at a time
		round := map[string]map[int32]kgo.Offset{}
		offsets := map[partitionKey]int64{}
		for p := range wanted {
			if _, taken := offsets[p.partitionKey]; taken {
				continue
			}
			delete(wanted, p)
			offsets[p.partitionKey] = p.offset
			if round[p.topic] == nil {
				round[p.topic] = map[int32]kgo.Offset{}
			}
			round[p.topic][p.partition] = kgo.NewOffset().At(p.offset)
		}
		stamps, err := s.firstTimestamps(ctx, round)
		if err != nil {
			return err
		}
		for key, stamp := range stamps {
			ages[place{key, offsets[key]}] = stamp
		}
	}
	now := time.Now()
	for i := range groups {
		g := &groups[i]
		known, greatest := true, 0.0
		for j := range g.Offsets {
			o := &g.Offsets[j]
			switch {
			case o.Lag == nil:
				known = known && o.Committed == nil // without a commit it has no lag yet
				continue
			case *o.Lag == 0:
				o.LagSeconds = new(float64)
				continue
			}
			stamp, ok := ages[at(o)]
			if !ok {
				known = false
				continue
			}
			seconds := max(now.Sub(stamp).Round(time.Millisecond).Seconds(), 0) // a producer's clock may be ahead of ours
			o.LagSeconds = &seconds
			greatest = max(greatest, seconds)
		}
		if known {
			g.LagSeconds = &greatest
		}
	}
	return nil
}

// firstTimestamps reads one record at each place, and gives the timestamps of those that came in time.
func (s *session) firstTimestamps(ctx context.Context, places map[string]map[int32]kgo.Offset) (map[partitionKey]time.Time, error) {
	client, err := s.dial(ctx, ageWait,
		kgo.ConsumePartitions(places), kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.KeepControlRecords(),
		// Little of each partition, and in small answers: a batch comes whole however large it is.
		kgo.FetchMaxPartitionBytes(16<<10), kgo.FetchMaxBytes(1<<20), kgo.FetchMaxWait(500*time.Millisecond), kgo.MaxConcurrentFetches(1),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	open := 0
	for _, partitions := range places {
		open += len(partitions)
	}
	soon, cancel := context.WithTimeout(ctx, ageWait)
	defer cancel()
	stamps := map[partitionKey]time.Time{}
	closed := map[partitionKey]bool{}
	finish := func(key partitionKey) {
		if !closed[key] {
			closed[key] = true
			open--
			client.PauseFetchPartitions(map[string][]int32{key.topic: {key.partition}})
		}
	}
	for open > 0 {
		fetches := client.PollFetches(soon)
		if soon.Err() != nil {
			return stamps, ctx.Err() // those that did not come are not known
		}
		fetches.EachError(func(topic string, partition int32, _ error) { finish(partitionKey{topic, partition}) })
		fetches.EachRecord(func(r *kgo.Record) {
			key := partitionKey{r.Topic, r.Partition}
			if !closed[key] {
				stamps[key] = r.Timestamp
			}
			finish(key)
		})
	}
	return stamps, nil
}

// jump is what a group skipped by auto.offset.reset.
type jump struct {
	From    int64     `json:"from"`
	To      int64     `json:"to"`
	Records int64     `json:"records"`
	At      time.Time `json:"at"`
	Reason  string    `json:"reason"`
}

// String is a line for a person.
func (j *jump) String() string {
	return fmt.Sprintf("skipped %d records (%d to %d) at %s: %s", j.Records, j.From, j.To-1, j.At.UTC().Format(time.RFC3339), j.Reason)
}

// defaultMonitor is metrics.listen's default.
const defaultMonitor = "127.0.0.1:9644"

func monitorFlag(cmd *cobra.Command, s *session, monitor *string) {
	address := defaultMonitor
	if v, ok := s.env("TROUPE_MONITOR"); ok && v != "" {
		address = v
	}
	cmd.Flags().StringVar(monitor, "monitor", address, "monitor of the group's coordinator, HOST:PORT, which tells of jumps; empty: do not ask (env TROUPE_MONITOR)")
}

// monitoredGroup is a group as the broker's monitor tells it, at /groups?group=NAME.
type monitoredGroup struct {
	Group   string            `json:"group"`
	State   string            `json:"state"`
	Type    string            `json:"type"`
	Members int               `json:"members"`
	Offsets []monitoredOffset `json:"offsets"`
}

type monitoredOffset struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"` // -1: no commit
	Jump      *jump  `json:"jump,omitempty"`
}

// monitorWait bounds a question to the monitor: what it says is an extra.
const monitorWait = 2 * time.Second

// errNotThere is the answer of a monitor whose broker does not coordinate the group.
var errNotThere = errors.New("the monitor's broker does not coordinate the group")

// fillJumps asks a broker's monitor for the group. One that cannot be reached says nothing; of one that is not the coordinator's it is said.
func (g *describedGroup) fillJumps(ctx context.Context, monitor string) {
	if monitor == "" {
		return
	}
	told, err := askMonitor(ctx, monitor, g.Group)
	if errors.Is(err, errNotThere) {
		g.NotAsked = fmt.Sprintf("what the group skipped is told by the monitor of broker %d, its coordinator (--monitor); %s is another broker's", g.Coordinator, monitor)
	}
	if err != nil {
		return
	}
	jumps := map[partitionKey]*jump{}
	for _, o := range told.Offsets {
		jumps[partitionKey{o.Topic, o.Partition}] = o.Jump
	}
	for i := range g.Offsets {
		g.Offsets[i].Jump = jumps[partitionKey{g.Offsets[i].Topic, g.Offsets[i].Partition}]
	}
}

func askMonitor(ctx context.Context, monitor, group string) (g monitoredGroup, err error) {
	ctx, cancel := context.WithTimeout(ctx, monitorWait)
	defer cancel()
	address := url.URL{Scheme: "http", Host: monitor, Path: "/groups", RawQuery: url.Values{"group": {group}}.Encode()}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return g, fmt.Errorf("ask the monitor: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return g, fmt.Errorf("ask the monitor: %w", err)
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return g, errNotThere
	default:
		return g, fmt.Errorf("the monitor answers %s", answer.Status)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, 64<<20)).Decode(&g); err != nil {
		return g, fmt.Errorf("the monitor's answer: %w", err)
	}
	return g, nil
}
