package records_test

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/group/records"
)

func show(e records.Entry) string {
	if e == nil {
		return "nothing"
	}
	v := reflect.ValueOf(e).Elem().FieldByName("Value")
	if !v.IsValid() || v.IsNil() {
		return fmt.Sprintf("%T%+v", e, e)
	}
	return fmt.Sprintf("%T %q of %q: %+v", e, e.AppendKey(nil), e.GroupID(), v.Elem().Interface())
}

// TestUnknownType: what others write into the partition has an error of its own, whatever its bytes are.
func TestUnknownType(t *testing.T) {
	for _, typ := range []records.Type{-1, 9, 10, 15, 17, 23, 32767} {
		_, err := records.Decode([]byte{byte(typ >> 8), byte(typ), 0, 1, 'g'}, []byte{1})
		var unknown *records.UnknownTypeError
		if !errors.As(err, &unknown) || unknown.Type != typ {
			t.Errorf("type %d: %v", typ, err)
		}
		if want := fmt.Sprint(int16(typ)); !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %s", err, want)
		}
	}
}

// TestBadBytes: the error names the type, the field, and what is wrong.
func TestBadBytes(t *testing.T) {
	const offsetKey, memberKey, groupKey, currentKey = "00010002673100066f726465727300000007", "000500016700016d", "0002000167", "000800016700016d"
	for _, c := range []struct{ name, key, value, want string }{
		{"no key", "", "", "a key of 0 bytes has no type"},
		{"null group", "0001ffff", "", "key of OffsetCommit: group: null"},
		{"length below null", "0001fffe", "", "key of OffsetCommit: group: a length of -2"},
		{"no partition", "00010001670001740000", "", "key of OffsetCommit: partition: 2 bytes where 4 are needed"},
		{"long topic", "0001000167ffff", "", "key of OffsetCommit: topic: null"},
		{"longer than the key", "00020064", "", "key of GroupMetadata: group: 0 bytes where 100 are needed"},
		{"half a version", offsetKey, "00", "value of OffsetCommit: version: 1 bytes where 2 are needed"},
		{"later version", offsetKey, "0005", "value of OffsetCommit: version 5, known are 0 to 4"},
		{"negative version", offsetKey, "ffff", "value of OffsetCommit: version -1, known are 0 to 4"},
		{"later version of a type with one", memberKey, "0001", "value of ConsumerGroupMemberMetadata: version 1, known are 0 to 0"},
		{"null metadata", offsetKey, "0003000000000000002a00000005ffff", "value of OffsetCommit, version 3: metadata: null"},
		{"null compact metadata", offsetKey, "0004000000000000002a0000000500", "value of OffsetCommit, version 4: metadata: null"},
		{"endless varint", offsetKey, "0004000000000000002a00000005ffffffffff01", "version 4: metadata: an unsigned varint of more than 32 bits"},
		{"varint of 35 bits", offsetKey, "0004000000000000002a00000005ffffffff7f", "version 4: metadata: an unsigned varint of more than 32 bits"},
		{"varint cut short", offsetKey, "0004000000000000002a00000005ff", "version 4: metadata: an unsigned varint ends too early"},
		{"huge metadata", offsetKey, "0004000000000000002a00000005ffffffff0f", "version 4: metadata: 0 bytes where 4294967294 are needed"},
		{"topic id cut short", offsetKey, "00040000000000000000ffffffff0100000000000000010100020000", "version 4: topicId: 2 bytes where 16 are needed"},
		{"topic id too long", offsetKey, "00040000000000000000ffffffff01000000000000000101001100000000000000000000000000000000ff", "version 4: tagged fields: 1 bytes too many in tag 0"},
		{"tag larger than the value", offsetKey, "00040000000000000000ffffffff01000000000000000101001000", "version 4: tagged fields: 1 bytes where 16 are needed"},
		{"tag twice", offsetKey, "00040000000000000000ffffffff0100000000000000010205000500", "version 4: tagged fields: tag 5 out of order"},
		{"tags falling", offsetKey, "00040000000000000000ffffffff0100000000000000010205000400", "version 4: tagged fields: tag 4 out of order"},
		{"more tags than there are", offsetKey, "00040000000000000000ffffffff010000000000000001ff0f", "version 4: tagged fields: an unsigned varint ends too early"},
		{"half a jump", offsetKey, "00040000000000000000ffffffff01000000000000000101904e0901" + strings.Repeat("00", 8), "version 4: jump.to: 0 bytes where 8 are needed"},
		{"a member for each bit", groupKey, "00030000000000000000000000000000000000007fffffff00", "value of GroupMetadata, version 3: members: 2147483647 elements in 1 bytes"},
		{"members below null", groupKey, "0003000000000000ffffffffffffffffffffffffffffff00", "value of GroupMetadata, version 3: members: a length of -256"},
		{"null members", groupKey, "0003000000000000ffffffffffffffffffffffffffffffff", "value of GroupMetadata, version 3: members: null"},
		{"null topics", memberKey, "000000000101" + "00", "value of ConsumerGroupMemberMetadata, version 0: subscribedTopicNames: null"},
		{"topics without end", memberKey, "000000000101ffffffff0f", "subscribedTopicNames: 4294967294 elements in 0 bytes"},
		{"classic metadata cut short", memberKey, "0000000001010100ffffffff00" + "0100020100", "classicMemberMetadata.sessionTimeoutMs: 1 bytes where 4 are needed"},
		{"epochs of others", currentKey, "000000000005000000040102" + "0102030405060708090a0b0c0d0e0f10" + "030000000000000002" + "0100050200000004", "assignedPartitions.assignmentEpochs: 1 epochs for 2 partitions"},
		{"epochs without end", currentKey, "000000000005000000040102" + "0102030405060708090a0b0c0d0e0f10" + "01" + "010005ffffffff0f", "assignedPartitions.assignmentEpochs: 4294967294 elements in 0 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := records.Decode(unhex(t, c.key), unhex(t, c.value))
			if err == nil {
				t.Fatalf("is %s", show(e))
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q does not say %q", err, c.want)
			}
			if !strings.HasPrefix(err.Error(), "records: ") {
				t.Errorf("%q does not say where it comes from", err)
			}
		})
	}
}

// TestMembersCount: counts that the bytes cannot hold cost no memory.
func TestMembersCount(t *testing.T) {
	for _, c := range []struct{ key, value string }{
		{"0002000167", "00030000000000000000000000000000000000007fffffff"},     // members of a group
		{"000500016700016d", "000000000101ffffffff0f"},                         // topics of a member
		{"000700016700016d", "0000ffffffff0f"},                                 // topics of a target
		{"000700016700016d", "000002" + strings.Repeat("01", 16) + "ffffff7f"}, // its partitions
	} {
		key, val := unhex(t, c.key), append(unhex(t, c.value), make([]byte, 100)...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if e, err := records.Decode(key, val); err == nil {
			t.Fatalf("is %s", show(e))
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 {
			t.Errorf("%s: %d bytes of memory for %d bytes", c.value, n, len(val))
		}
	}
}

// TestUnknownTags: fields of later versions are passed over, wherever they are (KIP-915), and a null in a tagged field counts as its absence.
func TestUnknownTags(t *testing.T) {
	const unknown = "0107020a0b" // one tagged field, 7, of two bytes
	for _, c := range []struct {
		name, key, value string
		want             records.Entry
	}{
		{
			"in the value", "00010002673100066f726465727300000007", "00040000000000000000ffffffff010000000000000001" + unknown,
			&records.OffsetCommit{Group: "g1", Topic: "orders", Partition: 7, Value: &records.Offset{LeaderEpoch: -1, CommitTime: 1, ExpireTime: -1}},
		},
		{
			"behind a known one", "0003000167", "000000000009" + "020008fffffffffffffffe" + "07020a0b",
			&records.ConsumerGroup{Group: "g", Value: &records.GroupEpoch{Epoch: 9, MetadataHash: -2}},
		},
		{
			"in a member of the array", "000700016700016d", "0000020102030405060708090a0b0c0d0e0f100200000003" + unknown + unknown,
			&records.TargetMember{Group: "g", Member: "m", Value: &records.Partitions{Topics: []records.TopicPartitions{{Topic: topic1, Partitions: []int32{3}}}}},
		},
		{
			"in a tagged structure", "000500016700016d", "0000000001010100ffffffff00" + "01" + "0015" + "01" + "0000afc8" + "02" + "0261" + "01" + unknown + unknown + "00",
			nil, // the size does not fit: two bytes more than the structure
		},
		{
			"in a tagged structure of the right size", "000500016700016d", "0000000001010100ffffffff00" + "01" + "0013" + "01" + "0000afc8" + "02" + "0261" + "01" + unknown + unknown,
			&records.ConsumerMember{Group: "g", Member: "m", Value: &records.Subscription{
				RebalanceTimeout: -1,
				Classic:          &records.Classic{SessionTimeout: 45_000, Protocols: []records.Protocol{{Name: "a"}}},
			}},
		},
		{
			"a tagged null", "000500016700016d", "0000000001010100ffffffff00" + "010001ff",
			&records.ConsumerMember{Group: "g", Member: "m", Value: &records.Subscription{RebalanceTimeout: -1}},
		},
		{
			"null epochs", "000800016700016d", "000000000005000000040002" + "0102030405060708090a0b0c0d0e0f10" + "0200000003" + "01000100" + "0100",
			&records.Current{Group: "g", Member: "m", Value: &records.CurrentAssignment{
				MemberEpoch: 5, PreviousEpoch: 4,
				Assigned: []records.TopicPartitions{{Topic: topic1, Partitions: []int32{3}}},
			}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := records.Decode(unhex(t, c.key), unhex(t, c.value))
			if c.want == nil {
				if err == nil {
					t.Fatalf("is %s", show(got))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("is %s\nwant %s", show(got), show(c.want))
			}
		})
	}
}

// TestJump: our own field goes behind Kafka's, reads back, and may grow.
func TestJump(t *testing.T) {
	e := &records.OffsetCommit{Group: "g1", Topic: "orders", Partition: 7, Value: &records.Offset{
		Offset: 42, LeaderEpoch: 5, Metadata: "m", CommitTime: at, ExpireTime: -1, TopicID: topic1,
		Jump: &records.Jump{Reason: records.JumpExpired, From: 10, To: 42, At: at},
	}}
	const body = "0004000000000000002a00000005026d0000018bcfe568000200100102030405060708090a0b0c0d0e0f10"
	const jump = "02000000000000000a000000000000002a0000018bcfe56800"
	if got := fmt.Sprintf("%x", e.AppendValue(nil)); got != body+"904e19"+jump {
		t.Errorf("value %s\n want %s", got, body+"904e19"+jump)
	}
	key := e.AppendKey(nil)
	for name, v := range map[string]string{"as written": body + "904e19" + jump, "grown": body + "904e1b" + jump + "beef"} {
		got, err := records.Decode(key, unhex(t, v))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, e) {
			t.Errorf("%s: %s", name, show(got))
		}
	}
}

// TestLongStrings: a group whose member has a longer name than version 3 can hold is written as version 4, so that it is not lost; a key that cannot be written is a bug of its
// maker.
func TestLongStrings(t *testing.T) {
	long := strings.Repeat("x", records.StringMax+1)
	for _, m := range []records.ClassicMember{{Member: long}, {Instance: &long}, {ClientID: long}, {ClientHost: long}} {
		roundTrip(t, &records.GroupMetadata{Group: "g", Value: &records.Generation{StateTime: -1, Members: []records.ClassicMember{{}, m}}}, 4)
	}
	for _, v := range []records.Generation{{ProtocolType: long}, {Protocol: &long}, {Leader: &long}} {
		roundTrip(t, &records.GroupMetadata{Group: "g", Value: &v}, 4)
	}
	fits := long[1:]
	if records.Fits("g", long) || !records.Fits(fits, "") || !records.Fits() {
		t.Error("Fits lets the wrong strings in")
	}
	roundTrip(t, &records.GroupMetadata{Group: fits, Value: &records.Generation{Leader: &fits, Members: []records.ClassicMember{{Member: fits}}}}, 3)
	defer func() {
		if recover() == nil {
			t.Error("a key with a string that is too long was written")
		}
	}()
	(&records.Regex{Group: "g", Pattern: long}).AppendKey(nil)
}

func roundTrip(t *testing.T, e records.Entry, version byte) {
	t.Helper()
	v := e.AppendValue(nil)
	if v[1] != version {
		t.Errorf("written as version %d, want %d", v[1], version)
	}
	got, err := records.Decode(e.AppendKey(nil), v)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, e) {
		t.Errorf("%s came back as %s", show(e), show(got))
	}
}

// TestTypeNames: types print as Kafka names them.
func TestTypeNames(t *testing.T) {
	if got := fmt.Sprint(records.TypeLegacyOffsetCommit, records.TypeCurrent, records.Type(99)); got != "LegacyOffsetCommit ConsumerGroupCurrentMemberAssignment 99" {
		t.Error(got)
	}
}
