package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// shelf creates and deletes topics, and remembers which of it was answered.
type shelf struct {
	client   *kgo.Client
	rec      *recorder
	replicas int16

	there []string
	gone  []string
}

// run changes something every second until ctx ends.
func (s *shelf) run(ctx context.Context) error {
	admin := kadm.NewClient(s.client)
	for n := 0; wait(ctx, time.Second); n++ {
		name := fmt.Sprint("shelf-", n)
		if _, err := admin.CreateTopic(ctx, 1, s.replicas, nil, name); err == nil { // else nobody knows
			s.there = append(s.there, name)
		}
		if n%2 == 0 || len(s.there) == 0 {
			continue
		}
		name, s.there = s.there[0], s.there[1:]
		if _, err := admin.DeleteTopic(ctx, name); err == nil {
			s.gone = append(s.gone, name)
		}
	}
	return nil
}

// check looks at what is there; run has returned.
func (s *shelf) check(ctx context.Context) error {
	// Asked directly: the admin client answers from what it knew before.
	req := kmsg.NewPtrMetadataRequest()
	resp, err := req.RequestWith(ctx, s.client)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	found := map[string]bool{}
	for _, t := range resp.Topics {
		if t.Topic != nil && kerr.ErrorForCode(t.ErrorCode) == nil {
			found[*t.Topic] = true
		}
	}
	for _, name := range s.there {
		if !found[name] {
			s.rec.fatal("shelf", "", "topic "+name+" was created and is gone")
		}
	}
	for _, name := range s.gone {
		if found[name] {
			s.rec.fatal("shelf", "", "topic "+name+" was deleted and is back")
		}
	}
	return nil
}
