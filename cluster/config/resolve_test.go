package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func chain(e Effective) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s(%v)", e.Value, e.Source)
	for _, o := range e.Chain {
		fmt.Fprintf(&b, " %v:%s=%s", o.Source, o.Name, o.Value)
	}
	return b.String()
}

func TestTheChainOfATopicKeyIsKafkas(t *testing.T) {
	k, _ := topicTable.Lookup("retention.ms")
	s := Stack{}
	steps := []struct {
		change func()
		want   string
	}{
		{func() {}, "604800000(DEFAULT_CONFIG) DEFAULT_CONFIG:log.retention.hours=168"},
		{func() { s.Static = SetOf(Entry{"log.retention.hours", "2"}) }, "7200000(STATIC_BROKER_CONFIG) STATIC_BROKER_CONFIG:log.retention.hours=2 DEFAULT_CONFIG:log.retention.hours=168"},
		{func() { s.Static = s.Static.With("log.retention.minutes", "3") }, "180000(STATIC_BROKER_CONFIG) STATIC_BROKER_CONFIG:log.retention.minutes=3 STATIC_BROKER_CONFIG:log.retention.hours=2 DEFAULT_CONFIG:log.retention.hours=168"},
		{func() { s.Cluster = SetOf(Entry{"log.retention.ms", "4"}) }, "4(DYNAMIC_DEFAULT_BROKER_CONFIG) DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=4 STATIC_BROKER_CONFIG:log.retention.minutes=3 STATIC_BROKER_CONFIG:log.retention.hours=2 DEFAULT_CONFIG:log.retention.hours=168"},
		{func() { s.Broker, s.Static = SetOf(Entry{"log.retention.ms", "5"}), nil }, "5(DYNAMIC_BROKER_CONFIG) DYNAMIC_BROKER_CONFIG:log.retention.ms=5 DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=4 DEFAULT_CONFIG:log.retention.hours=168"},
		{func() { s.Override, s.Cluster = SetOf(Entry{"retention.ms", "-1"}), nil }, "-1(DYNAMIC_TOPIC_CONFIG) DYNAMIC_TOPIC_CONFIG:retention.ms=-1 DYNAMIC_BROKER_CONFIG:log.retention.ms=5 DEFAULT_CONFIG:log.retention.hours=168"},
	}
	for i, step := range steps {
		step.change()
		if got := chain(s.ForTopic(k)); got != step.want {
			t.Errorf("step %d:\n got %s\nwant %s", i, got, step.want)
		}
		if got, want := s.TopicInt("retention.ms"), s.ForTopic(k).Value; fmt.Sprint(got) != want {
			t.Errorf("step %d: the short way says %d, the long way %s", i, got, want)
		}
	}
}

func TestABrokerKeyFallsBackToItsCoarserSynonym(t *testing.T) {
	k, _ := brokerTable.Lookup("log.retention.ms")
	if got, want := chain(Stack{}.ForBroker(k)), "604800000(DEFAULT_CONFIG) DEFAULT_CONFIG:log.retention.hours=168"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s := Stack{Static: SetOf(Entry{"log.retention.minutes", "-1"})}
	if got := s.TopicInt("retention.ms"); got != -1 {
		t.Errorf("-1 minutes is no limit, got %d ms", got)
	}
	s = Stack{Static: SetOf(Entry{"log.roll.hours", "2147483647"})}
	if got := s.TopicInt("segment.ms"); got != 2147483647*3_600_000 {
		t.Errorf("%d", got)
	}
}

// other gives a valid value that is not the default.
func other(k *Key) string {
	switch k.Type {
	case Bool:
		if k.Default == "true" {
			return "false"
		}
		return "true"
	case Int, Short, Long:
		for _, v := range []string{"2097152", "7", "5000", "5", "1"} {
			if _, err := k.Parse(v); err == nil && v != k.Default {
				return v
			}
		}
	case String, Double, List, ClassRef, Password: // by name, below
	}
	return map[string]string{
		"cleanup.policy": "", "log.cleanup.policy": "", "compression.type": "gzip", "message.timestamp.type": "LogAppendTime",
		"log.message.timestamp.type": "LogAppendTime", "broker.rack": "r", "log.dir": "d", "log.dirs": "d", "metrics.listen": "a:1",
		"listeners": "PLAINTEXT://b:1", "advertised.listeners": "PLAINTEXT://c:2", "validation.depth": "full",
		"listener.security.protocol.map": "OTHER:PLAINTEXT", "controller.listener.names": "PLAINTEXT",
		"group.coordinator.rebalance.protocols": "classic", "group.consumer.assignors": "range", "group.consumer.migration.policy": "disabled",
		"min.cleanable.dirty.ratio": "0.25", "log.cleaner.min.cleanable.ratio": "0.25", "log.cleaner.io.max.bytes.per.second": "1e6", "log.cleaner.io.buffer.load.factor": "0.5",
		"join": "a:1", "peer.listen": "localhost:1", "peer.advertise": "a:1", "peer.tls.certificate": "c", "peer.tls.key": "k", "peer.tls.ca": "a",
		"replica.selector.class":                RackAwareSelector,
		"leader.replication.throttled.replicas": "0:1", "follower.replication.throttled.replicas": "*",
		"gossip.keys": "MDEyMzQ1Njc4OWFiY2RlZg==", "gossip.label": "other",
	}[k.Name]
}

func TestEveryHonouredTopicKeyReachesTopicValues(t *testing.T) {
	plain := TopicOf(Stack{})
	for k := range topicTable.All() {
		if k.Class != Honoured {
			continue
		}
		if got := TopicOf(Stack{Override: SetOf(Entry{k.Name, other(k)})}); got == plain {
			t.Errorf("%s=%s changes nothing", k.Name, other(k))
		}
		for _, syn := range k.Synonyms {
			b, _ := brokerTable.Lookup(syn.Name)
			if got := TopicOf(Stack{Static: SetOf(Entry{b.Name, other(b)})}); got == plain {
				t.Errorf("%s=%s changes nothing of %s", b.Name, other(b), k.Name)
			}
		}
	}
}

func TestEveryHonouredBrokerKeyReachesSomeValues(t *testing.T) {
	plain, err := BrokerOf(Stack{})
	if err != nil {
		t.Fatal(err)
	}
	plainTopic := TopicOf(Stack{})
	for k := range brokerTable.All() {
		if k.Class != Honoured {
			continue
		}
		s := Stack{Static: SetOf(Entry{k.Name, other(k)})}
		got, err := BrokerOf(s)
		if err == nil && reflect.DeepEqual(got, plain) && TopicOf(s) == plainTopic {
			t.Errorf("%s=%s changes nothing", k.Name, other(k))
		}
	}
}

func TestHonouredDefaultsAreTheDocumentedNumbers(t *testing.T) {
	v := TopicOf(Stack{})
	if v.SegmentBytes != 1<<30 || v.MaxMessageBytes != 1048588 || v.RetentionMs != 604800000 || v.WriteCaching || !v.Delete || v.MinInSyncReplicas != 1 {
		t.Errorf("%+v", v)
	}
	b, err := BrokerOf(Stack{})
	if err != nil {
		t.Fatal(err)
	}
	if b.Listeners[0].Host != "127.0.0.1" || b.Listeners[0].Port != 9092 || b.DataDir != "./troupe-data" || b.SessionMs != 6000 || b.MetricsListen != "127.0.0.1:9644" {
		t.Errorf("%+v", b)
	}
}
