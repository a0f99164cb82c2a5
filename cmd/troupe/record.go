package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// jsonRecord is one record as `consume -o json` prints it and `produce --format json` reads it, so that a topic can be
// copied by a pipe. Bytes that are not UTF-8 travel as base64 under the name with _base64.
type jsonRecord struct {
	Topic       string       `json:"topic,omitempty"`
	Partition   *int32       `json:"partition,omitempty"`
	Offset      *int64       `json:"offset,omitempty"`
	Timestamp   *int64       `json:"timestamp,omitempty"` // milliseconds since 1970
	Key         *string      `json:"key,omitempty"`
	KeyBase64   []byte       `json:"key_base64,omitempty"`
	Value       *string      `json:"value"`
	ValueBase64 []byte       `json:"value_base64,omitempty"`
	Headers     []jsonHeader `json:"headers,omitempty"`
}

type jsonHeader struct {
	Key         string  `json:"key"`
	Value       *string `json:"value"`
	ValueBase64 []byte  `json:"value_base64,omitempty"`
}

// toJSON describes a record that was read.
func toJSON(r *kgo.Record) jsonRecord {
	ms := r.Timestamp.UnixMilli()
	j := jsonRecord{Topic: r.Topic, Partition: &r.Partition, Offset: &r.Offset, Timestamp: &ms}
	j.Key, j.KeyBase64 = toText(r.Key)
	j.Value, j.ValueBase64 = toText(r.Value)
	for _, h := range r.Headers {
		jh := jsonHeader{Key: h.Key}
		jh.Value, jh.ValueBase64 = toText(h.Value)
		j.Headers = append(j.Headers, jh)
	}
	return j
}

// toText gives bytes as text when they are UTF-8, as bytes otherwise; nil stays nil in both.
func toText(b []byte) (*string, []byte) {
	switch {
	case b == nil:
		return nil, nil
	case utf8.Valid(b):
		s := string(b)
		return &s, nil
	}
	return nil, b
}

// fromJSON reads a record to produce. Its Partition is noPartition when the line names none; topic and offset of the
// line are where it came from, and are not used.
func fromJSON(line []byte) (*kgo.Record, error) {
	var j jsonRecord
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields() // a misspelt field would otherwise become a null value
	if err := decoder.Decode(&j); err != nil {
		return nil, fmt.Errorf("not a JSON record: %w", err)
	}
	if decoder.More() {
		return nil, errors.New("there is more than one JSON value in the line")
	}
	r := &kgo.Record{Partition: noPartition}
	var err error
	if r.Key, err = fromText("key", j.Key, j.KeyBase64); err != nil {
		return nil, err
	}
	if r.Value, err = fromText("value", j.Value, j.ValueBase64); err != nil {
		return nil, err
	}
	if j.Partition != nil {
		r.Partition = *j.Partition
	}
	if j.Timestamp != nil {
		r.Timestamp = time.UnixMilli(*j.Timestamp)
	}
	for _, h := range j.Headers {
		value, err := fromText("header "+h.Key, h.Value, h.ValueBase64)
		if err != nil {
			return nil, err
		}
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: value})
	}
	return r, nil
}

func fromText(name string, text *string, b []byte) ([]byte, error) {
	switch {
	case text != nil && b != nil:
		return nil, fmt.Errorf("%s is given as text and as base64", name)
	case text != nil:
		return []byte(*text), nil
	}
	return b, nil
}
