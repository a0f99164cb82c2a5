package config

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// readProperties reads a Java properties file as far as Kafka's own samples go.
func readProperties(t *testing.T, path string) []Given {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	var out []Given
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, _ := strings.Cut(line, "=")
		out = append(out, Given{Name: name, Value: value, Where: fmt.Sprintf("%s:%d", path, n)})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAFileOfAKafkaServerStartsWithWarnings(t *testing.T) {
	set, warnings, err := Static(readProperties(t, "testdata/kraft_server.properties"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := BrokerOf(Stack{Static: set})
	if err != nil {
		t.Fatal(err)
	}
	if v.BrokerID != 1 || v.DataDir != "/tmp/kraft-combined-logs" || v.NumPartitions != 1 {
		t.Errorf("broker %d, directory %s, %d partitions", v.BrokerID, v.DataDir, v.NumPartitions)
	}
	if len(v.Listeners) != 1 || v.Listeners[0] != (Listener{Name: "PLAINTEXT", Port: 9092, Protocol: "PLAINTEXT"}) {
		t.Errorf("listeners %+v: the controller's listener is not ours to open", v.Listeners)
	}
	if len(v.Advertised) != 1 || v.Advertised[0].Host != "localhost" {
		t.Errorf("advertised %+v", v.Advertised)
	}
	if got := TopicOf(Stack{Static: set}).RetentionMs; got != 168*3_600_000 {
		t.Errorf("retention %d ms", got)
	}
	var names []string
	for _, w := range warnings {
		names = append(names, w.Name)
	}
	if !slices.Contains(names, "num.io.threads") || slices.Contains(names, "log.retention.hours") {
		t.Errorf("warnings about %v", names)
	}
}

func TestStaticRefusesWithPlaceAndRemedy(t *testing.T) {
	for _, c := range []struct {
		name, value string
		code        Code
		says        string
	}{
		{"log.retention.hour", "1", UnknownKey, "did you mean log.retention.hours?"},
		{"something.else.entirely", "1", UnknownKey, "docs/configs.md"},
		{"num.partitions", "many", BadType, "whole number"},
		{"num.partitions", "0", BadValue, "at least 1"},
		{"num.partitions", "2147483648", BadType, "2147483647"},
		{"log.cleanup.policy", "compress", BadValue, "delete and compact"},
		{"log.cleaner.io.max.bytes.per.second", "0", BadValue, "above 0"},
		{"log.cleanup.policy", "delete,delete", BadValue, "twice"},
		{"authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer", RefusedKey, "no authorizer"},
		{"remote.log.storage.system.enable", "true", RefusedKey, "leave it false"},
		{"controller.quorum.voters", "1@a:9093,2@b:9093,3@c:9093", BadValue, "several controllers"},
		{"log.dirs", "/a,/b", BadValue, "one directory"},
		{"process.roles", "controller", BadValue, "only a controller"},
		{"listeners", "PLAINTEXT://a:1,PLAINTEXT://b:2", BadValue, "twice"},
		{"listeners", "PLAINTEXT://::1:9092", BadValue, "brackets"},
		{"compression.gzip.level", "0", BadValue, "from 1 to 9"},
		{"leader.replication.throttled.replicas", "0:1", UnknownKey, ""},
	} {
		_, _, err := Static([]Given{{Name: c.name, Value: c.value, Where: "file:3:1"}})
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s=%s: %v", c.name, c.value, err)
			continue
		}
		if e.Code != c.code || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "file:3:1") || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s=%s: %v", c.name, c.value, err)
		}
	}
}

func TestStaticReportsEveryProblemAtOnceAndHidesSecrets(t *testing.T) {
	_, _, err := Static([]Given{
		{Name: "nmu.partitions", Value: "1", Where: "file:1:1"},
		{Name: "num.partitions", Value: "x", Where: "file:2:1"},
		{Name: "log.dir", Value: "a", Where: "file:3:1"},
		{Name: "log.dir", Value: "b", Where: "file:4:1"},
	})
	for _, want := range []string{"file:1:1", "TRP-1004", "num.partitions?", "file:2:1", "TRP-1001", "file:4:1", "TRP-1006", "file:3:1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	k, _ := brokerTable.Lookup("sasl.jaas.config")
	refused := *k
	refused.Class, refused.Reason = Refused, "no"
	if _, err := refused.Parse("s3cret"); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("%v", err)
	}
}

func TestLaterLayersAreStronger(t *testing.T) {
	flag, err := FromFlag(" num.partitions = 5")
	if err != nil {
		t.Fatal(err)
	}
	set, _, err := Static(
		[]Given{{Name: "num.partitions", Value: "3"}, {Name: "log.dir", Value: "a"}},
		FromEnv([]string{"PATH=/bin", "TROUPE_NUM_PARTITIONS=4", "TROUPE_LOG_DIR=b", "TROUPE_CONFIG=x"}, "TROUPE_CONFIG"),
		[]Given{flag},
	)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(set, Set{{"log.dir", "b"}, {"num.partitions", "5"}}) {
		t.Errorf("%v", set)
	}
	if _, err := FromFlag("num.partitions"); err == nil {
		t.Error("a flag without = passes")
	}
	if _, _, err := Static(FromEnv([]string{"TROUPE_NUM_PARTITION=4"})); err == nil || !strings.Contains(err.Error(), "environment variable TROUPE_NUM_PARTITION") {
		t.Errorf("%v", err)
	}
}

func TestListenerPrefixesAndPluginKeysAreKnown(t *testing.T) {
	set, warnings, err := Static([]Given{
		{Name: "listener.name.internal.ssl.keystore.location", Value: "/k"},
		{Name: "listener.name.internal.scram-sha-256.sasl.jaas.config", Value: "x"},
		{Name: "listener.name.internal.max.connections", Value: "5"},
		{Name: "rsm.config.anything.at.all", Value: "x"},
	})
	if err != nil || len(set) != 4 || len(warnings) != 4 {
		t.Fatalf("%v %v %v", set, warnings, err)
	}
	if _, _, err := Static([]Given{{Name: "listener.name.internal.nonsense", Value: "x"}}); err == nil {
		t.Error("an unknown key hides behind a listener's prefix")
	}
}

func TestEnvironmentTwinsAreUnambiguous(t *testing.T) {
	seen := map[string]string{}
	for k := range brokerTable.All() {
		e := EnvName(k.Name)
		if other, twice := seen[e]; twice {
			t.Errorf("%s and %s share %s", k.Name, other, e)
		}
		seen[e] = k.Name
		if got := FromEnv([]string{e + "=1"}); len(got) != 1 || got[0].Name != k.Name {
			t.Errorf("%s reads back as %v", e, got)
		}
	}
}

func TestBrokerOfHoldsKeysTogether(t *testing.T) {
	for _, c := range []struct {
		set  Set
		code Code
		says string
	}{
		{SetOf(Entry{"listeners", "PLAINTEXT://0.0.0.0:9092"}), Conflict, "--advertise HOST:9092"},
		{SetOf(Entry{"listeners", "SSL://a:9092"}), RefusedKey, "does not exist yet"},
		{SetOf(Entry{"listeners", "X://a:9092"}), Conflict, "no protocol"},
		{SetOf(Entry{"listeners", "CONTROLLER://a:9092"}, Entry{"controller.listener.names", "CONTROLLER"}), Conflict, "no listener for clients"},
		{SetOf(Entry{"advertised.listeners", "PLAINTEXT://0.0.0.0:9092"}), Conflict, "cannot connect"},
		{SetOf(Entry{"node.id", "1"}, Entry{"broker.id", "2"}), Conflict, "says 2"},
		{SetOf(Entry{"broker.heartbeat.interval.ms", "9000"}), Conflict, "below"},
	} {
		_, err := BrokerOf(Stack{Static: c.set})
		var e *Error
		if !errors.As(err, &e) || e.Code != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v", c.set, err)
		}
	}
	v, err := BrokerOf(Stack{Static: SetOf(Entry{"broker.id", "4"}, Entry{"listeners", "[::1]:0"})})
	if err != nil || v.BrokerID != 4 || v.Listeners[0].Host != "::1" || v.Advertised[0] != v.Listeners[0] {
		t.Errorf("%+v %v", v, err)
	}
}
