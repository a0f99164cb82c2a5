package group_test

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/group"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
)

const millisecond = 1_000_000

// world is a shard with its log and its clock.
type world struct {
	shard  *group.Shard
	config coord.Config
	topics *topicView
	now    coord.Now
	out    coord.Out
	log    []records.Entry
	asked  ident.RequestID
}

func newWorld(config coord.Config) *world {
	w := &world{config: config, topics: newTopics(), now: coord.Now{Mono: 1000 * millisecond, Wall: 1_000_000}}
	w.shard = group.New(config, w.topics)
	w.shard.Loaded(w.now, &w.out)
	return w
}

// step lets the shard take a command. Its replies are in w.out until the next step.
func (w *world) step(c coord.Command) ident.RequestID {
	w.out.Reset()
	w.asked++
	w.shard.Step(w.now, w.asked, c, &w.out)
	w.log = append(w.log, w.out.Entries...)
	return w.asked
}

// ask is step for what is answered at once.
func (w *world) ask(tb testing.TB, c coord.Command) coord.Answer {
	tb.Helper()
	id := w.step(c)
	for _, r := range w.out.Replies {
		if r.Request == id {
			return r.Answer
		}
	}
	tb.Fatalf("%T was not answered", c)
	return nil
}

// wait passes time, and runs timers as they are due.
func (w *world) wait(ms int64) (entries []records.Entry, replies []coord.Reply, notes []coord.Note) {
	end := w.now.Mono + ident.Instant(ms*millisecond)
	for {
		due, ok := w.shard.Next()
		if !ok || due > end {
			w.set(end)
			return entries, replies, notes
		}
		w.set(max(due, w.now.Mono))
		w.out.Reset()
		w.shard.Tick(w.now, &w.out)
		w.log = append(w.log, w.out.Entries...)
		entries, replies, notes = append(entries, w.out.Entries...), append(replies, w.out.Replies...), append(notes, w.out.Notes...)
	}
}

// set moves both clocks.
func (w *world) set(mono ident.Instant) {
	before := w.now.Mono / millisecond
	w.now.Mono = mono
	w.now.Wall += ident.Millis(mono/millisecond - before)
}

// fold makes a shard of a log.
func (w *world) fold(log []records.Entry) *group.Shard {
	s := group.New(w.config, w.topics)
	for _, e := range log {
		s.Apply(e)
	}
	return s
}

// check compares the live state with the fold of a log.
func (w *world) check(t *testing.T, log []records.Entry) {
	t.Helper()
	if diff := difference(w.shard.Entries(), w.fold(log).Entries()); diff != "" {
		t.Fatalf("the live state is not the fold of the log: %s", diff)
	}
}

// difference tells the first entry in which two states differ, or nothing.
func difference(live, folded []records.Entry) string {
	for i := range max(len(live), len(folded)) {
		switch {
		case i >= len(live):
			return "only in the fold: " + show(folded[i])
		case i >= len(folded):
			return "only live: " + show(live[i])
		}
		a, b := encode(live[i]), encode(folded[i])
		if a != b {
			return fmt.Sprintf("live %s, folded %s", show(live[i]), show(folded[i]))
		}
		if i > 0 && bytes.Compare(live[i-1].AppendKey(nil), live[i].AppendKey(nil)) >= 0 {
			return "the keys do not ascend at " + show(live[i])
		}
	}
	return ""
}

func encode(e records.Entry) string {
	if e.Tombstone() {
		return string(e.AppendKey(nil))
	}
	key := e.AppendKey(nil)
	return fmt.Sprintf("%d %s%s", len(key), key, e.AppendValue(nil))
}

// topicView is a cluster's topics for a test.
type topicView struct{ all []coord.Topic }

func newTopics(topics ...coord.Topic) *topicView {
	slices.SortFunc(topics, func(a, b coord.Topic) int { return cmp.Compare(a.Name, b.Name) })
	return &topicView{all: topics}
}

func (v *topicView) ByName(name string) (coord.Topic, bool) {
	i := slices.IndexFunc(v.all, func(t coord.Topic) bool { return t.Name == name })
	if i < 0 {
		return coord.Topic{}, false
	}
	return v.all[i], true
}

func (v *topicView) ByID(id ident.TopicID) (coord.Topic, bool) {
	i := slices.IndexFunc(v.all, func(t coord.Topic) bool { return t.ID == id })
	if i < 0 {
		return coord.Topic{}, false
	}
	return v.all[i], true
}

func (v *topicView) Each(visit func(coord.Topic) bool) {
	for _, t := range v.all {
		if !visit(t) {
			return
		}
	}
}

// topicID makes an id that tells its topic and its life.
func topicID(name string, life int) (id ident.TopicID) {
	copy(id[:15], name)
	id[15] = byte(life)
	return id
}
