package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/troupe-broker/troupe/bench/chaos/check"
)

// stage is one run: a cluster, who works on it, and what they saw.
type stage struct {
	options
	lib     *librdkafka
	dir     string
	cluster *Cluster
	places  []place
	client  *kgo.Client
	rec     *recorder
	watcher *watcher
	nemesis *nemesis
	shelf   *shelf
	topics  []string
	with    need
	steps   []step
	began   int64 // when the load began and ended
	ended   int64
}

// once runs one seed in dir. What is left there is the caller's.
func (o options) once(ctx context.Context, lib *librdkafka, seed uint64, dir string) result {
	s := &stage{options: o, lib: lib, dir: dir}
	s.steps, s.with = o.plan(seed)
	if !slices.ContainsFunc(s.steps, func(s step) bool { return s.nemesis == diskFullName }) {
		s.with &^= smallDisks // on a disk of its own nothing waits for a sync
	}
	if s.rolling {
		s.steps = slices.Insert(s.steps, 0, step{at: 2 * time.Second, nemesis: rollName})
	}
	r := result{seed: seed, dir: dir, length: o.length, enough: o.enough, with: s.with}
	// The first is on stable storage before it is acknowledged, the other in page caches.
	s.topics = []string{"synced", "cached"}
	if s.with&strict != 0 {
		s.topics = []string{"synced", "strict"}
	}
	history := filepath.Join(dir, "history")
	r.err = func() error {
		if err := os.MkdirAll(history, 0o755); err != nil {
			return err
		}
		c, err := newClock()
		if err != nil {
			return err
		}
		if s.rec, err = newRecorder(c, history); err != nil {
			return err
		}
		return errors.Join(s.play(ctx, seed, &r), s.rec.close())
	}()
	events, err := check.Read(history)
	if err != nil {
		r.err = errors.Join(r.err, err)
		return r
	}
	r.violations = check.All(events)
	r.measure(events, s.began, s.ended)
	if o.pages != "" {
		r.err = errors.Join(r.err, r.writePage(pageName(o.pages, seed, time.Now()), events))
	}
	if r.failed() || o.keep {
		r.err = errors.Join(r.err, r.writePage(filepath.Join(dir, "report.html"), events))
	}
	if s.cluster != nil {
		r.err = errors.Join(r.err, s.cluster.release(r.failed() || o.keep))
	}
	return r
}

func (s *stage) play(ctx context.Context, seed uint64, r *result) (err error) {
	binary := s.binary
	if s.with&testBuild != 0 {
		binary = s.proving
	}
	settings := []string{
		"log.segment.bytes=1048576", "offsets.topic.num.partitions=4", "offsets.topic.segment.bytes=16384", "log.cleaner.backoff.ms=500", "log.cleaner.min.cleanable.ratio=0.1",
		"group.min.session.timeout.ms=3000",
	} // a client that lost its member id waits until the session of the old one is over: not for longer than progress may take
	if slices.ContainsFunc(s.steps, rots) {
		settings = append(settings, "log.scrub.interval.ms=2000", "log.scrub.max.bytes.per.second=16777216") // damage that nobody reads is found within the run
	}
	founder := binary
	if s.another != "" {
		founder = s.another
	}
	if s.cluster, err = NewCluster(founder, s.dir, s.brokers, append(settings, s.settings...)...); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.cluster.Kill()) }()
	if s.with&smallDisks != 0 {
		if err := s.cluster.shrink(); err != nil {
			return err
		}
	}
	if s.with&testBuild != 0 {
		if err := s.cluster.prove(); err != nil {
			return err
		}
	}
	if err := s.cluster.Start(ctx); err != nil {
		return err
	}
	if s.another != "" && !s.rolling {
		if err := s.cluster.upgrade(ctx, binary); err != nil {
			return err
		}
	}
	s.client, err = kgo.NewClient(kgo.SeedBrokers(s.cluster.Addrs...), kgo.MetadataMinAge(20*time.Millisecond), kgo.RequestTimeoutOverhead(2*time.Second), kgo.RetryTimeout(20*time.Second))
	if err != nil {
		return err
	}
	defer s.client.Close()
	if err := s.createTopics(ctx); err != nil {
		return err
	}
	groups := []team{{"classic", "classic", s.cluster.Addrs, s.topics}, {"consumer", "consumer", s.cluster.Addrs, s.topics}}
	s.watcher = &watcher{client: s.client, rec: s.rec, topics: s.topics, groups: []string{groups[0].group, groups[1].group}}
	s.nemesis = &nemesis{cluster: s.cluster, watcher: s.watcher, rec: s.rec, places: s.places, tool: s.binary, down: map[int]bool{}, paused: map[int]bool{}, patience: 10 * time.Second}
	if s.rolling {
		s.nemesis.next = binary
	}
	if !slices.ContainsFunc(s.steps, func(s step) bool { return !rots(s) }) {
		s.nemesis.patience = mendMax // each trial has an end of its own
	}

	gauge, err := newGauge(s.cluster, s.rec, binary)
	if err != nil {
		return err
	}
	gauge.look(ctx, check.Before)
	crowd := newCrowd(ctx)
	defer func() { err = errors.Join(err, crowd.leave()) }()
	crowd.run("watcher", s.watcher.run)
	crowd.run("gauge", gauge.run)
	crowd.run("guard", s.nemesis.guard)
	crowd.run("reader", func(ctx context.Context) error { return read(ctx, s.rec, s.cluster.Addrs, "r0", s.places) })
	for _, g := range groups {
		s.enter(crowd, g)
	}
	s.provoke(crowd, seed)
	s.shelf = &shelf{client: s.client, rec: s.rec, replicas: int16(s.brokers)}
	producers := newCrowd(ctx)
	defer func() { err = errors.Join(err, producers.leave()) }()
	s.began = s.rec.now()
	s.load(producers)
	producers.run("shelf", s.shelf.run)
	start := time.Now()
	err = s.nemesis.run(ctx, start, s.steps, s.length)
	if err != nil {
		return err
	}
	wait(ctx, time.Until(start.Add(s.length)))

	healing := time.Now()
	if err := s.nemesis.heal(ctx); err != nil {
		s.rec.fatal("cluster", "", "it does not serve after the faults: "+err.Error())
		return nil
	}
	served := time.Now()
	r.served = s.rec.now()
	s.nemesis.lookForMoves(ctx)
	if err := awaitInSync(ctx, s.client, s.topics, time.Minute); err != nil {
		s.rec.fatal("cluster", "", err.Error())
		return nil
	}
	r.healed = time.Since(healing)
	wait(ctx, time.Until(served.Add(progressMax)))
	s.ended = s.rec.now()
	return errors.Join(producers.leave(), s.conclude(ctx, crowd, gauge, r))
}

func (s *stage) createTopics(ctx context.Context) error {
	replicas := int16(s.brokers)
	for _, topic := range s.topics {
		caching, least := strconv.FormatBool(topic == "cached"), strconv.Itoa(min(2, s.brokers))
		configs := map[string]*string{"write.caching": &caching, "min.insync.replicas": &least}
		if _, err := kadm.NewClient(s.client).CreateTopic(ctx, int32(s.partitions), replicas, configs, topic); err != nil {
			return fmt.Errorf("create %s: %w", topic, err)
		}
		for p := range int32(s.partitions) {
			s.places = append(s.places, place{topic, p})
		}
	}
	return awaitInSync(ctx, s.client, s.topics, 30*time.Second)
}

// enter lets two members into a group, of both clients if both take part.
func (s *stage) enter(crowd *crowd, g team) {
	for i := range 2 {
		name := fmt.Sprintf("%s%d", g.group, i)
		if s.clients[i%len(s.clients)] == franzGo {
			crowd.run(name, func(ctx context.Context) error { return g.consume(ctx, s.rec, name) })
		} else {
			crowd.run(name, func(ctx context.Context) error { return s.lib.consume(ctx, s.rec, s.dir, name, g) })
		}
	}
}

// provoke lets hostile clients at every broker, each kind at one of them at least if there are enough.
func (s *stage) provoke(crowd *crowd, seed uint64) {
	if s.hostile == 0 {
		return
	}
	attacks := Attacks(s.topics[0])
	rand.New(rand.NewPCG(seed, 5)).Shuffle(len(attacks), func(i, j int) { attacks[i], attacks[j] = attacks[j], attacks[i] })
	for i, b := range s.cluster.Brokers { // nothing lies between them: what they do to a socket is done to the broker's
		addr := b.Addr
		at := i * s.hostile % len(attacks)
		turned := slices.Concat(attacks[at:], attacks[:at])
		crowd.run("hostile", func(ctx context.Context) error {
			Swarm(ctx, addr, turned, s.hostile, seed)
			return nil
		})
	}
}

// load starts the producers; the clients share the rate.
func (s *stage) load(crowd *crowd) {
	l := load{addrs: s.cluster.Addrs, places: s.places, size: s.size, rate: float64(s.rate) / float64(len(s.clients))}
	if slices.Contains(s.clients, franzGo) {
		each := l
		each.rate /= 2
		for i := range 2 {
			name := fmt.Sprint("franz", i)
			crowd.run(name, func(ctx context.Context) error { return each.produce(ctx, s.rec, s.dir, name) })
		}
	}
	if slices.Contains(s.clients, librdkafkaName) {
		crowd.run("librd0", func(ctx context.Context) error { return s.lib.produce(ctx, s.rec, s.dir, "librd0", l, s.topics) })
	}
}

// conclude reads everything when nobody writes any more, lets the groups come to the end, stops all, and looks at the disks.
func (s *stage) conclude(ctx context.Context, crowd *crowd, gauge *gauge, r *result) error {
	written := time.Now()
	refused, err := readAll(ctx, s.rec, s.cluster.Addrs, s.places, s.nemesis.rot.any())
	if err != nil {
		s.rec.fatal("final", "", err.Error())
	}
	if refused > 0 {
		r.notes = append(r.notes, fmt.Sprintf("the reader was given damage, or an error, %d times before all was read", refused))
	}
	if err := s.shelf.check(ctx); err != nil {
		return err
	}
	ends, err := s.ends(ctx)
	if err != nil {
		return err
	}
	const patience = 30 * time.Second
	for began := time.Now(); ; {
		behind := s.watcher.behind(ends)
		if behind == "" {
			r.groups = time.Since(written)
			break
		}
		if time.Since(began) > patience {
			s.rec.fatal("groups", "", fmt.Sprintf("after %v, %s", patience, behind))
			break
		}
		if !wait(ctx, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
	if err := s.nemesis.awaitRepair(ctx); err != nil {
		r.damaged = 1
		r.notes = append(r.notes, err.Error())
	}
	if err := crowd.leave(); err != nil {
		return err
	}
	const standMax = 2 * time.Second
	if gauge.stood > standMax {
		r.notes = append(r.notes, fmt.Sprintf("the machine did not let the harness run for %.1f s: gaps and progress say nothing", gauge.stood.Seconds()))
	}
	for _, g := range s.watcher.groups {
		s.watcher.fetch(ctx, g)
	}
	if err := s.nemesis.lookForDead(); err != nil {
		return err
	}
	s.client.Close()
	gauge.awaitRest(ctx)
	if err := s.cluster.Stop(ctx); err != nil {
		s.rec.fatal("cluster", "", "it did not stop in order: "+err.Error())
	}
	s.nemesis.lookForPanics()
	r.rot = s.nemesis.rot.sum()
	s.cluster.writeDisks(s.rec, s.places, s.nemesis.rot.torn)
	return nil
}

func (s *stage) ends(ctx context.Context) (map[place]int64, error) {
	listed, err := kadm.NewClient(s.client).ListEndOffsets(ctx, s.topics...)
	if err = errors.Join(err, listed.Error()); err != nil {
		return nil, fmt.Errorf("list the ends of the logs: %w", err)
	}
	ends := map[place]int64{}
	listed.Each(func(o kadm.ListedOffset) { ends[place{o.Topic, o.Partition}] = o.Offset })
	return ends, nil
}

// crowd is workers that end together.
type crowd struct {
	context.Context //nolint:containedctx // it is the crowd's own life
	cancel          context.CancelFunc
	running         sync.WaitGroup
	mu              sync.Mutex
	err             error
}

func newCrowd(ctx context.Context) *crowd {
	c := &crowd{}
	c.Context, c.cancel = context.WithCancel(ctx)
	return c
}

func (c *crowd) run(name string, work func(context.Context) error) {
	c.running.Go(func() {
		if err := work(c); err != nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.err = errors.Join(c.err, fmt.Errorf("%s: %w", name, err))
		}
	})
}

// leave ends the work and waits for it. Its error is told once.
func (c *crowd) leave() error {
	c.cancel()
	c.running.Wait()
	err := c.err
	c.err = nil
	return err
}
