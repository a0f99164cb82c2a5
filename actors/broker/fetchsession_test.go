package broker_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// incremental asks for what changed in a session.
func incremental(session, epoch int32) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.SetVersion(11)
	req.MinBytes, req.MaxBytes, req.SessionID, req.SessionEpoch = 1, 50<<20, session, epoch
	return req
}

// wanting adds partitions to a request: topic, partition, offset.
func wanting(req *kmsg.FetchRequest, topic string, offsets map[int32]int64) *kmsg.FetchRequest {
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic = topic
	for _, p := range slices.Sorted(maps.Keys(offsets)) {
		rp := kmsg.NewFetchRequestTopicPartition()
		rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes = p, offsets[p], 1<<20
		rt.Partitions = append(rt.Partitions, rp)
	}
	req.Topics = append(req.Topics, rt)
	return req
}

func TestAnIncrementalAnswerNamesOnlyWhatChanged(t *testing.T) {
	r := start(t)
	r.createTopic("inc", 3)
	c, w := r.raw(), r.raw()
	full := c.ask(wanting(incremental(0, 0), "inc", map[int32]int64{0: 0, 1: 0, 2: 0})).(*kmsg.FetchResponse)
	if full.ErrorCode != 0 || full.SessionID == 0 || len(sizes(full)) != 3 {
		t.Fatalf("full fetch: error %d, session %d, %v", full.ErrorCode, full.SessionID, sizes(full))
	}
	id := full.SessionID
	if got := c.ask(incremental(id, 1)).(*kmsg.FetchResponse); got.ErrorCode != 0 || got.SessionID != id || len(sizes(got)) != 0 {
		t.Errorf("nothing changed: error %d, session %d, %v", got.ErrorCode, got.SessionID, sizes(got))
	}
	w.fill("inc", 1, 1, 100)
	if got := sizes(c.ask(incremental(id, 2)).(*kmsg.FetchResponse)); len(got) != 1 || got["inc-1"] == 0 {
		t.Errorf("one batch in partition 1: %v", got)
	}
	// The client goes on behind what it got; the session remembers the rest.
	req := wanting(incremental(id, 3), "inc", map[int32]int64{1: 1})
	req.MaxWaitMillis = 300
	began := time.Now()
	if got := sizes(c.ask(req).(*kmsg.FetchResponse)); len(got) != 0 || time.Since(began) < 250*time.Millisecond {
		t.Errorf("caught up: %v after %v, want an empty answer after the wait", got, time.Since(began))
	}
	w.fill("inc", 0, 1, 100)
	w.fill("inc", 2, 1, 100)
	forget := incremental(id, 4)
	ft := kmsg.NewFetchRequestForgottenTopic()
	ft.Topic, ft.Partitions = "inc", []int32{2}
	forget.ForgottenTopics = append(forget.ForgottenTopics, ft)
	if got := sizes(c.ask(forget).(*kmsg.FetchResponse)); len(got) != 1 || got["inc-0"] == 0 {
		t.Errorf("partition 2 is forgotten: %v", got)
	}
	// Another connection may go on with the session.
	other := r.raw()
	if got := other.ask(wanting(incremental(id, 5), "inc", map[int32]int64{0: 1})).(*kmsg.FetchResponse); got.ErrorCode != 0 || got.SessionID != id {
		t.Errorf("on another connection: error %d", got.ErrorCode)
	}
}

func TestASessionRefusesWrongIdsAndEpochs(t *testing.T) {
	r := start(t)
	r.createTopic("wrong", 1)
	c := r.raw()
	ask := func(req *kmsg.FetchRequest) int16 { return c.ask(req).(*kmsg.FetchResponse).ErrorCode }
	id := c.ask(wanting(incremental(0, 0), "wrong", map[int32]int64{0: 0})).(*kmsg.FetchResponse).SessionID
	if code := ask(incremental(id+1, 1)); code != 70 {
		t.Errorf("unknown id: error %d, want FETCH_SESSION_ID_NOT_FOUND", code)
	}
	if code := ask(incremental(id, 7)); code != 71 {
		t.Errorf("wrong epoch: error %d, want INVALID_FETCH_SESSION_EPOCH", code)
	}
	byID := incremental(id, 1)
	byID.SetVersion(13)
	if code := ask(byID); code != 106 {
		t.Errorf("topic ids in a session of names: error %d, want FETCH_SESSION_TOPIC_ID_ERROR", code)
	}
	if code := ask(incremental(id, 1)); code != 0 {
		t.Errorf("the right request after the wrong ones: error %d", code)
	}
	// Epoch -1 closes the session and is a full fetch of its own.
	if got := c.ask(wanting(incremental(id, -1), "wrong", map[int32]int64{0: 0})).(*kmsg.FetchResponse); got.ErrorCode != 0 || got.SessionID != 0 || len(sizes(got)) != 1 {
		t.Errorf("closing: error %d, session %d, %v", got.ErrorCode, got.SessionID, sizes(got))
	}
	if code := ask(incremental(id, 2)); code != 70 {
		t.Errorf("after closing: error %d, want FETCH_SESSION_ID_NOT_FOUND", code)
	}
}

func TestWithoutASlotAFetchIsServedWithoutASession(t *testing.T) {
	r := start(t, "max.incremental.fetch.session.cache.slots=1")
	r.createTopic("slots", 1)
	c := r.raw()
	first := c.ask(wanting(incremental(0, 0), "slots", map[int32]int64{0: 0})).(*kmsg.FetchResponse)
	second := c.ask(wanting(incremental(0, 0), "slots", map[int32]int64{0: 0})).(*kmsg.FetchResponse)
	if first.SessionID == 0 || second.SessionID != 0 || len(sizes(second)) != 1 {
		t.Errorf("sessions %d and %d, want one; the second answer has %v", first.SessionID, second.SessionID, sizes(second))
	}
}

func TestPartitionsWithRecordsGoToTheEndOfTheSession(t *testing.T) {
	r := start(t)
	r.createTopic("fair", 3)
	c := r.raw()
	for p := range int32(3) {
		c.fill("fair", p, 4, 1000)
	}
	resp := c.ask(wanting(incremental(0, 0), "fair", map[int32]int64{0: 0, 1: 0, 2: 0})).(*kmsg.FetchResponse)
	id := resp.SessionID
	seen := map[string]int{}
	for epoch := range int32(6) {
		req := incremental(id, epoch+1)
		req.MaxBytes = 1200 // one partition's batch at a time
		for key, n := range sizes(c.ask(req).(*kmsg.FetchResponse)) {
			if n > 0 {
				seen[key]++
			}
		}
	}
	if fmt.Sprint(seen) != "map[fair-0:2 fair-1:2 fair-2:2]" {
		t.Errorf("records came from %v, want each partition twice", seen)
	}
}

func TestADeletedTopicIsToldInASession(t *testing.T) {
	r := start(t)
	r.createTopic("gone", 1)
	r.createTopic("stays", 1)
	c := r.raw()
	req := wanting(wanting(incremental(0, 0), "gone", map[int32]int64{0: 0}), "stays", map[int32]int64{0: 0})
	id := c.ask(req).(*kmsg.FetchResponse).SessionID
	r.deleteTopic("gone")
	for epoch := range int32(2) {
		resp := c.ask(incremental(id, epoch+1)).(*kmsg.FetchResponse)
		if len(resp.Topics) != 1 || resp.Topics[0].Topic != "gone" || resp.Topics[0].Partitions[0].ErrorCode != 3 {
			t.Errorf("after the deletion: %+v, want the error each time", resp.Topics)
		}
	}
}
