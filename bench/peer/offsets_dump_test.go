//go:build interop

package peer

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// dumped is an entry and what Kafka's dump tool shall print of it.
type dumped struct {
	entry        records.Entry
	key, payload string
}

// everyEntry has each type of record that a group coordinator writes, each tagged field set and unset, and tombstones.
func everyEntry() []dumped {
	const at, deleted = 1_700_000_000_000, "<DELETE>"
	t1 := ident.TopicID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	t2 := ident.TopicID{17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32}
	const name1, name2 = "AQIDBAUGBwgJCgsMDQ4PEA", "ERITFBUWFxgZGhscHR4fIA"
	offset := func(v *records.Offset) *records.OffsetCommit {
		return &records.OffsetCommit{Group: "grüße", Topic: "orders", Partition: 7, Value: v}
	}
	const offsetKey = `{"type":"1","data":{"group":"grüße","topic":"orders","partition":7}}`
	long := strings.Repeat("x", records.StringMax) // the longest that Kafka reads
	return []dumped{
		{
			offset(&records.Offset{
				Offset: 42, LeaderEpoch: 5, Metadata: "m", CommitTime: at, ExpireTime: -1, TopicID: t1,
				Jump: &records.Jump{Reason: records.JumpExpired, From: 1, To: 42, At: at}, // a field that Kafka does not know
			}),
			offsetKey, `{"version":"4","data":{"offset":42,"leaderEpoch":5,"metadata":"m","commitTimestamp":1700000000000,"topicId":"` + name1 + `"}}`,
		},
		{
			offset(&records.Offset{Offset: 42, LeaderEpoch: -1, CommitTime: at, ExpireTime: -1, Jump: &records.Jump{Reason: records.JumpNoCommit, To: 42}}),
			offsetKey, `{"version":"4","data":{"offset":42,"leaderEpoch":-1,"metadata":"","commitTimestamp":1700000000000}}`,
		},
		{
			offset(&records.Offset{Offset: 42, LeaderEpoch: -1, Metadata: "m", CommitTime: at, ExpireTime: at + 1}),
			offsetKey, `{"version":"1","data":{"offset":42,"metadata":"m","commitTimestamp":1700000000000,"expireTimestamp":1700000000001}}`,
		},
		{offset(nil), offsetKey, deleted},
		{
			&records.GroupMetadata{Group: "g", Value: &records.Generation{
				ProtocolType: "consumer", Generation: 3, Protocol: new("range"), Leader: &long, StateTime: at, Members: []records.ClassicMember{{
					Member: "m-1", Instance: new("i-1"), ClientID: "c", ClientHost: "/127.0.0.1", RebalanceTimeout: 300_000, SessionTimeout: 45_000, Subscription: []byte{0, 1, 2}, Assignment: []byte{3},
				}, {Member: "m-2", RebalanceTimeout: 1, SessionTimeout: 2}},
			}},
			`{"type":"2","data":{"group":"g"}}`,
			`{"version":"3","data":{"protocolType":"consumer","generation":3,"protocol":"range","leader":"` + long + `","currentStateTimestamp":1700000000000,"members":[` +
				`{"memberId":"m-1","groupInstanceId":"i-1","clientId":"c","clientHost":"/127.0.0.1","rebalanceTimeout":300000,"sessionTimeout":45000,"subscription":"AAEC","assignment":"Aw=="},` +
				`{"memberId":"m-2","groupInstanceId":null,"clientId":"","clientHost":"","rebalanceTimeout":1,"sessionTimeout":2,"subscription":"","assignment":""}]}}`,
		},
		{&records.GroupMetadata{Group: "g"}, `{"type":"2","data":{"group":"g"}}`, deleted},
		{
			&records.ConsumerGroup{Group: "g", Value: &records.GroupEpoch{Epoch: 9, MetadataHash: -2}},
			`{"type":"3","data":{"groupId":"g"}}`, `{"version":"0","data":{"epoch":9,"metadataHash":-2}}`,
		},
		{
			&records.ConsumerGroup{Group: "g", Value: &records.GroupEpoch{Epoch: 10}},
			`{"type":"3","data":{"groupId":"g"}}`, `{"version":"0","data":{"epoch":10}}`,
		},
		{&records.PartitionMetadata{Group: "g"}, `{"type":"4","data":{"groupId":"g"}}`, deleted},
		{
			&records.ConsumerMember{Group: "g", Member: "m", Value: &records.Subscription{
				Instance: new("i"), Rack: new("r"), ClientID: "c", ClientHost: "/127.0.0.1", Topics: []string{"a", "b"}, Regex: new("x.*"), RebalanceTimeout: 300_000,
				Assignor: new("range"),
				Classic:  &records.Classic{SessionTimeout: 45_000, Protocols: []records.Protocol{{Name: "range", Metadata: []byte{1, 2, 3}}, {Name: "sticky"}}},
			}},
			`{"type":"5","data":{"groupId":"g","memberId":"m"}}`,
			`{"version":"0","data":{"instanceId":"i","rackId":"r","clientId":"c","clientHost":"/127.0.0.1","subscribedTopicNames":["a","b"],"subscribedTopicRegex":"x.*",` +
				`"rebalanceTimeoutMs":300000,"serverAssignor":"range","classicMemberMetadata":{"sessionTimeoutMs":45000,"supportedProtocols":[` +
				`{"name":"range","metadata":"AQID"},{"name":"sticky","metadata":""}]}}}`,
		},
		{
			&records.ConsumerMember{Group: "g", Member: "m", Value: &records.Subscription{RebalanceTimeout: -1}},
			`{"type":"5","data":{"groupId":"g","memberId":"m"}}`,
			`{"version":"0","data":{"instanceId":null,"rackId":null,"clientId":"","clientHost":"","subscribedTopicNames":[],"subscribedTopicRegex":null,` +
				`"rebalanceTimeoutMs":-1,"serverAssignor":null}}`,
		},
		{
			&records.Target{Group: "g", Value: &records.TargetEpoch{Epoch: 4, At: at}},
			`{"type":"6","data":{"groupId":"g"}}`, `{"version":"0","data":{"assignmentEpoch":4,"assignmentTimestamp":1700000000000}}`,
		},
		{
			&records.Target{Group: "g", Value: &records.TargetEpoch{Epoch: 5}},
			`{"type":"6","data":{"groupId":"g"}}`, `{"version":"0","data":{"assignmentEpoch":5}}`,
		},
		{
			&records.TargetMember{Group: "g", Member: "m", Value: &records.Partitions{Topics: []records.TopicPartitions{{Topic: t1, Partitions: []int32{0, 2}}, {Topic: t2, Partitions: []int32{1}}}}},
			`{"type":"7","data":{"groupId":"g","memberId":"m"}}`,
			`{"version":"0","data":{"topicPartitions":[{"topicId":"` + name1 + `","partitions":[0,2]},{"topicId":"` + name2 + `","partitions":[1]}]}}`,
		},
		{
			&records.Current{Group: "g", Member: "m", Value: &records.CurrentAssignment{
				MemberEpoch: 5, PreviousEpoch: 4, State: records.MemberUnrevoked,
				Assigned: []records.TopicPartitions{{Topic: t1, Partitions: []int32{0, 2}, Epochs: []int32{4, 5}}},
				Revoking: []records.TopicPartitions{{Topic: t2, Partitions: []int32{1}}},
			}},
			`{"type":"8","data":{"groupId":"g","memberId":"m"}}`,
			`{"version":"0","data":{"memberEpoch":5,"previousMemberEpoch":4,"state":1,` +
				`"assignedPartitions":[{"topicId":"` + name1 + `","partitions":[0,2],"assignmentEpochs":[4,5]}],` +
				`"partitionsPendingRevocation":[{"topicId":"` + name2 + `","partitions":[1]}]}}`,
		},
		{&records.Current{Group: "g", Member: "m"}, `{"type":"8","data":{"groupId":"g","memberId":"m"}}`, deleted},
		{
			&records.Regex{Group: "g", Pattern: "o.*", Value: &records.Resolved{Topics: []string{"oak", "orders"}, Version: 12, At: at}},
			`{"type":"16","data":{"groupId":"g","regularExpression":"o.*"}}`, `{"version":"0","data":{"topics":["oak","orders"],"version":12,"timestamp":1700000000000}}`,
		},
	}
}

// TestKafkaReadsOurOffsets gives a segment with every entry to kafka-dump-log --offsets-decoder, which decodes it with the schemas of the pinned release.
func TestKafkaReadsOurOffsets(t *testing.T) {
	entries := everyEntry()
	b := record.NewBuilder()
	for _, d := range entries {
		var value []byte
		if !d.entry.Tombstone() {
			value = d.entry.AppendValue(nil)
		}
		b.Append(1_700_000_000_000, d.entry.AppendKey(nil), value)
	}
	batch, err := b.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	segment := filepath.Join(t.TempDir(), "00000000000000000000.log")
	if err := os.WriteFile(segment, batch, 0o644); err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	classPath, err := ClassPath(t.Context(), filepath.Join(cache, "troupe"))
	if err != nil {
		t.Fatal(err)
	}
	tool := exec.CommandContext(t.Context(), "java", "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-cp", classPath, "org.apache.kafka.tools.DumpLogSegments", "--offsets-decoder", "--files", segment)
	out, err := tool.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var lines []string
	for line := range strings.Lines(string(out)) {
		if _, decoded, ok := strings.Cut(strings.TrimSpace(line), " headerKeys: [] "); ok {
			lines = append(lines, decoded)
		}
	}
	if len(lines) != len(entries) {
		t.Fatalf("%d records of %d\n%s", len(lines), len(entries), out)
	}
	for i, d := range entries {
		if want := "key: " + d.key + " payload: " + d.payload; lines[i] != want {
			t.Errorf("Kafka reads %.600s\n      we meant %.600s", lines[i], want)
		}
	}
}
