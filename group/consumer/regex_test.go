package consumer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

// A pattern is bounded in length and in what it becomes: repetitions multiply, and the limit holds before anything of that size is made.
func TestPatternsAreBounded(t *testing.T) {
	for _, c := range []struct {
		name, pattern string
		code          wire.ErrorCode
	}{
		{"long", strings.Repeat("a", 4097), wire.InvalidRegularExpression},
		{"as long as can be", strings.Repeat("a", 4096), wire.NoError},
		{"repeated", "(a{30}){30}", wire.NoError},
		{"repeated too often", "((a{10}){30}){30}b{999}{", wire.InvalidRegularExpression},
		{"multiplied", "(a{999}b{999}){500}", wire.InvalidRegularExpression},
		{"wide classes", strings.Repeat(`\pL`, 200), wire.InvalidRegularExpression},
		{"deep", strings.Repeat("(", 1001) + strings.Repeat(")", 1001), wire.InvalidRegularExpression},
		{"Java's own syntax", "a(?=b)", wire.InvalidRegularExpression},
		{"possessive", "a*+", wire.InvalidRegularExpression},
		{"back reference", `(a)\1`, wire.InvalidRegularExpression},
		{"named group", `(?P<x>a)|b`, wire.NoError},
		{"ignoring case", `(?i)ORDERS`, wire.NoError},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(coord.DefaultConfig())
			w.topics = topicView{{Name: "a", ID: topicID("a", 1), Partitions: 1}, {Name: "orders", ID: topicID("orders", 1), Partitions: 1}, {Name: "orders2", ID: topicID("orders2", 1), Partitions: 1}}
			r := w.heartbeat(&coord.ConsumerHeartbeat{Group: "g", Member: "m", RebalanceTimeout: 1, Regex: &c.pattern, Owned: []coord.TopicPartitions{}})
			if r.Code != c.code {
				t.Fatalf("answer %v %s", r.Code, r.Message)
			}
			if len(r.Message) > 500 {
				t.Errorf("the answer repeats %d bytes", len(r.Message))
			}
			if c.code != wire.NoError && !w.g.Blank() {
				t.Error("a refused pattern left something")
			}
			if matches := w.g.Subscribed("orders") && !w.g.Subscribed("orders2"); matches != (c.name == "ignoring case") {
				t.Errorf("orders matches: %v", matches)
			}
		})
	}
}

// As in Kafka: a topic is a topic.
func TestPatternsMatchInternalTopics(t *testing.T) {
	w := newWorld(coord.DefaultConfig())
	w.topics = topicView{{Name: "__consumer_offsets", ID: topicID("__consumer_offsets", 1), Partitions: 1}}
	if r := w.heartbeat(&coord.ConsumerHeartbeat{Group: "g", Member: "m", RebalanceTimeout: 1, Regex: new("__.*"), Owned: []coord.TopicPartitions{}}); r.Code != wire.NoError {
		t.Fatal(r.Code, r.Message)
	}
	if !w.g.Subscribed("__consumer_offsets") {
		t.Error("it does not match")
	}
}

// A pattern that costs much is resolved in many steps, each of which does a bounded share of the work, and in the end it matches what it would have at once.
func TestMuchToMatchIsDoneInSteps(t *testing.T) {
	w := newWorld(coord.DefaultConfig())
	var all topicView
	for i := range 60 {
		name := fmt.Sprintf("%s-%03d", strings.Repeat("a", 200), i)
		all = append(all, coord.Topic{Name: name, ID: topicID(name, 1), Partitions: 1})
	}
	w.topics = all
	costly := "((a?){60}){16}a*-.*[05]"
	if r := w.heartbeat(&coord.ConsumerHeartbeat{Group: "g", Member: "m", RebalanceTimeout: 60_000, Regex: &costly, Owned: []coord.TopicPartitions{}}); r.Code != wire.NoError {
		t.Fatal(r.Code, r.Message)
	}
	if w.g.Subscribed(all[0].Name) {
		t.Fatal("all topics were looked at in the step of the heartbeat")
	}
	steps := 1 // the heartbeat's
	w.wait(1000, func() {
		if err := w.g.Check(); err != nil {
			t.Fatal(err)
		}
		if !w.g.Subscribed(all[0].Name) {
			steps++
		}
	})
	if steps < len(all)/5 || steps > len(all) {
		t.Errorf("%d topics were looked at in %d steps", len(all), steps)
	}
	for i := range all {
		if got := w.g.Subscribed(all[i].Name); got != (i%5 == 0) {
			t.Fatalf("%s matches: %v", all[i].Name[200:], got)
		}
	}
}
