package load

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
)

// Versions of the two requests that the generator encodes by hand. They are the
// newest ones without flexible fields, so that the error code of a response lies at a
// fixed place (Kafka's ProduceResponse.json and FetchResponse.json).
const (
	produceVersion = 7
	fetchVersion   = 11
)

const (
	keyProduce = 0
	keyFetch   = 1

	batchHeaderBytes = 61
	clientID         = "troupe-bench"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Payload describes the records of one request.
type Payload struct {
	// RecordBytes is the size of each record's value.
	RecordBytes int
	// RequestBytes is the size that the batch comes close to and does not exceed,
	// unless a single record does.
	RequestBytes int
	// Seed makes the (incompressible) content repeatable.
	Seed uint64
}

// Batch encodes one record batch (magic 2, no compression, no producer id) with as many
// of the payload's records as RequestBytes holds, and says how many there are.
func (p Payload) Batch() (batch []byte, records int) {
	rng := rand.New(rand.NewPCG(p.Seed, 1))
	body := make([]byte, 0, p.RequestBytes+p.RecordBytes)
	value := make([]byte, p.RecordBytes)
	for {
		for j := 0; j+8 <= len(value); j += 8 {
			binary.LittleEndian.PutUint64(value[j:], rng.Uint64())
		}
		longer := appendRecord(body, records, value)
		if records > 0 && batchHeaderBytes+len(longer) > p.RequestBytes {
			return sealBatch(body, records), records
		}
		body = longer
		records++
	}
}

func appendRecord(dst []byte, delta int, value []byte) []byte {
	rec := make([]byte, 0, len(value)+24)
	rec = append(rec, 0) // attributes
	rec = binary.AppendVarint(rec, 0)
	rec = binary.AppendVarint(rec, int64(delta))
	rec = binary.AppendVarint(rec, -1) // null key
	rec = binary.AppendVarint(rec, int64(len(value)))
	rec = append(rec, value...)
	rec = binary.AppendVarint(rec, 0) // no headers
	dst = binary.AppendVarint(dst, int64(len(rec)))
	return append(dst, rec...)
}

func sealBatch(records []byte, count int) []byte {
	b := make([]byte, batchHeaderBytes, batchHeaderBytes+len(records))
	b = append(b, records...)
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	binary.BigEndian.PutUint32(b[12:], ^uint32(0)) // partition leader epoch: none
	b[16] = 2
	binary.BigEndian.PutUint32(b[23:], uint32(count-1))
	const timestamp = 1_700_000_000_000
	binary.BigEndian.PutUint64(b[27:], timestamp)
	binary.BigEndian.PutUint64(b[35:], timestamp)
	binary.BigEndian.PutUint64(b[43:], ^uint64(0)) // producer id: none
	binary.BigEndian.PutUint16(b[51:], ^uint16(0))
	binary.BigEndian.PutUint32(b[53:], ^uint32(0))
	binary.BigEndian.PutUint32(b[57:], uint32(count))
	stampCRC(b)
	return b
}

func stampCRC(batch []byte) {
	binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], castagnoli))
}

func appendHeader(dst []byte, key, version int16) []byte {
	dst = append(dst, 0, 0, 0, 0) // frame size, set by seal
	dst = binary.BigEndian.AppendUint16(dst, uint16(key))
	dst = binary.BigEndian.AppendUint16(dst, uint16(version))
	dst = append(dst, 0, 0, 0, 0) // correlation id, patched before each send
	return appendString(dst, clientID)
}

func appendString(dst []byte, s string) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(s)))
	return append(dst, s...)
}

func sealFrame(frame []byte) []byte {
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
}

func setCorrelation(frame []byte, id uint32) { binary.BigEndian.PutUint32(frame[8:], id) }

// produceFrame encodes a whole Produce request. batchAt is where the batch starts.
func produceFrame(topic string, partition int32, acks int16, batch []byte) (frame []byte, batchAt int) {
	f := appendHeader(make([]byte, 0, len(batch)+128), keyProduce, produceVersion)
	f = binary.BigEndian.AppendUint16(f, ^uint16(0)) // transactional id: null
	f = binary.BigEndian.AppendUint16(f, uint16(acks))
	f = binary.BigEndian.AppendUint32(f, 30_000)
	f = binary.BigEndian.AppendUint32(f, 1)
	f = appendString(f, topic)
	f = binary.BigEndian.AppendUint32(f, 1)
	f = binary.BigEndian.AppendUint32(f, uint32(partition))
	f = binary.BigEndian.AppendUint32(f, uint32(len(batch)))
	batchAt = len(f)
	return sealFrame(append(f, batch...)), batchAt
}

// produceAck reads the only partition of a Produce v7 response body (correlation id
// included).
func produceAck(body []byte, topic string) (offset int64, err error) {
	at := 4 + 4 + 2 + len(topic) + 4 + 4
	if len(body) < at+10 {
		return 0, fmt.Errorf("produce response of %d bytes is too short", len(body))
	}
	if code := int16(binary.BigEndian.Uint16(body[at:])); code != 0 {
		return 0, fmt.Errorf("produce answered Kafka error %d", code)
	}
	return int64(binary.BigEndian.Uint64(body[at+2:])), nil
}

// fetchFrame encodes a Fetch request without a session; offsetAt is where the fetch
// offset lies.
func fetchFrame(topic string, waitMs, bytesMax int32) (frame []byte, offsetAt int) {
	f := appendHeader(nil, keyFetch, fetchVersion)
	f = binary.BigEndian.AppendUint32(f, ^uint32(0)) // replica id: a consumer
	f = binary.BigEndian.AppendUint32(f, uint32(waitMs))
	f = binary.BigEndian.AppendUint32(f, 1)
	f = binary.BigEndian.AppendUint32(f, uint32(bytesMax))
	f = append(f, 0)                                 // read uncommitted
	f = binary.BigEndian.AppendUint32(f, 0)          // session id
	f = binary.BigEndian.AppendUint32(f, ^uint32(0)) // session epoch: none wanted
	f = binary.BigEndian.AppendUint32(f, 1)
	f = appendString(f, topic)
	f = binary.BigEndian.AppendUint32(f, 1)
	f = binary.BigEndian.AppendUint32(f, 0)
	f = binary.BigEndian.AppendUint32(f, ^uint32(0)) // current leader epoch: unknown
	offsetAt = len(f)
	f = binary.BigEndian.AppendUint64(f, 0)
	f = binary.BigEndian.AppendUint64(f, ^uint64(0)) // log start offset: a consumer has none
	f = binary.BigEndian.AppendUint32(f, uint32(bytesMax))
	f = binary.BigEndian.AppendUint32(f, 0) // forgotten topics
	f = appendString(f, "")                 // rack
	return sealFrame(f), offsetAt
}

// fetchRecords finds the records of the only partition of a Fetch v11 response body
// (correlation id included). The result aliases body.
func fetchRecords(body []byte, topic string) ([]byte, error) {
	at := 4 + 4 + 2 + 4 + 4 + 2 + len(topic) + 4 + 4
	if len(body) < at+2+24+4 {
		return nil, fmt.Errorf("fetch response of %d bytes is too short", len(body))
	}
	if code := int16(binary.BigEndian.Uint16(body[8:])); code != 0 {
		return nil, fmt.Errorf("fetch answered Kafka error %d", code)
	}
	if code := int16(binary.BigEndian.Uint16(body[at:])); code != 0 {
		return nil, fmt.Errorf("fetch answered Kafka error %d for the partition", code)
	}
	at += 2 + 24
	aborted := int32(binary.BigEndian.Uint32(body[at:]))
	at += 4 + 16*int(max(aborted, 0)) + 4 // and the preferred read replica
	if len(body) < at+4 {
		return nil, fmt.Errorf("fetch response of %d bytes ends before its records", len(body))
	}
	n := int(int32(binary.BigEndian.Uint32(body[at:])))
	at += 4
	if n < 0 {
		n = 0
	}
	if len(body) < at+n {
		return nil, fmt.Errorf("fetch response promises %d record bytes and holds %d", n, len(body)-at)
	}
	return body[at : at+n], nil
}

// nextBatch cuts the first whole batch off records; the last one may have been cut by
// the broker's size limit, then ok is false.
func nextBatch(records []byte) (batch, rest []byte, ok bool) {
	if len(records) < batchHeaderBytes {
		return nil, nil, false
	}
	n := 12 + int(binary.BigEndian.Uint32(records[8:]))
	if n < batchHeaderBytes || n > len(records) {
		return nil, nil, false
	}
	return records[:n], records[n:], true
}

func batchEnd(batch []byte) int64 {
	return int64(binary.BigEndian.Uint64(batch)) + int64(binary.BigEndian.Uint32(batch[23:])) + 1
}

func checkCRC(batch []byte) error {
	want := binary.BigEndian.Uint32(batch[17:])
	if got := crc32.Checksum(batch[21:], castagnoli); got != want {
		return fmt.Errorf("batch at offset %d: CRC %08x, header says %08x",
			binary.BigEndian.Uint64(batch), got, want)
	}
	return nil
}
