package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// survives: a client writes and another of its kind reads while the partition's leader is killed. What was acknowledged is read, once and in order.
func (st *stage) survives(ctx context.Context, a *actor) {
	st.report.checkWithin(ctx, 2*checkTimeout, a.who(), "write and read while the leader is killed", func(ctx context.Context) error {
		topic := "failover-" + a.hello.Client
		if _, err := st.o.admin.CreateTopic(ctx, 1, 3, map[string]*string{"min.insync.replicas": new("2")}, topic); err != nil {
			return err
		}
		var leader int32
		err := within(ctx, after, func() (err error) {
			leader, err = st.leader(ctx, topic)
			return err
		})
		if err != nil {
			return err
		}
		return st.failover(ctx, a, topic, int(leader))
	})
}

// leader is who leads partition 0 of a topic when all three replicas are in sync.
func (st *stage) leader(ctx context.Context, topic string) (int32, error) {
	m, err := st.o.admin.Metadata(ctx, topic)
	if err != nil {
		return 0, err
	}
	p, ok := m.Topics[topic].Partitions[0]
	if !ok || len(p.ISR) != 3 || p.Leader < 1 {
		return 0, fmt.Errorf("partition 0 of %s is %+v, want three replicas in sync and a leader", topic, p)
	}
	return p.Leader, nil
}

const (
	failoverRecords = 3000 // in each call of the writer
	failoverCalls   = 3    // the leader is killed while the first goes on
)

func (st *stage) failover(ctx context.Context, a *actor, topic string, leader int) error {
	home, ok := a.client.(*driver)
	if !ok {
		return fmt.Errorf("%s has no driver", a.hello.Client)
	}
	command := home.command
	command.Output = st.env.log(topic + "-reader")
	reader := newDriver(command, home.bootstrap)
	type outcome struct {
		records []record
		err     error
	}
	read := make(chan outcome, 1)
	reads := func() {
		records, err := reader.read(ctx, topic, 0, 0, failoverCalls*failoverRecords)
		read <- outcome{records, errors.Join(err, reader.kill())}
	}
	if !a.hello.lacks(lacksReadFailover) {
		go reads()
	}
	killed := make(chan error, 1)
	go func() {
		err := within(ctx, after, func() error {
			ends, err := st.o.ends(ctx, []string{topic})
			if err == nil && ends[topicPartition{topic, 0}] < failoverRecords/10 {
				err = errors.New("nothing was written")
			}
			return err
		})
		killed <- errors.Join(err, st.trio.node(leader).Kill())
	}()
	var want []record
	var failed error
	for call := range failoverCalls {
		records := make([]record, failoverRecords)
		for i := range records {
			records[i] = record{
				Key: fmt.Appendf(nil, "%d", call), Value: fmt.Appendf(nil, "%d of call %d, %s", i, call, strings.Repeat("x", 100)),
				Timestamp: time.Now().UnixMilli(), Offset: int64(len(want) + i),
			}
		}
		if _, failed = a.produce(ctx, topic, 0, cell{Codec: "none", Acks: -1, Idempotent: true, BatchRecords: 20, Patient: true}, writable(a.hello, records)); failed != nil {
			break
		}
		want = append(want, writable(a.hello, records)...)
		if call == 0 {
			failed = <-killed
		}
	}
	if a.hello.lacks(lacksReadFailover) {
		go reads()
	}
	got := <-read
	again := st.trio.node(leader).begin(ctx)
	if err := errors.Join(failed, got.err, again); err != nil {
		return err
	}
	if err := differences(a.hello, a.hello, want, got.records); err != nil {
		return err
	}
	return within(ctx, after, func() error {
		_, err := st.leader(ctx, topic)
		return err
	})
}
