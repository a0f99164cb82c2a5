package partition

import "github.com/troupe-broker/troupe/wire/ident"

// Config holds the settings that may change while the machine runs. Zero is not a
// default: the shell fills in every field from the topic's and broker's settings.
type Config struct {
	// MinISR is min.insync.replicas. The number of assigned replicas caps it.
	MinISR int32
	// DeleteRecords tells whether cleanup.policy contains "delete"; without it
	// DeleteRecords is POLICY_VIOLATION.
	DeleteRecords bool
	// FlushMessages is flush.messages: so many unflushed offsets ask for a flush.
	FlushMessages int64
	// FlushNanos is flush.ms in nanoseconds; 0 means never.
	FlushNanos int64
	// ProducerExpirationMs is producer.id.expiration.ms: a producer that appended
	// nothing for so long by the wall clock is forgotten.
	ProducerExpirationMs int64
	// ProducerCheckNanos is producer.id.expiration.check.interval.ms, in nanoseconds.
	ProducerCheckNanos int64
	// ProducersMax bounds the producers with state. One more makes the machine
	// forget the one that has been quiet for longest; nobody is refused.
	ProducersMax int
	// ProduceWaitersMax bounds parked produces. One more is refused before it is
	// written, REQUEST_TIMED_OUT. It bounds waiting DeleteRecords as well; one more is
	// answered so at once.
	ProduceWaitersMax int
	// FetchWaitersMax bounds parked fetches. One more is answered at once.
	FetchWaitersMax int
	// LagNanos is replica.lag.time.max.ms in nanoseconds: a follower that has not been
	// caught up for so long leaves the ISR, and a leader whose own sync hangs for so
	// long resigns. 0 means never.
	LagNanos int64
	// FullNanos is how long a leader finds no room for anything before it says that it is
	// full, in nanoseconds, and how often a full replica looks at least; 0 means never.
	FullNanos int64
	// AskBytesMax is replica.fetch.max.bytes: the most bytes of one answer.
	AskBytesMax int32
	// AskBackoffNanos is replica.fetch.backoff.ms in nanoseconds: the longest pause
	// after a refused ask. The first pause is a thirty-second part of it; each further
	// one is twice as long.
	AskBackoffNanos int64
	// ProposeRetryNanos is the pause before a proposal is sent again, or before another
	// is made after a refusal. 0 means that proposals are not sent again, and that
	// another is made at once.
	ProposeRetryNanos int64
}

// LogState is the local log as recovery found it.
type LogState struct {
	Start      ident.Offset
	End        ident.Offset
	Flushed    ident.Offset // the durable mark: below it everything is on stable storage
	Generation ident.Generation
	// HighWatermark is the checkpointed one; it is clamped between Start and End.
	HighWatermark ident.Offset
	Epochs        []EpochStart // ascending; the slice is copied
	// StrictConfirmed tells whether the mark of WriteStrictConfirmed is set.
	StrictConfirmed bool
}

// EpochStart says that a leader epoch began at an offset.
type EpochStart struct {
	Epoch ident.LeaderEpoch
	Start ident.Offset
}

// Options is what a machine is made from.
type Options struct {
	Broker    ident.BrokerID // this broker
	Log       LogState
	Config    Config
	Producers *Producers // as rebuilt by recovery; nil: none. The machine takes it over.
}
