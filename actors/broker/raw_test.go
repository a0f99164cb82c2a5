package broker_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// raw is a connection on which tests say exactly what they want.
type raw struct {
	net.Conn
	t    testing.TB
	next int32
}

func (r *running) raw() *raw { return &raw{Conn: r.dial(), t: r.t} }

// frame encodes a request with a correlation id.
func frame(correlation int32, req kmsg.Request) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, req, correlation)
}

// send writes a request and returns its correlation id.
func (c *raw) send(req kmsg.Request) int32 {
	c.t.Helper()
	c.next++
	if _, err := c.Write(frame(c.next, req)); err != nil {
		c.t.Fatalf("send %T: %v", req, err)
	}
	return c.next
}

// answer reads the next frame: its correlation id and what follows.
func (c *raw) answer() (int32, []byte, error) {
	if err := c.SetReadDeadline(time.Now().Add(15 * time.Second)); err != nil {
		return 0, nil, err
	}
	var head [8]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return 0, nil, err
	}
	n := int(binary.BigEndian.Uint32(head[:])) - 4
	if n < 0 || n > 200<<20 {
		return 0, nil, fmt.Errorf("an answer of %d bytes", n)
	}
	body := make([]byte, n)
	_, err := io.ReadFull(c, body)
	return int32(binary.BigEndian.Uint32(head[4:])), body, err
}

// receive reads the answer to a request and decodes it.
func (c *raw) receive(correlation int32, req kmsg.Request) kmsg.Response {
	c.t.Helper()
	got, body, err := c.answer()
	if err != nil {
		c.t.Fatalf("answer to %T: %v", req, err)
	}
	if got != correlation {
		c.t.Fatalf("answer to %T: correlation id %d, want %d", req, got, correlation)
	}
	resp := req.ResponseKind()
	if resp.IsFlexible() && req.Key() != int16(kmsg.ApiVersions) {
		body = body[1:] // no tags in our response headers
	}
	if err := resp.ReadFrom(body); err != nil {
		c.t.Fatalf("answer to %T: %v", req, err)
	}
	return resp
}

// ask sends a request and reads its answer.
func (c *raw) ask(req kmsg.Request) kmsg.Response {
	c.t.Helper()
	return c.receive(c.send(req), req)
}

// closed reads until the peer closes, and fails the test if it does not.
func (c *raw) closed(why string) {
	c.t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(15 * time.Second)); err != nil {
		c.t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
		c.t.Fatalf("%s: got a byte, want a closed connection", why)
	} else if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		c.t.Fatalf("%s: the connection stays open", why)
	}
}

// batch builds a record batch of values.
func batch(values ...string) []byte {
	b := record.NewBuilder()
	for i, v := range values {
		b.Append(ident.Millis(time.Now().UnixMilli()+int64(i)), nil, []byte(v))
	}
	out, err := b.Finish(nil)
	if err != nil {
		panic(err)
	}
	return out
}

// produce makes a request of one batch for one partition.
func produce(version, acks int16, topic string, partition int32, records []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.SetVersion(version)
	req.Acks, req.TimeoutMillis = acks, 10_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, records
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// fetch makes a request for one partition.
func fetch(version int16, topic string, partition int32, offset int64) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.SetVersion(version)
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = 0, 1, 50<<20, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic = topic
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, offset, 1<<20
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}
