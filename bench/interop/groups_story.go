package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// story is one group with its topics, while it is told.
type story struct {
	*suite
	o      *observer
	group  string
	topics []string // partitions are spread evenly over them
	// pattern finds the topics, in place of their names.
	pattern string
	members map[string]*member
	// spread is how members of this story join.
	way
	watch *watch
}

// member is one member of a story's group.
type member struct {
	membership
	host  *driver // nil: kcat
	kcat  *kcatMember
	alive bool
}

func (s *suite) newStory(ctx context.Context, o *observer, w way, name string) (*story, error) {
	t := &story{suite: s, o: o, way: w, group: "group-" + name, topics: []string{"shared-" + name}, members: map[string]*member{}}
	if w.regex {
		t.topics = []string{"shared-" + name + "-1", "shared-" + name + "-2"}
		t.pattern = "^shared-" + strings.ReplaceAll(name, ".", `\.`) + "-[0-9]+$"
		if w.actor.hello.Client != "confluent" && w.protocol == "consumer" {
			t.pattern = strings.Trim(t.pattern, "^$") // the broker's regular expressions match the whole name by themselves
		}
	}
	for _, topic := range t.topics {
		if err := o.create(ctx, topic, groupPartitions/len(t.topics)); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// partitions lists the story's partitions.
func (t *story) partitions() []topicPartition {
	var tps []topicPartition
	for _, topic := range t.topics {
		for p := range groupPartitions / len(t.topics) {
			tps = append(tps, topicPartition{topic, int32(p)})
		}
	}
	return tps
}

// join lets a member join on a host and returns before it has any partition.
func (t *story) join(ctx context.Context, host *driver, name string, change func(*membership)) error {
	m := &member{host: host, alive: true, membership: membership{
		Member: t.group + "/" + name, Group: t.group, Topics: t.topics, Pattern: t.pattern, Protocol: t.protocol, Assignor: t.assignor,
		Reset: "earliest", SessionMs: groupSessionMs, Log: filepath.Join(t.env.run, strings.ReplaceAll(t.group+"-"+name, "/", "-")+".journal"),
	}}
	if t.pattern != "" {
		m.Topics = nil
	}
	if change != nil {
		change(&m.membership)
	}
	t.members[name] = m
	if k, ok := t.actor.client.(*kcat); ok {
		var err error
		m.kcat, err = k.join(ctx, m.membership)
		return err
	}
	return host.join(ctx, m.membership)
}

// leave lets a member leave in order.
func (t *story) leave(ctx context.Context, name string) error {
	m := t.members[name]
	m.alive = false
	if m.kcat != nil {
		return m.kcat.leave()
	}
	if err := m.host.leave(ctx, m.membership, false); err != nil {
		return fmt.Errorf("%s leaves: %w", name, err)
	}
	return nil
}

// histories reads what the members have done so far; without names all of them.
func (t *story) histories(names ...string) (*history, error) {
	journals := map[string][]event{}
	for name, m := range t.members {
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		events, err := readJournal(m.Log)
		if err != nil {
			return nil, err
		}
		journals[name] = events
	}
	return newHistory(journals), nil
}

// await waits until the members named, all when none is, have done what is wanted. Done is asked with their history.
func (t *story) await(ctx context.Context, what string, done func(h *history) error, names ...string) error {
	limit := time.NewTimer(45 * time.Second)
	defer limit.Stop()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		h, err := t.histories(names...)
		if err != nil {
			return err
		}
		if len(h.failed) > 0 {
			return fmt.Errorf("while waiting until %s: %s", what, strings.Join(h.failed, "; "))
		}
		if err = done(h); err == nil {
			return nil
		}
		select {
		case <-again.C:
			continue
		case <-limit.C:
		case <-ctx.Done():
		}
		state := t.o.describe(context.WithoutCancel(ctx), t.group)
		return fmt.Errorf("waited in vain until %s: %w\nthe group is %s\nrefused: %q", what, err, state, tailOf(h.refused, 5))
	}
}

func tailOf(list []string, n int) []string { return list[max(0, len(list)-n):] }

// close lets everybody go, for a story that ends before its time.
func (t *story) close(ctx context.Context) {
	for name, m := range t.members {
		if m.alive {
			_ = t.leave(ctx, name) // the story has told its failure already
		}
	}
}

// sharing wants each of the members to have got something within the last assignment of the group.
func (t *story) sharing(names ...string) func(*history) error {
	return func(h *history) error {
		got := map[string]bool{}
		for _, list := range h.got {
			got[list[len(list)-1].member] = true
		}
		for _, name := range names {
			if !got[name] {
				return fmt.Errorf("%s got nothing last of any partition", name)
			}
		}
		return nil
	}
}

// goingOn wants every partition to be committed beyond where it ended when this was called.
func (t *story) goingOn(f *flow) func(*history) error {
	marks := f.ends()
	return func(*history) error {
		for _, tp := range partitionsOf(marks) {
			if c := t.watch.committed(tp); c <= marks[tp] {
				return fmt.Errorf("%v is committed up to %d and was written up to %d", tp, c, marks[tp])
			}
		}
		return nil
	}
}

// settled waits until everything is committed.
func (t *story) settled(ctx context.Context, ends map[topicPartition]int64) error {
	return t.await(ctx, "everything is committed", func(*history) error {
		for _, tp := range partitionsOf(ends) {
			if c := t.watch.committed(tp); c != ends[tp] {
				return fmt.Errorf("%v is committed up to %d and ends at %d", tp, c, ends[tp])
			}
		}
		return nil
	})
}

// verdict is what the whole story is for: nothing lost, nothing repeated that was committed, commits that only rose.
func (t *story) verdict(ends map[topicPartition]int64) error {
	h, err := t.histories()
	if err != nil {
		return err
	}
	if err := errors.Join(h.lost(ends), t.watch.stop()); err != nil {
		return err
	}
	if t.actor.hello.lacks(lacksGroupFencing) || t.actor.hello.Client == "kcat" {
		return nil // of kcat only the time at which the suite read its output is known
	}
	for tp, list := range t.watch.seen {
		h.commits[tp] = append(h.commits[tp], list...)
	}
	if err := h.repeated(); err != nil {
		return err
	}
	var records int64
	for _, end := range ends {
		records += end
	}
	t.report.remark("%s: %d records, %d of them came again, %d refusals", t.group, records, h.repeats(), len(h.refused))
	return nil
}
