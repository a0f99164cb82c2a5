package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/bench/peer"
)

// The topics of the section, each with its replicas by partition as kafka-topics takes them: the first of each is the preferred leader. They stay the same
// through the section: broker 3 is the one that is killed first, then broker 2 while broker 3 comes back.
const (
	pinned = "pinned" // loses one replica of each partition with broker 3
	strict = "strict" // needs all three
	alone  = "alone"  // has one replica in each partition
	shaky  = "shaky"  // is left with nobody in sync
)

// clusterClients are the clients that the smoke part lets go through the death of a leader, and Kafka's tools need the first.
var clusterClients = []string{"java", "franz-go", "confluent"}

// stage is the section's cluster, with what the checks need of it.
type stage struct {
	*toolbox
	trio *trio
	o    *observer
}

// cluster is the section with three brokers: Kafka's tools about them, with and without one that was killed, and clients whose leader is killed.
func (s *suite) cluster(ctx context.Context, names []string) (err error) {
	s.report.section("three brokers")
	if !s.full {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(clusterClients, name) })
	}
	began := time.Now()
	trio, err := startTrio(ctx, s.env, s.target.name, s.target.again.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, trio.kill()) }()
	s.report.printf("three brokers of %s serve at %s after %d ms\n", s.target.name, trio.addrs(), time.Since(began).Milliseconds())
	of := *s
	of.target = &target{name: s.target.name, version: s.target.version, addr: trio.addrs()}
	of.actors = cast(ctx, s.report, s.commands, trio.addrs(), names)
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		err = errors.Join(err, closeAll(end, of.actors))
	}()
	o, err := newObserver(trio.addrs())
	if err != nil {
		return err
	}
	defer o.close()
	st := &stage{toolbox: &toolbox{suite: &of}, trio: trio, o: o}
	if java := javaOf(of.actors); java != nil {
		st.driver = java.client.(*driver)
		st.tools(ctx)
	} else {
		s.report.skip(who{client: "kafka-tools", version: peer.KafkaVersion}, "all", "the Java driver is not there")
	}
	s.report.section("three brokers: a leader is killed under each client")
	// A new producer of kafkajs asks for all topics, and begins only when each partition has a leader: those with one replica
	// have none while their broker is dead.
	if _, err := o.admin.DeleteTopics(ctx, alone); err != nil {
		return err
	}
	for _, a := range of.actors {
		// kcat has no driver, and without sequences a batch that is sent again may be there twice.
		if _, ok := a.client.(*driver); ok && a.hello.Idempotent {
			st.survives(ctx, a)
		}
	}
	return nil
}

// tools is what Kafka's tools tell of the cluster, in the order in which things happen to it.
func (st *stage) tools(ctx context.Context) {
	st.created(ctx)
	st.healthy(ctx)
	st.quorum(ctx)
	load := st.moves(ctx)
	if load != nil {
		defer load.end()
	}
	st.cancels(ctx, load)
	if st.kills(ctx, 3) {
		st.wounded(ctx)
		st.unclean(ctx)
		st.recovered(ctx)
		st.preferred(ctx)
	}
}

// after waits longer than a check of a change that is already answered: until a dead broker is fenced, or one that came back has caught up.
const after = 25 * time.Second

// awaits is a check of what a tool tells sooner or later.
func (st *stage) awaits(ctx context.Context, script, main, name, line string, expected ...expect) {
	st.report.check(ctx, who{script, peer.KafkaVersion}, name, func(ctx context.Context) error {
		return within(ctx, after, func() error {
			_, err := st.want(ctx, main, "", args(line), expected...)
			return err
		})
	})
}

func (st *stage) topicTool(ctx context.Context, name, line string, expected ...expect) {
	st.awaits(ctx, "kafka-topics", topicCommand, name, line, expected...)
}

// created: topics are created by the tool, with replicas as the broker and as the operator chooses.
func (st *stage) created(ctx context.Context) {
	create := func(name, line string, expected ...expect) {
		st.run(ctx, "kafka-topics", topicCommand, name, args(line), expected...)
	}
	create("--create --replication-factor 3", "--create --topic spread --partitions 3 --replication-factor 3 --config min.insync.replicas=2", matches(`^Created topic spread\.$`))
	create("--create --replication-factor 4", "--create --topic too-many --replication-factor 4", fails(), matches(`(?i)replication factor`))
	create("--create --replica-assignment", "--create --topic "+pinned+" --replica-assignment 1:2:3,2:3:1,3:1:2 --config min.insync.replicas=2", matches(`^Created topic`))
	create("--create that needs all replicas", "--create --topic "+strict+" --replica-assignment 1:2:3 --config min.insync.replicas=3", matches(`^Created topic`))
	create("--create without replicas", "--create --topic "+alone+" --replica-assignment 1,2,3", matches(`^Created topic`))
	create("--create on two of three", "--create --topic "+shaky+" --replica-assignment 2:3", matches(`^Created topic`))
	create("--create on a broker that is not there", "--create --topic nowhere --replica-assignment 1:77", fails(), matches(`(?i)replica|broker`))
}

// healthy: nothing is wrong, each tool tells of three brokers, and each broker tells the same.
func (st *stage) healthy(ctx context.Context) {
	st.topicTool(ctx, "--describe with all replicas in sync", "--describe --topic "+pinned,
		partitions("pinned-0 leader 1 replicas 1,2,3 isr 1,2,3", "pinned-1 leader 2 replicas 2,3,1 isr 1,2,3", "pinned-2 leader 3 replicas 3,1,2 isr 1,2,3"))
	st.lists(ctx, "", nil)
	st.run(ctx, "kafka-cluster", clusterTool, "cluster-id", args("cluster-id"), matches(`^Cluster ID: [A-Za-z0-9_-]{22}$`))
	st.run(ctx, "kafka-cluster", clusterTool, "list-endpoints", args("list-endpoints"), st.endpoints(1, 2, 3))
	st.run(ctx, "kafka-cluster", clusterTool, "unregister of no broker", args("unregister --id 77"), expect{code: 1, holds: matches(`77`).holds})
	st.run(ctx, "kafka-broker-api-versions", apiVersionsCommand, "each API of each broker", nil, st.apiVersionsOfAll())
	st.brokerConfigs(ctx)
	st.report.check(ctx, who{"suite", ""}, "each broker tells of the same cluster", func(ctx context.Context) error {
		return within(ctx, after, func() error { return st.agree(ctx, []int32{1, 2, 3}) })
	})
}

// brokerConfigs: what is set for one broker holds there alone, whichever broker is asked.
func (st *stage) brokerConfigs(ctx context.Context) {
	configs := func(name, line string, expected ...expect) {
		st.awaits(ctx, "kafka-configs", configCommand, name, "--entity-type brokers "+line, expected...)
	}
	configs("one broker --alter", "--entity-name 2 --alter --add-config log.retention.ms=7200000", prints("Completed updating config for broker 2."))
	configs("one broker --describe", "--entity-name 2 --describe", entry("log.retention.ms", "7200000", "DYNAMIC_BROKER_CONFIG:log.retention.ms=7200000"))
	configs("another broker --describe", "--entity-name 1 --describe", lacking(`log\.retention\.ms`))
	configs("all of one broker --describe --all", "--entity-name 2 --describe --all", entry("broker.session.timeout.ms", "3000"), matches(`^  (node|broker)\.id=2 `))
	configs("one broker --alter back", "--entity-name 2 --alter --delete-config log.retention.ms", prints("Completed updating config for broker 2."))
}

// agree wants each live broker to know these brokers, to name a live one for admin requests, and to tell everything of the pinned topic alike: the replicas
// of brokers that are not there are offline.
func (st *stage) agree(ctx context.Context, live []int32) error {
	req := kmsg.NewPtrMetadataRequest()
	asked := kmsg.NewMetadataRequestTopic()
	asked.Topic = new(pinned)
	req.Topics = append(req.Topics, asked)
	var errs []error
	leaders := map[string]bool{}
	for _, id := range live {
		answered, err := st.o.client.Broker(int(id)).RetriableRequest(ctx, req)
		if err != nil {
			return err
		}
		m := answered.(*kmsg.MetadataResponse)
		var ids []int32
		for _, b := range m.Brokers {
			ids = append(ids, b.NodeID)
		}
		slices.Sort(ids)
		if !slices.Equal(ids, live) || !slices.Contains(live, m.ControllerID) {
			errs = append(errs, fmt.Errorf("broker %d tells of brokers %v and controller %d, want %v and one of them", id, ids, m.ControllerID, live))
		}
		told := map[int32]int32{}
		for _, p := range m.Topics[0].Partitions {
			offline := slices.DeleteFunc(slices.Clone(p.Replicas), func(b int32) bool { return slices.Contains(live, b) })
			if !slices.Equal(p.OfflineReplicas, offline) || !slices.Contains(live, p.Leader) {
				errs = append(errs, fmt.Errorf("broker %d tells of partition %d: leader %d, offline %v, want one of %v and %v", id, p.Partition, p.Leader, p.OfflineReplicas, live, offline))
			}
			told[p.Partition] = p.Leader
		}
		leaders[fmt.Sprint(told)] = true
	}
	if len(leaders) != 1 {
		errs = append(errs, fmt.Errorf("the brokers name different leaders: %v", slices.Sorted(maps.Keys(leaders))))
	}
	return errors.Join(errs...)
}

// listOptions are the lists of partitions that are not well, in the order of lists.
var listOptions = []string{"--under-replicated-partitions", "--under-min-isr-partitions", "--at-min-isr-partitions", "--unavailable-partitions"}

// lists runs kafka-topics with each of its lists over the section's topics and wants what it names; a list that want does not have is to be empty.
func (st *stage) lists(ctx context.Context, when string, want map[string][]string) {
	for _, option := range listOptions {
		// With one replica and a minimum of one every partition is at its minimum all the time.
		topics := strings.Join([]string{pinned, strict, alone}, "|")
		if option == "--at-min-isr-partitions" {
			topics = pinned
		}
		st.topicTool(ctx, "--describe "+option+when, "--describe "+option+" --topic "+topics, partitions(want[option]...))
	}
}

// quorum: the tool tells of three voters who follow, and of an observer where there can be one.
func (st *stage) quorum(ctx context.Context) {
	st.awaits(ctx, "kafka-metadata-quorum", metadataQuorum, "describe --status", "describe --status",
		matches(`^ClusterId:\s+[A-Za-z0-9_-]{22}$`, `^LeaderId:\s+[123]$`, `^LeaderEpoch:\s+[1-9]\d*$`, `^HighWatermark:\s+[1-9]\d*$`,
			`^MaxFollowerLag:\s+\d+$`, `^MaxFollowerLagTimeMs:\s+\d+$`, `^CurrentVoters:\s+\[(\{"id": [123], "directoryId": "[A-Za-z0-9_-]{22}".*?\}(, )?){3}\]$`, `^CurrentObservers:\s+\[\]$`))
	st.awaits(ctx, "kafka-metadata-quorum", metadataQuorum, "describe --replication", "describe --replication", voters(1, 2, 3))
	st.awaits(ctx, "kafka-metadata-quorum", metadataQuorum, "describe --replication --human-readable", "describe --replication --human-readable",
		matches(`^[123]\s+[A-Za-z0-9_-]{22}\s+[1-9]\d*\s+\d+\s+\d+ ms ago\s+\d+ ms ago\s+Leader`, `^[123]\s+[A-Za-z0-9_-]{22}\s+[1-9]\d*\s+\d+\s+\d+ ms ago\s+\d+ ms ago\s+Follower`))
	if st.trio.joins == nil {
		return
	}
	var fourth *node
	joined := st.report.check(ctx, who{st.target.name, ""}, "a fourth broker joins", func(ctx context.Context) (err error) {
		fourth, err = st.trio.joins(ctx)
		return err
	})
	if !joined {
		return
	}
	st.awaits(ctx, "kafka-metadata-quorum", metadataQuorum, "describe --status with an observer", "describe --status",
		matches(`^CurrentObservers:\s+\[\{"id": 4, "directoryId": "[A-Za-z0-9_-]{22}"`))
	st.awaits(ctx, "kafka-metadata-quorum", metadataQuorum, "describe --replication with an observer", "describe --replication",
		voters(1, 2, 3), matches(`^4\s+[A-Za-z0-9_-]{22}\s+[1-9]\d*\s+\d+\s+\d{13}\s+\d{13}\s+Observer`))
	st.report.check(ctx, who{st.target.name, ""}, "it leaves", func(ctx context.Context) error { return fourth.Stop(ctx) })
}

// kills ends a broker as a crash does.
func (st *stage) kills(ctx context.Context, id int) bool {
	return st.report.check(ctx, who{st.target.name, ""}, fmt.Sprintf("kill -9 of broker %d", id), func(context.Context) error { return st.trio.node(id).Kill() })
}

// wounded: broker 3 is dead. Each list has what it is for, and nothing is elected that cannot be.
func (st *stage) wounded(ctx context.Context) {
	const when = ", broker 3 is dead"
	st.topicTool(ctx, "--describe"+when, "--describe --topic "+pinned+"|"+strict,
		partitions("pinned-0 leader 1 replicas 1,2,3 isr 1,2", "pinned-1 leader 2 replicas 2,3,1 isr 1,2", "pinned-2 leader 1 replicas 3,1,2 isr 1,2",
			"strict-0 leader 1 replicas 1,2,3 isr 1,2 elr 3"))
	st.lists(ctx, when, map[string][]string{
		"--under-replicated-partitions": {
			"alone-2 leader none replicas 3 isr none elr 3",
			"pinned-0 leader 1 replicas 1,2,3 isr 1,2", "pinned-1 leader 2 replicas 2,3,1 isr 1,2", "pinned-2 leader 1 replicas 3,1,2 isr 1,2",
			"strict-0 leader 1 replicas 1,2,3 isr 1,2 elr 3",
		},
		"--under-min-isr-partitions": {"alone-2 leader none replicas 3 isr none elr 3", "strict-0 leader 1 replicas 1,2,3 isr 1,2 elr 3"},
		"--at-min-isr-partitions": {
			"pinned-0 leader 1 replicas 1,2,3 isr 1,2", "pinned-1 leader 2 replicas 2,3,1 isr 1,2", "pinned-2 leader 1 replicas 3,1,2 isr 1,2",
		},
		"--unavailable-partitions": {"alone-2 leader none replicas 3 isr none elr 3"},
	})
	st.awaits(ctx, "kafka-cluster", clusterTool, "list-endpoints"+when, "list-endpoints", st.endpoints(1, 2))
	st.awaits(ctx, "kafka-cluster", clusterTool, "list-endpoints --include-fenced-brokers"+when, "list-endpoints --include-fenced-brokers",
		matches(`^3\s+127\.0\.0\.\d+\s+\d+\s+null\s+fenced\s+broker`, `^1\s+127\.0\.0\.\d+\s+\d+\s+null\s+unfenced\s+broker`))
	st.awaits(ctx, "kafka-metadata-quorum", metadataQuorum, "describe --replication"+when, "describe --replication", voters(1, 2, 3),
		matches(`^3\s+[A-Za-z0-9_-]{22}\s+-?\d+\s+[1-9]\d*\s+(\d{13}|-1)\s+(\d{13}|-1)\s+Follower`))
	st.report.check(ctx, who{"suite", ""}, "each broker tells of it", func(ctx context.Context) error {
		return within(ctx, after, func() error { return st.agree(ctx, []int32{1, 2}) })
	})
	st.elects(ctx, "preferred, the preferred leader is dead", "--election-type preferred --topic pinned --partition 2", fails(),
		matches(`^Error completing leader election \(PREFERRED\) for partition: pinned-2: .*PreferredLeaderNotAvailableException`))
	st.elects(ctx, "unclean of a partition that has a leader", "--election-type unclean --topic pinned --partition 2", matches(`^Valid replica already elected for partitions pinned-2$`))
	st.elects(ctx, "unclean, nobody is left", "--election-type unclean --topic alone --partition 2", fails(),
		matches(`^Error completing leader election \(UNCLEAN\) for partition: alone-2: .*EligibleLeadersNotAvailableException`))
	st.elects(ctx, "of a partition that is not there", "--election-type preferred --topic pinned --partition 7", fails(), matches(`pinned-7.*UnknownTopicOrPartitionException`))
}

func (st *stage) elects(ctx context.Context, name, line string, expected ...expect) {
	st.awaits(ctx, "kafka-leader-election", leaderElection, name, line, expected...)
}

// unclean: broker 2 dies with the only replica in sync of the shaky topic, and broker 3 comes back without it. An operator gives it the partition.
func (st *stage) unclean(ctx context.Context) {
	if !st.kills(ctx, 2) || !st.begins(ctx, 3) {
		return
	}
	st.topicTool(ctx, "--describe, nobody in sync is left", "--describe --topic "+shaky, partitions("shaky-0 leader none replicas 2,3 isr none elr 2"))
	st.elects(ctx, "preferred, nobody in sync is left", "--election-type preferred --topic shaky --partition 0", fails(), matches(`PreferredLeaderNotAvailableException`))
	st.elects(ctx, "unclean", "--election-type unclean --topic shaky --partition 0", prints("Successfully completed leader election (UNCLEAN) for partitions shaky-0"))
	st.topicTool(ctx, "--describe after the unclean election", "--describe --topic "+shaky, partitions("shaky-0 leader 3 replicas 2,3 isr 3"))
	st.begins(ctx, 2)
}

// begins starts a broker again.
func (st *stage) begins(ctx context.Context, id int) bool {
	return st.report.check(ctx, who{st.target.name, ""}, fmt.Sprintf("broker %d serves again", id), func(ctx context.Context) error { return st.trio.node(id).begin(ctx) })
}

// recovered: all brokers are back, and the lists are empty again.
func (st *stage) recovered(ctx context.Context) {
	st.lists(ctx, ", all are back", nil)
	st.topicTool(ctx, "--describe, all are back", "--describe --topic "+shaky, partitions("shaky-0 leader 3 replicas 2,3 isr 2,3"))
	st.awaits(ctx, "kafka-cluster", clusterTool, "list-endpoints, all are back", "list-endpoints", st.endpoints(1, 2, 3))
}

// preferred: leaderships go back to the replicas that are first, one, some, and all.
func (st *stage) preferred(ctx context.Context) {
	st.elects(ctx, "preferred of one partition", "--election-type preferred --topic pinned --partition 2", prints("Successfully completed leader election (PREFERRED) for partitions pinned-2"))
	st.elects(ctx, "preferred once more", "--election-type preferred --topic pinned --partition 2", prints("Valid replica already elected for partitions pinned-2"))
	st.report.check(ctx, who{"kafka-leader-election", peer.KafkaVersion}, "preferred of a file", func(ctx context.Context) error {
		path, err := st.env.file("elections.json", `{"partitions":[{"topic":"pinned","partition":1},{"topic":"pinned","partition":2},{"topic":"shaky","partition":0}]}`)
		if err != nil {
			return err
		}
		_, err = st.want(ctx, leaderElection, "", []string{"--election-type", "preferred", "--path-to-json-file", path},
			matches(`^Successfully completed leader election \(PREFERRED\) for partitions .*shaky-0`, `^Valid replica already elected for partitions .*pinned-2`))
		return err
	})
	st.elects(ctx, "preferred of all partitions", "--election-type preferred --all-topic-partitions", lacking(`Error completing`))
	st.topicTool(ctx, "--describe after all elections", "--describe --topic "+pinned+"|"+shaky,
		partitions("pinned-0 leader 1 replicas 1,2,3 isr 1,2,3", "pinned-1 leader 2 replicas 2,3,1 isr 1,2,3", "pinned-2 leader 3 replicas 3,1,2 isr 1,2,3", "shaky-0 leader 2 replicas 2,3 isr 2,3"))
	st.elects(ctx, "preferred of all partitions once more", "--election-type preferred --all-topic-partitions", prints())
}
