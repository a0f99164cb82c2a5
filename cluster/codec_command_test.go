package cluster

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// sampleCommands is one command of each code with every field set.
func sampleCommands() []Command {
	value, id := "5", ident.TopicID{1, 2, 3}
	register := registration(2, 9, "r")
	register.Features[0].Min = -3
	register.Endpoints[0].Protocol = 2
	register.Runs = []Incarnation{{1}, {2, 3}}
	register.CleanEpoch, register.Held = 7, []Held{{register.Directories[0], []HeldTopic{{id, []int32{1}, []int32{2, 300}}}}}
	return []Command{
		register,
		&Heartbeat{Broker: 2, Epoch: 5, Applied: 99, WantFence: true, WantShutdown: true, Node: 102},
		&AddVoter{Cluster: "c1", Broker: 2, Directory: ident.DirectoryID{1}},
		&RemoveVoter{Cluster: "c1", Broker: 2, Directory: ident.DirectoryID{1}},
		&Verified{Broker: 2, Epoch: 5, Replicas: []Verdict{{ReplicaRef{id, 4}, true, 3, 100}, {ReplicaRef{id, 5}, false, -1, 0}}},
		&ChangeISR{Broker: 2, Epoch: 5, Partitions: []ISRChange{{id, 4, 3, 2, []Member{{2, 5, ident.DirectoryID{1}}, {3, 6, ident.DirectoryID{2}}}, true}}},
		&MarkReplicas{Broker: 2, Epoch: 5, Replicas: []ReplicaMark{{ReplicaRef{id, 4}, MarkOffline, true}, {ReplicaRef{id, 5}, MarkDamaged, false}}, Number: 7},
		&ElectLeaders{Unclean: true, All: true, Partitions: []PartitionRef{{"t", 7}}},
		&AlterReassignments{Partitions: []Reassignment{{PartitionRef{"t", 7}, []ident.BrokerID{3, 4}}, {PartitionRef{"t", 8}, nil}, {PartitionRef{"t", 9}, []ident.BrokerID{}}}, FixFactor: true},
		&UnregisterBroker{Broker: 2},
		&AllocateProducerIDs{Broker: 2, Epoch: 5},
		&CreateTopics{Topics: []NewTopic{{
			Name: "t", ID: id, Partitions: -1, ReplicationFactor: -1, Assignment: []Assignment{{3, []ident.BrokerID{1, 2}}},
			Configs: []ConfigValue{{"a", &value}, {"b", nil}}, Internal: true,
		}}, ValidateOnly: true, Entropy: 1 << 63},
		&DeleteTopics{Topics: []TopicRef{{Name: "t", ID: id}, {ID: id}}},
		&CreatePartitions{Topics: []MorePartitions{{"t", 5, [][]ident.BrokerID{{1}, {2}}}, {"u", 6, nil}, {"v", 7, [][]ident.BrokerID{}}}, ValidateOnly: true, Entropy: 3},
		&AlterConfigs{Resources: []ConfigReplacement{{topicResource("t"), []ConfigValue{{"a", &value}}}}, ValidateOnly: true},
		&IncrementalAlterConfigs{Resources: []ConfigChange{{topicResource("t"), []ConfigOp{{"a", OpAppend, &value}, {"b", OpDelete, nil}}}}, ValidateOnly: true},
		&UpdateFeatures{Updates: []FeatureUpdate{{"f", 3, SafeDowngrade}}, ValidateOnly: true},
		&DescribeQuorum{},
		&Pull{Broker: 3, Cluster: "c1", From: 12, Term: 4, SnapshotIndex: 9, Offset: 1000, BytesMax: 77},
	}
}

// sampleReplies is one reply of each kind with every field set, and a refusal.
func sampleReplies() []Reply {
	no := refuse(wire.InvalidRequest, "no")
	id := ident.TopicID{1, 2, 3}
	var configs []config.Effective
	stack := config.Stack{Override: config.SetOf(config.Entry{Name: "cleanup.policy", Value: "compact"}), Static: config.SetOf(config.Entry{Name: "log.retention.ms", Value: "5"})}
	for k := range config.Topic().All() {
		if !k.Internal {
			configs = append(configs, stack.ForTopic(k))
		}
	}
	state := VoterState{Voter: voterOf(1), LogEnd: 5, LastFetch: 6, LastCaughtUp: 7}
	var out []Reply
	for _, body := range []ReplyBody{
		&RegisterBrokerReply{Epoch: 7},
		&HeartbeatReply{CaughtUp: true, Fenced: true, ShouldShutDown: true},
		&VerifiedReply{},
		&MarkReplicasReply{},
		&AddVoterReply{},
		&RemoveVoterReply{},
		&ChangeISRReply{Partitions: []ISRResult{{id, 4, no, 1, 2, 3, []ident.BrokerID{1, 2}}}},
		&ElectLeadersReply{Partitions: []ElectionResult{{PartitionRef{"t", 1}, no}, {PartitionRef{"t", 2}, nil}}},
		&AlterReassignmentsReply{Partitions: []ReassignmentResult{{PartitionRef{"t", 1}, no}, {PartitionRef{"t", 2}, nil}}},
		&UnregisterBrokerReply{},
		&AllocateProducerIDsReply{First: 1000, Count: 1000},
		&CreateTopicsReply{Topics: []CreatedTopic{{"t", no, id, 3, 2, configs}, {Name: "u", Err: no}}},
		&DeleteTopicsReply{Topics: []DeletedTopic{{"t", id, no}}},
		&CreatePartitionsReply{Topics: []TopicResult{{"t", no}}},
		&AlterConfigsReply{Resources: []ResourceResult{{topicResource("t"), no, []string{"w"}}}},
		&UpdateFeaturesReply{Features: []FeatureResult{{"f", no}}},
		&DescribeQuorumReply{Leader: 1, Term: 2, Committed: 3, Voters: []VoterState{state}, LeaderNode: 101, Observers: []VoterState{state}},
		&PullReply{Entries: []Entry{{5, 2, []byte("x")}}, Snapshot: &SnapshotPiece{9, 2, 100, 50, []byte("y")}, Committed: 9, Leader: 1, Term: 2},
	} {
		out = append(out, Reply{Body: body})
	}
	return append(out, Reply{Err: no})
}

// filled tells whether no field of a sample is left at zero, so that none can be forgotten by a codec.
func filled(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	switch v.Kind() { //nolint:exhaustive // the other kinds have nothing inside
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() && v.Type() != reflect.TypeFor[*config.Key]() {
			filled(t, v.Elem(), path)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.Type == reflect.TypeFor[Ask]() || f.Name == "Arrived" || f.Name == "Null" {
				continue
			}
			if v.Field(i).IsZero() {
				t.Errorf("%s.%s is not set in the sample", path, f.Name)
			}
			filled(t, v.Field(i), path+"."+f.Name)
		}
	case reflect.Slice:
		if v.Len() > 0 {
			filled(t, v.Index(0), path)
		}
	}
}

func TestEveryCommandArrivesAsItWasSent(t *testing.T) {
	seen := map[byte]bool{}
	for _, cmd := range sampleCommands() {
		filled(t, reflect.ValueOf(cmd), reflect.TypeOf(cmd).String())
		b, err := EncodeCommand(cmd)
		if err != nil {
			t.Fatal(err)
		}
		seen[b[1]] = true
		back, err := DecodeCommand(b)
		if err != nil || !reflect.DeepEqual(back, cmd) {
			t.Errorf("%T arrives as %+v, %v", cmd, back, err)
		}
		if AskOf(back) == nil {
			t.Errorf("%T carries no Ask", back)
		}
		for n := range b {
			if _, err := DecodeCommand(b[:n]); err == nil {
				t.Errorf("%T cut to %d of %d bytes is taken", cmd, n, len(b))
			}
		}
		longer := append([]byte{b[0] + 1}, b[1:]...) // an array of one more
		if back, err = DecodeCommand(append(longer, 0x92, 0x01, 0xc0)); err != nil || !reflect.DeepEqual(back, cmd) {
			t.Errorf("%T with a tail of a newer version arrives as %+v, %v", cmd, back, err)
		}
	}
	for code := byte(1); code <= byte(CodeUnregister); code++ {
		if !seen[code] {
			t.Errorf("no sample of command %d", code)
		}
	}
	for _, cmd := range []Command{&Start{}, &Persisted{}, &Receive{}, &GossipHint{}, &LinkDown{}} {
		if _, err := EncodeCommand(cmd); err == nil || AskOf(cmd) != nil {
			t.Errorf("%T travels or is answered", cmd)
		}
	}
	if _, err := DecodeCommand([]byte{0x91, 0x63}); !errors.Is(err, ErrUnknownCode) {
		t.Errorf("command 99: %v", err)
	}
}

func TestEveryReplyArrivesAsItWasSent(t *testing.T) {
	for _, reply := range sampleReplies() {
		filled(t, reflect.ValueOf(reply.Body), "")
		b := EncodeReply(reply)
		back, err := DecodeReply(b)
		if err != nil || !reflect.DeepEqual(back, reply) {
			t.Errorf("%+v arrives as %+v, %v", reply.Body, back.Body, err)
		}
		for n := range b {
			if _, err := DecodeReply(b[:n]); err == nil {
				t.Errorf("%T cut to %d of %d bytes is taken", reply.Body, n, len(b))
			}
		}
	}
	for name, b := range map[string][]byte{"nothing": {}, "an empty array": {0x90}, "no error and no body": {0x91, 0xc0}, "tail": append(EncodeReply(Reply{Body: &VerifiedReply{}}), 0xc0)} {
		if _, err := DecodeReply(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := DecodeReply([]byte{0x92, 0xc0, 0x63}); !errors.Is(err, ErrUnknownCode) {
		t.Errorf("reply 99: %v", err)
	}
}

func TestCommandsOfManyEmptyItemsAreRefusedCheaply(t *testing.T) {
	many := func(code CommandCode, before int) []byte {
		w := newWriter()
		w.array(2 + before)
		w.uint(uint64(code))
		for range before {
			w.int(1)
		}
		w.array(1 << 20)
		return append(w.buf.Bytes(), bytes.Repeat([]byte{0x90}, 1<<20)...)
	}
	for name, b := range map[string][]byte{
		"topics": many(CodeCreateTopics, 0), "ISRs": many(CodeChangeISR, 2), "verdicts": many(CodeVerified, 2), "resources": many(CodeAlterConfigs, 0),
	} {
		allocs := testing.AllocsPerRun(1, func() {
			if _, err := DecodeCommand(b); !errors.Is(err, ErrMalformed) {
				t.Errorf("%s: %v", name, err)
			}
		})
		if allocs > 100 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
}

func FuzzDecodeCommand(f *testing.F) {
	for _, cmd := range sampleCommands() {
		b, err := EncodeCommand(cmd)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		cmd, err := DecodeCommand(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrUnknownCode) {
				t.Fatal(err)
			}
			return
		}
		again, err := EncodeCommand(cmd)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := DecodeCommand(again); err != nil || !reflect.DeepEqual(back, cmd) {
			t.Fatalf("%+v comes back as %+v, %v", cmd, back, err)
		}
	})
}

func FuzzDecodeReply(f *testing.F) {
	for _, reply := range sampleReplies() {
		f.Add(EncodeReply(reply))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		reply, err := DecodeReply(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrUnknownCode) {
				t.Fatal(err)
			}
			return
		}
		if back, err := DecodeReply(EncodeReply(reply)); err != nil || !reflect.DeepEqual(back, reply) {
			t.Fatalf("%+v comes back as %+v, %v", reply, back, err)
		}
	})
}
