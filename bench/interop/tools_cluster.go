package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// cluster: the tools about the broker and its quorum.
func (t *toolbox) cluster(ctx context.Context) {
	id := t.broker(ctx)
	t.run(ctx, "kafka-cluster", clusterTool, "cluster-id", args("cluster-id"), matches(`^Cluster ID: [A-Za-z0-9_-]{22}$`))
	t.run(ctx, "kafka-cluster", clusterTool, "list-endpoints", args("list-endpoints"),
		matches(`^`+id+`\s+127\.0\.0\.1\s+`+strings.TrimPrefix(t.target.addr, "127.0.0.1:")+`\s+null\s+unfenced\s+broker`))
	t.run(ctx, "kafka-cluster", clusterTool, "api-versions", args("api-versions"), t.apiVersions(id))
	t.run(ctx, "kafka-broker-api-versions", apiVersionsCommand, "each API", nil, t.apiVersions(id))
	t.run(ctx, "kafka-features", featureCommand, "describe", args("describe"), t.features())
	t.run(ctx, "kafka-features", featureCommand, "upgrade of an unknown feature", args("upgrade --feature no.such.version=1"), fails(),
		matches(`(?i)no\.such\.version`))
	t.run(ctx, "kafka-metadata-quorum", metadataQuorum, "describe --status", args("describe --status"),
		matches(`^ClusterId:\s+[A-Za-z0-9_-]{22}$`, `^LeaderId:\s+`+id+`$`, `^LeaderEpoch:\s+[1-9]\d*$`, `^HighWatermark:\s+[1-9]\d*$`,
			`^MaxFollowerLag:\s+0$`, `^MaxFollowerLagTimeMs:\s+0$`, `^CurrentVoters:\s+\[\{"id": `+id+`, "directoryId": "[A-Za-z0-9_-]{22}"`, `^CurrentObservers:\s+\[\]$`))
	t.run(ctx, "kafka-metadata-quorum", metadataQuorum, "describe --replication", args("describe --replication"),
		matches(`^NodeId\s+DirectoryId\s+LogEndOffset\s+Lag\s+LastFetchTimestamp\s+LastCaughtUpTimestamp\s+Status`,
			`^`+id+`\s+[A-Za-z0-9_-]{22}\s+[1-9]\d*\s+0\s+\d{13}\s+\d{13}\s+Leader`))
	t.run(ctx, "kafka-metadata-quorum", metadataQuorum, "describe --replication --human-readable", args("describe --replication --human-readable"),
		matches(`^`+id+`\s+[A-Za-z0-9_-]{22}\s+[1-9]\d*\s+0\s+\d+ ms ago\s+\d+ ms ago\s+Leader`))
	t.run(ctx, "kafka-transactions", transactionsCommand, "describe-producers", args("describe-producers --topic rolled --partition 0"),
		matches(`^ProducerId\s+ProducerEpoch\s+LatestCoordinatorEpoch\s+LastSequence\s+LastTimestamp\s+CurrentTransactionStartOffset`,
			`^\d+\s+0\s+-1\s+[1-9]\d*\s+\d{13}\s+None`))
	t.run(ctx, "kafka-log-dirs", logDirsCommand, "--describe of a topic", args("--describe --topic-list rolled"), t.logDirs(id, "rolled-0", "rolled-1"))
	t.run(ctx, "kafka-log-dirs", logDirsCommand, "--describe of a broker", args("--describe --broker-list "+id), t.logDirs(id, "rolled-0", "tools-console-0"))
}

// logDirs wants the JSON line with one healthy directory, in it the partitions with a size, without lag.
func (t *toolbox) logDirs(id string, partitions ...string) expect {
	return expect{holds: func(r toolResult) error {
		lines := linesOf(r.Out)
		if len(lines) == 0 {
			return fmt.Errorf("it printed nothing")
		}
		var answer struct {
			Brokers []struct {
				Broker  json.Number
				LogDirs []struct {
					Error      *string
					LogDir     string
					Partitions []struct {
						Partition string
						Size      int64
						OffsetLag int64
						IsFuture  bool
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &answer); err != nil {
			return fmt.Errorf("the last line: %w", err)
		}
		if len(answer.Brokers) != 1 || answer.Brokers[0].Broker.String() != id || len(answer.Brokers[0].LogDirs) != 1 {
			return fmt.Errorf("want one directory of broker %s", id)
		}
		dir := answer.Brokers[0].LogDirs[0]
		if dir.Error != nil || dir.LogDir != t.target.data {
			return fmt.Errorf("directory %q with error %v, want %q without", dir.LogDir, dir.Error, t.target.data)
		}
		for _, name := range partitions {
			found := false
			for _, p := range dir.Partitions {
				if p.Partition == name {
					found = p.Size > 0 && p.OffsetLag == 0 && !p.IsFuture
				}
			}
			if !found {
				return fmt.Errorf("no partition %s with a size, a lag of 0, not a future one", name)
			}
		}
		return nil
	}}
}

// served are the APIs that a broker without transactions and security serves, with the versions of Kafka 4.4.
// An API may be missing at the target only when it is not among them; one that is there has exactly Kafka's versions.
var served = map[string]string{
	"Produce(0)": "0 to 13", "Fetch(1)": "4 to 18", "ListOffsets(2)": "1 to 11", "Metadata(3)": "0 to 13", "ApiVersions(18)": "0 to 5",
	"CreateTopics(19)": "2 to 7", "DeleteTopics(20)": "1 to 6", "DeleteRecords(21)": "0 to 2", "InitProducerId(22)": "0 to 5",
	"OffsetForLeaderEpoch(23)": "2 to 4", "DescribeConfigs(32)": "1 to 4", "AlterConfigs(33)": "0 to 2", "DescribeLogDirs(35)": "1 to 5",
	"CreatePartitions(37)": "0 to 3", "IncrementalAlterConfigs(44)": "0 to 1", "DescribeQuorum(55)": "0 to 2", "UpdateFeatures(57)": "0 to 2",
	"DescribeCluster(60)": "0 to 2", "DescribeProducers(61)": "0", "ListConfigResources(74)": "0 to 1", "DescribeTopicPartitions(75)": "0",
	"OffsetCommit(8)": "2 to 10", "OffsetFetch(9)": "1 to 10", "FindCoordinator(10)": "0 to 6", "JoinGroup(11)": "0 to 9", "Heartbeat(12)": "0 to 4",
	"LeaveGroup(13)": "0 to 5", "SyncGroup(14)": "0 to 5", "DescribeGroups(15)": "0 to 6", "ListGroups(16)": "0 to 5", "DeleteGroups(42)": "0 to 3",
	"ElectLeaders(43)": "0 to 2", "AlterPartitionReassignments(45)": "0 to 1", "ListPartitionReassignments(46)": "0", "UnregisterBroker(64)": "0",
	"OffsetDelete(47)": "0", "ConsumerGroupHeartbeat(68)": "0 to 1", "ConsumerGroupDescribe(69)": "0 to 1",
}

// furtherAPIs are Kafka's other APIs: a target serves them at these versions, or not at all.
var furtherAPIs = map[string]string{
	"SaslHandshake(17)":      "0 to 1",
	"AddPartitionsToTxn(24)": "0 to 5", "AddOffsetsToTxn(25)": "0 to 4", "EndTxn(26)": "0 to 5", "WriteTxnMarkers(27)": "1 to 2",
	"TxnOffsetCommit(28)": "0 to 6", "DescribeAcls(29)": "1 to 3", "CreateAcls(30)": "1 to 3", "DeleteAcls(31)": "1 to 3",
	"AlterReplicaLogDirs(34)": "1 to 2", "SaslAuthenticate(36)": "0 to 2", "CreateDelegationToken(38)": "1 to 3", "RenewDelegationToken(39)": "1 to 2",
	"ExpireDelegationToken(40)": "1 to 2", "DescribeDelegationToken(41)": "1 to 3",
	"DescribeClientQuotas(48)": "0 to 1",
	"AlterClientQuotas(49)":    "0 to 1", "DescribeUserScramCredentials(50)": "0", "AlterUserScramCredentials(51)": "0",
	"DescribeTransactions(65)": "0", "ListTransactions(66)": "0 to 2",
	"GetTelemetrySubscriptions(71)": "0", "PushTelemetry(72)": "0", "ShareGroupHeartbeat(76)": "1", "ShareGroupDescribe(77)": "1", "ShareFetch(78)": "1 to 2",
	"ShareAcknowledge(79)": "1 to 2", "AddRaftVoter(80)": "0 to 1", "RemoveRaftVoter(81)": "0", "InitializeShareGroupState(83)": "0",
	"ReadShareGroupState(84)": "0", "WriteShareGroupState(85)": "0 to 1", "DeleteShareGroupState(86)": "0", "ReadShareGroupStateSummary(87)": "0 to 1",
	"StreamsGroupHeartbeat(88)": "0 to 1", "StreamsGroupDescribe(89)": "0 to 1", "DescribeShareGroupOffsets(90)": "0 to 1", "AlterShareGroupOffsets(91)": "0",
	"DeleteShareGroupOffsets(92)": "0", "StreamsGroupTopologyDescriptionUpdate(93)": "0", "UnregisterController(94)": "0",
}

// apiLine is one line of the listing: name and key, versions, and what the tool's own client can use of them.
var apiLine = regexp.MustCompile(`^\t([A-Za-z]+\(\d+\)): (.*?)( \[usable: \d+\])?,?$`)

// apiVersions wants each API at Kafka's versions, and none that Kafka has not.
func (t *toolbox) apiVersions(id string) expect {
	return expect{holds: func(r toolResult) error {
		lines := linesOf(r.Out)
		if want := t.target.addr + " (id: " + id + " rack: null isFenced: false) -> ("; len(lines) == 0 || lines[0] != want {
			return fmt.Errorf("the first line is not %q", want)
		}
		seen := map[string]bool{}
		for _, line := range lines[1:] {
			found := apiLine.FindStringSubmatch(line)
			if found == nil {
				if line == ")" {
					continue
				}
				return fmt.Errorf("line %q is no API", line)
			}
			api, versions := found[1], found[2]
			if versions == "UNSUPPORTED" {
				continue
			}
			seen[api] = true
			want, ok := served[api]
			if !ok {
				want, ok = furtherAPIs[api]
			}
			if !ok || versions != want {
				return fmt.Errorf("%s is served at versions %s, Kafka has %q", api, versions, want)
			}
		}
		for api := range served {
			if !seen[api] {
				return fmt.Errorf("%s is not served", api)
			}
		}
		return nil
	}}
}

// features wants the seven features of Kafka 4.4 at the oracle. A target advertises those it serves, at levels within
// Kafka's, all from one epoch.
func (t *toolbox) features() expect {
	line := regexp.MustCompile(`^Feature: (\S+)\s+SupportedMinVersion: (\S+)\s+SupportedMaxVersion: (\S+)\s+FinalizedVersionLevel: (\S+)\s+Epoch: (\d+)$`)
	kafka := map[string]string{
		"eligible.leader.replicas.version": "1", "group.version": "1", "kraft.version": "1", "metadata.version": "4.4-IV2",
		"share.version": "2", "streams.version": "1", "transaction.version": "2",
	}
	return expect{holds: func(r toolResult) error {
		epochs, seen, groups := map[string]bool{}, 0, false
		for _, l := range linesOf(r.Out) {
			found := line.FindStringSubmatch(l)
			if found == nil {
				return fmt.Errorf("line %q is no feature", l)
			}
			most, ok := kafka[found[1]]
			if own := "troupe.peer.version"; found[1] == own && !t.target.isKafka() {
				most, ok = found[3], true // the tool shows what it does not know as well
			}
			if !ok {
				return fmt.Errorf("feature %s is none of Kafka's", found[1])
			}
			// Levels of one feature are written alike, so the text compares as the level does.
			if found[4] > most || found[3] > most || found[4] > found[3] {
				return fmt.Errorf("feature %s is supported up to %s and finalised at %s, Kafka has %s", found[1], found[3], found[4], most)
			}
			epochs[found[5]], seen = true, seen+1
			groups = groups || found[1] == "group.version" && found[4] == "1"
		}
		if seen > 0 && len(epochs) != 1 {
			return fmt.Errorf("the features name %d epochs, want one", len(epochs))
		}
		if !groups {
			return errors.New("group.version is not at level 1")
		}
		if t.target.isKafka() && seen != len(kafka) {
			return fmt.Errorf("%d features, want Kafka's %d", seen, len(kafka))
		}
		return nil
	}}
}
