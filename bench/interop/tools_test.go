package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The expectations are what the suite's verdicts rest on: each has to fail on output that is nearly right.
func TestExpectationsTellRightOutputFromNearlyRight(t *testing.T) {
	box := &toolbox{suite: &suite{target: &target{name: "troupe", addr: "127.0.0.1:9", data: "/d"}}}
	topic := "Topic: t\tTopicId: x\n\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \n"
	config := "  a.b=1 sensitive=false synonyms={X:a.b=1, Y:c=2, Z:d=3}\n"
	dirs := `noise` + "\n" + `{"brokers":[{"broker":1,"logDirs":[{"partitions":[{"partition":"t-0","size":5,"offsetLag":0,"isFuture":false}],"error":null,"logDir":"/d"}]}],"version":1}` + "\n"
	features := "Feature: kraft.version  SupportedMinVersion: 0  SupportedMaxVersion: 1  FinalizedVersionLevel: 1  Epoch: 7\n" +
		"Feature: group.version  SupportedMinVersion: 0  SupportedMaxVersion: 1  FinalizedVersionLevel: 1  Epoch: 7\n" +
		"Feature: troupe.peer.version  SupportedMinVersion: 1  SupportedMaxVersion: 1  FinalizedVersionLevel: 1  Epoch: 7\n"
	var apis strings.Builder
	apis.WriteString("127.0.0.1:9 (id: 1 rack: null isFenced: false) -> (\n")
	for api, versions := range served {
		fmt.Fprintf(&apis, "\t%s: %s [usable: 0],\n", api, versions)
	}
	apis.WriteString("\tAddPartitionsToTxn(24): UNSUPPORTED\n)\n")
	batch := "baseOffset: 5 lastOffset: 6 count: 2 baseSequence: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: 0 magic: 2 compresscodec: none crc: 1 isvalid: true\n"
	record := func(offset int) string {
		return fmt.Sprintf("| offset: %d CreateTime: 1700000000000 keySize: 2 valueSize: 9 sequence: 0 headerKeys: [] key: k7 payload: v7-xxx\n", offset)
	}
	index := "offset: 3 position: 10\noffset: 5 position: 20\noffset: 9 position: 30\n"

	st := &stage{toolbox: box, trio: &trio{nodes: []*node{{id: 1, addr: "127.0.0.1:9"}, {id: 2, addr: "127.0.0.1:10"}}}}
	second := strings.NewReplacer("127.0.0.1:9", "127.0.0.1:10", "id: 1", "id: 2").Replace(apis.String())
	cluster := "Topic: p\tTopicId: x\n\tTopic: p\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 2,1\tElr: 3\tLastKnownElr: \n" +
		"\tTopic: p\tPartition: 1\tLeader: none\tReplicas: 3\tIsr: \tElr: 3\tLastKnownElr: 3\n"
	quorum := "NodeId\tDirectoryId\tLogEndOffset\n1\tAAAAAAAAAAAAAAAAAAAAAA\t50\t0\t1700000000000\t1700000000000\tLeader\n" +
		"2\tBBBBAAAAAAAAAAAAAAAAAA\t49\t1\t1700000000000\t1700000000000\tFollower\n"
	endpoints := "ID HOST PORT RACK STATE ENDPOINT_TYPE\n1 127.0.0.1 9 null unfenced broker\n2 127.0.0.1 10 null unfenced broker\n"

	for _, c := range []struct {
		name   string
		expect expect
		good   string
		bad    []string
	}{
		{"prints", prints("a", "b"), "a\nb \n\n", []string{"a\n", "a\nb\nc\n", "b\na\n", ""}},
		{"prints nothing", prints(), "\n", []string{"a\n"}},
		{"matches", matches(`^a$`, `^b`), "xx\na\nbc\n", []string{"a\n", "ab\nb\n"}},
		{"lacking", lacking(`^ERROR`), "no ERROR here\n", []string{"fine\nERROR x\n"}},
		{"partitionLines", partitionLines("t", 1), topic, []string{"", topic + topic, strings.Replace(topic, "Isr: 1", "Isr: 2", 1), strings.Replace(topic, "Partition: 0", "Partition: 1", 1)}},
		{"entry", entry("a.b", "1", "X:a.b=1", "Z:d=3"), config, []string{strings.Replace(config, "a.b=1 ", "a.b=12 ", 1), strings.Replace(config, "Z:d", "Z:e", 1), "Z:d=3, X:a.b=1", ""}},
		{"logDirs", box.logDirs("1", "t-0"), dirs, []string{
			"", "{}", strings.Replace(dirs, `"size":5`, `"size":0`, 1), strings.Replace(dirs, `"/d"`, `"/e"`, 1), strings.Replace(dirs, "t-0", "t-1", 1),
			strings.Replace(dirs, `"broker":1`, `"broker":2`, 1), strings.Replace(dirs, `"error":null`, `"error":"x"`, 1),
		}},
		{"features", box.features(), features, []string{"Feature: x\n", strings.Replace(features, "Level: 1", "Level: 2", 1), strings.Replace(features, "kraft", "other", 1), strings.Replace(features, "group", "share", 1), features + strings.Replace(features, "Epoch: 7", "Epoch: 8", 1)}},
		{"apiVersions", box.apiVersions("1"), apis.String(), []string{
			"", strings.Replace(apis.String(), "Fetch(1): 4 to 18", "Fetch(1): 4 to 17", 1), strings.Replace(apis.String(), "Fetch(1): 4 to 18 [usable: 0],\n", "Fetch(1): UNSUPPORTED,\n", 1),
			strings.Replace(apis.String(), "UNSUPPORTED", "0 to 99", 1), strings.Replace(apis.String(), "id: 1", "id: 2", 1), strings.Replace(apis.String(), "AddPartitionsToTxn(24): UNSUPPORTED", "Invented(99): 0", 1),
		}},
		{"wholeSegment", wholeSegment(5, 7), batch + record(5) + record(6), []string{
			"", batch, batch + record(5), batch + record(6) + record(5), record(5) + record(6), strings.Replace(batch, "isvalid: true", "isvalid: false", 1) + record(5) + record(6),
			batch + record(5) + strings.Replace(record(6), "v7", "v8", 1), batch + record(5) + record(6) + record(7),
		}},
		{"partitions", partitions("p-0 leader 1 replicas 1,2,3 isr 1,2 elr 3", "p-1 leader none replicas 3 isr none elr 3"), cluster, []string{
			"", strings.Replace(cluster, "Isr: 2,1", "Isr: 2", 1), strings.Replace(cluster, "Elr: 3", "Elr: ", 1), strings.Replace(cluster, "Leader: none", "Leader: 3", 1),
			strings.Replace(cluster, "1,2,3", "2,1,3", 1), cluster + topic, strings.Split(cluster, "\n")[0],
		}},
		{"voters", voters(1, 2), quorum, []string{
			"", strings.Replace(quorum, "2\t", "3\t", 1), strings.Replace(quorum, "Follower", "Leader", 1), strings.Replace(quorum, "Leader", "Follower", 1),
			strings.Replace(quorum, "BBBB", "AAAA", 1), strings.Replace(quorum, "\t0\t", "\t4\t", 1), strings.Replace(quorum, "1700000000000", "-1", 1),
		}},
		{"endpoints", st.endpoints(1, 2), endpoints, []string{
			"", strings.Replace(endpoints, "2 ", "3 ", 1), strings.Replace(endpoints, "10", "11", 1), endpoints + "3 127.0.0.1 11 null unfenced broker\n",
		}},
		{"apiVersionsOfAll", st.apiVersionsOfAll(), apis.String() + second, []string{
			"", apis.String(), second, apis.String() + strings.Replace(second, "id: 2", "id: 1", 1), apis.String() + strings.Replace(second, "Fetch(1): 4 to 18", "Fetch(1): 4 to 17", 1),
		}},
		{"indexEntries", indexEntries(), index, []string{"", "offset: 3 position: 10\n", index + "offset: 9 position: 40\n", index + "offset: 10 position: 30\n"}},
	} {
		if err := c.expect.holds(toolResult{Out: c.good}); err != nil {
			t.Errorf("%s: the right output fails: %v", c.name, err)
		}
		for _, bad := range c.bad {
			if err := c.expect.holds(toolResult{Out: bad}); err == nil {
				t.Errorf("%s: passes on %q", c.name, bad)
			}
		}
	}
}

func TestStampsLieInTheirWindowAndNeverFall(t *testing.T) {
	read := func(stamps ...int64) []record {
		records := make([]record, len(stamps))
		for i, s := range stamps {
			records[i].Timestamp = s
		}
		return records
	}
	written := read(1, 2)
	if err := stampAll(written, read(10, 12), 10, 12); err != nil || written[1].Timestamp != 12 {
		t.Errorf("stampAll = %v, took over %d", err, written[1].Timestamp)
	}
	typed := read(10, 12)
	typed[1].TimestampType = "CreateTime"
	for _, bad := range [][]record{read(9, 12), read(10, 13), read(12, 11), read(10), typed} {
		if err := stampAll(read(1, 2), bad, 10, 12); err == nil {
			t.Errorf("%+v passed", bad)
		}
	}
}

func TestSegmentsAreListedByTheirOffsets(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"00000000000000000100.log", "00000000000000000009.log", "00000000000000000009.index", "leader-epoch-checkpoint"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := segments(dir); err != nil || !slices.Equal(got, []int64{9, 100}) {
		t.Errorf("segments = %v, %v", got, err)
	}
	if _, err := segments(filepath.Join(dir, "none")); err == nil {
		t.Error("a missing directory has segments")
	}
}

func TestCellsCoverCodecsAndAcks(t *testing.T) {
	h := hello{Codecs: []string{"none", "zstd"}, Idempotent: true}
	if full := cellsOf(h, true); len(full) != 2*(3+1) {
		t.Errorf("the whole matrix has %v", full)
	}
	smoke := cellsOf(h, false)
	for _, want := range []cell{
		{Codec: "none", Acks: -1}, {Codec: "none", Acks: 1}, {Codec: "none", Acks: 0}, {Codec: "zstd", Acks: -1}, {Codec: "zstd", Acks: -1, Idempotent: true},
	} {
		if !slices.Contains(smoke, want) {
			t.Errorf("the smoke part lacks %v", want)
		}
	}
	if first := slices.IndexFunc(smoke, func(c cell) bool { return c.Acks == 0 }); first != len(smoke)-1 {
		t.Errorf("cells without acknowledgement come before others: %v", smoke)
	}
}
