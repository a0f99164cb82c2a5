package records_test

import (
	"encoding/hex"
	"reflect"
	"testing"

	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
)

var (
	topic1 = ident.TopicID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	topic2 = ident.TopicID{17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32}
)

const at = ident.Millis(1_700_000_000_000)

// golden is one record as the serializers of Apache Kafka 4.4.0 wrote it, and what it means.
type golden struct {
	name       string
	key, value string // hexadecimal; an empty value: a tombstone
	entry      records.Entry
	read       bool // only read: we write another version of it, or nothing
}

// goldens has each type in each version.
func goldens() []golden {
	const offsetKey, groupKey = "00010002673100066f726465727300000007", "000200076772c3bcc39f65"
	offset := func(v records.Offset) *records.OffsetCommit {
		return &records.OffsetCommit{Group: "g1", Topic: "orders", Partition: 7, Value: &v}
	}
	old := records.Offset{Offset: 42, LeaderEpoch: -1, Metadata: "m", CommitTime: at, ExpireTime: -1}
	expiring, epoch, full := old, old, old
	expiring.ExpireTime = at + 600_000
	epoch.LeaderEpoch = 5
	full.LeaderEpoch, full.TopicID = 5, topic1
	group := func(stateTime ident.Millis, instance *string, rebalance1, rebalance2 int32) *records.GroupMetadata {
		return &records.GroupMetadata{Group: "grüße", Value: &records.Generation{
			ProtocolType: "consumer", Generation: 3, Protocol: new("range"), Leader: new("m-1"), StateTime: stateTime, Members: []records.ClassicMember{
				{Member: "m-1", Instance: instance, ClientID: "c", ClientHost: "/127.0.0.1", RebalanceTimeout: rebalance1, SessionTimeout: 45_000, Subscription: []byte{0, 1, 2}, Assignment: []byte{3, 4}},
				{Member: "m-2", ClientHost: "/::1", RebalanceTimeout: rebalance2, SessionTimeout: 2},
			},
		}}
	}
	return []golden{
		{"legacy offset v0", "00000002673100066f726465727300000007", "0000000000000000002a00016d0000018bcfe56800", offset(old), true},
		{"legacy offset v1", "00000002673100066f726465727300000007", "0001000000000000002a00016d0000018bcfe568000000018bcfee8fc0", offset(expiring), true},
		{"offset v0", offsetKey, "0000000000000000002a00016d0000018bcfe56800", offset(old), true},
		{"offset v1", offsetKey, "0001000000000000002a00016d0000018bcfe568000000018bcfee8fc0", offset(expiring), false},
		{"offset v2", offsetKey, "0002000000000000002a00016d0000018bcfe56800", offset(old), true},
		{"offset v3", offsetKey, "0003000000000000002a0000000500016d0000018bcfe56800", offset(epoch), true},
		{"offset v4", offsetKey, "0004000000000000002a00000005026d0000018bcfe568000100100102030405060708090a0b0c0d0e0f10", offset(full), false},
		{"offset v4 without topic id", offsetKey, "00040000000000000000ffffffff01000000000000000100", offset(records.Offset{LeaderEpoch: -1, CommitTime: 1, ExpireTime: -1}), false},
		{"offset tombstone", offsetKey, "", &records.OffsetCommit{Group: "g1", Topic: "orders", Partition: 7}, false},
		{"legacy offset tombstone", "00000002673100066f726465727300000007", "", &records.OffsetCommit{Group: "g1", Topic: "orders", Partition: 7}, true},
		{"group v0", groupKey, "00000008636f6e73756d657200000003000572616e676500036d2d310000000200036d2d31000163000a2f3132372e302e302e310000afc80000000300010200000002030400036d2d32000000042f3a3a31000000020000000000000000", group(-1, nil, 45_000, 2), true},
		{"group v1", groupKey, "00010008636f6e73756d657200000003000572616e676500036d2d310000000200036d2d31000163000a2f3132372e302e302e31000493e00000afc80000000300010200000002030400036d2d32000000042f3a3a3100000001000000020000000000000000", group(-1, nil, 300_000, 1), true},
		{"group v2", groupKey, "00020008636f6e73756d657200000003000572616e676500036d2d310000018bcfe568000000000200036d2d31000163000a2f3132372e302e302e31000493e00000afc80000000300010200000002030400036d2d32000000042f3a3a3100000001000000020000000000000000", group(at, nil, 300_000, 1), true},
		{"group v3", groupKey, "00030008636f6e73756d657200000003000572616e676500036d2d310000018bcfe568000000000200036d2d310003692d31000163000a2f3132372e302e302e31000493e00000afc80000000300010200000002030400036d2d32ffff000000042f3a3a3100000001000000020000000000000000", group(at, new("i-1"), 300_000, 1), false},
		{"group v4", groupKey, "000409636f6e73756d6572000000030672616e6765046d2d310000018bcfe5680003046d2d3104692d3102630b2f3132372e302e302e31000493e00000afc80400010203030400046d2d320001052f3a3a31000000010000000201010000", group(at, new("i-1"), 300_000, 1), true},
		{"group without anything", groupKey, "0003000000000000ffffffffffffffffffffffff00000000", &records.GroupMetadata{Group: "grüße", Value: &records.Generation{StateTime: -1}}, false},
		{"group tombstone", groupKey, "", &records.GroupMetadata{Group: "grüße"}, false},
		{"consumer group", "0003000167", "000000000009010008fffffffffffffffe", &records.ConsumerGroup{Group: "g", Value: &records.GroupEpoch{Epoch: 9, MetadataHash: -2}}, false},
		{"consumer group without hash", "0003000167", "00000000000900", &records.ConsumerGroup{Group: "g", Value: &records.GroupEpoch{Epoch: 9}}, false},
		{"consumer group tombstone", "0003000167", "", &records.ConsumerGroup{Group: "g"}, false},
		{"partition metadata", "0004000167", "0000020102030405060708090a0b0c0d0e0f10076f726465727300000003020000000002037231000000", &records.PartitionMetadata{Group: "g"}, true},
		{"partition metadata tombstone", "0004000167", "", &records.PartitionMetadata{Group: "g"}, false},
		{
			"consumer member", "000500016700016d", "00000269027202630b2f3132372e302e302e31030261026204782e2a000493e00672616e676501001b010000afc8030672616e6765040102030007737469636b79010000",
			&records.ConsumerMember{Group: "g", Member: "m", Value: &records.Subscription{
				Instance: new("i"), Rack: new("r"), ClientID: "c", ClientHost: "/127.0.0.1", Topics: []string{"a", "b"}, Regex: new("x.*"), RebalanceTimeout: 300_000, Assignor: new("range"),
				Classic: &records.Classic{SessionTimeout: 45_000, Protocols: []records.Protocol{{Name: "range", Metadata: []byte{1, 2, 3}}, {Name: "sticky"}}},
			}},
			false,
		},
		{"consumer member without anything", "000500016700016d", "0000000001010100ffffffff0000", &records.ConsumerMember{Group: "g", Member: "m", Value: &records.Subscription{RebalanceTimeout: -1}}, false},
		{"consumer member tombstone", "000500016700016d", "", &records.ConsumerMember{Group: "g", Member: "m"}, false},
		{"target", "0006000167", "0000000000040100080000018bcfe56800", &records.Target{Group: "g", Value: &records.TargetEpoch{Epoch: 4, At: at}}, false},
		{"target without time", "0006000167", "00000000000400", &records.Target{Group: "g", Value: &records.TargetEpoch{Epoch: 4}}, false},
		{"target tombstone", "0006000167", "", &records.Target{Group: "g"}, false},
		{
			"target member", "000700016700016d", "0000030102030405060708090a0b0c0d0e0f10030000000000000002001112131415161718191a1b1c1d1e1f2002000000010000",
			&records.TargetMember{Group: "g", Member: "m", Value: &records.Partitions{Topics: []records.TopicPartitions{{Topic: topic1, Partitions: []int32{0, 2}}, {Topic: topic2, Partitions: []int32{1}}}}}, false,
		},
		{"target member tombstone", "000700016700016d", "", &records.TargetMember{Group: "g", Member: "m"}, false},
		{
			"current", "000800016700016d", "0000000000050000000401020102030405060708090a0b0c0d0e0f10030000000000000002010009030000000400000005021112131415161718191a1b1c1d1e1f2002000000010000",
			&records.Current{Group: "g", Member: "m", Value: &records.CurrentAssignment{
				MemberEpoch: 5, PreviousEpoch: 4, State: records.MemberUnrevoked,
				Assigned: []records.TopicPartitions{{Topic: topic1, Partitions: []int32{0, 2}, Epochs: []int32{4, 5}}},
				Revoking: []records.TopicPartitions{{Topic: topic2, Partitions: []int32{1}}},
			}},
			false,
		},
		{"current tombstone", "000800016700016d", "", &records.Current{Group: "g", Member: "m"}, false},
		{"regex", "001000016700036f2e2a", "000003046f616b076f7264657273000000000000000c0000018bcfe5680000", &records.Regex{Group: "g", Pattern: "o.*", Value: &records.Resolved{Topics: []string{"oak", "orders"}, Version: 12, At: at}}, false},
		{"regex tombstone", "001000016700036f2e2a", "", &records.Regex{Group: "g", Pattern: "o.*"}, false},
	}
}

func (g *golden) bytes(t testing.TB) (key, value []byte) {
	t.Helper()
	return unhex(t, g.key), unhex(t, g.value)
}

// unhex gives nil for nothing.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	if s == "" {
		return nil
	}
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// value is a tombstone's nil, or the value.
func value(e records.Entry) []byte {
	if e.Tombstone() {
		return nil
	}
	return e.AppendValue([]byte{})
}

// TestGolden: what Kafka wrote means what it says, and what we write is byte for byte what Kafka wrote.
func TestGolden(t *testing.T) {
	for _, g := range goldens() {
		t.Run(g.name, func(t *testing.T) {
			key, val := g.bytes(t)
			got, err := records.Decode(key, val)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, g.entry) {
				t.Fatalf("decoded %s\n    want %s", show(got), show(g.entry))
			}
			if got.GroupID() != "g" && got.GroupID() != "g1" && got.GroupID() != "grüße" {
				t.Errorf("group %q", got.GroupID())
			}
			if _, past := got.(*records.PartitionMetadata); got.Tombstone() != (val == nil) && !past {
				t.Errorf("tombstone: %t", got.Tombstone())
			}
			if g.read {
				return
			}
			if int16(got.Type()) != int16(key[0])<<8|int16(key[1]) {
				t.Errorf("type %d", got.Type())
			}
			if k := got.AppendKey(nil); hex.EncodeToString(k) != g.key {
				t.Errorf("key  %x\nwant %s", k, g.key)
			}
			if v := value(got); hex.EncodeToString(v) != g.value {
				t.Errorf("value %x\n want %s", v, g.value)
			}
		})
	}
}

// TestCopies: the entry holds on to nothing of the bytes it was read from.
func TestCopies(t *testing.T) {
	for _, g := range goldens() {
		key, val := g.bytes(t)
		e, err := records.Decode(key, val)
		if err != nil {
			t.Fatal(err)
		}
		clear(key)
		clear(val)
		if !reflect.DeepEqual(e, g.entry) {
			t.Errorf("%s: changed with its bytes: %s", g.name, show(e))
		}
	}
}

// TestCutShort: each proper prefix of a key or value, and each with a byte behind it, is an error that names its type.
func TestCutShort(t *testing.T) {
	for _, g := range goldens() {
		key, val := g.bytes(t)
		for n := range key {
			if e, err := records.Decode(key[:n], val); err == nil {
				t.Errorf("%s: %d bytes of the key are %s", g.name, n, show(e))
			}
		}
		if e, err := records.Decode(append(key, 0), val); err == nil {
			t.Errorf("%s: a key with a byte behind it is %s", g.name, show(e))
		}
		if _, past := g.entry.(*records.PartitionMetadata); past || val == nil {
			continue
		}
		for n := range val {
			if e, err := records.Decode(key, val[:n]); err == nil {
				t.Errorf("%s: %d bytes of the value are %s", g.name, n, show(e))
			}
		}
		if e, err := records.Decode(key, append(val, 0)); err == nil {
			t.Errorf("%s: a value with a byte behind it is %s", g.name, show(e))
		}
	}
}
