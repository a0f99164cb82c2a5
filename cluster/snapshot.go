package cluster

import (
	"errors"
	"fmt"

	"github.com/troupe-broker/troupe/cluster/config"
)

// snapshotVersion is the version of the snapshot's frame: [version, index, term, [records…]]. The records are those that rebuild the image from
// nothing, in an order that Apply accepts, so snapshots evolve with the ledger of records and need no format of their own.
const snapshotVersion = 1

// ErrNewerVersion says that a newer Troupe wrote this.
var ErrNewerVersion = errors.New("TRP-4002: metadata of a newer version")

// EncodeSnapshot writes the image.
func EncodeSnapshot(m *Image) []byte {
	w := newWriter()
	w.array(4)
	w.uint(snapshotVersion)
	w.uint(m.index)
	w.uint(m.term)
	records := m.records()
	w.array(len(records))
	for _, rec := range records {
		rec.encode(w)
	}
	return w.buf.Bytes()
}

// Records are those that rebuild the image from nothing, in an order that Apply accepts: what a snapshot holds.
func (m *Image) Records() []Record { return m.records() }

// DecodeSnapshot reads an image. Errors wrap ErrMalformed, ErrUnknownCode, ErrNewerVersion or ErrContradiction.
func DecodeSnapshot(b []byte) (*Image, error) {
	r := newReader(b)
	f := r.fields()
	var version, index, term uint64
	if f.next() {
		version = r.uint()
	}
	if r.err == nil && version != snapshotVersion {
		if version > snapshotVersion {
			return nil, fmt.Errorf("%w: snapshot version %d, this build knows %d", ErrNewerVersion, version, snapshotVersion)
		}
		return nil, fmt.Errorf("%w: snapshot version %d", ErrMalformed, version)
	}
	if f.next() {
		index = r.uint()
	}
	if f.next() {
		term = r.uint()
	}
	var records []Record
	if f.next() {
		records = r.records()
	}
	f.close()
	if r.err == nil && r.left() > 0 {
		r.fail(fmt.Errorf("%d bytes after the snapshot", r.left()))
	}
	if r.err != nil {
		return nil, r.err
	}
	m, _, err := NewImage().Apply(index, term, records)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// records returns the batch that makes this image from the empty one.
func (m *Image) records() []Record {
	records := make([]Record, 0, 8+m.brokers.size+2*m.topics.size+m.partitions)
	if m.clusterID != "" {
		records = append(records, &ClusterRecord{ClusterID: m.clusterID})
	}
	if len(m.voters) > 0 {
		records = append(records, &VotersRecord{Voters: m.voters})
	}
	for _, f := range m.features {
		records = append(records, &FeatureLevelRecord{Name: f.Name, Level: f.Level})
	}
	for _, b := range m.brokers.all() {
		records = append(records, &RegisterBrokerRecord{Broker: *b})
	}
	for _, t := range m.topics.all() {
		records = append(records, &TopicRecord{Name: t.Name, ID: t.ID})
		for i, p := range t.Partitions {
			records = append(records, &PartitionRecord{Topic: t.ID, Number: int32(i), Partition: *p})
		}
		records = appendConfigs(records, config.Resource{Type: config.TopicResource, Name: t.Name}, t.Configs)
	}
	for r, s := range m.configs.all() {
		records = appendConfigs(records, r, s)
	}
	if m.nextProducerID > 0 {
		records = append(records, &ProducerIDsRecord{Broker: -1, Epoch: -1, Next: m.nextProducerID})
	}
	return records
}

func appendConfigs(records []Record, r config.Resource, s config.Set) []Record {
	for i := range s {
		records = append(records, &ConfigRecord{Resource: r, Name: s[i].Name, Value: &s[i].Value})
	}
	return records
}
