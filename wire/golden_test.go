package wire_test

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// A change of the transcript may be committed when the frames were captured anew,
// or when a field that was not printed is printed now. Anything else means that a
// request is read differently than it was.
var rewrite = flag.Bool("rewrite", false, "write the transcript of the golden requests anew")

const transcript = "testdata/golden/requests.txt"

func golden(t *testing.T, kind string) (names []string, frames [][]byte) {
	t.Helper()
	paths, err := filepath.Glob("testdata/golden/*/*." + kind + ".hex")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := hex.DecodeString(strings.ReplaceAll(string(text), "\n", ""))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		names = append(names, strings.TrimSuffix(filepath.ToSlash(strings.TrimPrefix(path, filepath.FromSlash("testdata/golden/"))), "."+kind+".hex"))
		frames = append(frames, b)
	}
	return names, frames
}

func TestGoldenRequestsReadAsTheyDid(t *testing.T) {
	names, frames := golden(t, "req")
	seen := map[wire.Key]map[int16]bool{}
	var out strings.Builder
	for i, frame := range frames {
		s := wire.Scanner{Limit: 1 << 20}
		f, err := s.Scan(frame)
		if err != nil || !f.Complete || f.Size != len(frame) {
			t.Fatalf("%s: %+v, %v", names[i], f, err)
		}
		h, body, err := wire.ParseRequestHeader(f.Body)
		if err != nil {
			t.Fatalf("%s: %v", names[i], err)
		}
		if seen[h.Key] == nil {
			seen[h.Key] = map[int16]bool{}
		}
		seen[h.Key][h.Version] = true
		fmt.Fprintf(&out, "%s\n  %v version %d, correlation %d, client %q\n", names[i], h.Key, h.Version, h.CorrelationID, h.ClientID)
		if err := describe(&out, h, body); err != nil {
			t.Fatalf("%s: %v", names[i], err)
		}
	}
	for _, key := range []wire.Key{wire.KeyProduce, wire.KeyFetch} {
		api, _ := wire.Lookup(key)
		for version := api.Min; version <= api.Max; version++ {
			if !seen[key][version] {
				t.Errorf("no golden request of %v version %d", key, version)
			}
		}
	}
	if *rewrite {
		if err := os.WriteFile(transcript, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(transcript)
	if err != nil {
		t.Fatal(err)
	}
	got, wanted := strings.Split(out.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(wanted)) {
		if i >= len(got) || i >= len(wanted) || got[i] != wanted[i] {
			t.Fatalf("%s:%d differs\ngot  %q\nwant %q", transcript, i+1, got[min(i, len(got)-1)], wanted[min(i, len(wanted)-1)])
		}
	}
}

// describe prints what a request asks.
func describe(out *strings.Builder, h wire.RequestHeader, body []byte) error {
	switch h.Key {
	case wire.KeyProduce:
		var r wire.ProduceRequest
		if err := r.Decode(h.Version, body); err != nil {
			return err
		}
		fmt.Fprintf(out, "  transactional id %q, acks %d, timeout %d ms\n", r.TransactionalID, r.Acks, r.TimeoutMillis)
		for it := r.Partitions(); it.Next(); {
			fmt.Fprintf(out, "  topic %q %v, partition %d, %d bytes\n", it.TopicName, it.TopicID, it.Partition, len(it.Records))
			if err := describeBatch(out, it.Records); err != nil {
				return err
			}
		}
	case wire.KeyFetch:
		var r wire.FetchRequest
		if err := r.Decode(h.Version, body); err != nil {
			return err
		}
		fmt.Fprintf(out, "  replica %v epoch %v, wait %d ms, bytes %d to %d, isolation %d, session %d epoch %d, rack %q, cluster %q\n",
			r.ReplicaID, r.ReplicaEpoch, r.MaxWaitMillis, r.MinBytes, r.MaxBytes, r.IsolationLevel, r.SessionID, r.SessionEpoch, r.RackID, r.ClusterID)
		for it := r.Partitions(); it.Next(); {
			fmt.Fprintf(out, "  topic %q %v: %+v\n", it.TopicName, it.TopicID, it.FetchPartition)
		}
		for it := r.Forgotten(); it.Next(); {
			fmt.Fprintf(out, "  forgets topic %q %v partition %d\n", it.TopicName, it.TopicID, it.Partition)
		}
	default:
		req, err := wire.DecodeBody(h.Key, h.Version, body)
		if err != nil {
			return err
		}
		if v, ok := req.(*kmsg.ApiVersionsRequest); ok {
			fmt.Fprintf(out, "  software %q %q\n", v.ClientSoftwareName, v.ClientSoftwareVersion)
		}
	}
	return nil
}

func describeBatch(out *strings.Builder, b []byte) error {
	rules := record.DefaultRules()
	rules.Depth = record.DepthFull
	v, _, err := record.Split(b)
	if err != nil {
		return err
	}
	res, err := record.Validate(nil, b, v.MaxTimestamp(), &rules)
	if err != nil {
		return err
	}
	h := res.Header
	fmt.Fprintf(out, "  batch: epoch %v, crc %08x, attributes %#x, last offset delta %d, producer %v epoch %v sequence %v, %d records\n",
		h.LeaderEpoch, h.CRC, h.Attributes, h.LastOffsetDelta, h.ProducerID, h.ProducerEpoch, h.BaseSequence, h.Count)
	var it record.Iterator
	defer it.Close()
	if err := it.Reset(res.Batch, record.Bound{}); err != nil {
		return err
	}
	for it.Next() {
		r := it.Record()
		fmt.Fprintf(out, "  record: delta %d, key %q, value %q", r.OffsetDelta, r.Key, r.Value)
		for h := r.Headers(); h.Next(); {
			fmt.Fprintf(out, ", header %q = %x", h.Key(), h.Value())
		}
		out.WriteByte('\n')
	}
	return it.Err()
}

// The answers that the clients took are written again, byte for byte, from what
// kmsg reads in them.
func TestGoldenResponsesAreWrittenAgain(t *testing.T) {
	names, frames := golden(t, "resp")
	for i, frame := range frames {
		api, version := goldenAPI(t, names[i])
		resp := kmsg.RequestForKey(int16(api.Key)).ResponseKind()
		resp.SetVersion(version)
		dst := wire.BeginResponse(nil, api, version, int32(frame[4])<<24|int32(frame[5])<<16|int32(frame[6])<<8|int32(frame[7]))
		if err := resp.ReadFrom(frame[len(dst):]); err != nil {
			t.Fatalf("%s: %v", names[i], err)
		}
		switch k := resp.(type) {
		case *kmsg.ProduceResponse:
			dst = produceResponseOf(k).AppendTo(dst, version)
		case *kmsg.FetchResponse:
			r, regions := fetchResponseOf(k)
			head, cuts := r.AppendTo(nil, nil, version)
			whole, err := splice(head, cuts, regions)
			if err != nil {
				t.Fatalf("%s: %v", names[i], err)
			}
			dst = append(dst, whole...)
		default:
			dst = resp.AppendTo(dst)
		}
		if err := wire.EndResponse(dst, 0, 0); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(dst, frame) {
			t.Errorf("%s:\ngot  %x\nwant %x", names[i], dst, frame)
		}
	}
}

// goldenAPI finds the API and version in a name such as fetch/v12.java.
func goldenAPI(t *testing.T, name string) (*wire.API, int16) {
	t.Helper()
	folder, file, _ := strings.Cut(name, "/")
	var version int16
	if _, err := fmt.Sscanf(file, "v%d.", &version); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for i := range wire.APIs() {
		if api := &wire.APIs()[i]; strings.ToLower(api.Name) == folder {
			return api, version
		}
	}
	t.Fatalf("%s: no such API", name)
	return nil, 0
}

func produceResponseOf(k *kmsg.ProduceResponse) *wire.ProduceResponse {
	r := &wire.ProduceResponse{ThrottleMillis: k.ThrottleMillis}
	for _, t := range k.Topics {
		topic := wire.ProduceTopicResponse{Name: []byte(t.Topic), ID: t.TopicID}
		for _, p := range t.Partitions {
			topic.Partitions = append(topic.Partitions, wire.ProducePartitionResponse{
				Partition: p.Partition, Error: wire.ErrorCode(p.ErrorCode), BaseOffset: ident.Offset(p.BaseOffset),
				LogAppendTime: ident.Millis(p.LogAppendTime), LogStartOffset: ident.Offset(p.LogStartOffset),
			})
		}
		r.Topics = append(r.Topics, topic)
	}
	return r
}

func fetchResponseOf(k *kmsg.FetchResponse) (*wire.FetchResponse, [][]byte) {
	r := &wire.FetchResponse{ThrottleMillis: k.ThrottleMillis, Error: wire.ErrorCode(k.ErrorCode), SessionID: k.SessionID}
	var regions [][]byte
	for _, t := range k.Topics {
		topic := wire.FetchTopicResponse{Name: []byte(t.Topic), ID: t.TopicID}
		for _, p := range t.Partitions {
			topic.Partitions = append(topic.Partitions, wire.FetchPartitionResponse{
				Partition: p.Partition, Error: wire.ErrorCode(p.ErrorCode), HighWatermark: ident.Offset(p.HighWatermark), LastStableOffset: ident.Offset(p.LastStableOffset),
				LogStartOffset: ident.Offset(p.LogStartOffset), AbortedNull: p.AbortedTransactions == nil, PreferredReadReplica: ident.BrokerID(p.PreferredReadReplica),
				RecordsSize: int32(len(p.RecordBatches)),
			})
			if len(p.RecordBatches) > 0 {
				regions = append(regions, p.RecordBatches)
			}
		}
		r.Topics = append(r.Topics, topic)
	}
	return r, regions
}
