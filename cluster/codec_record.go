package cluster

import (
	"fmt"
	"math"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire/ident"
)

// EncodeBatch writes records as one entry's payload.
func EncodeBatch(records []Record) []byte {
	w := newWriter()
	w.array(len(records))
	for _, rec := range records {
		rec.encode(w)
	}
	return w.buf.Bytes()
}

// DecodeBatch reads one entry's payload. It fails with ErrMalformed, or with ErrUnknownCode when a newer version wrote a record this build does not
// know: replaying on without it would make another image than everybody else's.
func DecodeBatch(b []byte) ([]Record, error) {
	r := newReader(b)
	records := r.records()
	if r.err == nil && r.left() > 0 {
		r.fail(fmt.Errorf("%d bytes after the batch", r.left()))
	}
	if r.err != nil {
		return nil, r.err
	}
	return records, nil
}

func (r *reader) records() []Record {
	n := r.array()
	if r.err == nil && n < 0 {
		r.fail(fmt.Errorf("nil instead of a batch"))
	}
	var records []Record
	for ; n > 0 && r.err == nil; n-- {
		if rec := r.record(); rec != nil {
			records = append(records, rec)
		}
	}
	return records
}

func (w *writer) open(code Code, fields int) {
	w.array(fields + 1)
	w.uint(uint64(code))
}

func (rec *NoOpRecord) encode(w *writer) { w.open(CodeNoOp, 0) }

func (rec *ClusterRecord) encode(w *writer) {
	w.open(CodeCluster, 1)
	w.string(string(rec.ClusterID))
}

func (rec *VotersRecord) encode(w *writer) {
	w.open(CodeVoters, 1)
	w.voters(rec.Voters)
}

func (rec *RegisterBrokerRecord) encode(w *writer) {
	w.open(CodeRegisterBroker, 9)
	w.int(int64(rec.ID))
	w.int(int64(rec.Epoch))
	w.bytes(rec.Incarnation[:])
	w.endpoints(rec.Endpoints)
	w.directories(rec.Directories)
	w.string(rec.Rack)
	w.featureRanges(rec.Features)
	w.bool(rec.Fenced)
	w.bool(rec.ShuttingDown)
}

func (rec *FenceBrokerRecord) encode(w *writer) {
	w.open(CodeFenceBroker, 3)
	w.int(int64(rec.Broker))
	w.int(int64(rec.Epoch))
	w.bool(rec.ShuttingDown)
}

func (rec *ShutDownBrokerRecord) encode(w *writer) {
	w.open(CodeShutDownBroker, 2)
	w.int(int64(rec.Broker))
	w.int(int64(rec.Epoch))
}

func (rec *UnfenceBrokerRecord) encode(w *writer) {
	w.open(CodeUnfenceBroker, 2)
	w.int(int64(rec.Broker))
	w.int(int64(rec.Epoch))
}

func (rec *TopicRecord) encode(w *writer) {
	w.open(CodeTopic, 2)
	w.string(rec.Name)
	w.bytes(rec.ID[:])
}

func (rec *PartitionRecord) encode(w *writer) {
	p := &rec.Partition
	n := 19
	if len(p.Full) > 0 {
		n = 20
	}
	w.open(CodePartition, n)
	w.bytes(rec.Topic[:])
	w.int(int64(rec.Number))
	w.brokers(p.Replicas)
	w.directories(p.Directories)
	w.brokers(p.ISR)
	w.brokers(p.ELR)
	w.brokers(p.LastKnownELR)
	w.brokers(p.Adding)
	w.brokers(p.Removing)
	w.int(int64(p.Leader))
	w.int(int64(p.LeaderEpoch))
	w.int(int64(p.Epoch))
	w.bool(p.Strict)
	w.int(int64(p.MinISR))
	w.brokers(p.Unverified)
	w.reports(p.Reports)
	w.uint(uint64(p.Election))
	w.brokers(p.Offline)
	w.brokers(p.Damaged)
	if len(p.Full) > 0 {
		w.brokers(p.Full)
	}
}

func (rec *PartitionChangeRecord) encode(w *writer) {
	n := 17
	if rec.Full != nil {
		n = 18
	}
	w.open(CodePartitionChange, n)
	w.bytes(rec.Topic[:])
	w.int(int64(rec.Number))
	w.brokersOrNil(rec.ISR)
	w.brokersOrNil(rec.ELR)
	w.brokersOrNil(rec.LastKnownELR)
	w.int(int64(rec.Leader))
	w.uint(uint64(rec.Mode))
	w.brokersOrNil(rec.Replicas)
	if rec.Directories == nil {
		w.nil()
	} else {
		w.directories(rec.Directories)
	}
	w.brokersOrNil(rec.Adding)
	w.brokersOrNil(rec.Removing)
	w.int(int64(rec.MinISR))
	w.brokersOrNil(rec.Unverified)
	if rec.Reports == nil {
		w.nil()
	} else {
		w.reports(rec.Reports)
	}
	w.uint(uint64(rec.Election))
	w.brokersOrNil(rec.Offline)
	w.brokersOrNil(rec.Damaged)
	if rec.Full != nil {
		w.brokers(rec.Full)
	}
}

func (rec *RemoveTopicRecord) encode(w *writer) {
	w.open(CodeRemoveTopic, 1)
	w.bytes(rec.ID[:])
}

func (rec *ConfigRecord) encode(w *writer) {
	w.open(CodeConfig, 4)
	w.int(int64(rec.Resource.Type))
	w.string(rec.Resource.Name)
	w.string(rec.Name)
	if rec.Value == nil {
		w.nil()
	} else {
		w.string(*rec.Value)
	}
}

func (rec *FeatureLevelRecord) encode(w *writer) {
	w.open(CodeFeatureLevel, 2)
	w.string(rec.Name)
	w.int(int64(rec.Level))
}

func (rec *ProducerIDsRecord) encode(w *writer) {
	w.open(CodeProducerIDs, 3)
	w.int(int64(rec.Broker))
	w.int(int64(rec.Epoch))
	w.int(int64(rec.Next))
}

// record reads one record; nil after a failure.
func (r *reader) record() Record {
	f := r.fields()
	var code Code
	if f.next() {
		code = Code(r.ranged(0, math.MaxUint16))
	} else {
		r.fail(fmt.Errorf("a record without a code"))
	}
	if r.err != nil {
		return nil
	}
	var rec Record
	switch code {
	case CodeNoOp:
		rec = &NoOpRecord{}
	case CodeCluster:
		rec = r.cluster(&f)
	case CodeVoters:
		rec = r.votersRecord(&f)
	case CodeRegisterBroker:
		rec = r.registerBroker(&f)
	case CodeFenceBroker:
		rec = r.fenceBroker(&f)
	case CodeShutDownBroker:
		rec = r.shutDownBroker(&f)
	case CodeUnfenceBroker:
		rec = r.unfenceBroker(&f)
	case CodeForgetBroker:
		rec = r.unregisterBroker(&f)
	case CodeTopic:
		rec = r.topic(&f)
	case CodePartition:
		rec = r.partition(&f)
	case CodePartitionChange:
		rec = r.partitionChange(&f)
	case CodeRemoveTopic:
		rec = r.removeTopic(&f)
	case CodeConfig:
		rec = r.config(&f)
	case CodeFeatureLevel:
		rec = r.featureLevel(&f)
	case CodeProducerIDs:
		rec = r.producerIDs(&f)
	default:
		r.err = fmt.Errorf("%w: code %d, this build knows those below %d", ErrUnknownCode, code, codeEnd)
		return nil
	}
	f.close()
	if r.err != nil {
		return nil
	}
	return rec
}

func (r *reader) cluster(f *fields) Record {
	rec := &ClusterRecord{}
	if f.next() {
		rec.ClusterID = ident.ClusterID(r.string())
	}
	return rec
}

func (r *reader) votersRecord(f *fields) Record {
	rec := &VotersRecord{}
	if f.next() {
		rec.Voters = r.voters()
	}
	return rec
}

func (r *reader) registerBroker(f *fields) Record {
	rec := &RegisterBrokerRecord{}
	if f.next() {
		rec.ID = r.broker()
	}
	if f.next() {
		rec.Epoch = ident.BrokerEpoch(r.int())
	}
	if f.next() {
		rec.Incarnation = r.id()
	}
	if f.next() {
		rec.Endpoints = r.endpoints(math.MaxInt)
	}
	if f.next() {
		rec.Directories = r.directories()
	}
	if f.next() {
		rec.Rack = r.string()
	}
	if f.next() {
		rec.Features = r.featureRanges(math.MaxInt)
	}
	if f.next() {
		rec.Fenced = r.bool()
	}
	if f.next() {
		rec.ShuttingDown = r.bool()
	}
	return rec
}

func (r *reader) fenceBroker(f *fields) Record {
	rec := &FenceBrokerRecord{}
	if f.next() {
		rec.Broker = r.broker()
	}
	if f.next() {
		rec.Epoch = ident.BrokerEpoch(r.int())
	}
	if f.next() {
		rec.ShuttingDown = r.bool()
	}
	return rec
}

func (r *reader) shutDownBroker(f *fields) Record {
	rec := &ShutDownBrokerRecord{}
	if f.next() {
		rec.Broker = r.broker()
	}
	if f.next() {
		rec.Epoch = ident.BrokerEpoch(r.int())
	}
	return rec
}

func (r *reader) unfenceBroker(f *fields) Record {
	rec := &UnfenceBrokerRecord{}
	if f.next() {
		rec.Broker = r.broker()
	}
	if f.next() {
		rec.Epoch = ident.BrokerEpoch(r.int())
	}
	return rec
}

func (r *reader) topic(f *fields) Record {
	rec := &TopicRecord{}
	if f.next() {
		rec.Name = r.string()
	}
	if f.next() {
		rec.ID = r.id()
	}
	return rec
}

func (r *reader) partition(f *fields) Record {
	rec := &PartitionRecord{Partition: Partition{Leader: ident.NoBroker}}
	p := &rec.Partition
	if f.next() {
		rec.Topic = r.id()
	}
	if f.next() {
		rec.Number = int32(r.ranged(0, math.MaxInt32))
	}
	if f.next() {
		p.Replicas = r.brokers()
	}
	if f.next() {
		p.Directories = r.directories()
	}
	for _, list := range []*[]ident.BrokerID{&p.ISR, &p.ELR, &p.LastKnownELR, &p.Adding, &p.Removing} {
		if f.next() {
			*list = r.brokers()
		}
	}
	if f.next() {
		p.Leader = r.broker()
	}
	if f.next() {
		p.LeaderEpoch = ident.LeaderEpoch(r.ranged(0, math.MaxInt32))
	}
	if f.next() {
		p.Epoch = ident.PartitionEpoch(r.ranged(0, math.MaxInt32))
	}
	if f.next() {
		p.Strict = r.bool()
	}
	if f.next() {
		p.MinISR = int32(r.ranged(0, math.MaxInt32))
	}
	if f.next() {
		p.Unverified = r.brokers()
	}
	if f.next() {
		p.Reports = r.reports()
	}
	if f.next() {
		p.Election = r.election()
	}
	for _, list := range []*[]ident.BrokerID{&p.Offline, &p.Damaged, &p.Full} {
		if f.next() {
			*list = r.brokers()
		}
	}
	return rec
}

func (r *reader) partitionChange(f *fields) Record {
	rec := &PartitionChangeRecord{Leader: LeaderUnchanged}
	if f.next() {
		rec.Topic = r.id()
	}
	if f.next() {
		rec.Number = int32(r.ranged(0, math.MaxInt32))
	}
	for _, list := range []*[]ident.BrokerID{&rec.ISR, &rec.ELR, &rec.LastKnownELR} {
		if f.next() {
			*list = r.brokersOrNil()
		}
	}
	if f.next() {
		rec.Leader = r.broker()
	}
	if f.next() {
		rec.Mode = Mode(r.ranged(0, int64(ModeStrict)))
	}
	if f.next() {
		rec.Replicas = r.brokersOrNil()
	}
	if f.next() && !r.null() {
		rec.Directories = r.directories()
	}
	for _, list := range []*[]ident.BrokerID{&rec.Adding, &rec.Removing} {
		if f.next() {
			*list = r.brokersOrNil()
		}
	}
	if f.next() {
		rec.MinISR = int32(r.ranged(0, math.MaxInt32))
	}
	if f.next() {
		rec.Unverified = r.brokersOrNil()
	}
	if f.next() && !r.null() {
		if rec.Reports = r.reports(); rec.Reports == nil {
			rec.Reports = []Report{}
		}
	}
	if f.next() {
		rec.Election = r.election()
	}
	for _, list := range []*[]ident.BrokerID{&rec.Offline, &rec.Damaged, &rec.Full} {
		if f.next() {
			*list = r.brokersOrNil()
		}
	}
	return rec
}

func (r *reader) removeTopic(f *fields) Record {
	rec := &RemoveTopicRecord{}
	if f.next() {
		rec.ID = r.id()
	}
	return rec
}

func (r *reader) config(f *fields) Record {
	rec := &ConfigRecord{}
	if f.next() {
		rec.Resource.Type = config.ResourceType(r.ranged(0, math.MaxInt8))
	}
	if f.next() {
		rec.Resource.Name = r.string()
	}
	if f.next() {
		rec.Name = r.string()
	}
	if f.next() && !r.null() {
		v := r.string()
		rec.Value = &v
	}
	return rec
}

func (r *reader) featureLevel(f *fields) Record {
	rec := &FeatureLevelRecord{}
	if f.next() {
		rec.Name = r.string()
	}
	if f.next() {
		rec.Level = int16(r.ranged(0, math.MaxInt16))
	}
	return rec
}

func (r *reader) producerIDs(f *fields) Record {
	rec := &ProducerIDsRecord{}
	if f.next() {
		rec.Broker = r.broker()
	}
	if f.next() {
		rec.Epoch = ident.BrokerEpoch(r.int())
	}
	if f.next() {
		rec.Next = ident.ProducerID(r.int())
	}
	return rec
}
