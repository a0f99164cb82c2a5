package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// patientEvery is the time between two records of the patient client.
const patientEvery = 5 * time.Millisecond

// patientAge is how long it has been running before a fault: franz-go asks for metadata at most once in 5 s, which a client that has run for a while does not
// notice, and one that has just started does.
const patientAge = 6 * time.Second

// writePatiently produces with franz-go's defaults until ctx ends.
func writePatiently(ctx context.Context, t *trio, topic string, value []byte, acked *history) error {
	client, err := t.connect(kgo.DefaultProduceTopic(topic))
	if err != nil {
		return err
	}
	defer client.Close()
	tick := time.NewTicker(patientEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		client.Produce(ctx, &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
			if err == nil {
				acked.add(time.Now())
			}
		})
	}
}
