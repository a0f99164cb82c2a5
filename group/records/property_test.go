package records_test

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
)

var (
	text    = rapid.StringN(0, 20, 200)
	pointer = rapid.Ptr(text, true)
	epochs  = rapid.Int32Range(-2, 1<<31-1)
	millis  = rapid.Custom(func(t *rapid.T) ident.Millis { return ident.Millis(rapid.Int64().Draw(t, "ms")) })
	blob    = rapid.Custom(func(t *rapid.T) []byte { return orNil(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "bytes")) })
	topicID = rapid.Custom(func(t *rapid.T) (id ident.TopicID) {
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		return id
	})
)

// orNil makes nil of what is empty, as Decode does.
func orNil[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return s
}

func drawOffset(t *rapid.T) *records.Offset {
	v := &records.Offset{
		Offset: ident.Offset(rapid.Int64().Draw(t, "offset")), LeaderEpoch: -1, Metadata: text.Draw(t, "metadata"), CommitTime: millis.Draw(t, "commit"), ExpireTime: -1,
	}
	if rapid.IntRange(0, 3).Draw(t, "expires") == 0 {
		v.ExpireTime = millis.Filter(func(m ident.Millis) bool { return m != -1 }).Draw(t, "expire")
		return v
	}
	v.LeaderEpoch = ident.LeaderEpoch(epochs.Draw(t, "epoch"))
	if rapid.Bool().Draw(t, "known topic") {
		v.TopicID = topicID.Draw(t, "topic")
	}
	if rapid.Bool().Draw(t, "jumped") {
		v.Jump = &records.Jump{
			Reason: records.JumpReason(rapid.Int8().Draw(t, "reason")), From: ident.Offset(rapid.Int64().Draw(t, "from")), To: ident.Offset(rapid.Int64().Draw(t, "to")),
			At: millis.Draw(t, "at"),
		}
	}
	return v
}

func drawGeneration(t *rapid.T) *records.Generation {
	member := rapid.Custom(func(t *rapid.T) records.ClassicMember {
		return records.ClassicMember{
			Member: text.Draw(t, "member"), Instance: pointer.Draw(t, "instance"), ClientID: text.Draw(t, "client"), ClientHost: text.Draw(t, "host"),
			RebalanceTimeout: rapid.Int32().Draw(t, "rebalance"), SessionTimeout: rapid.Int32().Draw(t, "session"),
			Subscription: blob.Draw(t, "subscription"), Assignment: blob.Draw(t, "assignment"),
		}
	})
	return &records.Generation{
		ProtocolType: text.Draw(t, "type"), Generation: rapid.Int32().Draw(t, "generation"), Protocol: pointer.Draw(t, "protocol"), Leader: pointer.Draw(t, "leader"),
		StateTime: millis.Draw(t, "state time"), Members: orNil(rapid.SliceOfN(member, 0, 5).Draw(t, "members")),
	}
}

func drawSubscription(t *rapid.T) *records.Subscription {
	v := &records.Subscription{
		Instance: pointer.Draw(t, "instance"), Rack: pointer.Draw(t, "rack"), ClientID: text.Draw(t, "client"), ClientHost: text.Draw(t, "host"),
		Topics: orNil(rapid.SliceOfN(text, 0, 5).Draw(t, "topics")), Regex: pointer.Draw(t, "regex"), RebalanceTimeout: rapid.Int32().Draw(t, "rebalance"),
		Assignor: pointer.Draw(t, "assignor"),
	}
	if rapid.Bool().Draw(t, "classic") {
		protocol := rapid.Custom(func(t *rapid.T) records.Protocol {
			return records.Protocol{Name: text.Draw(t, "name"), Metadata: blob.Draw(t, "metadata")}
		})
		v.Classic = &records.Classic{SessionTimeout: rapid.Int32().Draw(t, "session"), Protocols: orNil(rapid.SliceOfN(protocol, 0, 5).Draw(t, "protocols"))}
	}
	return v
}

func drawPartitions(t *rapid.T, withEpochs bool) []records.TopicPartitions {
	one := rapid.Custom(func(t *rapid.T) records.TopicPartitions {
		tp := records.TopicPartitions{Topic: topicID.Draw(t, "topic"), Partitions: orNil(rapid.SliceOfN(rapid.Int32(), 0, 200).Draw(t, "partitions"))}
		if withEpochs && rapid.Bool().Draw(t, "epochs") {
			tp.Epochs = make([]int32, len(tp.Partitions))
			for i := range tp.Epochs {
				tp.Epochs[i] = epochs.Draw(t, "epoch")
			}
		}
		return tp
	})
	return orNil(rapid.SliceOfN(one, 0, 4).Draw(t, "topics"))
}

func drawEntry(t *rapid.T) records.Entry {
	group, name, dead := text.Draw(t, "group"), text.Draw(t, "name"), rapid.IntRange(0, 4).Draw(t, "tombstone") == 0
	switch rapid.IntRange(0, 8).Draw(t, "entry") {
	case 0:
		return &records.OffsetCommit{Group: group, Topic: name, Partition: rapid.Int32().Draw(t, "partition"), Value: unless(dead, t, drawOffset)}
	case 1:
		return &records.GroupMetadata{Group: group, Value: unless(dead, t, drawGeneration)}
	case 2:
		return &records.ConsumerGroup{Group: group, Value: unless(dead, t, func(t *rapid.T) *records.GroupEpoch {
			return &records.GroupEpoch{Epoch: epochs.Draw(t, "epoch"), MetadataHash: rapid.Int64().Draw(t, "hash")}
		})}
	case 3:
		return &records.PartitionMetadata{Group: group}
	case 4:
		return &records.ConsumerMember{Group: group, Member: name, Value: unless(dead, t, drawSubscription)}
	case 5:
		return &records.Target{Group: group, Value: unless(dead, t, func(t *rapid.T) *records.TargetEpoch {
			return &records.TargetEpoch{Epoch: epochs.Draw(t, "epoch"), At: millis.Draw(t, "at")}
		})}
	case 6:
		return &records.TargetMember{Group: group, Member: name, Value: unless(dead, t, func(t *rapid.T) *records.Partitions {
			return &records.Partitions{Topics: drawPartitions(t, false)}
		})}
	case 7:
		return &records.Current{Group: group, Member: name, Value: unless(dead, t, func(t *rapid.T) *records.CurrentAssignment {
			return &records.CurrentAssignment{
				MemberEpoch: epochs.Draw(t, "member epoch"), PreviousEpoch: epochs.Draw(t, "previous"), State: records.MemberState(rapid.Int8().Draw(t, "state")),
				Assigned: drawPartitions(t, true), Revoking: drawPartitions(t, true),
			}
		})}
	default:
		return &records.Regex{Group: group, Pattern: name, Value: unless(dead, t, func(t *rapid.T) *records.Resolved {
			return &records.Resolved{Topics: orNil(rapid.SliceOfN(text, 0, 5).Draw(t, "topics")), Version: rapid.Int64().Draw(t, "version"), At: millis.Draw(t, "at")}
		})}
	}
}

func unless[T any](dead bool, t *rapid.T, draw func(*rapid.T) *T) *T {
	if dead {
		return nil
	}
	return draw(t)
}

// TestRoundTrip: what is written is read back as it was, and appending leaves what stands before alone.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEntry(t)
		key, val := e.AppendKey(nil), value(e)
		got, err := records.Decode(key, val)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, e) {
			t.Fatalf("%s came back as %s", show(e), show(got))
		}
		prefix := []byte("before")
		if !bytes.Equal(e.AppendKey(prefix), append([]byte("before"), key...)) {
			t.Fatalf("the key %x changed with what stands before it", key)
		}
		if !e.Tombstone() && !bytes.Equal(e.AppendValue(prefix), append([]byte("before"), val...)) {
			t.Fatalf("the value %x changed with what stands before it", val)
		}
	})
}

// TestAgainstKmsg compares with another implementation of the two oldest schemas, both ways and in each version.
func TestAgainstKmsg(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offset := &records.OffsetCommit{Group: text.Draw(t, "group"), Topic: text.Draw(t, "topic"), Partition: rapid.Int32().Draw(t, "partition"), Value: drawOffset(t)}
		key := kmsg.OffsetCommitKey{Version: 1, Group: offset.Group, Topic: offset.Topic, Partition: offset.Partition}
		if got, want := offset.AppendKey(nil), key.AppendTo(nil); !bytes.Equal(got, want) {
			t.Fatalf("key of %s: %x, kmsg has %x", show(offset), got, want)
		}
		read := kmsg.NewOffsetCommitValue()
		if err := read.ReadFrom(offset.AppendValue(nil)); err != nil {
			t.Fatal(err)
		}
		v := offset.Value
		if read.Version == 1 {
			read.LeaderEpoch = -1 // which kmsg leaves at 0 where a version lacks it
		} else {
			read.ExpireTimestamp = -1
		}
		if read.Offset != int64(v.Offset) || read.LeaderEpoch != int32(v.LeaderEpoch) || read.Metadata != v.Metadata || read.CommitTimestamp != int64(v.CommitTime) ||
			read.ExpireTimestamp != int64(v.ExpireTime) || read.TopicID != v.TopicID {
			t.Fatalf("kmsg reads %s as %+v", show(offset), read)
		}
		for version := range int16(5) {
			kv := kmsg.OffsetCommitValue{Version: version, Offset: int64(v.Offset), LeaderEpoch: int32(v.LeaderEpoch), Metadata: v.Metadata, CommitTimestamp: int64(v.CommitTime), ExpireTimestamp: int64(v.ExpireTime), TopicID: v.TopicID}
			want := records.Offset{Offset: v.Offset, LeaderEpoch: -1, Metadata: v.Metadata, CommitTime: v.CommitTime, ExpireTime: -1}
			if version >= 3 {
				want.LeaderEpoch = v.LeaderEpoch
			}
			if version >= 4 {
				want.TopicID = v.TopicID
			}
			if version == 1 {
				want.ExpireTime = v.ExpireTime
			}
			decodes(t, key.AppendTo(nil), kv.AppendTo(nil), &records.OffsetCommit{Group: offset.Group, Topic: offset.Topic, Partition: offset.Partition, Value: &want})
		}

		group := &records.GroupMetadata{Group: text.Draw(t, "group"), Value: drawGeneration(t)}
		groupKey := kmsg.GroupMetadataKey{Version: 2, Group: group.Group}
		if got, want := group.AppendKey(nil), groupKey.AppendTo(nil); !bytes.Equal(got, want) {
			t.Fatalf("key of %s: %x, kmsg has %x", show(group), got, want)
		}
		for version := range int16(5) {
			kv, want := generationFor(group.Value, version)
			b := kv.AppendTo(nil)
			decodes(t, groupKey.AppendTo(nil), b, &records.GroupMetadata{Group: group.Group, Value: want})
			if got := group.AppendValue(nil); version == 3 && !bytes.Equal(got, b) {
				t.Fatalf("value of %s: %x, kmsg has %x", show(group), got, b)
			}
		}
	})
}

// generationFor gives a generation to kmsg, and what is left of it in a version.
func generationFor(g *records.Generation, version int16) (*kmsg.GroupMetadataValue, *records.Generation) {
	kv := &kmsg.GroupMetadataValue{Version: version, ProtocolType: g.ProtocolType, Generation: g.Generation, Protocol: g.Protocol, Leader: g.Leader, CurrentStateTimestamp: int64(g.StateTime)}
	want := *g
	want.Members = nil
	if version < 2 {
		want.StateTime = -1
	}
	for _, m := range g.Members {
		kv.Members = append(kv.Members, kmsg.GroupMetadataValueMember{
			MemberID: m.Member, InstanceID: m.Instance, ClientID: m.ClientID, ClientHost: m.ClientHost,
			RebalanceTimeoutMillis: m.RebalanceTimeout, SessionTimeoutMillis: m.SessionTimeout, Subscription: m.Subscription, Assignment: m.Assignment,
		})
		if version < 3 {
			m.Instance = nil
		}
		if version < 1 {
			m.RebalanceTimeout = m.SessionTimeout
		}
		want.Members = append(want.Members, m)
	}
	return kv, &want
}

func decodes(t *rapid.T, key, val []byte, want records.Entry) {
	t.Helper()
	got, err := records.Decode(key, val)
	if err != nil {
		t.Fatalf("%x: %v", val, err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%x is %s\nwant %s", val, show(got), show(want))
	}
}

// FuzzDecode: any bytes are an entry or an error, and what an entry is written as means the same entry.
func FuzzDecode(f *testing.F) {
	for _, g := range goldens() {
		key, val := g.bytes(f)
		f.Add(key, val, val == nil)
	}
	f.Fuzz(func(t *testing.T, key, val []byte, tombstone bool) {
		if tombstone {
			val = nil
		} else if val == nil {
			val = []byte{}
		}
		e, err := records.Decode(key, val)
		if err != nil {
			if e != nil {
				t.Fatalf("an error and %s", show(e))
			}
			return
		}
		k, v := e.AppendKey(nil), value(e)
		again, err := records.Decode(k, v)
		if err != nil {
			t.Fatalf("%s was written as %x, %x: %v", show(e), k, v, err)
		}
		if !reflect.DeepEqual(again, e) {
			t.Fatalf("%s came back as %s", show(e), show(again))
		}
		if !bytes.Equal(again.AppendKey(nil), k) || !bytes.Equal(value(again), v) {
			t.Fatalf("%s is written in two ways", show(e))
		}
	})
}
