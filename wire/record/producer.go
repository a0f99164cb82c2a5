package record

import "github.com/troupe-broker/troupe/wire/ident"

// ProducerEntry is what a partition remembers of one batch of a producer, with the
// fields of Kafka's producer snapshot file (ProducerSnapshot.json, version 1): enough
// to tell the producer's next batch from a repetition of this one.
type ProducerEntry struct {
	ProducerID            ident.ProducerID
	ProducerEpoch         ident.ProducerEpoch
	LastSequence          ident.Sequence // of the batch's last record; NoSequence when only markers were written
	LastOffset            ident.Offset   // of the batch's last record
	OffsetDelta           int32          // the batch's last offset minus its first
	Timestamp             ident.Millis   // maxTimestamp of the batch; decides expiry
	CoordinatorEpoch      int32          // of the last transaction marker, -1 for none
	CurrentTxnFirstOffset ident.Offset   // of the open transaction, NoOffset for none
}
