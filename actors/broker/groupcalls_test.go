package broker_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/actors/broker"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

func joinRequest(group, member string) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.SetVersion(9)
	req.Group, req.MemberID, req.ProtocolType, req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = group, member, "consumer", 30_000, 30_000
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name = "range"
	subscription := kmsg.NewConsumerMemberMetadata()
	subscription.Topics = []string{"any"}
	p.Metadata = subscription.AppendTo(nil)
	req.Protocols = append(req.Protocols, p)
	return req
}

// findCoordinator asks until the group can be served: its shard may be loading.
func (c *raw) findCoordinator(group string) {
	c.t.Helper()
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.SetVersion(6)
	find.CoordinatorKeys = []string{group}
	if f := c.ask(find).(*kmsg.FindCoordinatorResponse).Coordinators[0]; f.ErrorCode != 0 || f.NodeID != 1 {
		c.t.Fatalf("coordinator of %s: %+v", group, f)
	}
	eventually(c.t, "the groups are loaded", func() bool {
		describe := kmsg.NewPtrDescribeGroupsRequest()
		describe.SetVersion(5)
		describe.Groups = []string{group}
		return c.ask(describe).(*kmsg.DescribeGroupsResponse).Groups[0].ErrorCode == 0
	})
}

// joinAlone makes a group of one member, and returns its heartbeat.
func (c *raw) joinAlone(group string) *kmsg.HeartbeatRequest {
	c.t.Helper()
	c.findCoordinator(group)
	first := c.ask(joinRequest(group, "")).(*kmsg.JoinGroupResponse)
	if first.ErrorCode != 79 || first.MemberID == "" {
		c.t.Fatalf("join without an id: error %d, member %q, want MEMBER_ID_REQUIRED and an id", first.ErrorCode, first.MemberID)
	}
	joined := c.ask(joinRequest(group, first.MemberID)).(*kmsg.JoinGroupResponse)
	if joined.ErrorCode != 0 || joined.LeaderID != first.MemberID || len(joined.Members) != 1 {
		c.t.Fatalf("join: %+v", joined)
	}
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.SetVersion(5)
	sync.Group, sync.MemberID, sync.Generation, sync.ProtocolType, sync.Protocol = group, joined.MemberID, joined.Generation, joined.ProtocolType, joined.Protocol
	a := kmsg.NewSyncGroupRequestGroupAssignment()
	a.MemberID, a.MemberAssignment = joined.MemberID, []byte("assigned")
	sync.GroupAssignment = append(sync.GroupAssignment, a)
	if synced := c.ask(sync).(*kmsg.SyncGroupResponse); synced.ErrorCode != 0 || string(synced.MemberAssignment) != "assigned" {
		c.t.Fatalf("sync: %+v", synced)
	}
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.SetVersion(4)
	beat.Group, beat.MemberID, beat.Generation = group, joined.MemberID, joined.Generation
	return beat
}

func (c *raw) beat(req *kmsg.HeartbeatRequest) int16 {
	c.t.Helper()
	return c.ask(req).(*kmsg.HeartbeatResponse).ErrorCode
}

func TestAMemberHeartbeatsThroughARestart(t *testing.T) {
	r := start(t, quick...)
	c := r.raw()
	beat := c.joinAlone("steady")
	if code := c.beat(beat); code != 0 {
		t.Fatalf("heartbeat: error %d", code)
	}
	wrong := *beat
	wrong.Generation++
	if code := c.beat(&wrong); code != 22 {
		t.Errorf("a wrong generation: error %d, want ILLEGAL_GENERATION", code)
	}
	wrong = *beat
	wrong.MemberID = "nobody"
	if code := c.beat(&wrong); code != 25 {
		t.Errorf("an unknown member: error %d, want UNKNOWN_MEMBER_ID", code)
	}
	for _, version := range []int16{0, 1, 2, 3, 4} {
		beat.SetVersion(version)
		if code := c.beat(beat); code != 0 {
			t.Errorf("version %d: error %d", version, code)
		}
	}
	r.stop()
	r = startIn(t, r.dir, quick...)
	c = r.raw()
	for range 20 { // while the groups are loaded, and after
		if code := c.beat(beat); code != 0 {
			t.Fatalf("after the restart: error %d", code)
		}
	}
}

func TestABrokerThatStopsDoesNotWaitForMembersThatJoin(t *testing.T) {
	r := start(t, "group.initial.rebalance.delay.ms=60000", "offsets.topic.num.partitions=3")
	c := r.raw()
	c.findCoordinator("slow")
	first := c.ask(joinRequest("slow", "")).(*kmsg.JoinGroupResponse)
	c.send(joinRequest("slow", first.MemberID)) // waits for the first rebalance
	time.Sleep(50 * time.Millisecond)
	if text := scrape(r); !strings.Contains(text, "troupe_request_memory_bytes 0") {
		t.Error("a member that waits for others keeps the memory of its request")
	}
	began := time.Now()
	r.stop()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the stop took %v", took)
	}
}

func TestARestartInTheMiddleOfARebalance(t *testing.T) {
	r := start(t, quick...)
	c := r.raw()
	c.joinAlone("torn")
	other := r.raw()
	first := other.ask(joinRequest("torn", "")).(*kmsg.JoinGroupResponse)
	other.send(joinRequest("torn", first.MemberID)) // waits for the first member
	time.Sleep(50 * time.Millisecond)
	r.stop()
	r = startIn(t, r.dir, append(slices.Clone(quick), "group.max.session.timeout.ms=40000")...)
	// Whoever joins now meets the generation of before; the members of before are gone, or come again.
	a := r.raw()
	a.findCoordinator("torn")
	described := func() kmsg.DescribeGroupsResponseGroup {
		req := kmsg.NewPtrDescribeGroupsRequest()
		req.SetVersion(5)
		req.Groups = []string{"torn"}
		return a.ask(req).(*kmsg.DescribeGroupsResponse).Groups[0]
	}
	if g := described(); g.ErrorCode != 0 || g.State != "Stable" || len(g.Members) != 1 {
		t.Errorf("after the restart: %+v, want the committed generation of one member", g)
	}
}

func TestAFullDiskRefusesCommitsAndLosesNone(t *testing.T) {
	disk := storetest.Faults(store.OS())
	dir := t.TempDir()
	r := startOn(t, disk, dir, append(slices.Clone(quick), "offsets.topic.segment.bytes=1048576")...)
	r.createTopic("data", 1)
	c := r.raw()
	c.findCoordinator("full")
	commit := func(at int64) int16 { return c.commit("full", "data", at, strings.Repeat("m", 4000)) }
	offset := int64(0)
	for ; offset < 10; offset++ {
		if code := commit(offset); code != 0 {
			t.Fatalf("commit %d: error %d", offset, code)
		}
	}
	good := offset - 1
	disk.Add("allocate *: ENOSPC")
	disk.Add("write *.log: ENOSPC")
	refused := 0
	for ; offset < 3000 && refused < 3; offset++ {
		switch code := commit(offset); code {
		case 0:
			good = offset
		case 14, 15, 16: // load in progress, not available, not coordinator: clients try again
			refused++
		default:
			t.Fatalf("commit %d: error %d", offset, code)
		}
	}
	if refused == 0 {
		t.Fatal("the full disk refused nothing")
	}
	disk.Clear()
	eventually(t, "the coordinator has recovered", func() bool {
		c := r.committed("full", "data")
		return len(c) == 1
	})
	if got := r.committed("full", "data")[0]; got != good {
		t.Errorf("committed is %d, the last that was acknowledged is %d", got, good)
	}
	eventually(t, "commits are taken again", func() bool { return commit(5000) == 0 })
	r.stop()
	r = startOn(t, store.OS(), dir, quick...)
	if got := r.committed("full", "data")[0]; got != 5000 {
		t.Errorf("after the restart: %d", got)
	}
}

func TestALargeCommitIsSplitIntoBatchesThatTheTopicTakes(t *testing.T) {
	r := start(t, append(slices.Clone(quick), "message.max.bytes=100000", "group.coordinator.append.linger.ms=30", "offsets.topic.compression.codec=2")...)
	const partitions = 200
	r.createTopic("wide", partitions)
	var offsets kadm.Offsets
	for p := range int32(partitions) {
		offsets.Add(kadm.Offset{Topic: "wide", Partition: p, At: int64(p), LeaderEpoch: -1, Metadata: strings.Repeat("m", 4000)})
	}
	began := time.Now()
	if err := r.admin().CommitAllOffsets(within(t, 10*time.Second), "wide", offsets); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 30*time.Millisecond {
		t.Errorf("the commit took %v, records are gathered for 30 ms", took)
	}
	if n := r.metric("group_append_batches_total"); n < partitions*4000/100_000 {
		t.Errorf("%d batches for %d bytes", n, partitions*4000)
	}
	r.stop()
	r = startIn(t, r.dir, quick...)
	c := r.committed("wide", "wide")
	for p := range int32(partitions) {
		if c[p] != int64(p) {
			t.Fatalf("partition %d: %d", p, c[p])
		}
	}
}

func TestTheNewerProtocolIsAFeature(t *testing.T) {
	r := start(t, quick...)
	c := r.raw()
	c.findCoordinator("new")
	versions := c.ask(apiVersions(4)).(*kmsg.ApiVersionsResponse)
	if len(versions.FinalizedFeatures) != 2 || versions.FinalizedFeatures[0].Name != "group.version" || versions.FinalizedFeatures[0].MaxVersionLevel != 1 {
		t.Errorf("finalised: %+v", versions.FinalizedFeatures)
	}
	if len(versions.SupportedFeatures) != 2 || versions.SupportedFeatures[0].MinVersion != 0 || versions.SupportedFeatures[0].MaxVersion != 1 {
		t.Errorf("supported: %+v", versions.SupportedFeatures)
	}
	// What brokers say to each other is one as well: at the newest version that this build speaks, and it cannot go down.
	if f := versions.FinalizedFeatures[1]; f.Name != "troupe.peer.version" || f.MinVersionLevel != peer.VersionMax || f.MaxVersionLevel != peer.VersionMax {
		t.Errorf("finalised: %+v", f)
	}
	if f := versions.SupportedFeatures[1]; f.Name != "troupe.peer.version" || f.MinVersion != peer.VersionMin || f.MaxVersion != peer.VersionMax {
		t.Errorf("supported: %+v", f)
	}
	beat := func() *kmsg.ConsumerGroupHeartbeatResponse {
		req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
		req.SetVersion(1)
		req.Group, req.MemberID, req.RebalanceTimeoutMillis, req.SubscribedTopicNames = "new", "member-one", 30_000, []string{"any"}
		req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		return c.ask(req).(*kmsg.ConsumerGroupHeartbeatResponse)
	}
	if resp := beat(); resp.ErrorCode != 0 || resp.MemberEpoch < 1 || resp.HeartbeatIntervalMillis <= 0 {
		t.Errorf("a heartbeat: %+v", resp)
	}
	set := func(level int16, kind int8) {
		t.Helper()
		req := kmsg.NewPtrUpdateFeaturesRequest()
		req.SetVersion(1)
		req.TimeoutMillis = 10_000
		u := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
		u.Feature, u.MaxVersionLevel, u.UpgradeType = "group.version", level, kind
		req.FeatureUpdates = append(req.FeatureUpdates, u)
		if resp := c.ask(req).(*kmsg.UpdateFeaturesResponse); resp.ErrorCode != 0 {
			t.Fatalf("update to %d: error %d, %v", level, resp.ErrorCode, resp.ErrorMessage)
		}
	}
	set(0, 2)
	if resp := beat(); resp.ErrorCode != 35 {
		t.Errorf("without the feature: error %d, want UNSUPPORTED_VERSION", resp.ErrorCode)
	}
	set(1, 1)
	if resp := beat(); resp.ErrorCode != 0 {
		t.Errorf("with the feature again: error %d", resp.ErrorCode)
	}
}

func TestAGroupHasConfigsOfItsOwn(t *testing.T) {
	r := start(t, append(slices.Clone(quick), "group.consumer.min.heartbeat.interval.ms=1000")...)
	alter := func(name, value string) int16 {
		t.Helper()
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		req.SetVersion(1)
		res := kmsg.NewIncrementalAlterConfigsRequestResource()
		res.ResourceType, res.ResourceName = 32, "tuned"
		cfg := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		cfg.Name, cfg.Value = name, &value
		res.Configs = append(res.Configs, cfg)
		req.Resources = append(req.Resources, res)
		return r.raw().ask(req).(*kmsg.IncrementalAlterConfigsResponse).Resources[0].ErrorCode
	}
	c := r.raw()
	c.findCoordinator("tuned")
	for _, tc := range []struct {
		name, value string
		code        int16
	}{
		{"consumer.heartbeat.interval.ms", "2000", 0},
		{"consumer.heartbeat.interval.ms", "20000", 40}, // above group.consumer.max.heartbeat.interval.ms
		{"consumer.heartbeat.interval.ms", "999", 40},
		{"share.session.timeout.ms", "50000", 40},
		{"no.such.key", "1", 40},
	} {
		if code := alter(tc.name, tc.value); code != tc.code {
			t.Errorf("%s=%s: error %d, want %d", tc.name, tc.value, code, tc.code)
		}
	}
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.SetVersion(1)
	req.Group, req.MemberID, req.RebalanceTimeoutMillis, req.SubscribedTopicNames = "tuned", "m", 30_000, []string{"any"}
	req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	c.ask(req)
	eventually(t, "the group's own heartbeat interval is told", func() bool {
		req.MemberEpoch = 0
		return c.ask(req).(*kmsg.ConsumerGroupHeartbeatResponse).HeartbeatIntervalMillis == 2000
	})
}

func TestTheMetricsTellOfGroups(t *testing.T) {
	r := start(t, quick...)
	r.createTopic("work", 2)
	r.produceTo("work", 2, 10)
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{Topic: "work", Partition: 0, At: 4, LeaderEpoch: -1})
	offsets.Add(kadm.Offset{Topic: "work", Partition: 1, At: 7, LeaderEpoch: -1})
	if err := r.admin().CommitAllOffsets(within(t, 10*time.Second), "seen", offsets); err != nil {
		t.Fatal(err)
	}
	r.raw().joinAlone("alone")
	text := scrape(r)
	for _, want := range []string{
		`kafka_consumergroup_members{consumergroup="seen"} 0`,
		`kafka_consumergroup_members{consumergroup="alone"} 1`,
		`kafka_consumergroup_current_offset{consumergroup="seen",partition="0",topic="work"} 4`,
		`kafka_consumergroup_current_offset_sum{consumergroup="seen",topic="work"} 11`,
		`kafka_consumergroup_lag{consumergroup="seen",partition="1",topic="work"} 3`,
		`kafka_consumergroup_lag_sum{consumergroup="seen",topic="work"} 9`,
		`kafka_topic_partitions{topic="work"} 2`,
		`kafka_topic_partition_current_offset{partition="0",topic="work"} 10`,
		`kafka_topic_partition_oldest_offset{partition="0",topic="work"} 0`,
		`troupe_group_committed_offsets_total 2`,
		`troupe_group_scrape_missed 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}

func TestACoordinatorThatCrashedThreeTimesStartsOfflineAndTheOthersServe(t *testing.T) {
	r := start(t, "offsets.topic.num.partitions=2")
	c := r.raw()
	groups := map[int32]string{} // by the partition they hash to
	for i := 0; len(groups) < 2; i++ {
		name := fmt.Sprintf("g%d", i)
		groups[records.PartitionOf(name, 2)] = name
	}
	c.findCoordinator(groups[0])
	r.stop()
	now := ident.Millis(time.Now().UnixMilli())
	for range 3 {
		b := &runtime.Blame{Actor: "root/@groups-1:AAAAAAAAAAAAAAAAAAAAAQ", Kind: "core.coordinator", Decision: runtime.Exit}
		if err := broker.RecordBlame(store.OS(), r.dir, b, now); err != nil {
			t.Fatal(err)
		}
	}
	r = startIn(t, r.dir)
	c = r.raw()
	c.findCoordinator(groups[0])
	describe := kmsg.NewPtrDescribeGroupsRequest()
	describe.SetVersion(5)
	describe.Groups = []string{groups[1]}
	if code := c.ask(describe).(*kmsg.DescribeGroupsResponse).Groups[0].ErrorCode; code != 15 {
		t.Errorf("the blamed coordinator: error %d, want COORDINATOR_NOT_AVAILABLE", code)
	}
	c.listed(0)
}

func TestAJumpOverUnreadRecordsIsCounted(t *testing.T) {
	r := start(t, quick...)
	r.createTopic("skipped", 1)
	r.produceTo("skipped", 1, 10)
	c := r.raw()
	c.findCoordinator("jumper")
	fetch := kmsg.NewPtrOffsetFetchRequest()
	fetch.SetVersion(8)
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = "jumper"
	topic := kmsg.NewOffsetFetchRequestGroupTopic()
	topic.Topic, topic.Partitions = "skipped", []int32{0}
	g.Topics = append(g.Topics, topic)
	fetch.Groups = append(fetch.Groups, g)
	if p := c.ask(fetch).(*kmsg.OffsetFetchResponse).Groups[0].Topics[0].Partitions[0]; p.Offset != -1 {
		t.Fatalf("a new group has offset %d", p.Offset)
	}
	if at := r.raw().end("skipped", 0); at != 10 { // auto.offset.reset=latest, on another connection
		t.Fatalf("the end is %d", at)
	}
	commit := kmsg.NewPtrOffsetCommitRequest()
	commit.SetVersion(8)
	commit.Group, commit.Generation = "jumper", -1
	ct := kmsg.NewOffsetCommitRequestTopic()
	ct.Topic = "skipped"
	cp := kmsg.NewOffsetCommitRequestTopicPartition()
	cp.Offset = 10
	ct.Partitions = append(ct.Partitions, cp)
	commit.Topics = append(commit.Topics, ct)
	if code := c.ask(commit).(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode; code != 0 {
		t.Fatalf("commit: error %d", code)
	}
	if text := scrape(r); !strings.Contains(text, "troupe_group_jumped_records_total 10") {
		t.Error("the metrics do not tell of the jump over 10 records")
	}
}

// TestCommitsOfOneConnectionShareABatch: a client may send commits without waiting for answers; they are answered in their order, and what came while a batch
// was on its way to the disk is in the next one.
func TestCommitsOfOneConnectionShareABatch(t *testing.T) {
	r := start(t, quick...)
	r.createTopic("data", 1)
	c := r.raw()
	c.findCoordinator("many")
	const commits = 40
	requests := make([]kmsg.Request, commits)
	correlations := make([]int32, commits)
	for i := range requests {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Offset, p.LeaderEpoch = int64(i), -1
		topic := kmsg.NewOffsetCommitRequestTopic()
		topic.Topic, topic.Partitions = "data", append(topic.Partitions, p)
		req := kmsg.NewPtrOffsetCommitRequest()
		req.Version, req.Group, req.Generation, req.Topics = 8, "many", -1, append(req.Topics, topic)
		requests[i] = req
		correlations[i] = c.send(req)
	}
	for i, req := range requests {
		answer := c.receive(correlations[i], req).(*kmsg.OffsetCommitResponse)
		if code := answer.Topics[0].Partitions[0].ErrorCode; code != 0 {
			t.Fatalf("commit %d: %d", i, code)
		}
	}
	if got := r.committed("many", "data")[0]; got != commits-1 {
		t.Errorf("committed is %d, the last commit said %d", got, commits-1)
	}
	batches := 0
	for line := range strings.SplitSeq(scrape(r), "\n") {
		_, _ = fmt.Sscanf(line, "troupe_group_append_batches_total %d", &batches)
	}
	if batches == 0 || batches > commits/2 {
		t.Errorf("%d commits went into %d batches", commits, batches)
	}
}

func TestADamagedRecordStopsALoad(t *testing.T) {
	r := start(t, "offsets.topic.num.partitions=1")
	r.createTopic("data", 1)
	c := r.raw()
	c.findCoordinator("hurt")
	for offset := range int64(10) {
		if code := c.commit("hurt", "data", offset, strings.Repeat("m", 1000)); code != 0 {
			t.Fatalf("commit %d: error %d", offset, code)
		}
	}
	r.stop()
	flip(t, filepath.Join(r.dir, "__consumer_offsets-0", "00000000000000000000.log"), 9_500) // in one of the last commits
	r = startIn(t, r.dir)
	c = r.raw()
	fetch := kmsg.NewPtrOffsetFetchRequest()
	fetch.SetVersion(7)
	fetch.Group = "hurt"
	eventually(t, "the damage is known", func() bool {
		return r.metric(`partition_damaged_ranges{partition="0",topic="__consumer_offsets"}`) == 1
	})
	if resp := c.ask(fetch).(*kmsg.OffsetFetchResponse); resp.ErrorCode != 14 || len(resp.Topics) != 0 {
		t.Errorf("offsets out of a damaged log: error %d, %+v, want COORDINATOR_LOAD_IN_PROGRESS", resp.ErrorCode, resp.Topics)
	}
	c.listed(0)
}

// listed lists all groups, and wants so many.
func (c *raw) listed(n int) {
	c.t.Helper()
	req := kmsg.NewPtrListGroupsRequest()
	req.SetVersion(5)
	if resp := c.ask(req).(*kmsg.ListGroupsResponse); resp.ErrorCode != 0 || len(resp.Groups) != n {
		c.t.Errorf("list groups: error %d, %+v; want %d groups", resp.ErrorCode, resp.Groups, n)
	}
}

// hungFS lets no sync return until it is told to go on.
type hungFS struct {
	store.FS
	hung *atomic.Bool
	on   chan struct{}
}

type hungFile struct {
	store.File
	fs hungFS
}

func (f hungFile) Sync() error {
	if f.fs.hung.Load() {
		<-f.fs.on
	}
	return f.File.Sync()
}

func (f hungFS) OpenFile(name string, flag int, perm fs.FileMode) (store.File, error) {
	file, err := f.FS.OpenFile(name, flag, perm)
	if err == nil && strings.HasSuffix(name, ".log") && strings.Contains(name, "__consumer_offsets") {
		return hungFile{file, f}, nil
	}
	return file, err
}

// TestACoordinatorTakesNothingMoreWhileTheDiskHangs: an answer that is given up frees the memory of its request, so that another could come, and another.
func TestACoordinatorTakesNothingMoreWhileTheDiskHangs(t *testing.T) {
	disk := hungFS{store.OS(), &atomic.Bool{}, make(chan struct{})}
	r := startOn(t, disk, t.TempDir(), "offsets.topic.num.partitions=1", "offsets.commit.timeout.ms=50", "group.coordinator.append.linger.ms=5")
	r.createTopic("data", 1)
	c := r.raw()
	c.findCoordinator("g")
	eventually(t, "a commit is taken", func() bool { return c.commit("g", "data", 1, "") == 0 })
	before := r.metric("group_timeouts_total")
	disk.hung.Store(true)
	for i := range int64(20) {
		if code := c.commit("g", "data", 2+i, ""); code != 15 {
			t.Fatalf("commit %d: error %d, want COORDINATOR_NOT_AVAILABLE", i, code)
		}
	}
	if n := r.metric("group_timeouts_total") - before; n != 1 {
		t.Errorf("%d commits were taken and timed out, want the first only", n)
	}
	disk.hung.Store(false)
	close(disk.on)
	eventually(t, "commits are taken again", func() bool { return c.commit("g", "data", 100, "") == 0 })
}

// commit commits one offset of a group without members.
func (c *raw) commit(group, topic string, at int64, metadata string) int16 {
	c.t.Helper()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.SetVersion(8)
	req.Group, req.Generation = group, -1
	rt := kmsg.NewOffsetCommitRequestTopic()
	rt.Topic = topic
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset, p.Metadata = at, &metadata
	rt.Partitions = append(rt.Partitions, p)
	req.Topics = append(req.Topics, rt)
	return c.ask(req).(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode
}
