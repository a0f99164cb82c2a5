package main

import (
	"context"
	"fmt"
	"time"
)

// restart kills the broker under its clients, starts it again at the same address and lets each client, whose process
// has lived on, read what it had been acknowledged and go on writing where it was.
func (s *suite) restart(ctx context.Context) {
	s.report.section("kill -9 and restart")
	if s.target.isKafka() {
		s.report.printf("not for the oracle\n")
		return
	}
	written := map[*actor][]record{}
	for _, a := range s.actors {
		topic := "survives-" + a.hello.Client
		if !s.createTopic(ctx, a, topic, 1, nil) {
			continue
		}
		ok := s.report.check(ctx, a.who(), "produce before", func(ctx context.Context) (err error) {
			written[a], err = writeCorpus(ctx, a, topic, 0, survivor(a))
			return err
		})
		if !ok {
			delete(written, a)
		}
	}
	again := s.report.check(ctx, who{"troupe", ""}, "serves again after kill -9", func(ctx context.Context) error {
		if err := s.target.Kill(); err != nil {
			return err
		}
		return s.target.startAgain(ctx)
	})
	if !again {
		return
	}
	for _, a := range s.actors {
		before, ok := written[a]
		if !ok {
			continue
		}
		topic := "survives-" + a.hello.Client
		s.report.check(ctx, a.who(), "read and write after", func(ctx context.Context) error {
			after := writable(a.hello, corpus(time.Now().Add(-time.Minute).UnixMilli()))
			for i := range after {
				after[i].Offset = int64(len(before) + i)
			}
			if _, err := a.produce(ctx, topic, 0, survivor(a), after); err != nil {
				return fmt.Errorf("produce: %w", err)
			}
			want := append(before, after...)
			got, err := a.read(ctx, topic, 0, 0, len(want))
			if err != nil {
				return fmt.Errorf("read: %w", err)
			}
			return differences(a.hello, a.hello, want, got)
		})
	}
}

// survivor is how records are written that have to survive.
func survivor(a *actor) cell { return cell{Codec: "lz4", Acks: -1, Idempotent: a.hello.Idempotent} }

// fullDepth runs the clients' section once more against a broker that checks every record, as Kafka does: the default
// depth believes the header of most compressed batches, and no client may notice the difference.
func (s *suite) fullDepth(ctx context.Context, names []string) error {
	if s.target.isKafka() {
		s.report.section("validation.depth=full")
		s.report.printf("Kafka has no other\n")
		return nil
	}
	s.report.section("validation.depth=full")
	full := *s
	var err error
	if full.target, err = startTarget(ctx, s.env, s.target.name, "full", settings{"validation.depth": "full"}); err != nil {
		return err
	}
	full.actors = cast(ctx, s.report, s.commands, full.target.addr, names)
	full.clients(ctx)
	full.limits(ctx)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if err := closeAll(end, full.actors); err != nil {
		return err
	}
	return full.target.Stop(end)
}
