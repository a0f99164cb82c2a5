package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// messagesPerVersion is how many random messages each codec is compared on with
// kmsg, for each version.
const messagesPerVersion = 1500

func randomBytes(rng *rand.Rand, sizeMax int) []byte {
	b := make([]byte, rng.IntN(sizeMax+1))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// randomText sometimes is longer than a compact length of one byte can say.
func randomText(rng *rand.Rand) string {
	if rng.IntN(10) == 0 {
		return string(randomBytes(rng, 300))
	}
	return string(randomBytes(rng, 10))
}

func randomNullable(rng *rand.Rand) *string {
	if rng.IntN(2) == 0 {
		return nil
	}
	s := randomText(rng)
	return &s
}

func randomID(rng *rand.Rand) (id [16]byte) {
	for i := range id {
		id[i] = byte(rng.Uint32())
	}
	return id
}

// randomTags puts fields into a message that no version knows yet.
func randomTags(rng *rand.Rand, tags *kmsg.Tags) {
	if rng.IntN(4) == 0 {
		for range 1 + rng.IntN(3) {
			tags.Set(100+rng.Uint32()%1000, randomBytes(rng, 20))
		}
	}
}

func randomProduceRequest(rng *rand.Rand, version int16) *kmsg.ProduceRequest {
	k := kmsg.NewPtrProduceRequest()
	k.Version = version
	k.TransactionID = randomNullable(rng)
	k.Acks = int16(rng.IntN(4) - 2)
	k.TimeoutMillis = rng.Int32()
	for range rng.IntN(4) {
		t := kmsg.NewProduceRequestTopic()
		if version >= 13 {
			t.TopicID = randomID(rng)
		} else {
			t.Topic = randomText(rng)
		}
		for range rng.IntN(4) {
			p := kmsg.NewProduceRequestTopicPartition()
			p.Partition = int32(rng.Uint32())
			if rng.IntN(4) > 0 {
				p.Records = randomBytes(rng, 300)
			}
			randomTags(rng, &p.UnknownTags)
			t.Partitions = append(t.Partitions, p)
		}
		randomTags(rng, &t.UnknownTags)
		k.Topics = append(k.Topics, t)
	}
	randomTags(rng, &k.UnknownTags)
	return k
}

// sameNullable compares a nullable string of kmsg with ours.
func sameNullable(theirs *string, ours []byte) bool {
	if theirs == nil {
		return ours == nil
	}
	return ours != nil && *theirs == string(ours)
}

func sameBytes(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func compareProduce(k *kmsg.ProduceRequest, r *wire.ProduceRequest) error {
	if !sameNullable(k.TransactionID, r.TransactionalID) || k.Acks != r.Acks || k.TimeoutMillis != r.TimeoutMillis || len(k.Topics) != r.TopicCount {
		return fmt.Errorf("kmsg %+v, ours %+v", k, r)
	}
	it := r.Partitions()
	count := 0
	for i, t := range k.Topics {
		for _, p := range t.Partitions {
			count++
			if !it.Next() {
				return fmt.Errorf("partition %d of topic %d is missing", p.Partition, i)
			}
			if it.TopicIndex != i || it.TopicID != ident.TopicID(t.TopicID) || string(it.TopicName) != t.Topic || it.Partition != p.Partition || !sameBytes(it.Records, p.Records) {
				return fmt.Errorf("topic %d: kmsg %+v, ours %+v", i, p, it)
			}
		}
	}
	if it.Next() {
		return errors.New("a partition that nobody sent")
	}
	if count != r.PartitionCount {
		return fmt.Errorf("%d partitions are counted as %d", count, r.PartitionCount)
	}
	return nil
}

func TestProduceRequestsAreReadAsKmsgReadsThem(t *testing.T) {
	api, _ := wire.Lookup(wire.KeyProduce)
	var r wire.ProduceRequest
	for version := api.Min; version <= api.Max; version++ {
		rng := rand.New(rand.NewPCG(1, uint64(version)))
		for n := range messagesPerVersion {
			k := randomProduceRequest(rng, version)
			body := k.AppendTo(nil)
			if err := r.Decode(version, body); err != nil {
				t.Fatalf("version %d, message %d: %v", version, n, err)
			}
			if err := compareProduce(k, &r); err != nil {
				t.Fatalf("version %d, message %d: %v", version, n, err)
			}
			for cut := range len(body) {
				if err := r.Decode(version, body[:cut]); err == nil {
					t.Fatalf("version %d, message %d: %d of %d bytes are enough", version, n, cut, len(body))
				}
				if n > 20 {
					break // cutting everywhere is for the first few
				}
			}
		}
	}
	if err := r.Decode(2, nil); err == nil {
		t.Error("version 2 is read")
	}
	if err := r.Decode(14, nil); err == nil {
		t.Error("version 14 is read")
	}
}

// Whatever the bytes, kmsg and we agree on whether they are a request and on what
// it says.
func FuzzProduceRequest(f *testing.F) {
	rng := rand.New(rand.NewPCG(2, 2))
	for version := int16(3); version <= 13; version++ {
		for range 3 {
			f.Add(version, randomProduceRequest(rng, version).AppendTo(nil))
		}
	}
	f.Fuzz(func(t *testing.T, version int16, body []byte) {
		version = 3 + int16(uint16(version)%11)
		var r wire.ProduceRequest
		err := r.Decode(version, body)
		k := kmsg.NewPtrProduceRequest()
		k.Version = version
		theirs := k.ReadFrom(body)
		var refused *wire.ProtocolError
		switch {
		case err == nil && theirs != nil:
			t.Fatalf("we read what kmsg refuses: %v", theirs)
		case err == nil:
			if err := compareProduce(k, &r); err != nil {
				t.Fatal(err)
			}
		case !errors.As(err, &refused) || refused.Code != wire.CodeBody:
			t.Fatalf("%#v", err)
		case theirs == nil:
			partitions := 0
			for _, topic := range k.Topics {
				partitions += len(topic.Partitions)
			}
			if partitions <= 64+len(body)/61 {
				t.Fatalf("kmsg reads what we refuse: %v", err)
			}
		}
	})
}

func TestAProduceRequestPaysForItsPartitions(t *testing.T) {
	request := func(partitions int) []byte {
		k := kmsg.NewPtrProduceRequest()
		k.Version = 9
		t := kmsg.NewProduceRequestTopic()
		for i := range partitions {
			p := kmsg.NewProduceRequestTopicPartition()
			p.Partition = int32(i)
			t.Partitions = append(t.Partitions, p)
		}
		k.Topics = append(k.Topics, t)
		return k.AppendTo(nil)
	}
	var r wire.ProduceRequest
	if err := r.Decode(9, request(64)); err != nil {
		t.Errorf("sixty-four partitions without records: %v", err)
	}
	var refused *wire.ProtocolError
	if err := r.Decode(9, request(1000)); !errors.As(err, &refused) {
		t.Errorf("a thousand partitions without records: %v", err)
	}
}

func TestDecodingProduceAllocatesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for version := int16(3); version <= 13; version++ {
		body := randomProduceRequest(rng, version).AppendTo(nil)
		var r wire.ProduceRequest
		sum := 0
		if allocs := testing.AllocsPerRun(100, func() {
			if err := r.Decode(version, body); err != nil {
				t.Fatal(err)
			}
			for it := r.Partitions(); it.Next(); {
				sum += len(it.Records) + len(it.TopicName)
			}
		}); allocs != 0 {
			t.Errorf("version %d: %v allocations", version, allocs)
		}
	}
}

func randomNodes(rng *rand.Rand) (ours []wire.NodeEndpoint) {
	if rng.IntN(2) == 0 {
		for range rng.IntN(4) {
			ours = append(ours, wire.NodeEndpoint{Node: ident.BrokerID(rng.Int32()), Host: randomText(rng), Port: rng.Int32(), Rack: randomText(rng)})
		}
	}
	return ours
}

// nullable is how kmsg is told what we say with the empty string.
func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func randomOffset(rng *rand.Rand) ident.Offset {
	return ident.Offset(rng.Int64() - rng.Int64N(math.MaxInt64))
}

// randomProduceResponse makes a response and the same for kmsg.
func randomProduceResponse(rng *rand.Rand, version int16) (*wire.ProduceResponse, *kmsg.ProduceResponse) {
	r, k := new(wire.ProduceResponse), kmsg.NewPtrProduceResponse()
	k.Version = version
	r.ThrottleMillis = rng.Int32()
	k.ThrottleMillis = r.ThrottleMillis
	for range rng.IntN(4) {
		topic, kt := wire.ProduceTopicResponse{}, kmsg.NewProduceResponseTopic()
		if version >= 13 {
			topic.ID = randomID(rng)
			kt.TopicID = topic.ID
		} else {
			topic.Name = []byte(randomText(rng))
			kt.Topic = string(topic.Name)
		}
		for range rng.IntN(4) {
			p := wire.ProducePartitionResponse{
				Partition: rng.Int32(), Error: wire.ErrorCode(rng.IntN(130)), BaseOffset: randomOffset(rng),
				LogAppendTime: ident.Millis(rng.Int64()), LogStartOffset: randomOffset(rng), ErrorMessage: randomText(rng),
			}
			kp := kmsg.NewProduceResponseTopicPartition()
			kp.Partition, kp.ErrorCode, kp.BaseOffset = p.Partition, int16(p.Error), int64(p.BaseOffset)
			kp.LogAppendTime, kp.LogStartOffset, kp.ErrorMessage = int64(p.LogAppendTime), int64(p.LogStartOffset), nullable(p.ErrorMessage)
			for range rng.IntN(3) {
				e := wire.ProduceRecordError{Index: rng.Int32(), Message: randomText(rng)}
				p.RecordErrors = append(p.RecordErrors, e)
				ke := kmsg.NewProduceResponseTopicPartitionErrorRecord()
				ke.RelativeOffset, ke.ErrorMessage = e.Index, nullable(e.Message)
				kp.ErrorRecords = append(kp.ErrorRecords, ke)
			}
			if rng.IntN(2) == 0 {
				p.CurrentLeader = wire.CurrentLeader{Known: true, Leader: ident.BrokerID(rng.Int32()), Epoch: ident.LeaderEpoch(rng.Int32())}
				if version >= 10 {
					kp.CurrentLeader.LeaderID, kp.CurrentLeader.LeaderEpoch = int32(p.CurrentLeader.Leader), int32(p.CurrentLeader.Epoch)
				}
			}
			topic.Partitions = append(topic.Partitions, p)
			kt.Partitions = append(kt.Partitions, kp)
		}
		r.Topics = append(r.Topics, topic)
		k.Topics = append(k.Topics, kt)
	}
	r.NodeEndpoints = randomNodes(rng)
	if version >= 10 {
		for _, n := range r.NodeEndpoints {
			kn := kmsg.NewProduceResponseBroker()
			kn.NodeID, kn.Host, kn.Port, kn.Rack = int32(n.Node), n.Host, n.Port, nullable(n.Rack)
			k.Brokers = append(k.Brokers, kn)
		}
	}
	return r, k
}

func TestProduceResponsesAreWrittenAsKmsgWritesThem(t *testing.T) {
	api, _ := wire.Lookup(wire.KeyProduce)
	for version := api.Min; version <= api.Max; version++ {
		rng := rand.New(rand.NewPCG(4, uint64(version)))
		for n := range messagesPerVersion {
			r, k := randomProduceResponse(rng, version)
			if ours, theirs := r.AppendTo([]byte("before"), version), k.AppendTo([]byte("before")); !bytes.Equal(ours, theirs) {
				t.Fatalf("version %d, message %d:\nours   %x\ntheirs %x", version, n, ours, theirs)
			}
		}
	}
}

func TestEncodingProduceAllocatesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	r, _ := randomProduceResponse(rng, 13)
	dst := make([]byte, 0, 64<<10)
	for version := int16(3); version <= 13; version++ {
		if allocs := testing.AllocsPerRun(100, func() { dst = r.AppendTo(dst[:0], version) }); allocs != 0 {
			t.Errorf("version %d: %v allocations", version, allocs)
		}
	}
}

func TestAMessageTooLongForItsLengthIsCut(t *testing.T) {
	long := string(bytes.Repeat([]byte("x"), 40_000))
	r := wire.ProduceResponse{Topics: []wire.ProduceTopicResponse{{Partitions: []wire.ProducePartitionResponse{{ErrorMessage: long}}}}}
	for version := int16(8); version <= 9; version++ {
		k := kmsg.NewPtrProduceResponse()
		k.Version = version
		if err := k.ReadFrom(r.AppendTo(nil, version)); err != nil {
			t.Fatal(err)
		}
		want := 40_000
		if version == 8 {
			want = math.MaxInt16
		}
		if got := k.Topics[0].Partitions[0].ErrorMessage; got == nil || len(*got) != want {
			t.Errorf("version %d: the message does not have %d bytes", version, want)
		}
	}
}

func BenchmarkProduceDecode(b *testing.B) {
	for _, partitions := range []int{1, 100} {
		b.Run(fmt.Sprintf("partitions=%d", partitions), func(b *testing.B) {
			k := kmsg.NewPtrProduceRequest()
			k.Version = 12
			topic := kmsg.NewProduceRequestTopic()
			topic.Topic = "events"
			for i := range partitions {
				p := kmsg.NewProduceRequestTopicPartition()
				p.Partition, p.Records = int32(i), make([]byte, 16<<10)
				topic.Partitions = append(topic.Partitions, p)
			}
			k.Topics = append(k.Topics, topic)
			body := k.AppendTo(nil)
			var r wire.ProduceRequest
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := r.Decode(12, body); err != nil {
					b.Fatal(err)
				}
				for it := r.Partitions(); it.Next(); {
				}
			}
		})
	}
}

func BenchmarkProduceEncode(b *testing.B) {
	for _, partitions := range []int{1, 100} {
		b.Run(fmt.Sprintf("partitions=%d", partitions), func(b *testing.B) {
			r := wire.ProduceResponse{Topics: []wire.ProduceTopicResponse{{Name: []byte("events"), Partitions: make([]wire.ProducePartitionResponse, partitions)}}}
			var dst []byte
			b.ReportAllocs()
			for b.Loop() {
				dst = r.AppendTo(dst[:0], 12)
			}
		})
	}
}
