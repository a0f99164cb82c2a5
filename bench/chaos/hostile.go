package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Attack is one way to be a bad client. Run has a fresh connection and returns when it is closed, when ctx ends, or when the
// attack is done; then it gets another connection.
type Attack struct {
	Name string
	Run  func(ctx context.Context, conn net.Conn, random *rand.Rand)
}

// frame puts a length before header and body of a request.
func frame(request kmsg.Request) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("hostile")).AppendRequest(nil, request, 7)
}

// Attacks lists every attack against topic.
func Attacks(topic string) []Attack {
	metadata := kmsg.NewPtrMetadataRequest()
	metadata.Version = 8
	plain := frame(metadata)
	return []Attack{
		{"noise", func(ctx context.Context, c net.Conn, r *rand.Rand) {
			b := make([]byte, 512)
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			write(c, b)
			drain(c)
		}},
		{"http", func(_ context.Context, c net.Conn, _ *rand.Rand) {
			write(c, []byte("GET / HTTP/1.1\r\nHost: broker\r\n\r\n"))
			drain(c)
		}},
		{"silence", func(ctx context.Context, _ net.Conn, _ *rand.Rand) { <-ctx.Done() }},
		{"announces 2 GiB", dribble(withLength(plain, 1<<31-1))},
		{"announces the greatest frame and dribbles", dribble(withLength(produceFrame(topic, nil), 100<<20))},
		{"announces 1 MiB and stops", func(ctx context.Context, c net.Conn, _ *rand.Rand) {
			write(c, withLength(produceFrame(topic, nil), 1<<20))
			<-ctx.Done()
		}},
		{"negative length", func(_ context.Context, c net.Conn, _ *rand.Rand) {
			write(c, withLength(plain, -5))
			drain(c)
		}},
		{"one byte at a time", dribble(plain)},
		{"never reads", func(ctx context.Context, c net.Conn, _ *rand.Rand) {
			pace := time.NewTicker(100 * time.Millisecond) // the broker's work is what hurts, not ours
			defer pace.Stop()
			many := bytes.Repeat(plain, 20)
			for write(c, many) {
				select {
				case <-ctx.Done():
					return
				case <-pace.C:
				}
			}
		}},
		{"unknown API", func(_ context.Context, c net.Conn, _ *rand.Rand) {
			b := append([]byte(nil), plain...)
			binary.BigEndian.PutUint16(b[4:], 9999)
			write(c, b)
			drain(c)
		}},
		{"unknown version", func(_ context.Context, c net.Conn, _ *rand.Rand) {
			b := append([]byte(nil), plain...)
			binary.BigEndian.PutUint16(b[6:], 999)
			write(c, b)
			drain(c)
		}},
		{"array of two thousand million", func(_ context.Context, c net.Conn, _ *rand.Rand) {
			b := append([]byte(nil), plain...)
			// The body of Metadata 8 begins with the number of topics; what follows is three bools.
			binary.BigEndian.PutUint32(b[len(b)-3-4:], 1<<31-1)
			write(c, b)
			drain(c)
		}},
		{"body cut short", func(_ context.Context, c net.Conn, _ *rand.Rand) {
			whole := produceFrame(topic, garbledBatch())
			write(c, withLength(whole[:len(whole)-40], int32(len(whole)-44)))
			drain(c)
		}},
		{"batch with a wrong checksum", func(_ context.Context, c net.Conn, _ *rand.Rand) {
			write(c, produceFrame(topic, garbledBatch()))
			drain(c)
		}},
		{"half a request, then gone", func(_ context.Context, c net.Conn, _ *rand.Rand) { write(c, plain[:len(plain)/2]) }},
	}
}

// write sends b and says whether the peer still took it in time.
func write(c net.Conn, b []byte) bool {
	if err := c.SetWriteDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return false
	}
	_, err := c.Write(b)
	return err == nil
}

// drain reads until the peer closes, or says nothing for a while.
func drain(c net.Conn) {
	if err := c.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, c) // how it ends does not matter: the peer is done with us
}

// dribble sends b one byte at a time.
func dribble(b []byte) func(context.Context, net.Conn, *rand.Rand) {
	return func(ctx context.Context, c net.Conn, _ *rand.Rand) {
		pace := time.NewTicker(100 * time.Millisecond)
		defer pace.Stop()
		for i := range b {
			if !write(c, b[i:i+1]) {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-pace.C:
			}
		}
		drain(c)
	}
}

// withLength copies a frame with another length before it.
func withLength(frame []byte, n int32) []byte {
	b := append([]byte(nil), frame...)
	binary.BigEndian.PutUint32(b, uint32(n))
	return b
}

// produceFrame is a Produce request with bytes as the records of one partition.
func produceFrame(topic string, records []byte) []byte {
	request := kmsg.NewPtrProduceRequest()
	request.Version = 7
	request.Acks = -1
	request.TimeoutMillis = 1000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	p := kmsg.NewProduceRequestTopicPartition()
	p.Records = records
	t.Partitions = append(t.Partitions, p)
	request.Topics = append(request.Topics, t)
	return frame(request)
}

// garbledBatch is a batch of one record whose checksum is not that of its bytes.
func garbledBatch() []byte {
	batch := kmsg.RecordBatch{Magic: 2, Length: 49 + 200, CRC: 12345, NumRecords: 1, Records: make([]byte, 200)}
	return batch.AppendTo(nil)
}

// Swarm runs n hostile connections at a time against addr, the attacks in turn, until ctx ends, and waits for all of them.
// It counts the connections that it made.
func Swarm(ctx context.Context, addr string, attacks []Attack, n int, seed uint64) (connections int) {
	var swarm sync.WaitGroup
	made := make(chan int, n)
	for i := range n {
		swarm.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			count := 0
			for ctx.Err() == nil {
				if assault(ctx, addr, attacks[i%len(attacks)], random) {
					count++
				}
				select { // those that are closed at once would otherwise only measure accept
				case <-ctx.Done():
				case <-time.After(time.Duration(1000+random.IntN(2000)) * time.Millisecond):
				}
			}
			made <- count
		})
	}
	swarm.Wait()
	close(made)
	for count := range made {
		connections += count
	}
	return connections
}

func assault(ctx context.Context, addr string, a Attack, random *rand.Rand) bool {
	dialer := net.Dialer{Timeout: 5 * time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	// Small, so that answers nobody reads soon stay with the broker.
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		return false
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // ends a write or a read that hangs
	defer stop()
	defer func() { _ = conn.Close() }()
	a.Run(ctx, conn, random)
	return true
}

// Behave is the one client that works: it produces a record every interval and takes the time until it is acknowledged,
// from the moment at which it was due. It returns the times in the order of sending.
func Behave(ctx context.Context, addr, topic string, interval, duration time.Duration) ([]time.Duration, error) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(addr),
		kgo.DefaultProduceTopic(topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0),
		kgo.RequiredAcks(kgo.AllISRAcks()),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := client.ProduceSync(ctx, kgo.StringRecord("warm up")).FirstErr(); err != nil {
		return nil, err
	}
	n := int(duration / interval)
	took := make([]time.Duration, n)
	failures := make([]error, n)
	var open sync.WaitGroup
	began := time.Now()
	for i := range n {
		due := began.Add(time.Duration(i) * interval)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Until(due)):
		}
		open.Add(1)
		client.Produce(ctx, kgo.StringRecord("a record of a client that works"), func(_ *kgo.Record, err error) {
			took[i], failures[i] = time.Since(due), err
			open.Done()
		})
	}
	open.Wait()
	return took, errors.Join(failures...)
}
