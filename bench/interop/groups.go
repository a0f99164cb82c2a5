package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"
)

// groupSettings make a broker notice within seconds that a member is gone, whichever protocol it speaks: with the defaults
// that takes up to 45. Both targets get them.
var groupSettings = settings{
	"group.min.session.timeout.ms":             "1000",
	"group.consumer.min.session.timeout.ms":    "1000",
	"group.consumer.session.timeout.ms":        "4000",
	"group.consumer.min.heartbeat.interval.ms": "100",
	// Not shorter: librdkafka does not wait longer than this for the answer to a heartbeat, and does not ask again for what
	// a late answer said. On a busy machine its group then never comes to rest, with any broker.
	"group.consumer.heartbeat.interval.ms": "1000",
	// Members of the suite come one after the other on purpose.
	"group.initial.rebalance.delay.ms": "0",
}

const (
	groupPartitions = 12
	groupSessionMs  = 3000
	// groupTimeout bounds the story of one group.
	groupTimeout = 240 * time.Second
	// groupsAtOnce is how many stories go on at the same time: they mostly wait.
	groupsAtOnce = 4
)

// way is one way to be a member of a group.
type way struct {
	actor    *actor
	protocol string // classic or consumer
	assignor string
	regex    bool // the topics, two of them, are found by a pattern
}

func (w way) String() string {
	name := w.protocol + " " + w.assignor
	if w.regex {
		name = w.protocol + " by pattern"
	}
	return name
}

// smokeWays are what the smoke part takes of each client; a client that is not here has its first way.
var smokeWays = map[string][]string{
	"java":         {"classic/range", "classic/cooperative-sticky", "consumer/uniform", "consumer/regex"},
	"franz-go":     {"classic/cooperative-sticky", "consumer/uniform"},
	"sarama-max":   {"classic/cooperative-sticky"},
	"confluent":    {"classic/cooperative-sticky", "consumer/uniform"},
	"kafka-python": {"classic/roundrobin"},
}

// waysOf lists how a client takes part.
func waysOf(a *actor, full bool) []way {
	names := a.hello.Groups
	if !full && len(names) > 0 {
		names = smokeWays[a.hello.Client]
		if names == nil {
			names = a.hello.Groups[:1]
		}
	}
	var ways []way
	for _, name := range names {
		protocol, assignor, _ := strings.Cut(name, "/")
		w := way{actor: a, protocol: protocol, assignor: assignor, regex: assignor == "regex"}
		if w.regex {
			w.assignor = map[string]string{"classic": "range", "consumer": "uniform"}[protocol]
		}
		if a.hello.Client == "kafkajs" {
			w.assignor = "roundrobin" // it has no other
		}
		ways = append(ways, w)
	}
	return ways
}

// groups is the section in which every client is a member of groups, in each way it can.
func (s *suite) groups(ctx context.Context) {
	s.report.section("groups: what is committed")
	o, err := newObserver(s.target.addr)
	if err != nil {
		s.report.check(ctx, who{"suite", ""}, "observer", func(context.Context) error { return err })
		return
	}
	defer o.close()
	s.commits(ctx, o)

	s.report.section("groups: three members over 12 partitions, one comes, one leaves, one is killed")
	var stories sync.WaitGroup
	slots := make(chan struct{}, groupsAtOnce)
	start := func(name string, w who, tell func(ctx context.Context) error) {
		stories.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			s.report.checkWithin(ctx, groupTimeout, w, name, tell)
		})
	}
	for _, a := range s.actors {
		for _, w := range waysOf(a, s.full) {
			start(w.String(), a.who(), func(ctx context.Context) error {
				err := s.churn(ctx, o, w, "")
				for try := 2; err != nil && stalls(a) && try <= tellings; try++ {
					s.report.remark("%s %v, told once more after: %v", a.hello.Client, w, err)
					err = s.churn(ctx, o, w, fmt.Sprintf("-again-%d", try))
				}
				return err
			})
		}
	}
	for _, a := range s.actors {
		for _, name := range staticWays[a.hello.Client] {
			protocol, assignor, _ := strings.Cut(name, "/")
			w := way{actor: a, protocol: protocol, assignor: assignor}
			start("static members, "+w.String(), a.who(), func(ctx context.Context) error { return s.static(ctx, o, w) })
		}
	}
	if java := javaOf(s.actors); java != nil {
		for _, m := range migrations {
			if s.full || m.smoke {
				start(m.name, java.who(), func(ctx context.Context) error { return s.migrate(ctx, o, java, m) })
			}
		}
	}
	stories.Wait()
}

// commits: each client commits an offset with metadata and is told it again, and so is everybody else.
func (s *suite) commits(ctx context.Context, o *observer) {
	const topic = "committed"
	created := s.report.check(ctx, who{"suite", ""}, "create "+topic, func(ctx context.Context) error { return o.create(ctx, topic, 2) })
	if !created {
		return
	}
	for _, a := range s.actors {
		d, ok := a.client.(*driver)
		if !ok {
			continue // kcat has no way to say so
		}
		s.report.check(ctx, a.who(), "commit with metadata, and read it back", func(ctx context.Context) error {
			group := "committed-by-" + a.hello.Client
			want := committedOffset{Offset: 17, Metadata: "état 値 of " + a.hello.Client}
			var got committedOffset
			err := eventually(ctx, func() (err error) {
				// The coordinator of a new group may still be loading; librdkafka leaves it to the program to try again.
				got, err = d.commitOffset(ctx, group, topic, 1, want.Offset, want.Metadata)
				return err
			})
			if err != nil {
				return err
			}
			if got != want {
				return fmt.Errorf("the client was told %+v, want %+v", got, want)
			}
			all, err := o.admin.FetchOffsets(ctx, group)
			if err != nil {
				return err
			}
			other, ok := all.Lookup(topic, 1)
			if a.hello.Client == "confluent" {
				other.Metadata = strings.TrimSuffix(other.Metadata, "\x00") // it sends the end of the C string, too
			}
			if seen := (committedOffset{other.At, other.Metadata}); !ok || seen != want || len(all[topic]) != 1 {
				return fmt.Errorf("another client is told %+v, want %+v and nothing else", all, want)
			}
			return nil
		})
	}
}

// tellings is how often the story of a client that stalls is told at most.
const tellings = 3

// stalls tells of a client that now and then comes to a halt by itself. kafka-python 3.0.12 rejoins when the metadata it assigned by has changed, which is
// the rule when its first JoinGroup was faster than its first Metadata. While that rejoin is under way it takes note of the new metadata
// (_perform_assignment); if poll's time then runs out before the answer to SyncGroup is there, need_rejoin says no from then on, and nobody takes the
// assignment that came: heartbeats stay disabled, nothing is fetched, poll spins, the session ends. Seen in its own log, every request answered, 8 of 93
// times with polls of 100 ms, with Apache Kafka too (1 of 101); with polls of a second, as its driver makes them, in none of 120. Its story is told again all
// the same, and the report says so.
func stalls(a *actor) bool { return a.hello.Client == "kafka-python" }

// churn is the story of one way to be a member. suffix tells its group from that of an earlier try.
func (s *suite) churn(ctx context.Context, o *observer, w way, suffix string) (err error) {
	name := strings.NewReplacer(" ", "-").Replace(w.actor.hello.Client+"-"+w.String()) + suffix
	t, err := s.newStory(ctx, o, w, name)
	if err != nil {
		return err
	}
	home, victims := s.hosts(w.actor, name)
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		t.close(end)
		if victims != nil {
			err = errors.Join(err, victims.kill())
		}
	}()

	// What is there before the first member comes is what the reset is for.
	all := t.partitions()
	if err := t.firstRecords(ctx); err != nil {
		return fmt.Errorf("first records: %w", err)
	}
	t.watch = o.watch(ctx, t.group, w.actor.hello.lacks(lacksGroupFencing))
	defer t.watch.end()
	if err := t.join(ctx, home, "first", nil); err != nil {
		return err
	}
	err = t.await(ctx, "the first member has every partition from its start", func(h *history) error {
		for _, tp := range all {
			if len(h.got[tp]) == 0 {
				return fmt.Errorf("nothing of %v", tp)
			}
			if first := h.got[tp][0].first; first != 0 {
				return fmt.Errorf("%v was begun at %d", tp, first)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}

	// Records keep coming while members do.
	flow := o.flow(ctx, all)
	defer flow.end()
	if err := t.join(ctx, home, "second", nil); err != nil {
		return err
	}
	if err := t.join(ctx, cmp.Or(victims, home), "victim", nil); err != nil {
		return err
	}
	if err := t.await(ctx, "three members share", t.sharing("first", "second", "victim")); err != nil {
		return err
	}

	if err := t.kill(ctx, "victim", victims); err != nil {
		return fmt.Errorf("kill: %w", err)
	}
	if err := t.join(ctx, home, "third", nil); err != nil {
		return err
	}
	if err := t.await(ctx, "the killed one's partitions go on", t.goingOn(flow)); err != nil {
		return err
	}
	if w.actor.hello.Client == "kcat" {
		// A message that it has taken and not yet printed when the signal comes is committed and never seen: it goes while
		// there is none.
		ends, err := flow.stop()
		if err := errors.Join(err, t.settled(ctx, ends)); err != nil {
			return err
		}
	}
	if err := t.leave(ctx, "second"); err != nil {
		return err
	}
	if w.actor.hello.Client == "kcat" {
		flow = o.flow(ctx, all)
		defer flow.end()
	}
	if err := t.await(ctx, "two members have everything", t.goingOn(flow)); err != nil {
		return err
	}
	ends, err := flow.stop()
	if err != nil {
		return err
	}
	if err := t.settled(ctx, ends); err != nil {
		return err
	}
	for _, name := range []string{"first", "third"} {
		if err := t.leave(ctx, name); err != nil {
			return err
		}
	}
	if err := t.verdict(ends); err != nil {
		return err
	}
	if w.actor.hello.Client == "kcat" {
		return nil // as a program it cannot be told more
	}
	if err := t.resumes(ctx, home, ends); err != nil {
		return err
	}
	return t.latest(ctx, home)
}

// hosts gives the processes that members live in: home for those that leave in order, victims for the one to be killed. The
// smoke part starts no second JVM: there the victim is abandoned at home, which a broker cannot tell from death.
func (s *suite) hosts(a *actor, name string) (home, victims *driver) {
	home, ok := a.client.(*driver)
	if !ok {
		return nil, nil // kcat: each member is a process anyway
	}
	if a.hello.Client == "java" && !s.full {
		return home, nil
	}
	command := home.command
	command.Output = s.env.log(name + "-victim")
	return home, newDriver(command, home.bootstrap)
}

// kill ends a member as a crash does: its connections close, and the group hears nothing.
func (t *story) kill(ctx context.Context, name string, victims *driver) error {
	m := t.members[name]
	m.alive = false
	switch {
	case m.kcat != nil:
		return m.kcat.kill()
	case victims == nil:
		return m.host.leave(ctx, m.membership, true)
	}
	return victims.kill()
}

// firstRecords writes what is there before the first member: the client itself into the first partition, the suite into the
// others.
func (t *story) firstRecords(ctx context.Context) error {
	all := t.partitions()
	records := make([]record, 10)
	for i := range records {
		records[i] = record{Value: fmt.Appendf(nil, "first %d", i), Timestamp: time.Now().UnixMilli()}
	}
	if _, err := t.actor.produce(ctx, all[0].topic, int(all[0].partition), cell{Codec: "none", Acks: -1}, records); err != nil {
		return err
	}
	return t.o.produce(ctx, all[1:], 10)
}

// resumes: a member that comes after all had gone begins where they ended, and where it is told to.
func (t *story) resumes(ctx context.Context, home *driver, ends map[topicPartition]int64) error {
	all := t.partitions()
	if err := t.o.produce(ctx, all, 3); err != nil {
		return err
	}
	begins := maps.Clone(ends)
	seeks := !t.actor.hello.lacks(lacksGroupSeek) && t.pattern == ""
	err := t.join(ctx, home, "fourth", func(m *membership) {
		if seeks {
			m.Seek = &seekTo{Partition: 0, Offset: 1}
			begins[all[0]] = 1
		}
	})
	if err != nil {
		return err
	}
	err = t.await(ctx, "the next member has got what is new", func(h *history) error {
		for _, tp := range all {
			list := h.got[tp]
			if len(list) == 0 || list[len(list)-1].last != ends[tp]+2 {
				return fmt.Errorf("%v of %v, want up to %d", describeStretches(list), tp, ends[tp]+2)
			}
			if list[0].first != begins[tp] {
				return fmt.Errorf("%v was begun at %d, want %d", tp, list[0].first, begins[tp])
			}
		}
		return nil
	}, "fourth")
	return errors.Join(err, t.leave(ctx, "fourth"))
}

// latest: a member of a group without commits that is told so begins at the end.
func (t *story) latest(ctx context.Context, home *driver) error {
	all := t.partitions()
	before, err := t.o.ends(ctx, t.topics)
	if err != nil {
		return err
	}
	err = t.join(ctx, home, "late", func(m *membership) { m.Group, m.Reset = t.group+"-latest", "latest" })
	if err != nil {
		return err
	}
	flow := t.o.flow(ctx, all) // it comes to each partition at a moment of its own
	err = t.await(ctx, "a member that begins at the end has got something of each partition", func(h *history) error {
		for _, tp := range all {
			if len(h.got[tp]) == 0 {
				return fmt.Errorf("nothing of %v", tp)
			}
			if first := h.got[tp][0].first; first < before[tp] {
				return fmt.Errorf("%v was begun at %d, which was there before, up to %d", tp, first, before[tp])
			}
		}
		return nil
	}, "late")
	_, stopped := flow.stop()
	return errors.Join(err, stopped, t.leave(ctx, "late"))
}
