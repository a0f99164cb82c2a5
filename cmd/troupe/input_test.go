package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/troupe-broker/troupe/wire/record"
)

// read collects all records of an input and the error that ended it.
func read(t *testing.T, text string, f *lineFormat) ([]*kgo.Record, error) {
	t.Helper()
	var records []*kgo.Record
	for run := range readRecords(t.Context(), strings.NewReader(text), f) {
		records = append(records, run.records...)
		if run.err != nil {
			return records, run.err
		}
	}
	t.Fatal("the input ended without saying so")
	return nil, nil
}

func TestLinesBecomeRecords(t *testing.T) {
	long := strings.Repeat("x", 200_000) // longer than the reader's buffer
	for _, c := range []struct {
		name, text string
		format     lineFormat
		want       []string // key=value; - is null
	}{
		{"values", "a\nb\n", lineFormat{}, []string{"-=a", "-=b"}},
		{"no line end at the end", "a\nb", lineFormat{}, []string{"-=a", "-=b"}},
		{"nothing", "", lineFormat{}, nil},
		{"empty lines are empty values", "\n\n", lineFormat{}, []string{"-=", "-="}},
		{"a carriage return is part of the value", "a\r\n", lineFormat{}, []string{"-=a\r"}},
		{"keys", "k:v:w\n:x\n", lineFormat{separator: ":"}, []string{"k=v:w", "=x"}},
		{"long separator", "k=>v\n", lineFormat{separator: "=>"}, []string{"k=v"}},
		{"nulls", "k:NULL\nNULL:v\n", lineFormat{separator: ":", null: "NULL"}, []string{"k=-", "-=v"}},
		{"one key", "a\nb\n", lineFormat{key: []byte("k")}, []string{"k=a", "k=b"}},
		{"long line", long + "\nb\n", lineFormat{}, []string{"-=" + long, "-=b"}},
		{"json", `{"key":"k","value":"v"}` + "\n" + `{"value":null}` + "\n" + `{"value_base64":"AP8="}`, lineFormat{json: true}, []string{"k=v", "-=-", "-=\x00\xff"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			records, err := read(t, c.text, &c.format)
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			var got []string
			for _, r := range records {
				got = append(got, orDash(r.Key)+"="+orDash(r.Value))
			}
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got %.100q, want %.100q", got, c.want)
			}
		})
	}
}

func orDash(b []byte) string {
	if b == nil {
		return "-"
	}
	return string(b)
}

func TestABadLineIsNamedAndWhatIsBeforeItIsKept(t *testing.T) {
	for _, c := range []struct {
		text   string
		format lineFormat
		want   string
	}{
		{"a:b\nnothing\n", lineFormat{separator: ":"}, `line 2: there is no ":" between key and value`},
		{`{"value":"a"}` + "\n{", lineFormat{json: true}, "line 2: not a JSON record"},
		{`{"value":"a"}` + "\n" + `{"val":"b"}`, lineFormat{json: true}, `unknown field "val"`},
		{`{"value":"a"}` + "\n" + `{"value":"b"} {}`, lineFormat{json: true}, "more than one"},
		{`{"value":"a"}` + "\n" + `{"value":"b","value_base64":"YQ=="}`, lineFormat{json: true}, "value is given as text and as base64"},
	} {
		records, err := read(t, c.text, &c.format)
		if err == nil || !strings.Contains(err.Error(), c.want) || asFailure(err).Code != codeInput {
			t.Errorf("%q: got %v, want %q with %s", c.text, err, c.want, codeInput)
		}
		if len(records) != 1 {
			t.Errorf("%q: %d records, want the one before", c.text, len(records))
		}
	}
}

func TestReadingStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	runs := readRecords(ctx, reader, &lineFormat{})
	if _, err := writer.Write([]byte("a\n")); err != nil {
		t.Fatal(err)
	}
	if run := <-runs; len(run.records) != 1 {
		t.Fatalf("got %+v", run)
	}
	cancel()
	if err := writer.Close(); err != nil { // ends the read that hangs
		t.Fatal(err)
	}
	for range runs { // closed, not blocked on a reader that is gone
	}
}

func TestARecordSurvivesTheRoundTripThroughJSON(t *testing.T) {
	original := &kgo.Record{
		Key: []byte{0xff, 0}, Value: []byte("värde"), Timestamp: time.UnixMilli(1_700_000_000_123),
		Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("1")}, {Key: "h", Value: nil}, {Key: "b", Value: []byte{0xfe}}}, Partition: 3,
	}
	b, err := json.Marshal(toJSON(original))
	if err != nil {
		t.Fatal(err)
	}
	back, err := fromJSON(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(back.Key, original.Key) || !bytes.Equal(back.Value, original.Value) || !back.Timestamp.Equal(original.Timestamp) || back.Partition != 3 {
		t.Errorf("got %+v", back)
	}
	for i, h := range original.Headers {
		if got := back.Headers[i]; got.Key != h.Key || !bytes.Equal(got.Value, h.Value) || (got.Value == nil) != (h.Value == nil) {
			t.Errorf("header %d is %+v, want %+v", i, got, h)
		}
	}
}

// Kafka's own clients send this key there; a consumer of a topic written by both relies on it.
func TestKeysGoWhereKafkasClientsSendThem(t *testing.T) {
	topic := partitioner(&misplaced{}).ForTopic("orders")
	for _, c := range []struct {
		key              string
		partitions, want int
	}{{"C-14", 3, 1}, {"C-14", 4, 2}} {
		r := &kgo.Record{Key: []byte(c.key), Partition: noPartition}
		if !topic.RequiresConsistency(r) {
			t.Error("a key's partition may not depend on which leaders live")
		}
		if got := topic.Partition(r, c.partitions); got != c.want {
			t.Errorf("%s goes to %d of %d, want %d", c.key, got, c.partitions, c.want)
		}
		if hash := record.Murmur2([]byte(c.key)); int(hash&0x7fffffff)%c.partitions != c.want {
			t.Errorf("murmur2(%s) is %d", c.key, hash)
		}
	}
	if got := topic.Partition(&kgo.Record{Key: []byte("C-14"), Partition: 0}, 3); got != 0 {
		t.Errorf("a record that asks for partition 0 goes to %d", got)
	}
}
