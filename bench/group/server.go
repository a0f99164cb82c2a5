package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/troupe-broker/troupe/bench/peer"
)

// The durability classes: cached is acknowledged from the page cache, synced after a sync.
const (
	cached = "cached"
	synced = "synced"
)

// server is one broker that is measured.
type server struct {
	name, addr string
	*peer.Process
	admin  *kadm.Client
	topics map[string]map[string]*string // configs by class
}

func (b *bench) startTroupe(ctx context.Context) (*server, error) {
	binary, err := peer.BuildTroupe(ctx, b.troupe, b.dir)
	if err != nil {
		return nil, err
	}
	t, err := peer.NewTroupe(binary, filepath.Join(b.dir, "troupe-data"), filepath.Join(b.dir, "troupe.log"), b.settings...)
	if err != nil {
		return nil, err
	}
	yes, no := "true", "false"
	s := &server{
		name: "troupe", addr: t.Addr,
		topics: map[string]map[string]*string{cached: {"write.caching": &yes}, synced: {"write.caching": &no}},
	}
	if s.Process, err = peer.Start(t.Command); err != nil {
		return nil, err
	}
	if err := peer.AwaitReady(ctx, s.Process, s.addr, 30*time.Second); err != nil {
		return nil, errors.Join(err, s.Kill())
	}
	return s, s.connect()
}

func (b *bench) startKafka(ctx context.Context, profile string) (*server, error) {
	p, err := peer.ProfileNamed(profile)
	if err != nil {
		return nil, err
	}
	k, err := peer.StartKafka(ctx, peer.Options{
		Profile: p, Dir: filepath.Join(b.dir, "kafka-"+profile),
		Properties: map[string]string{"offsets.topic.replication.factor": "1", "group.initial.rebalance.delay.ms": "3000"},
	})
	if err != nil {
		return nil, err
	}
	one := "1"
	s := &server{
		name: "kafka-" + profile, addr: k.Addr, Process: k.Process,
		topics: map[string]map[string]*string{cached: {}, synced: {"flush.messages": &one}},
	}
	return s, s.connect()
}

func (s *server) connect() error {
	c, err := kgo.NewClient(kgo.SeedBrokers(s.addr))
	if err != nil {
		return errors.Join(err, s.Kill())
	}
	s.admin = kadm.NewClient(c)
	return nil
}

// createTopic makes a topic and waits until its leader serves it.
func (s *server) createTopic(ctx context.Context, topic string, count int32, class string) error {
	if _, err := s.admin.CreateTopic(ctx, count, 1, s.topics[class], topic); err != nil {
		return fmt.Errorf("%s: create topic %s: %w", s.name, topic, err)
	}
	for range 500 {
		ends, err := s.admin.ListEndOffsets(ctx, topic)
		if err == nil && len(ends[topic]) == int(count) && ends.Error() == nil {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("%s: topic %s has no leader", s.name, topic)
}

// setClass gives the offsets topic a durability class.
func (s *server) setClass(ctx context.Context, class string) error {
	var alter []kadm.AlterConfig
	for name, value := range s.topics[class] {
		alter = append(alter, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: value})
	}
	if len(alter) == 0 {
		return nil
	}
	answers, err := s.admin.AlterTopicConfigs(ctx, alter, "__consumer_offsets")
	for _, a := range answers {
		err = errors.Join(err, a.Err)
	}
	return err
}

func (s *server) close() error {
	if s.admin != nil {
		s.admin.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return s.Stop(ctx)
}
