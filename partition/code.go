package partition

// Code is a Kafka error code (Errors.java): what a client is told. The zero value
// is success.
type Code int16

// The codes a machine answers with.
const (
	CodeNone                    Code = 0
	CodeOffsetOutOfRange        Code = 1
	CodeUnknownTopicOrPartition Code = 3
	CodeNotLeaderOrFollower     Code = 6
	CodeRequestTimedOut         Code = 7
	CodeNotEnoughReplicas       Code = 19
	CodeNotEnoughReplicasAfter  Code = 20
	CodeInvalidRequiredAcks     Code = 21
	CodePolicyViolation         Code = 44
	CodeOutOfOrderSequence      Code = 45
	CodeInvalidProducerEpoch    Code = 47
	CodeInvalidTxnState         Code = 48
	CodeKafkaStorageError       Code = 56
	CodeFencedLeaderEpoch       Code = 74
	CodeUnknownLeaderEpoch      Code = 75
	CodeOffsetNotAvailable      Code = 78
	CodeInvalidRecord           Code = 87
)
