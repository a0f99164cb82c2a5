package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/troupe-broker/troupe/bench/peer"
)

// javaConsumers are real consumers in the group, beside the raw members.
type javaConsumers []*peer.Process

// startJava starts Kafka's console consumers and waits until they are members.
func (b *bench) startJava(ctx context.Context, s *server, group, topic string, count int) (procs javaConsumers, err error) {
	if count == 0 {
		return nil, nil
	}
	classPath, err := peer.ClassPath(ctx, "")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, procs.stop())
		}
	}()
	for i := range count {
		p, err := peer.Start(peer.Command{
			Path: "java",
			Args: []string{
				"-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classPath, "org.apache.kafka.tools.consumer.ConsoleConsumer",
				"--bootstrap-server", s.addr, "--topic", topic, "--group", group,
				"--command-property", "heartbeat.interval.ms=" + fmt.Sprint(heartbeatEvery.Milliseconds()),
				"--command-property", "partition.assignment.strategy=org.apache.kafka.clients.consumer.RangeAssignor",
			},
			Output: filepath.Join(b.dir, fmt.Sprintf("%s-java-%d.log", s.name, i)),
		})
		if err != nil {
			return procs, err
		}
		procs = append(procs, p)
	}
	for range 600 {
		d, err := s.admin.DescribeGroups(ctx, group)
		if g, ok := d[group]; err == nil && ok && g.Err == nil && len(g.Members) == count && g.State == "Stable" {
			return procs, nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return procs, ctx.Err()
		}
	}
	return procs, fmt.Errorf("the %d Java consumers are no members after a minute", count)
}

func (j javaConsumers) stop() (err error) {
	for _, p := range j {
		err = errors.Join(err, p.Kill())
	}
	return err
}
