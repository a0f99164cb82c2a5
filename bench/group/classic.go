package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	patience       = 60 * time.Second
	sessionTimeout = 30_000 // ms
	heartbeatEvery = 50 * time.Millisecond
)

// classicMember is one member of a classic group. Its goroutine joins, syncs, and sends heartbeats until it is told to end; whenever a rebalance is under way
// it joins again.
type classicMember struct {
	group, topic string
	c            *client
	id           string
	generation   int32
	assigned     int // partitions
	events       chan<- event
	leader       bool
}

// event tells the conductor what happened to a member.
type event struct {
	member     int
	kind       eventKind
	at         time.Time
	generation int32
	partitions int
	err        error
}

type eventKind int

const (
	joining eventKind = iota + 1 // the first JoinGroup that carries a member id leaves
	inGroup
	ended
)

func (m *classicMember) run(ctx context.Context, number int, stop <-chan struct{}) {
	err := m.live(ctx, number, stop)
	m.c.leave()
	m.events <- event{member: number, kind: ended, at: time.Now(), err: err}
}

func (m *classicMember) live(ctx context.Context, number int, stop <-chan struct{}) error {
	for first := true; ; first = false {
		if first {
			if err := m.meet(); err != nil {
				return err
			}
			m.events <- event{member: number, kind: joining, at: time.Now()}
		}
		again, err := m.rebalance()
		if err != nil {
			return err
		}
		if again {
			continue
		}
		m.events <- event{member: number, kind: inGroup, at: time.Now(), generation: m.generation, partitions: m.assigned}
		if over, err := m.stay(ctx, stop); over || err != nil {
			return err
		}
	}
}

// meet asks for a member id.
func (m *classicMember) meet() error {
	a, err := ask[*kmsg.JoinGroupResponse](m.c, m.join(), patience)
	if err != nil {
		return err
	}
	if a.ErrorCode != kerr.MemberIDRequired.Code {
		return failed("the first JoinGroup", a.ErrorCode)
	}
	m.id = a.MemberID
	return nil
}

func (m *classicMember) join() *kmsg.JoinGroupRequest {
	r := kmsg.NewPtrJoinGroupRequest()
	r.Version, r.Group, r.MemberID, r.ProtocolType = 7, m.group, m.id, "consumer"
	r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = sessionTimeout, sessionTimeout
	meta := kmsg.NewConsumerMemberMetadata()
	meta.Topics = []string{m.topic}
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name, p.Metadata = "range", meta.AppendTo(nil)
	r.Protocols = append(r.Protocols, p)
	return r
}

// rebalance joins and syncs once. again: another rebalance came between.
func (m *classicMember) rebalance() (again bool, err error) {
	a, err := ask[*kmsg.JoinGroupResponse](m.c, m.join(), patience)
	switch {
	case err != nil:
		return false, err
	case a.ErrorCode == kerr.RebalanceInProgress.Code:
		return true, nil
	case a.ErrorCode != 0:
		return false, failed("JoinGroup", a.ErrorCode)
	}
	m.generation, m.leader = a.Generation, a.LeaderID == m.id
	s := kmsg.NewPtrSyncGroupRequest()
	s.Version, s.Group, s.MemberID, s.Generation = 4, m.group, m.id, m.generation
	if m.leader {
		s.GroupAssignment = m.assign(a.Members)
	}
	synced, err := ask[*kmsg.SyncGroupResponse](m.c, s, patience)
	switch {
	case err != nil:
		return false, err
	case synced.ErrorCode == kerr.RebalanceInProgress.Code:
		return true, nil
	case synced.ErrorCode != 0:
		return false, failed("SyncGroup", synced.ErrorCode)
	}
	var mine kmsg.ConsumerMemberAssignment
	if err := mine.ReadFrom(synced.MemberAssignment); err != nil {
		return false, err
	}
	m.assigned = 0
	for _, t := range mine.Topics {
		m.assigned += len(t.Partitions)
	}
	return false, nil
}

// partitions is how many the topic has.
const partitions = 400

// assign deals the partitions out.
func (m *classicMember) assign(members []kmsg.JoinGroupResponseMember) []kmsg.SyncGroupRequestGroupAssignment {
	ids := make([]string, 0, len(members))
	for _, member := range members {
		ids = append(ids, member.MemberID)
	}
	slices.Sort(ids)
	out := make([]kmsg.SyncGroupRequestGroupAssignment, 0, len(ids))
	for i, id := range ids {
		t := kmsg.NewConsumerMemberAssignmentTopic()
		t.Topic = m.topic
		for p := i; p < partitions; p += len(ids) {
			t.Partitions = append(t.Partitions, int32(p))
		}
		a := kmsg.NewConsumerMemberAssignment()
		a.Topics = append(a.Topics, t)
		g := kmsg.NewSyncGroupRequestGroupAssignment()
		g.MemberID, g.MemberAssignment = id, a.AppendTo(nil)
		out = append(out, g)
	}
	return out
}

// stay sends heartbeats until the group rebalances, or the member shall leave.
func (m *classicMember) stay(ctx context.Context, stop <-chan struct{}) (over bool, err error) {
	tick := time.NewTicker(heartbeatEvery)
	defer tick.Stop()
	r := kmsg.NewPtrHeartbeatRequest()
	r.Version, r.Group, r.MemberID, r.Generation = 3, m.group, m.id, m.generation
	for {
		select {
		case <-tick.C:
		case <-stop:
			l := kmsg.NewPtrLeaveGroupRequest()
			l.Version, l.Group = 3, m.group
			one := kmsg.NewLeaveGroupRequestMember()
			one.MemberID = m.id
			l.Members = append(l.Members, one)
			_, err := ask[*kmsg.LeaveGroupResponse](m.c, l, patience)
			return true, err
		case <-ctx.Done():
			return true, ctx.Err()
		}
		a, err := ask[*kmsg.HeartbeatResponse](m.c, r, patience)
		switch {
		case err != nil:
			return false, err
		case a.ErrorCode == kerr.RebalanceInProgress.Code:
			return false, nil
		case a.ErrorCode != 0:
			return false, failed("Heartbeat", a.ErrorCode)
		}
	}
}

// crowd is a group of raw members and what is known of them.
type crowd struct {
	events  chan event
	stop    chan struct{}
	members sync.WaitGroup
	count   int
	last    time.Time // the latest joining
	state   map[int]event
}

func newCrowd() *crowd {
	return &crowd{events: make(chan event, 4096), stop: make(chan struct{}), state: make(map[int]event)}
}

// settle takes in events until done says that the group is as it should be, and returns when the last event that it took to be so came.
func (w *crowd) settle(ctx context.Context, done func(map[int]event) bool) (time.Time, error) {
	limit := time.After(patience)
	for !done(w.state) {
		select {
		case e := <-w.events:
			switch e.kind {
			case joining:
				if e.at.After(w.last) {
					w.last = e.at
				}
			case inGroup:
				w.state[e.member] = e
			case ended:
				return time.Time{}, fmt.Errorf("member %d ended: %w", e.member, errors.Join(e.err, ctx.Err()))
			}
		case <-limit:
			return time.Time{}, fmt.Errorf("%d of %d members have settled after %v", len(w.state), w.count, patience)
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		}
	}
	return latest(w.state), nil
}

func latest(state map[int]event) (at time.Time) {
	for _, e := range state {
		if e.at.After(at) {
			at = e.at
		}
	}
	return at
}

// settled tells whether count members are of one generation, each with its share. With others in the group beside them they need not hold all partitions.
func settled(count int, alone bool) func(map[int]event) bool {
	return func(state map[int]event) bool {
		if len(state) != count {
			return false
		}
		held, generation := 0, int32(-1)
		for _, e := range state {
			if generation >= 0 && e.generation != generation {
				return false
			}
			generation = e.generation
			held += e.partitions
			if alone && e.partitions < partitions/count {
				return false
			}
		}
		return !alone || held == partitions
	}
}

// end lets all members leave and waits for them.
func (w *crowd) end() {
	close(w.stop)
	go func() {
		for range w.events { // until the last member has said goodbye
		}
	}()
	w.members.Wait()
	close(w.events)
}

func (w *crowd) addClassic(ctx context.Context, addr, group, topic string) error {
	c, err := dial(ctx, addr, fmt.Sprintf("raw-%d", w.count))
	if err != nil {
		return err
	}
	m, number := &classicMember{group: group, topic: topic, c: c, events: w.events}, w.count
	w.count++
	w.members.Go(func() { m.run(ctx, number, w.stop) })
	return nil
}

// classic measures a cold start of a group of raw members, and then how long single joins take.
func (b *bench) classic(ctx context.Context, s *server, group, topic string, others int) error {
	w := newCrowd()
	defer w.end()
	for range b.members {
		if err := w.addClassic(ctx, s.addr, group, topic); err != nil {
			return err
		}
	}
	at, err := w.settle(ctx, settled(b.members, others == 0))
	if err != nil {
		return err
	}
	if err := b.raw.add(s.name, "classic: cold start after the last join, ms", ms(at.Sub(w.last))); err != nil {
		return err
	}
	for range b.joins {
		time.Sleep(300 * time.Millisecond) // the group is stable
		began := time.Now()
		if err := w.addClassic(ctx, s.addr, group, topic); err != nil {
			return err
		}
		number := w.count - 1
		joined := func(state map[int]event) bool { _, ok := state[number]; return ok }
		if _, err := w.settle(ctx, joined); err != nil {
			return err
		}
		if err := b.raw.add(s.name, "classic: one join, ms", ms(w.state[number].at.Sub(began))); err != nil {
			return err
		}
		if _, err := w.settle(ctx, settled(w.count, others == 0)); err != nil {
			return err
		}
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
