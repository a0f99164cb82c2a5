package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// layout is where everything is, as one broker knows it. Replicas that are being moved are already where they go to.
type layout struct {
	parts   []placement
	leaving map[int32][]placement // what is being moved away from a broker
	leaders map[int32]int         // partitions led, by broker
	first   map[int32]int         // partitions whose preferred leader a broker is
	astray  int                   // partitions that another than the preferred replica leads
	seats   seats                 // brokers that serve
	fenced  []int32
}

// oneBroker asks one broker, again where its connection ends. The metadata of another may be older than what the first has said of moves.
type oneBroker struct{ *kgo.Broker }

// Request implements kmsg.Requestor.
func (b oneBroker) Request(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	return b.RetriableRequest(ctx, req)
}

// layoutOf asks one broker.
func layoutOf(ctx context.Context, client *kgo.Client) (*layout, error) {
	c, err := describeCluster(ctx, client)
	if err != nil {
		return nil, err
	}
	var one kmsg.Requestor = client
	if c.ControllerID >= 0 {
		one = oneBroker{client.Broker(int(c.ControllerID))}
	}
	moves, err := listMoves(ctx, one, kmsg.NewPtrListPartitionReassignmentsRequest())
	if err != nil {
		return nil, err
	}
	m, err := readMetadata(ctx, one)
	if err != nil {
		return nil, err
	}
	return layoutFrom(c, m, moves), nil
}

func listMoves(ctx context.Context, whom kmsg.Requestor, req *kmsg.ListPartitionReassignmentsRequest) (*kmsg.ListPartitionReassignmentsResponse, error) {
	resp, err := req.RequestWith(ctx, whom)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		return nil, shardError(err, "list the moves")
	}
	return resp, nil
}

// layoutFrom reads the answers. The metadata list replicas that come and replicas that go beside each other.
func layoutFrom(c *kmsg.DescribeClusterResponse, m *kmsg.MetadataResponse, moves *kmsg.ListPartitionReassignmentsResponse) *layout {
	l := &layout{leaving: map[int32][]placement{}, leaders: map[int32]int{}, first: map[int32]int{}, seats: seats{}}
	type key struct {
		topic string
		part  int32
	}
	going := map[key][]int32{}
	for i := range moves.Topics {
		for _, p := range moves.Topics[i].Partitions {
			going[key{moves.Topics[i].Topic, p.Partition}] = p.RemovingReplicas
		}
	}
	for i := range c.Brokers {
		b := &c.Brokers[i]
		switch {
		case b.IsFenced:
			l.fenced = append(l.fenced, b.NodeID)
		case b.Rack != nil:
			l.seats[b.NodeID] = *b.Rack
		default:
			l.seats[b.NodeID] = ""
		}
	}
	for i := range m.Topics {
		t := &m.Topics[i]
		if t.Topic == nil {
			continue
		}
		for j := range t.Partitions {
			p := &t.Partitions[j]
			gone := going[key{*t.Topic, p.Partition}]
			to := slices.DeleteFunc(slices.Clone(p.Replicas), func(b int32) bool { return slices.Contains(gone, b) })
			if len(to) == 0 {
				continue
			}
			at := placement{Topic: *t.Topic, Partition: p.Partition, Replicas: to}
			for _, b := range p.Replicas {
				if slices.Contains(gone, b) {
					l.leaving[b] = append(l.leaving[b], at)
				}
			}
			l.parts = append(l.parts, at)
			l.leaders[p.Leader]++
			l.first[to[0]]++
			if p.Leader != to[0] {
				l.astray++
			}
		}
	}
	return l
}

// known tells whether a broker is registered.
func (l *layout) known(id int32) bool {
	_, serves := l.seats[id]
	return serves || slices.Contains(l.fenced, id)
}

// moving is how far moves are, for the progress line.
type moving struct{ done, all int }

func (m moving) String() string { return fmt.Sprintf("%d of %d partitions moved", m.done, m.all) }

// atATime refuses numbers of partitions to move at the same time that move nothing.
func atATime(some int) error {
	if some < 1 {
		return usage("--at-a-time 1 or more", "--at-a-time %d", some)
	}
	return nil
}

// movePause is how long nobody is asked whether moves have ended.
const movePause = 200 * time.Millisecond

// movePatience is how long one answer may take of a command that lasts as long as its moves.
const movePatience = 10 * time.Second

// move carries out moves, some at a time, and returns when all have ended, or ctx has. Without begin they are under way already. Only with shrink may a partition
// get another number of replicas: the layout that the moves were planned by may be older than a move by somebody else.
func (s *session) move(ctx context.Context, client *kgo.Client, moves []placement, some int, begin, shrink bool) error {
	progress := s.newProgress()
	defer progress.done()
	for begun := 0; begun < len(moves); begun += some {
		batch := moves[begun:min(begun+some, len(moves))]
		if begin {
			if err := reassign(ctx, client, batch, shrink); err != nil {
				return err
			}
		}
		for {
			left, err := reassigning(ctx, client, batch)
			if err != nil {
				return err
			}
			progress.show(moving{begun + len(batch) - left, len(moves)})
			if left == 0 {
				break
			}
			if over := rest(ctx, movePause); over != nil {
				return fail(codeTimeout, "it goes on; the same command waits for it again, and `kafka-reassign-partitions --cancel` takes it back",
					"%d of %d moves have not ended: %w", len(moves)-begun-len(batch)+left, len(moves), over)
			}
		}
	}
	return nil
}

// byTopic calls add for each run of placements of one topic.
func byTopic(list []placement, add func(topic string, of []placement)) {
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].Topic == list[0].Topic {
			n++
		}
		add(list[0].Topic, list[:n])
		list = list[n:]
	}
}

// reassign asks for moves. Every refusal is told.
func reassign(ctx context.Context, client *kgo.Client, moves []placement, shrink bool) error {
	req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	req.AllowReplicationFactorChange = shrink
	byTopic(moves, func(topic string, of []placement) {
		t := kmsg.NewAlterPartitionAssignmentsRequestTopic()
		t.Topic = topic
		for i := range of {
			p := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
			p.Partition, p.Replicas = of[i].Partition, of[i].Replicas
			t.Partitions = append(t.Partitions, p)
		}
		req.Topics = append(req.Topics, t)
	})
	resp, err := req.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		return shardError(err, "move replicas")
	}
	var errs []error
	for i := range resp.Topics {
		for _, p := range resp.Topics[i].Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				errs = append(errs, fmt.Errorf("%s-%d: %w", resp.Topics[i].Topic, p.Partition, err))
			}
		}
	}
	return errors.Join(errs...)
}

// reassigning counts those of the partitions that are being moved.
func reassigning(ctx context.Context, client *kgo.Client, of []placement) (int, error) {
	req := kmsg.NewPtrListPartitionReassignmentsRequest()
	byTopic(of, func(topic string, of []placement) {
		t := kmsg.NewListPartitionReassignmentsRequestTopic()
		t.Topic = topic
		for i := range of {
			t.Partitions = append(t.Partitions, of[i].Partition)
		}
		req.Topics = append(req.Topics, t)
	})
	resp, err := listMoves(ctx, client, req)
	if err != nil {
		return 0, err
	}
	left := 0
	for i := range resp.Topics {
		left += len(resp.Topics[i].Partitions)
	}
	return left, nil
}
