package cluster

import (
	"errors"
	"fmt"

	"github.com/troupe-broker/troupe/wire/ident"
)

// Check verifies every invariant of the machine and returns the first that is broken. It reads everything: for tests.
func (c *Controller) Check() error {
	if err := c.image.Check(); err != nil {
		return fmt.Errorf("committed image: %w", err)
	}
	if c.image.index > c.last {
		return fmt.Errorf("index %d is applied, the log ends at %d", c.image.index, c.last)
	}
	if len(c.saves) == 0 && c.log.last() > c.last || c.log.base.GetIndex() > c.image.index {
		return fmt.Errorf("the memory log holds %d to %d, the log ends at %d, applied is %d", c.log.base.GetIndex()+1, c.log.last(), c.last, c.image.index)
	}
	for i, s := range c.saves {
		if want := c.saved - uint64(len(c.saves)-1-i); s.id != want {
			return fmt.Errorf("save %d stands where %d should", s.id, want)
		}
	}
	if !c.active {
		if c.next != nil || len(c.queue) > 0 || len(c.waiting) > 0 {
			return errors.New("a node that is not the controller has proposals or waiters")
		}
		return nil
	}
	return c.checkActive()
}

func (c *Controller) checkActive() error {
	if c.leader != c.options.Node {
		return fmt.Errorf("the controller believes that node %v leads", c.leader)
	}
	if err := c.next.Check(); err != nil {
		return fmt.Errorf("speculative image: %w", err)
	}
	index := c.image.index
	for _, p := range c.queue {
		if index++; p.index != index || p.image.index != index || p.term != c.term {
			return fmt.Errorf("proposal of index %d term %d stands at %d in term %d", p.index, p.term, index, c.term)
		}
	}
	if c.next.index != index || index != c.last {
		return fmt.Errorf("the speculative image is at %d, the proposals end at %d, the log at %d", c.next.index, index, c.last)
	}
	for i, w := range c.waiting {
		if w.index <= c.tellable() || w.index > c.next.index || i > 0 && w.index < c.waiting[i-1].index {
			return fmt.Errorf("request %d waits for index %d, between %d and %d", w.reply.Request, w.index, c.tellable(), c.next.index)
		}
	}
	return nil
}

// Check verifies that the image's parts agree.
func (m *Image) Check() error {
	partitions, folded := 0, 0
	for name, t := range m.topics.all() {
		if byID, ok := m.ids.get(t.ID); !ok || byID != t || name != t.Name {
			return fmt.Errorf("topic %s has another entry under its id", name)
		}
		if f := foldName(name); f != "" {
			folded++
			if owner, ok := m.folded.get(f); !ok || owner != name {
				return fmt.Errorf("topic %s is not found under its collision form", name)
			}
		}
		partitions += len(t.Partitions)
		for i, p := range t.Partitions {
			if err := p.check(); err != nil {
				return fmt.Errorf("partition %s-%d: %w", name, i, err)
			}
			if err := m.checkLeader(p); err != nil {
				return fmt.Errorf("partition %s-%d: %w", name, i, err)
			}
		}
	}
	if m.ids.size != m.topics.size || m.folded.size != folded || m.partitions != partitions {
		return fmt.Errorf("%d topics, %d ids, %d of %d collision forms, %d of %d partitions", m.topics.size, m.ids.size, m.folded.size, folded, m.partitions, partitions)
	}
	for id, b := range m.brokers.all() {
		if id != b.ID || id < 0 {
			return fmt.Errorf("broker %d is stored as %d", b.ID, id)
		}
	}
	for r, s := range m.configs.all() {
		if len(s) == 0 {
			return fmt.Errorf("%v has an empty set of configs", r)
		}
	}
	return nil
}

// checkLeader verifies that only brokers that may lead do.
func (m *Image) checkLeader(p *Partition) error {
	if p.Leader == ident.NoBroker {
		return nil
	}
	b, ok := m.Broker(p.Leader)
	if !ok || !b.active() {
		return fmt.Errorf("broker %d leads and is not active", p.Leader)
	}
	return nil
}
