package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"
)

// staticWays are the ways in which clients are static members (KIP-345): those that have group.instance.id. franz-go v1.22.3 cannot be away for a moment in the
// consumer protocol: it says so (epoch -2) without its instance id, which a broker refuses.
var staticWays = map[string][]string{
	"java":      {"classic/range", "consumer/uniform"},
	"franz-go":  {"classic/cooperative-sticky"},
	"confluent": {"classic/range", "consumer/uniform"},
}

// staticSessionMs is how long a static member may be away, in the classic protocol; in the other the broker says.
const staticSessionMs = 15_000

// fencing is how clients put it that another member has their instance id: in the classic protocol the one that was there first hears it
// (FENCED_INSTANCE_ID), in the other the one that comes later (UNRELEASED_INSTANCE_ID).
var fencing = regexp.MustCompile(`(?i)fenced|unreleased|group\.instance\.id|instance ID`)

// static is the story of two members with names of their own: one is away for a moment and comes back, then somebody else comes under its name.
func (s *suite) static(ctx context.Context, o *observer, w way) (err error) {
	home, ok := w.actor.client.(*driver)
	if !ok {
		return fmt.Errorf("%s has no driver", w.actor.hello.Client)
	}
	t, err := s.newStory(ctx, o, w, w.actor.hello.Client+"-static-"+w.protocol)
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		t.close(end)
	}()
	if err := o.produce(ctx, t.partitions(), 1); err != nil {
		return err
	}
	flow := o.flow(ctx, t.partitions())
	defer flow.end()
	join := func(name, instance string) error {
		return t.join(ctx, home, name, func(m *membership) { m.Instance, m.SessionMs = instance, staticSessionMs })
	}
	if err := errors.Join(join("one", "first"), join("two", "second")); err != nil {
		return err
	}
	var before map[string]string
	err = t.await(ctx, "both members have half of the partitions", func(*history) (err error) {
		before, err = o.assignments(ctx, t.group)
		if err == nil && (len(before) != 2 || before["first"] == "" || before["second"] == "") {
			err = fmt.Errorf("the assignments are %v", before)
		}
		return err
	})
	if err != nil {
		return err
	}
	// The assignment of the coordinator comes to the members a moment later.
	if err := t.await(ctx, "both members share", t.sharing("one", "two")); err != nil {
		return err
	}

	seen, err := t.moves("two")
	if err != nil {
		return err
	}
	if err := t.leave(ctx, "one"); err != nil {
		return err
	}
	if err := join("one-again", "first"); err != nil {
		return err
	}
	err = t.await(ctx, "the member that came back goes on", func(h *history) error {
		if len(h.got) == 0 {
			return errors.New("it got nothing")
		}
		return nil
	}, "one-again")
	if err != nil {
		return err
	}
	after, err := o.assignments(ctx, t.group)
	if err != nil {
		return err
	}
	if !maps.Equal(before, after) {
		return fmt.Errorf("a member was away for a moment, and the assignments %v became %v", before, after)
	}
	if now, err := t.moves("two"); err != nil || now != seen {
		return errors.Join(err, fmt.Errorf("the other member's partitions moved %d times when one was away for a moment", now-seen))
	}
	return t.fenced(ctx, home)
}

// fenced lets a second member come with the instance id of one that lives.
func (t *story) fenced(ctx context.Context, home *driver) error {
	err := t.join(ctx, home, "rival", func(m *membership) { m.Instance, m.SessionMs = "first", staticSessionMs })
	if err != nil {
		return err
	}
	loser, winner := "one-again", "rival"
	if t.protocol == "consumer" {
		loser, winner = winner, loser
	}
	var heard int64
	err = t.hears(ctx, loser, func(e event) bool {
		heard = e.at
		return (e.kind == "refused" || e.kind == "failed") && fencing.MatchString(e.words)
	})
	if err != nil {
		return fmt.Errorf("%s was not fenced: %w", loser, err)
	}
	t.members[loser].alive = false
	_ = t.members[loser].host.leave(ctx, t.members[loser].membership, false) // it ends with the error it was fenced by, or without
	err = t.hears(ctx, winner, func(e event) bool { return e.kind == "got" && e.at > heard })
	if err != nil {
		return fmt.Errorf("%s does not go on: %w", winner, err)
	}
	for _, name := range []string{winner, "two"} {
		if err := t.leave(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// hears waits for an event in a member's journal, whatever else is in it.
func (t *story) hears(ctx context.Context, name string, wanted func(event) bool) error {
	return within(ctx, 45*time.Second, func() error {
		events, err := readJournal(t.members[name].Log)
		if err == nil && !slices.ContainsFunc(events, wanted) {
			err = fmt.Errorf("its last events are %v", events[max(0, len(events)-5):])
		}
		return err
	})
}

// moves counts how often a member was given or lost a partition.
func (t *story) moves(name string) (int, error) {
	events, err := readJournal(t.members[name].Log)
	n := 0
	for _, e := range events {
		if e.kind == "assigned" || e.kind == "revoked" {
			n++
		}
	}
	return n, err
}

// assignments tells what each static member of a group has, by instance id.
func (o *observer) assignments(ctx context.Context, group string) (map[string]string, error) {
	out := map[string]string{}
	classic, err := o.admin.DescribeGroups(ctx, group)
	if err != nil {
		return nil, err
	}
	for _, m := range classic[group].Members {
		if assigned, ok := m.Assigned.AsConsumer(); ok && m.InstanceID != nil {
			for _, topic := range assigned.Topics {
				out[*m.InstanceID] += fmt.Sprint(slices.Sorted(slices.Values(topic.Partitions)))
			}
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	consumers, err := o.admin.DescribeConsumerGroups(ctx, group)
	if err != nil {
		return nil, err
	}
	for _, m := range consumers[group].Members {
		if m.InstanceID != nil && len(m.Assignment) > 0 && fmt.Sprint(m.Assignment) == fmt.Sprint(m.TargetAssignment) {
			out[*m.InstanceID] = fmt.Sprint(m.Assignment)
		}
	}
	return out, nil
}
