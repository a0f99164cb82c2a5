package wire_test

import (
	"context"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// The golden frames are what real clients send, and answers that they took. They
// are captured anew by
//
//	go test ./wire -run TestCapture -capture -kafka-classpath "$(…)"
//
// which runs each client that the machine has against a broker that knows one
// topic and advertises one version after the other.
var (
	capture        = flag.Bool("capture", false, "capture golden frames from real clients")
	kafkaClasspath = flag.String("kafka-classpath", "", "jars of Apache Kafka's tools, for -capture")
)

const goldenTopic = "golden"

var goldenID = ident.TopicID{0: 0xc0, 7: 0x4a, 15: 0x01}

// scripted is a broker that says what a client needs to hear to produce to one
// partition and to read it back, and keeps the frames.
type scripted struct {
	produceMax, fetchMax int16
	port                 int32

	mu     sync.Mutex
	log    []byte       // batches
	end    ident.Offset // next offset
	frames map[string][]byte
}

func (s *scripted) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			_ = s.talk(conn) // a client that goes away is how each talk ends
			_ = conn.Close()
		}()
	}
}

func (s *scripted) talk(conn net.Conn) error {
	scanner := wire.Scanner{Limit: 1 << 20}
	for {
		head := make([]byte, wire.LengthSize)
		if _, err := io.ReadFull(conn, head); err != nil {
			return err
		}
		f, err := scanner.Scan(head)
		if err != nil {
			return err
		}
		frame := append(head, make([]byte, f.Size-len(head))...)
		if _, err := io.ReadFull(conn, frame[len(head):]); err != nil {
			return err
		}
		h, body, err := wire.ParseRequestHeader(frame[wire.LengthSize:])
		version := h.Version
		if err != nil {
			if h.API == nil {
				return err
			}
			version = 0 // an ApiVersions to come
		}
		answer, keep, err := s.answer(h, version, body)
		if err != nil {
			return err
		}
		if answer == nil {
			continue
		}
		if keep {
			s.mu.Lock()
			name := fmt.Sprintf("%s/v%02d", strings.ToLower(h.API.Name), h.Version)
			if _, seen := s.frames[name+".req"]; !seen {
				s.frames[name+".req"], s.frames[name+".resp"] = frame, answer
			}
			s.mu.Unlock()
		}
		if _, err := conn.Write(answer); err != nil {
			return err
		}
	}
}

// answer gives the frame of the response, nil for none, and whether the exchange
// is worth keeping.
func (s *scripted) answer(h wire.RequestHeader, version int16, body []byte) ([]byte, bool, error) {
	dst := wire.BeginResponse(nil, h.API, version, h.CorrelationID)
	keep := true
	switch h.Key {
	case wire.KeyProduce:
		var req wire.ProduceRequest
		if err := req.Decode(version, body); err != nil {
			return nil, false, err
		}
		resp := wire.ProduceResponse{}
		for it := req.Partitions(); it.Next(); {
			s.mu.Lock()
			v, _, err := record.Split(append([]byte(nil), it.Records...))
			if err != nil {
				s.mu.Unlock()
				return nil, false, err
			}
			v.SetBaseOffset(s.end)
			resp.Topics = append(resp.Topics, wire.ProduceTopicResponse{Name: it.TopicName, ID: it.TopicID, Partitions: []wire.ProducePartitionResponse{
				{Partition: it.Partition, BaseOffset: s.end, LogAppendTime: ident.NoTimestamp},
			}})
			s.log = append(s.log, v...)
			s.end = v.NextOffset()
			s.mu.Unlock()
		}
		if req.Acks == 0 {
			return nil, false, nil
		}
		dst = resp.AppendTo(dst, version)
	case wire.KeyFetch:
		var req wire.FetchRequest
		if err := req.Decode(version, body); err != nil {
			return nil, false, err
		}
		resp, data := s.fetch(&req)
		keep = len(data) > 0
		if !keep {
			time.Sleep(50 * time.Millisecond)
		}
		head, cuts := resp.AppendTo(nil, nil, version)
		var regions [][]byte
		if keep {
			regions = append(regions, data)
		}
		whole, err := splice(head, cuts, regions)
		if err != nil {
			return nil, false, err
		}
		dst = append(dst, whole...)
	default:
		req, err := wire.DecodeBody(h.Key, version, body)
		if err != nil && h.Key != wire.KeyApiVersions {
			return nil, false, err
		}
		if err != nil {
			req = kmsg.NewPtrApiVersionsRequest()
		}
		resp := s.admin(req, h.Version)
		if resp == nil {
			return nil, false, fmt.Errorf("no script for %v", h.Key)
		}
		resp.SetVersion(version)
		dst = resp.AppendTo(dst)
		keep = h.Key == wire.KeyApiVersions
	}
	return dst, keep, wire.EndResponse(dst, 0, 0)
}

func (s *scripted) fetch(req *wire.FetchRequest) (*wire.FetchResponse, []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	resp := &wire.FetchResponse{}
	var data []byte
	for it := req.Partitions(); it.Next(); {
		p := wire.FetchPartitionResponse{Partition: it.Partition, HighWatermark: s.end, LastStableOffset: s.end, AbortedNull: req.IsolationLevel == 0, PreferredReadReplica: ident.NoBroker}
		if it.FetchOffset < s.end {
			data = append([]byte(nil), s.log...)
			p.RecordsSize = int32(len(data))
		}
		resp.Topics = append(resp.Topics, wire.FetchTopicResponse{Name: it.TopicName, ID: it.TopicID, Partitions: []wire.FetchPartitionResponse{p}})
	}
	return resp, data
}

func (s *scripted) admin(req kmsg.Request, asked int16) kmsg.Response {
	switch req := req.(type) {
	case *kmsg.ApiVersionsRequest:
		resp := kmsg.NewPtrApiVersionsResponse()
		if api, _ := wire.Lookup(wire.KeyApiVersions); !api.Serves(asked) {
			resp.ErrorCode = int16(wire.UnsupportedVersion)
		}
		for _, api := range wire.APIs() {
			key := kmsg.NewApiVersionsResponseApiKey()
			key.ApiKey, key.MinVersion, key.MaxVersion = int16(api.Key), api.AdvertisedMin, api.Max
			switch api.Key {
			case wire.KeyProduce:
				key.MaxVersion = s.produceMax
			case wire.KeyFetch:
				key.MaxVersion = s.fetchMax
			case wire.KeyMetadata, wire.KeyListOffsets, wire.KeyInitProducerID, wire.KeyApiVersions:
			default:
				continue
			}
			resp.ApiKeys = append(resp.ApiKeys, key)
		}
		return resp
	case *kmsg.MetadataRequest:
		resp := kmsg.NewPtrMetadataResponse()
		b := kmsg.NewMetadataResponseBroker()
		b.Host, b.Port = "127.0.0.1", s.port
		resp.Brokers = append(resp.Brokers, b)
		name := goldenTopic
		t := kmsg.NewMetadataResponseTopic()
		t.Topic, t.TopicID = &name, goldenID
		p := kmsg.NewMetadataResponseTopicPartition()
		p.Replicas, p.ISR = []int32{0}, []int32{0}
		t.Partitions = append(t.Partitions, p)
		resp.Topics = append(resp.Topics, t)
		return resp
	case *kmsg.InitProducerIDRequest:
		resp := kmsg.NewPtrInitProducerIDResponse()
		resp.ProducerID = 1000
		return resp
	case *kmsg.ListOffsetsRequest:
		resp := kmsg.NewPtrListOffsetsResponse()
		for _, t := range req.Topics {
			rt := kmsg.NewListOffsetsResponseTopic()
			rt.Topic = t.Topic
			for _, p := range t.Partitions {
				rp := kmsg.NewListOffsetsResponseTopicPartition()
				rp.Partition, rp.Timestamp, rp.Offset = p.Partition, -1, 0
				if p.Timestamp == -1 {
					s.mu.Lock()
					rp.Offset = int64(s.end)
					s.mu.Unlock()
				}
				rt.Partitions = append(rt.Partitions, rp)
			}
			resp.Topics = append(resp.Topics, rt)
		}
		return resp
	}
	return nil
}

// goldenClients produce one record to the broker at addr and read it back.
var goldenClients = map[string]func(ctx context.Context, addr string) error{
	"franz-go": func(ctx context.Context, addr string) error {
		cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ClientID("golden"), kgo.DefaultProduceTopic(goldenTopic),
			kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{goldenTopic: {0: kgo.NewOffset().AtStart()}}))
		if err != nil {
			return err
		}
		defer cl.Close()
		rec := &kgo.Record{Key: []byte("key"), Value: []byte("value"), Headers: []kgo.RecordHeader{{Key: "header", Value: []byte{1}}}}
		if err := cl.ProduceSync(ctx, rec).FirstErr(); err != nil {
			return err
		}
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		if n := fetches.NumRecords(); n != 1 {
			return fmt.Errorf("%d records were read back", n)
		}
		return nil
	},
	"librdkafka": func(ctx context.Context, addr string) error {
		produce := exec.CommandContext(ctx, "kcat", "-P", "-b", addr, "-t", goldenTopic, "-p", "0", "-K", ":", "-X", "client.id=golden")
		produce.Stdin = strings.NewReader("key:value\n")
		if out, err := produce.CombinedOutput(); err != nil {
			return fmt.Errorf("kcat -P: %w: %s", err, out)
		}
		out, err := exec.CommandContext(ctx, "kcat", "-C", "-b", addr, "-t", goldenTopic, "-p", "0", "-o", "beginning", "-c", "1", "-K", ":", "-X", "client.id=golden").Output()
		if err != nil || string(out) != "key:value\n" {
			return fmt.Errorf("kcat -C: %q: %w", out, err)
		}
		return nil
	},
	"java": func(ctx context.Context, addr string) error {
		produce := exec.CommandContext(ctx, "java", "-cp", *kafkaClasspath, "org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", addr,
			"--topic", goldenTopic, "--reader-property", "parse.key=true", "--reader-property", "key.separator=:", "--command-property", "client.id=golden")
		produce.Stdin = strings.NewReader("key:value\n")
		if out, err := produce.CombinedOutput(); err != nil {
			return fmt.Errorf("ConsoleProducer: %w: %s", err, out)
		}
		out, err := exec.CommandContext(ctx, "java", "-cp", *kafkaClasspath, "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", addr,
			"--topic", goldenTopic, "--partition", "0", "--offset", "earliest", "--max-messages", "1", "--timeout-ms", "20000", "--command-property", "client.id=golden").CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "value\n") {
			return fmt.Errorf("ConsoleConsumer: %q: %w", out, err)
		}
		return nil
	},
}

func TestCapture(t *testing.T) {
	if !*capture {
		t.Skip("golden frames are captured with -capture")
	}
	for name, run := range goldenClients {
		if _, err := exec.LookPath("kcat"); name == "librdkafka" && err != nil {
			t.Log("no kcat here: librdkafka's frames stay as they are")
			continue
		}
		if name == "java" && *kafkaClasspath == "" {
			t.Log("no -kafka-classpath: Java's frames stay as they are")
			continue
		}
		for step := range int16(15) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			s := &scripted{produceMax: min(3+step, 13), fetchMax: 4 + step, port: int32(l.Addr().(*net.TCPAddr).Port), frames: map[string][]byte{}}
			go s.serve(l)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			err = run(ctx, l.Addr().String())
			cancel()
			if closeErr := l.Close(); closeErr != nil {
				t.Fatal(closeErr)
			}
			if err != nil {
				t.Errorf("%s, Produce %d, Fetch %d: %v", name, s.produceMax, s.fetchMax, err)
				continue
			}
			s.mu.Lock()
			for frame, b := range s.frames {
				base, kind, _ := strings.Cut(frame, ".")
				path := filepath.Join("testdata", "golden", fmt.Sprintf("%s.%s.%s.hex", base, name, kind))
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(hexLines(b)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			s.mu.Unlock()
		}
	}
}

// hexLines prints bytes 32 to a line.
func hexLines(b []byte) string {
	var out strings.Builder
	for len(b) > 0 {
		n := min(len(b), 32)
		out.WriteString(hex.EncodeToString(b[:n]))
		out.WriteByte('\n')
		b = b[n:]
	}
	return out.String()
}
