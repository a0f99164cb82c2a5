package sim

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// hostile sends what no client should, on one connection after the other. What comes back is its own business; that the
// broker lives, and has its memory back in the end, is everybody's.
type hostile struct {
	*client
	finishing bool
}

func (x *hostile) begin()     { x.deaf = true }
func (x *hostile) lost()      {}
func (x *hostile) finish()    { x.finishing = true }
func (x *hostile) done() bool { return true }

func (x *hostile) connected() {
	connection := x.connection
	var again func()
	again = func() {
		if x.end == nil || x.connection != connection {
			return
		}
		if x.finishing || chance(x.rand, 30) {
			x.hangUp()
			return
		}
		x.write(x.nonsense())
		x.after(x.pause(), again)
	}
	again()
}

// nonsense is something to send.
func (x *hostile) nonsense() []byte {
	junk := make([]byte, x.rand.IntN(200))
	for i := range junk {
		junk[i] = byte(x.rand.Uint32())
	}
	switch x.rand.IntN(8) {
	case 0:
		return junk
	case 1: // a length that nobody means
		return binary.BigEndian.AppendUint32(nil, x.rand.Uint32())
	case 2: // a frame of junk
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(junk))), junk...)
	case 3: // the beginning of a large frame, and then nothing
		b := binary.BigEndian.AppendUint32(nil, uint32(1<<10+x.rand.IntN(1<<20)))
		b = append(b, 0, 0, 0, byte(3+x.rand.IntN(10)))
		return append(b, junk...)
	}
	f := x.request()
	switch x.rand.IntN(4) {
	case 0: // cut off
		f = f[:x.rand.IntN(len(f)+1)]
	case 1: // damaged
		for range 1 + x.rand.IntN(4) {
			f[x.rand.IntN(len(f))] ^= 1 << x.rand.IntN(8)
		}
	case 2: // its body damaged, its head good
		if len(f) > 12 {
			f[12+x.rand.IntN(len(f)-12)] ^= 1 << x.rand.IntN(8)
		}
	}
	return f
}

// request is one that a client could send. It touches no topic of the others: what is damaged may still be understood.
func (x *hostile) request() []byte {
	var req kmsg.Request
	switch x.rand.IntN(6) {
	case 0:
		req = kmsg.NewPtrMetadataRequest()
	case 1:
		req = kmsg.NewPtrApiVersionsRequest()
	case 2:
		p := kmsg.NewPtrProduceRequest()
		p.Acks, p.TimeoutMillis = one(x.rand, int16(-1), 0, 1, 7), 100
		t := kmsg.NewProduceRequestTopic()
		t.Topic = "~no such topic~"
		part := kmsg.NewProduceRequestTopicPartition()
		part.Records = make([]byte, x.rand.IntN(2000))
		t.Partitions = append(t.Partitions, part)
		p.Topics = append(p.Topics, t)
		req = p
	case 3:
		f := kmsg.NewPtrFetchRequest()
		f.MaxWaitMillis, f.MinBytes, f.MaxBytes = x.rand.Int32(), x.rand.Int32(), x.rand.Int32()
		f.SessionID, f.SessionEpoch = int32(x.rand.Uint32()), int32(x.rand.IntN(4))-1
		t := kmsg.NewFetchRequestTopic()
		t.Topic = "t0"
		part := kmsg.NewFetchRequestTopicPartition()
		part.Partition, part.FetchOffset, part.PartitionMaxBytes = int32(x.rand.IntN(5))-1, x.rand.Int64()-x.rand.Int64(), x.rand.Int32()
		t.Partitions = append(t.Partitions, part)
		f.Topics = append(f.Topics, t)
		req = f
	case 4:
		req = kmsg.NewPtrListOffsetsRequest()
	default:
		req = kmsg.NewPtrInitProducerIDRequest()
	}
	req.SetVersion(x.versions[req.Key()])
	x.correlation++
	return x.format.AppendRequest(nil, req, x.correlation)
}

// curious asks everything that can be asked, and wants an answer.
type curious struct {
	*client
	busy      bool
	finishing bool
}

func (q *curious) begin()     {}
func (q *curious) lost()      { q.busy = false }
func (q *curious) finish()    { q.finishing = true }
func (q *curious) done() bool { return !q.busy }

func (q *curious) connected() {
	q.busy = false
	connection := q.connection
	var again func()
	again = func() {
		if q.end == nil || q.connection != connection {
			return
		}
		if !q.busy && !q.finishing {
			q.busy = true
			req := q.question()
			q.ask(req, func(_ kmsg.Response, err error) {
				q.busy = false
				if err == nil {
					q.run.counted("asked " + kmsg.NameForKey(req.Key()))
				}
			})
		}
		q.after(q.pause(), again)
	}
	again()
}

// question draws a request.
func (q *curious) question() kmsg.Request {
	partition := int32(q.rand.IntN(4))
	topic := one(q.rand, "t0", "t1", "t2", "nobody's")
	switch q.rand.IntN(11) {
	case 0:
		req := kmsg.NewPtrDescribeConfigsRequest()
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, topic
		req.Resources = append(req.Resources, r)
		return req
	case 1:
		return kmsg.NewPtrDescribeLogDirsRequest()
	case 2:
		req := kmsg.NewPtrListOffsetsRequest()
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic = topic
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.CurrentLeaderEpoch = partition, -1
		p.Timestamp = one(q.rand, int64(-1), -2, -3, -4, -5, int64(wallStart)+int64(q.rand.IntN(5000)))
		t.Partitions = append(t.Partitions, p)
		req.Topics = append(req.Topics, t)
		return req
	case 3:
		req := kmsg.NewPtrOffsetForLeaderEpochRequest()
		req.ReplicaID = -1
		t := kmsg.NewOffsetForLeaderEpochRequestTopic()
		t.Topic = topic
		p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		p.Partition, p.CurrentLeaderEpoch, p.LeaderEpoch = partition, -1, int32(q.rand.IntN(4))
		t.Partitions = append(t.Partitions, p)
		req.Topics = append(req.Topics, t)
		return req
	case 4:
		req := kmsg.NewPtrDescribeProducersRequest()
		t := kmsg.NewDescribeProducersRequestTopic()
		t.Topic, t.Partitions = topic, []int32{partition}
		req.Topics = append(req.Topics, t)
		return req
	case 5:
		req := kmsg.NewPtrDescribeQuorumRequest()
		t := kmsg.NewDescribeQuorumRequestTopic()
		t.Topic = "__cluster_metadata"
		t.Partitions = append(t.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
		req.Topics = append(req.Topics, t)
		return req
	case 6:
		return kmsg.NewPtrDescribeClusterRequest()
	case 7:
		req := kmsg.NewPtrDescribeTopicPartitionsRequest()
		t := kmsg.NewDescribeTopicPartitionsRequestTopic()
		t.Topic = topic
		req.Topics = append(req.Topics, t)
		req.ResponsePartitionLimit = 2000
		return req
	case 8:
		req := kmsg.NewPtrApiVersionsRequest()
		req.ClientSoftwareName, req.ClientSoftwareVersion = "curious", "1"
		return req
	case 9:
		req := kmsg.NewPtrMetadataRequest()
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = new(topic)
		req.Topics = append(req.Topics, t)
		return req
	}
	return kmsg.NewPtrListConfigResourcesRequest()
}
