package main

import (
	"bytes"
	"fmt"
	"math/rand"
)

// corpus gives the records that each cell holds, new ones a call, so that a check may change them. Timestamps rise
// from first in steps of 7 ms, with one record out of order.
func corpus(first int64) []record {
	text := func(s string) []byte { return []byte(s) }
	everyByte := make([]byte, 256)
	for i := range everyByte {
		everyByte[i] = byte(i)
	}
	noise := make([]byte, 3000) // does not compress
	random := rand.New(rand.NewSource(11))
	for i := range noise {
		noise[i] = byte(random.Intn(256))
	}
	long := bytes.Repeat(text("the same line again and again, "), 1500) // 46 KB that compress

	records := []record{
		{Key: text("key"), Value: text("value")},
		{Key: text("key"), Value: text("the same key again")},
		{Key: text("κλειδί"), Value: text("ценность 値 🎭")},
		{Key: everyByte, Value: everyByte},
		{Key: text("noise"), Value: noise},
		{Key: text("long"), Value: long},
		{Key: text("k"), Value: text("a header"), Headers: []header{{"name", text("value")}}},
		{Key: text("k"), Value: text("several headers"), Headers: []header{
			{"b", text("1")}, {"a", text("2")}, {"c", text("3")}, {"b", text("a name may return")},
		}},
		{Key: text("k"), Value: text("odd headers"), Headers: []header{
			{"empty", []byte{}}, {"bytes", []byte{0x01, 0xff, 0x80}}, {"zero", []byte{0, 0}}, {"имя", text("utf-8")},
		}},
		{Key: text("k"), Value: text("a null header"), Headers: []header{{"null", nil}}},
		{Key: nil, Value: text("a null key")},
		{Key: []byte{}, Value: text("an empty key")},
		{Key: text("a tombstone"), Value: nil},
		{Key: text("an empty value"), Value: []byte{}},
		{Key: nil, Value: nil},
	}
	for i := range 25 {
		records = append(records, record{Key: fmt.Appendf(nil, "key-%d", i%5), Value: fmt.Appendf(nil, "one of many, number %d", i)})
	}
	for i := range records {
		records[i].Timestamp = first + int64(i)*7
		records[i].Offset = int64(i)
	}
	records[4].Timestamp = first - 50_000
	return records
}

// writable gives the records as a client can write them: what it lacks is taken out of them.
func writable(h hello, records []record) []record {
	for i := range records {
		r := &records[i]
		kept := r.Headers[:0:0]
		for _, header := range r.Headers {
			if header.Value == nil && h.lacks(lacksNullHeader) {
				continue
			}
			if bytes.IndexByte(header.Value, 0) >= 0 && h.lacks(lacksNulHeader) {
				continue
			}
			kept = append(kept, header)
		}
		r.Headers = kept
		if r.Key == nil && r.Value == nil && h.lacks(lacksNothing) {
			r.Key = []byte("not quite nothing")
		}
		if h.lacks(lacksTimestamp) {
			r.Timestamp = 0
		}
	}
	return records
}
