package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/troupe-broker/troupe/bench/floor"
	"github.com/troupe-broker/troupe/bench/peer"
	"github.com/troupe-broker/troupe/bench/report"
)

// server is one target: a process that answers the generator.
type server struct {
	name string
	addr string
	// dataDir is where its partitions lie; empty for the floors.
	dataDir string
	*peer.Process
	// admin makes and removes topics; nil for the floors, which know no topics.
	admin *kadm.Client
	// topicConfig is what makes a topic belong to a class.
	topicConfig map[report.Class]map[string]string
}

const (
	nameNull   = "null"
	nameD4     = "D4"
	nameD5     = "D5"
	nameTroupe = "troupe"
)

func (o options) serverCPUs() []int {
	if o.pin {
		return []int{0}
	}
	return nil
}

func (o options) startFloor(ctx context.Context, name string, role floor.Role, dir, logFile string) (*server, error) {
	ports, err := peer.FreePorts(1)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &server{name: name, addr: fmt.Sprintf("127.0.0.1:%d", ports[0])}
	s.Process, err = peer.Start(peer.Command{
		Path: self,
		Args: []string{"-floor", string(role), "-floor-addr", s.addr, "-floor-dir", dir, "-floor-log", logFile},
		CPUs: o.serverCPUs(), Output: filepath.Join(dir, name+".log"),
	})
	if err != nil {
		return nil, err
	}
	return s, awaitPort(ctx, s.Process, s.addr)
}

// serveFloor is what the program does as a floor server. It ends with the process, and
// does not wait for clients that are still connected.
func (o options) serveFloor(ctx context.Context) error {
	if _, err := floor.Start(floor.Role(o.floorRole), o.floorAddr, o.floorDir, o.floorLog); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func (o options) startTroupe(ctx context.Context, binary, dir string) (*server, error) {
	t, err := peer.NewTroupe(binary, filepath.Join(dir, "troupe-data"), filepath.Join(dir, "troupe.log"))
	if err != nil {
		return nil, err
	}
	t.Command.CPUs = o.serverCPUs()
	s := &server{
		name: nameTroupe, addr: t.Addr, dataDir: filepath.Join(dir, "troupe-data"),
		topicConfig: map[report.Class]map[string]string{
			report.Cached: {"write.caching": "true", "file.delete.delay.ms": "1000", "retention.ms": "-1"},
			report.Synced: {"write.caching": "false", "file.delete.delay.ms": "1000", "retention.ms": "-1"},
		},
	}
	if s.Process, err = peer.Start(t.Command); err != nil {
		return nil, err
	}
	if err := peer.AwaitReady(ctx, s.Process, s.addr, 30*time.Second); err != nil {
		return nil, errors.Join(err, s.Kill())
	}
	return s, s.connect()
}

func (o options) startKafka(ctx context.Context, profile, dir string) (*server, error) {
	p, err := peer.ProfileNamed(profile)
	if err != nil {
		return nil, err
	}
	k, err := peer.StartKafka(ctx, peer.Options{Profile: p, Dir: filepath.Join(dir, "kafka-"+profile), CPUs: o.serverCPUs()})
	if err != nil {
		return nil, err
	}
	s := &server{
		name: "kafka-" + profile, addr: k.Addr, dataDir: k.DataDir, Process: k.Process,
		topicConfig: map[report.Class]map[string]string{
			report.Cached: {"file.delete.delay.ms": "1000", "retention.ms": "-1"},
			report.Synced: {"file.delete.delay.ms": "1000", "flush.messages": "1", "retention.ms": "-1"},
		},
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

// createTopic makes a topic of one partition.
func (s *server) createTopic(ctx context.Context, topic string, class report.Class) error {
	return s.createTopicWith(ctx, topic, class, nil)
}

// createTopicWith makes a topic of one partition and waits until its leader serves it: Kafka's metadata shows a leader before the broker has become one.
func (s *server) createTopicWith(ctx context.Context, topic string, class report.Class, more map[string]string) error {
	if s.admin == nil {
		return nil
	}
	configs := map[string]*string{}
	for _, set := range []map[string]string{s.topicConfig[class], more} {
		for k, v := range set {
			configs[k] = &v
		}
	}
	if _, err := s.admin.CreateTopic(ctx, 1, 1, configs, topic); err != nil {
		return fmt.Errorf("%s: create topic %s: %w", s.name, topic, err)
	}
	for try := 0; ; try++ {
		ends, err := s.admin.ListEndOffsets(ctx, topic)
		end, ok := ends.Lookup(topic, 0)
		if err == nil && ok && end.Err == nil {
			return nil
		}
		if try == 500 {
			return fmt.Errorf("%s: topic %s has no leader: %w", s.name, topic, errors.Join(err, end.Err))
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *server) deleteTopic(ctx context.Context, topic string) error {
	if s.admin == nil {
		return nil
	}
	if _, err := s.admin.DeleteTopic(ctx, topic); err != nil {
		return fmt.Errorf("%s: delete topic %s: %w", s.name, topic, err)
	}
	return nil
}

func (s *server) close() error {
	if s.admin != nil {
		s.admin.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return s.Stop(ctx)
}
