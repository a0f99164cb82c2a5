package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

func randomFetchRequest(rng *rand.Rand, version int16) *kmsg.FetchRequest {
	k := kmsg.NewPtrFetchRequest()
	k.Version = version
	if version < 15 {
		k.ReplicaID = int32(rng.IntN(5) - 1)
	} else if rng.IntN(2) == 0 {
		k.ReplicaState.ID, k.ReplicaState.Epoch = rng.Int32(), rng.Int64()
	}
	k.MaxWaitMillis, k.MinBytes, k.MaxBytes = rng.Int32(), rng.Int32(), rng.Int32()
	k.IsolationLevel = int8(rng.IntN(2))
	if version >= 7 {
		k.SessionID, k.SessionEpoch = rng.Int32(), int32(rng.Uint32())
	}
	for range rng.IntN(4) {
		t := kmsg.NewFetchRequestTopic()
		if version >= 13 {
			t.TopicID = randomID(rng)
		} else {
			t.Topic = randomText(rng)
		}
		for range rng.IntN(4) {
			p := kmsg.NewFetchRequestTopicPartition()
			p.Partition, p.FetchOffset, p.PartitionMaxBytes = rng.Int32(), int64(randomOffset(rng)), rng.Int32()
			if version >= 5 {
				p.LogStartOffset = int64(randomOffset(rng))
			}
			if version >= 9 {
				p.CurrentLeaderEpoch = rng.Int32()
			}
			if version >= 12 {
				p.LastFetchedEpoch = rng.Int32()
			}
			if version >= 17 && rng.IntN(2) == 0 {
				p.ReplicaDirectoryID = randomID(rng)
			}
			if version >= 18 && rng.IntN(2) == 0 {
				p.HighWatermark = rng.Int64()
			}
			randomTags(rng, &p.UnknownTags)
			t.Partitions = append(t.Partitions, p)
		}
		randomTags(rng, &t.UnknownTags)
		k.Topics = append(k.Topics, t)
	}
	if version >= 7 {
		for range rng.IntN(3) {
			t := kmsg.NewFetchRequestForgottenTopic()
			if version >= 13 {
				t.TopicID = randomID(rng)
			} else {
				t.Topic = randomText(rng)
			}
			for range rng.IntN(4) {
				t.Partitions = append(t.Partitions, rng.Int32())
			}
			randomTags(rng, &t.UnknownTags)
			k.ForgottenTopics = append(k.ForgottenTopics, t)
		}
	}
	if version >= 11 {
		k.Rack = randomText(rng)
	}
	if version >= 12 {
		k.ClusterID = randomNullable(rng)
	}
	randomTags(rng, &k.UnknownTags)
	return k
}

func compareFetch(k *kmsg.FetchRequest, r *wire.FetchRequest) error {
	replica, epoch := k.ReplicaID, int64(-1)
	if r.Version >= 15 || k.ReplicaState.ID != -1 || k.ReplicaState.Epoch != -1 {
		replica, epoch = k.ReplicaState.ID, k.ReplicaState.Epoch
	}
	if int32(r.ReplicaID) != replica || int64(r.ReplicaEpoch) != epoch || r.MaxWaitMillis != k.MaxWaitMillis || r.MinBytes != k.MinBytes || r.MaxBytes != k.MaxBytes ||
		r.IsolationLevel != k.IsolationLevel || r.SessionID != k.SessionID || r.SessionEpoch != k.SessionEpoch || string(r.RackID) != k.Rack ||
		!sameNullable(k.ClusterID, r.ClusterID) || r.TopicCount != len(k.Topics) {
		return fmt.Errorf("kmsg %+v, ours %+v", k, r)
	}
	it, count := r.Partitions(), 0
	for i, t := range k.Topics {
		for _, p := range t.Partitions {
			count++
			if !it.Next() {
				return fmt.Errorf("partition %d of topic %d is missing", p.Partition, i)
			}
			want := wire.FetchPartition{
				Partition: p.Partition, CurrentLeaderEpoch: ident.LeaderEpoch(p.CurrentLeaderEpoch), FetchOffset: ident.Offset(p.FetchOffset),
				LastFetchedEpoch: ident.LeaderEpoch(p.LastFetchedEpoch), LogStartOffset: ident.Offset(p.LogStartOffset), MaxBytes: p.PartitionMaxBytes,
				ReplicaDirectoryID: p.ReplicaDirectoryID, HighWatermark: ident.Offset(p.HighWatermark),
			}
			if it.TopicIndex != i || it.TopicID != ident.TopicID(t.TopicID) || string(it.TopicName) != t.Topic || it.FetchPartition != want {
				return fmt.Errorf("topic %d: kmsg %+v, ours %+v", i, p, it)
			}
		}
	}
	if it.Next() || count != r.PartitionCount {
		return fmt.Errorf("%d partitions are counted as %d", count, r.PartitionCount)
	}
	forgotten, count := r.Forgotten(), 0
	for _, t := range k.ForgottenTopics {
		for _, p := range t.Partitions {
			count++
			if !forgotten.Next() || forgotten.TopicID != ident.TopicID(t.TopicID) || string(forgotten.TopicName) != t.Topic || forgotten.Partition != p {
				return fmt.Errorf("forgotten: kmsg %+v, ours %+v", t, forgotten)
			}
		}
	}
	if forgotten.Next() || count != r.ForgottenCount {
		return fmt.Errorf("%d forgotten partitions are counted as %d", count, r.ForgottenCount)
	}
	return nil
}

func TestFetchRequestsAreReadAsKmsgReadsThem(t *testing.T) {
	api, _ := wire.Lookup(wire.KeyFetch)
	var r wire.FetchRequest
	for version := api.Min; version <= api.Max; version++ {
		rng := rand.New(rand.NewPCG(1, uint64(version)))
		for n := range messagesPerVersion {
			k := randomFetchRequest(rng, version)
			body := k.AppendTo(nil)
			if err := r.Decode(version, body); err != nil {
				t.Fatalf("version %d, message %d: %v", version, n, err)
			}
			if err := compareFetch(k, &r); err != nil {
				t.Fatalf("version %d, message %d: %v", version, n, err)
			}
			for cut := range len(body) {
				if err := r.Decode(version, body[:cut]); err == nil {
					t.Fatalf("version %d, message %d: %d of %d bytes are enough", version, n, cut, len(body))
				}
				if n > 20 {
					break
				}
			}
		}
	}
	if err := r.Decode(3, nil); err == nil {
		t.Error("version 3 is read")
	}
	if err := r.Decode(19, nil); err == nil {
		t.Error("version 19 is read")
	}
}

// Whatever the bytes, kmsg and we agree on whether they are a request and on what
// it says.
func FuzzFetchRequest(f *testing.F) {
	rng := rand.New(rand.NewPCG(2, 2))
	for version := int16(4); version <= 18; version++ {
		for range 3 {
			f.Add(version, randomFetchRequest(rng, version).AppendTo(nil))
		}
	}
	f.Fuzz(func(t *testing.T, version int16, body []byte) {
		version = 4 + int16(uint16(version)%15)
		var r wire.FetchRequest
		err := r.Decode(version, body)
		k := kmsg.NewPtrFetchRequest()
		k.Version = version
		theirs := k.ReadFrom(body)
		if (err == nil) != (theirs == nil) {
			t.Fatalf("ours %v, kmsg %v", err, theirs)
		}
		var refused *wire.ProtocolError
		if err != nil {
			if !errors.As(err, &refused) || refused.Code != wire.CodeBody {
				t.Fatalf("%#v", err)
			}
			return
		}
		if err := compareFetch(k, &r); err != nil {
			t.Fatal(err)
		}
	})
}

func TestDecodingFetchAllocatesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for version := int16(4); version <= 18; version++ {
		body := randomFetchRequest(rng, version).AppendTo(nil)
		var r wire.FetchRequest
		sum := 0
		if allocs := testing.AllocsPerRun(100, func() {
			if err := r.Decode(version, body); err != nil {
				t.Fatal(err)
			}
			for it := r.Partitions(); it.Next(); {
				sum += len(it.TopicName)
			}
			for it := r.Forgotten(); it.Next(); {
				sum += len(it.TopicName)
			}
		}); allocs != 0 {
			t.Errorf("version %d: %v allocations", version, allocs)
		}
	}
}

// randomFetchResponse makes a response, the regions that belong into it, and the
// same for kmsg.
func randomFetchResponse(rng *rand.Rand, version int16) (*wire.FetchResponse, [][]byte, *kmsg.FetchResponse) {
	r, k := new(wire.FetchResponse), kmsg.NewPtrFetchResponse()
	k.Version = version
	r.ThrottleMillis = rng.Int32()
	k.ThrottleMillis = r.ThrottleMillis
	if version >= 7 {
		r.Error, r.SessionID = wire.ErrorCode(rng.IntN(130)), rng.Int32()
		k.ErrorCode, k.SessionID = int16(r.Error), r.SessionID
	}
	var regions [][]byte
	for range rng.IntN(4) {
		topic, kt := wire.FetchTopicResponse{}, kmsg.NewFetchResponseTopic()
		if version >= 13 {
			topic.ID = randomID(rng)
			kt.TopicID = topic.ID
		} else {
			topic.Name = []byte(randomText(rng))
			kt.Topic = string(topic.Name)
		}
		for range rng.IntN(4) {
			p, region, kp := randomFetchPartition(rng, version)
			if len(region) > 0 {
				regions = append(regions, region)
			}
			topic.Partitions = append(topic.Partitions, p)
			kt.Partitions = append(kt.Partitions, kp)
		}
		r.Topics = append(r.Topics, topic)
		k.Topics = append(k.Topics, kt)
	}
	r.NodeEndpoints = randomNodes(rng)
	if version >= 16 {
		for _, n := range r.NodeEndpoints {
			kn := kmsg.NewFetchResponseBroker()
			kn.NodeID, kn.Host, kn.Port, kn.Rack = int32(n.Node), n.Host, n.Port, nullable(n.Rack)
			k.Brokers = append(k.Brokers, kn)
		}
	}
	return r, regions, k
}

func randomFetchPartition(rng *rand.Rand, version int16) (wire.FetchPartitionResponse, []byte, kmsg.FetchResponseTopicPartition) {
	p := wire.FetchPartitionResponse{
		Partition: rng.Int32(), Error: wire.ErrorCode(rng.IntN(130)), HighWatermark: randomOffset(rng), LastStableOffset: randomOffset(rng),
		LogStartOffset: randomOffset(rng), PreferredReadReplica: ident.BrokerID(rng.IntN(5) - 1), AbortedNull: rng.IntN(2) == 0,
	}
	kp := kmsg.NewFetchResponseTopicPartition()
	kp.Partition, kp.ErrorCode, kp.HighWatermark, kp.LastStableOffset = p.Partition, int16(p.Error), int64(p.HighWatermark), int64(p.LastStableOffset)
	kp.LogStartOffset, kp.PreferredReadReplica = int64(p.LogStartOffset), int32(p.PreferredReadReplica)
	if !p.AbortedNull {
		kp.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{}
		for range rng.IntN(3) {
			a := wire.AbortedTransaction{ProducerID: ident.ProducerID(rng.Int64()), FirstOffset: randomOffset(rng)}
			p.Aborted = append(p.Aborted, a)
			ka := kmsg.NewFetchResponseTopicPartitionAbortedTransaction()
			ka.ProducerID, ka.FirstOffset = int64(a.ProducerID), int64(a.FirstOffset)
			kp.AbortedTransactions = append(kp.AbortedTransactions, ka)
		}
	}
	region := []byte{}
	if rng.IntN(3) > 0 {
		region = randomBytes(rng, 300)
	}
	p.RecordsSize = int32(len(region))
	kp.RecordBatches = region
	known := func() bool { return rng.IntN(3) == 0 }
	p.DivergingEpoch = wire.EpochEnd{Known: known(), Epoch: ident.LeaderEpoch(rng.Int32()), EndOffset: randomOffset(rng)}
	p.CurrentLeader = wire.CurrentLeader{Known: known(), Leader: ident.BrokerID(rng.Int32()), Epoch: ident.LeaderEpoch(rng.Int32())}
	p.SnapshotID = wire.EpochEnd{Known: known(), Epoch: ident.LeaderEpoch(rng.Int32()), EndOffset: randomOffset(rng)}
	if version >= 12 {
		if e := p.DivergingEpoch; e.Known {
			kp.DivergingEpoch.Epoch, kp.DivergingEpoch.EndOffset = int32(e.Epoch), int64(e.EndOffset)
		}
		if l := p.CurrentLeader; l.Known {
			kp.CurrentLeader.LeaderID, kp.CurrentLeader.LeaderEpoch = int32(l.Leader), int32(l.Epoch)
		}
		if s := p.SnapshotID; s.Known {
			kp.SnapshotID.Epoch, kp.SnapshotID.EndOffset = int32(s.Epoch), int64(s.EndOffset)
		}
	}
	return p, region, kp
}

// splice puts the regions where the cuts say.
func splice(encoded []byte, cuts []wire.Cut, regions [][]byte) ([]byte, error) {
	if len(cuts) != len(regions) {
		return nil, fmt.Errorf("%d cuts for %d regions", len(cuts), len(regions))
	}
	var out []byte
	from := 0
	for i, c := range cuts {
		if int(c.Size) != len(regions[i]) {
			return nil, fmt.Errorf("cut %d has size %d, its region %d", i, c.Size, len(regions[i]))
		}
		out = append(out, encoded[from:c.At]...)
		out = append(out, regions[i]...)
		from = c.At
	}
	return append(out, encoded[from:]...), nil
}

func TestFetchResponsesAreWrittenAsKmsgWritesThem(t *testing.T) {
	api, _ := wire.Lookup(wire.KeyFetch)
	var dst []byte
	var cuts []wire.Cut
	for version := api.Min; version <= api.Max; version++ {
		rng := rand.New(rand.NewPCG(4, uint64(version)))
		for n := range messagesPerVersion {
			r, regions, k := randomFetchResponse(rng, version)
			dst, cuts = r.AppendTo(append(dst[:0], "before"...), cuts[:0], version)
			ours, err := splice(dst, cuts, regions)
			if err != nil {
				t.Fatalf("version %d, message %d: %v", version, n, err)
			}
			if theirs := k.AppendTo([]byte("before")); !bytes.Equal(ours, theirs) {
				t.Fatalf("version %d, message %d:\nours   %x\ntheirs %x", version, n, ours, theirs)
			}
		}
	}
}

func TestEncodingFetchAllocatesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	r, _, _ := randomFetchResponse(rng, 18)
	dst, cuts := make([]byte, 0, 64<<10), make([]wire.Cut, 0, 64)
	for version := int16(4); version <= 18; version++ {
		if allocs := testing.AllocsPerRun(100, func() { dst, cuts = r.AppendTo(dst[:0], cuts[:0], version) }); allocs != 0 {
			t.Errorf("version %d: %v allocations", version, allocs)
		}
	}
}

func BenchmarkFetchDecode(b *testing.B) {
	for _, partitions := range []int{1, 100} {
		b.Run(fmt.Sprintf("partitions=%d", partitions), func(b *testing.B) {
			k := kmsg.NewPtrFetchRequest()
			k.Version = 17
			topic := kmsg.NewFetchRequestTopic()
			for i := range partitions {
				p := kmsg.NewFetchRequestTopicPartition()
				p.Partition = int32(i)
				topic.Partitions = append(topic.Partitions, p)
			}
			k.Topics = append(k.Topics, topic)
			body := k.AppendTo(nil)
			var r wire.FetchRequest
			b.ReportAllocs()
			for b.Loop() {
				if err := r.Decode(17, body); err != nil {
					b.Fatal(err)
				}
				for it := r.Partitions(); it.Next(); {
				}
			}
		})
	}
}

func BenchmarkFetchEncode(b *testing.B) {
	for _, partitions := range []int{1, 100} {
		b.Run(fmt.Sprintf("partitions=%d", partitions), func(b *testing.B) {
			r := wire.FetchResponse{Topics: []wire.FetchTopicResponse{{Partitions: make([]wire.FetchPartitionResponse, partitions)}}}
			for i := range r.Topics[0].Partitions {
				r.Topics[0].Partitions[i].RecordsSize = 16 << 10
			}
			var dst []byte
			var cuts []wire.Cut
			b.ReportAllocs()
			for b.Loop() {
				dst, cuts = r.AppendTo(dst[:0], cuts[:0], 17)
			}
		})
	}
}
