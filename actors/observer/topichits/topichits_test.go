package topichits_test

import (
	"testing"
	"time"

	"github.com/troupe-broker/troupe/actors"
	"github.com/troupe-broker/troupe/actors/actortest"
	_ "github.com/troupe-broker/troupe/actors/observer/topichits"
)

const id = "observer.topichits"

func TestCountsBytesPerTopic(t *testing.T) {
	k := actortest.New(t, id)
	k.Send(
		&actors.Appended{Topic: "a", AppendedBytes: 7}, &actors.TopicCreated{Topic: "b"},
		&actors.Appended{Topic: "b", AppendedBytes: 1}, &actors.Appended{Topic: "a", Partition: 1, AppendedBytes: 3},
	)
	k.Run()
	for topic, want := range map[string]float64{"a": 10, "b": 1, "c": 0} {
		if got := k.Counter("appended_bytes", "topic", topic); got != want {
			t.Errorf("topic %s: counted %v, want %v", topic, got, want)
		}
	}
}

func TestFailsOnDemandAndComesBack(t *testing.T) {
	k := actortest.New(t, id, actortest.Setting("panic.after", "3"))
	for range 7 {
		k.Send(&actors.Appended{Topic: "a", AppendedBytes: 1})
	}
	k.Pass(time.Second)
	if got := k.Counter("appended_bytes", "topic", "a"); got != 5 || len(k.Failures()) != 2 || k.Instances() != 3 {
		t.Errorf("counted %v of 7 with %d failures and %d instances, want 5, 2 and 3", got, len(k.Failures()), k.Instances())
	}
}

func TestConforms(t *testing.T) {
	actortest.Conformance(t, id, actortest.Example{Messages: []any{
		&actors.Appended{Topic: "a", AppendedBytes: 7}, &actors.TopicDeleted{Topic: "a"}, &actors.Appended{Topic: "b", AppendedBytes: 9},
	}})
}
