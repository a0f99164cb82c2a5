package sim

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// keyed writes values and tombstones of keys that are its own to the compacted topic, one request at a time, and reads the topic from its start to its end again
// and again: of each key the newest value is there that was acknowledged before, or a later one. A key whose last write has an unknown fate is not written any more.
type keyed struct {
	*client
	keys      []*keyedKey
	made      int
	id        ident.TopicID // zero: not known
	count     int32         // partitions
	leaders   leaders       // of several brokers: who leads what
	looked    bool
	busy      bool
	finishing bool
	scans     int // since finishing began
	scan      *scan
}

// keyedKey is one key.
type keyedKey struct {
	name    string
	part    int32
	values  [][]byte       // by number of the write; nil: a tombstone
	stamps  []ident.Millis // their timestamps, which tell them apart
	acked   int            // number of the newest write that was acknowledged, from 1; 0: none
	at      ident.Offset   // where its batch is
	retired bool
}

// scan is one reading of a partition.
type scan struct {
	part  int32
	began ident.Instant
	most  int32 // bytes of an answer: one batch at a time, so that the compactor overtakes the reader, or all at once
	next  ident.Offset
	to    *host          // who is read
	acked []int          // of each key, when it began
	at    []ident.Offset // likewise
	seen  map[*keyedKey]int
}

func newKeyed(c *client) *keyed { return &keyed{client: c} }

func (k *keyed) begin()     {}
func (k *keyed) finish()    { k.finishing, k.scans, k.looked = true, 0, false }
func (k *keyed) done() bool { return k.looked && k.scans >= 2*int(k.count) }

// lost ends what was under way; that to another of several brokers goes on.
func (k *keyed) lost() {
	if k.run.ensemble == nil {
		k.busy, k.scan = false, nil
	}
}

func (k *keyed) connected() {
	k.lost()
	connection := k.connection
	var again func()
	again = func() {
		if k.end == nil || k.connection != connection {
			return
		}
		if !k.busy {
			k.act()
		}
		k.after(k.pause(), again)
	}
	again()
}

// line is the connection to who leads a partition; nil: there is none now.
func (k *keyed) line(part int32) *client {
	if k.run.ensemble == nil {
		return k.client
	}
	list := k.leaders[k.id]
	if int(part) >= len(list) {
		return nil
	}
	return k.reach(list[part])
}

func (k *keyed) request(line *client, req kmsg.Request, answer func(kmsg.Response, error)) {
	k.busy = true
	line.ask(req, func(resp kmsg.Response, err error) {
		k.busy = false
		answer(resp, err)
	})
}

func (k *keyed) act() {
	switch {
	case !k.looked || k.count == 0:
		k.look()
	case k.scan != nil:
		k.read()
	case k.finishing && k.done():
	case k.finishing || chance(k.rand, 10):
		k.scan = &scan{part: int32(k.scans) % k.count, began: k.now(), most: one(k.rand, int32(1), 1<<20), seen: make(map[*keyedKey]int)}
		if !k.finishing {
			k.scan.part = int32(k.rand.IntN(int(k.count)))
		}
		for _, key := range k.keys {
			k.scan.acked, k.scan.at = append(k.scan.acked, key.acked), append(k.scan.at, key.at)
		}
	default:
		k.write()
	}
}

func (k *keyed) look() {
	k.request(k.client, kmsg.NewPtrMetadataRequest(), func(resp kmsg.Response, err error) {
		if err != nil {
			return
		}
		k.looked, k.leaders = true, leadersOf(resp.(*kmsg.MetadataResponse))
		for _, t := range resp.(*kmsg.MetadataResponse).Topics {
			if t.ErrorCode == 0 && t.Topic != nil && *t.Topic == keyedTopic {
				k.id, k.count = ident.TopicID(t.TopicID), int32(len(t.Partitions))
			}
		}
	})
}

// key picks one of a few keys that may be written, or makes another.
func (k *keyed) key() *keyedKey {
	var live []*keyedKey
	for _, key := range k.keys {
		if !key.retired {
			live = append(live, key)
		}
	}
	if len(live) < 5 {
		k.made++
		key := &keyedKey{name: fmt.Sprintf("%s.%d", k.name, k.made), part: int32(k.rand.IntN(int(k.count)))}
		k.keys = append(k.keys, key)
		return key
	}
	return one(k.rand, live...)
}

func (k *keyed) write() {
	key := k.key()
	line := k.line(key.part)
	if line == nil {
		k.looked = false
		return
	}
	b := record.NewBuilder()
	b.Codec = record.Codec(k.plan.Codec)
	_, wall := k.clock.Now()
	for range 1 + k.rand.IntN(3) {
		var value []byte
		if chance(k.rand, 75) {
			value = fmt.Appendf(nil, "%d %0*d", len(key.values)+1, k.rand.IntN(60), 0)
		}
		if n := len(key.stamps); n > 0 {
			wall = max(wall, key.stamps[n-1]+1)
		}
		key.values, key.stamps = append(key.values, value), append(key.stamps, wall)
		b.Append(wall, []byte(key.name), value)
	}
	batch, err := b.Finish(nil)
	if err != nil {
		panic("sim: a batch that does not build: " + err.Error())
	}
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 3000
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID = keyedTopic, k.id
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = key.part, batch
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	k.request(line, req, func(resp kmsg.Response, err error) {
		key.retired = true
		if err != nil {
			return
		}
		p := &resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		k.run.allow(k.name, "Produce", p.ErrorCode, append(slices.Clone(unread), wire.NoError, wire.NotEnoughReplicas, wire.NotEnoughReplicasAfterAppend, wire.InvalidTimestamp)...)
		if p.ErrorCode != 0 {
			k.looked = k.looked && k.run.ensemble == nil
			return
		}
		k.run.counted("key written")
		key.acked, key.at, key.retired = len(key.values), ident.Offset(p.BaseOffset), false
	})
}

func (k *keyed) read() {
	s := k.scan
	line := k.line(s.part)
	if line == nil || s.to != nil && s.to != line.to {
		k.scan, k.looked = nil, false // another leader's log is another one
		return
	}
	s.to = line.to
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.SessionEpoch = 1<<20, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = keyedTopic, k.id
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch = s.part, int64(s.next), s.most, -1
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	k.request(line, req, func(resp kmsg.Response, err error) {
		if err != nil || k.scan != s {
			return
		}
		r := resp.(*kmsg.FetchResponse)
		code := r.ErrorCode
		if code == 0 {
			code = r.Topics[0].Partitions[0].ErrorCode
		}
		if code != 0 {
			k.run.allow(k.name, "Fetch", code, unread...)
			k.scan, k.looked = nil, k.looked && k.run.ensemble == nil
			return
		}
		k.took(s, &r.Topics[0].Partitions[0])
	})
}

// took takes in what an answer has. The scan is over when there is no more below the high watermark that came with it: a compactor knows nothing newer.
func (k *keyed) took(s *scan, p *kmsg.FetchResponseTopicPartition) {
	for b := p.RecordBatches; len(b) > 0; {
		v, rest, err := record.Split(b)
		if errors.Is(err, record.ErrTruncated) {
			break
		}
		if err == nil {
			err = v.VerifyCRC()
		}
		if err == nil {
			err = k.batch(s, v)
		}
		if err != nil {
			k.run.fail("compaction keeps the newest of each key", "%s-%d at %d: %v", keyedTopic, s.part, s.next, err)
			return
		}
		b = rest
	}
	if s.next >= ident.Offset(p.HighWatermark) || len(p.RecordBatches) == 0 {
		k.scan = nil
		k.scans++
		k.run.counted("keys read")
		k.judge(s)
	}
}

// batch takes in one batch: its records are what was written, in their order.
func (k *keyed) batch(s *scan, v record.View) error {
	var it record.Iterator
	defer it.Close()
	if err := it.Reset(v, record.Bound{}); err != nil {
		return err
	}
	for it.Next() {
		r := it.Record()
		if r.Offset < s.next {
			continue
		}
		s.next = r.Offset + 1
		i := slices.IndexFunc(k.keys, func(key *keyedKey) bool { return key.name == string(r.Key) })
		if i < 0 {
			continue // another client's
		}
		key := k.keys[i]
		n, known := slices.BinarySearch(key.stamps, r.Timestamp)
		if !known || n < s.seen[key] || key.part != s.part || !bytes.Equal(r.Value, key.values[n]) || (r.Value == nil) != (key.values[n] == nil) {
			return fmt.Errorf("%q = %q of %d was not written there after write %d", r.Key, r.Value, r.Timestamp, s.seen[key])
		}
		s.seen[key] = n + 1
	}
	s.next = max(s.next, v.NextOffset())
	return it.Err()
}

// judge holds what was seen against what had been acknowledged when the scan began. A deleted key may be gone, tombstone and all; whoever has read an old value of
// it hears of the deletion, if it reads on within delete.retention.ms.
//
// A leader that is none any more may know less, and so may a new one, until its high watermark has come to where that of the one before was.
func (k *keyed) judge(s *scan) {
	if k.run.ensemble != nil && !k.run.ensemble.parts[replica{k.id, s.part}].led(s.to, s.began) {
		return
	}
	retention := time.Duration(-1)
	for _, t := range k.run.plan.Topics {
		if text, set := t.Configs.Get("delete.retention.ms"); set && t.Name == keyedTopic {
			if ms, err := strconv.Atoi(text); err == nil {
				retention = time.Duration(ms) * time.Millisecond
			}
		}
	}
	jumped := slices.ContainsFunc(k.run.plan.Faults, func(f FaultPlan) bool { return f.Kind == WallJump })
	slow := retention < 0 || jumped || k.now()-s.began >= ident.Instant(retention*9/10)
	for i, acked := range s.acked {
		key := k.keys[i]
		seen := s.seen[key]
		if key.part != s.part || seen >= acked || k.run.ensemble != nil && s.at[i] >= s.next {
			continue
		}
		deleted := slices.ContainsFunc(key.values[acked-1:], func(v []byte) bool { return v == nil })
		if deleted && (seen == 0 || slow) {
			continue
		}
		k.run.fail("compaction keeps the newest of each key", "%s read %s-%d from %v on to its end: of %q write %d was acknowledged before, and %d is the newest there (0: none); a later one deletes it: %v",
			k.name, keyedTopic, s.part, time.Duration(s.began), key.name, acked, seen, deleted)
		return
	}
}
