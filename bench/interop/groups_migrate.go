package main

import (
	"context"
	"fmt"
	"strings"
)

// migration is a story in which the members of one group change from one protocol to the other and back, one after the other,
// while they consume. The broker converts the group when the first member of the other kind comes, or the last one goes.
type migration struct {
	name     string
	assignor string // of the classic members
	smoke    bool
}

var migrations = []migration{
	{"classic (cooperative-sticky) to consumer and back", "cooperative-sticky", true},
	{"classic (range) to consumer and back", "range", false},
}

func (s *suite) migrate(ctx context.Context, o *observer, java *actor, m migration) error {
	classic := way{actor: java, protocol: "classic", assignor: m.assignor}
	t, err := s.newStory(ctx, o, classic, "migrating-"+m.assignor)
	if err != nil {
		return err
	}
	home := java.client.(*driver)
	defer t.close(context.WithoutCancel(ctx))
	if err := t.firstRecords(ctx); err != nil {
		return err
	}
	t.watch = o.watch(ctx, t.group, false)
	defer t.watch.end()
	flow := o.flow(ctx, t.partitions())
	defer flow.end()

	next := func(m *membership) { m.Protocol, m.Assignor = "consumer", "uniform" }
	steps := []struct {
		what  string
		do    func() error
		share []string // who has something afterwards
		is    string   // and of which type the group is
	}{
		{"two classic members", func() error {
			if err := t.join(ctx, home, "old-1", nil); err != nil {
				return err
			}
			return t.join(ctx, home, "old-2", nil)
		}, []string{"old-1", "old-2"}, "classic"},
		{"the first of the consumer protocol comes", func() error { return t.join(ctx, home, "new-1", next) }, []string{"old-1", "old-2", "new-1"}, "consumer"},
		{"a classic one goes", func() error { return t.leave(ctx, "old-1") }, []string{"old-2", "new-1"}, "consumer"},
		{"another of the consumer protocol comes", func() error { return t.join(ctx, home, "new-2", next) }, []string{"old-2", "new-1", "new-2"}, "consumer"},
		{"the last classic one goes", func() error { return t.leave(ctx, "old-2") }, []string{"new-1", "new-2"}, "consumer"},
		{"a classic one comes", func() error { return t.join(ctx, home, "old-3", nil) }, []string{"new-1", "new-2", "old-3"}, "consumer"},
		{"one of the consumer protocol goes", func() error { return t.leave(ctx, "new-1") }, []string{"new-2", "old-3"}, "consumer"},
		{"another classic one comes", func() error { return t.join(ctx, home, "old-4", nil) }, []string{"new-2", "old-3", "old-4"}, "consumer"},
		{"the last of the consumer protocol goes", func() error { return t.leave(ctx, "new-2") }, []string{"old-3", "old-4"}, "classic"},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		sharing, goingOn := t.sharing(step.share...), t.goingOn(flow)
		err := t.await(ctx, step.what+", and all share", func(h *history) error {
			if err := sharing(h); err != nil {
				return err
			}
			if err := goingOn(h); err != nil {
				return err
			}
			listed, err := o.admin.ListGroups(ctx)
			if err != nil {
				return err
			}
			if g := listed[t.group]; !strings.EqualFold(g.GroupType, step.is) {
				return fmt.Errorf("the group is %s of type %q, want %q", g.State, g.GroupType, step.is)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	ends, err := flow.stop()
	if err != nil {
		return err
	}
	if err := t.settled(ctx, ends); err != nil {
		return err
	}
	for _, name := range []string{"old-3", "old-4"} {
		if err := t.leave(ctx, name); err != nil {
			return err
		}
	}
	return t.verdict(ends)
}
