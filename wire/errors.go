package wire

import "strconv"

// ErrorCode is an error code of the Kafka protocol (Errors.java of Kafka 4.4). It
// is not a Go error: codes are answers, not failures of ours.
type ErrorCode int16

// All error codes that Kafka 4.4 knows.
const (
	UnknownServerError                     ErrorCode = -1
	NoError                                ErrorCode = 0
	OffsetOutOfRange                       ErrorCode = 1
	CorruptMessage                         ErrorCode = 2
	UnknownTopicOrPartition                ErrorCode = 3
	InvalidFetchSize                       ErrorCode = 4
	LeaderNotAvailable                     ErrorCode = 5
	NotLeaderOrFollower                    ErrorCode = 6
	RequestTimedOut                        ErrorCode = 7
	BrokerNotAvailable                     ErrorCode = 8
	ReplicaNotAvailable                    ErrorCode = 9
	MessageTooLarge                        ErrorCode = 10
	StaleControllerEpoch                   ErrorCode = 11
	OffsetMetadataTooLarge                 ErrorCode = 12
	NetworkException                       ErrorCode = 13
	CoordinatorLoadInProgress              ErrorCode = 14
	CoordinatorNotAvailable                ErrorCode = 15
	NotCoordinator                         ErrorCode = 16
	InvalidTopicException                  ErrorCode = 17
	RecordListTooLarge                     ErrorCode = 18
	NotEnoughReplicas                      ErrorCode = 19
	NotEnoughReplicasAfterAppend           ErrorCode = 20
	InvalidRequiredAcks                    ErrorCode = 21
	IllegalGeneration                      ErrorCode = 22
	InconsistentGroupProtocol              ErrorCode = 23
	InvalidGroupID                         ErrorCode = 24
	UnknownMemberID                        ErrorCode = 25
	InvalidSessionTimeout                  ErrorCode = 26
	RebalanceInProgress                    ErrorCode = 27
	InvalidCommitOffsetSize                ErrorCode = 28
	TopicAuthorizationFailed               ErrorCode = 29
	GroupAuthorizationFailed               ErrorCode = 30
	ClusterAuthorizationFailed             ErrorCode = 31
	InvalidTimestamp                       ErrorCode = 32
	UnsupportedSASLMechanism               ErrorCode = 33
	IllegalSASLState                       ErrorCode = 34
	UnsupportedVersion                     ErrorCode = 35
	TopicAlreadyExists                     ErrorCode = 36
	InvalidPartitions                      ErrorCode = 37
	InvalidReplicationFactor               ErrorCode = 38
	InvalidReplicaAssignment               ErrorCode = 39
	InvalidConfig                          ErrorCode = 40
	NotController                          ErrorCode = 41
	InvalidRequest                         ErrorCode = 42
	UnsupportedForMessageFormat            ErrorCode = 43
	PolicyViolation                        ErrorCode = 44
	OutOfOrderSequenceNumber               ErrorCode = 45
	DuplicateSequenceNumber                ErrorCode = 46
	InvalidProducerEpoch                   ErrorCode = 47
	InvalidTxnState                        ErrorCode = 48
	InvalidProducerIDMapping               ErrorCode = 49
	InvalidTransactionTimeout              ErrorCode = 50
	ConcurrentTransactions                 ErrorCode = 51
	TransactionCoordinatorFenced           ErrorCode = 52
	TransactionalIDAuthorizationFailed     ErrorCode = 53
	SecurityDisabled                       ErrorCode = 54
	OperationNotAttempted                  ErrorCode = 55
	KafkaStorageError                      ErrorCode = 56
	LogDirNotFound                         ErrorCode = 57
	SASLAuthenticationFailed               ErrorCode = 58
	UnknownProducerID                      ErrorCode = 59
	ReassignmentInProgress                 ErrorCode = 60
	DelegationTokenAuthDisabled            ErrorCode = 61
	DelegationTokenNotFound                ErrorCode = 62
	DelegationTokenOwnerMismatch           ErrorCode = 63
	DelegationTokenRequestNotAllowed       ErrorCode = 64
	DelegationTokenAuthorizationFailed     ErrorCode = 65
	DelegationTokenExpired                 ErrorCode = 66
	InvalidPrincipalType                   ErrorCode = 67
	NonEmptyGroup                          ErrorCode = 68
	GroupIDNotFound                        ErrorCode = 69
	FetchSessionIDNotFound                 ErrorCode = 70
	InvalidFetchSessionEpoch               ErrorCode = 71
	ListenerNotFound                       ErrorCode = 72
	TopicDeletionDisabled                  ErrorCode = 73
	FencedLeaderEpoch                      ErrorCode = 74
	UnknownLeaderEpoch                     ErrorCode = 75
	UnsupportedCompressionType             ErrorCode = 76
	StaleBrokerEpoch                       ErrorCode = 77
	OffsetNotAvailable                     ErrorCode = 78
	MemberIDRequired                       ErrorCode = 79
	PreferredLeaderNotAvailable            ErrorCode = 80
	GroupMaxSizeReached                    ErrorCode = 81
	FencedInstanceID                       ErrorCode = 82
	EligibleLeadersNotAvailable            ErrorCode = 83
	ElectionNotNeeded                      ErrorCode = 84
	NoReassignmentInProgress               ErrorCode = 85
	GroupSubscribedToTopic                 ErrorCode = 86
	InvalidRecord                          ErrorCode = 87
	UnstableOffsetCommit                   ErrorCode = 88
	ThrottlingQuotaExceeded                ErrorCode = 89
	ProducerFenced                         ErrorCode = 90
	ResourceNotFound                       ErrorCode = 91
	DuplicateResource                      ErrorCode = 92
	UnacceptableCredential                 ErrorCode = 93
	InconsistentVoterSet                   ErrorCode = 94
	InvalidUpdateVersion                   ErrorCode = 95
	FeatureUpdateFailed                    ErrorCode = 96
	PrincipalDeserializationFailure        ErrorCode = 97
	SnapshotNotFound                       ErrorCode = 98
	PositionOutOfRange                     ErrorCode = 99
	UnknownTopicID                         ErrorCode = 100
	DuplicateBrokerRegistration            ErrorCode = 101
	BrokerIDNotRegistered                  ErrorCode = 102
	InconsistentTopicID                    ErrorCode = 103
	InconsistentClusterID                  ErrorCode = 104
	TransactionalIDNotFound                ErrorCode = 105
	FetchSessionTopicIDError               ErrorCode = 106
	IneligibleReplica                      ErrorCode = 107
	NewLeaderElected                       ErrorCode = 108
	OffsetMovedToTieredStorage             ErrorCode = 109
	FencedMemberEpoch                      ErrorCode = 110
	UnreleasedInstanceID                   ErrorCode = 111
	UnsupportedAssignor                    ErrorCode = 112
	StaleMemberEpoch                       ErrorCode = 113
	MismatchedEndpointType                 ErrorCode = 114
	UnsupportedEndpointType                ErrorCode = 115
	UnknownControllerID                    ErrorCode = 116
	UnknownSubscriptionID                  ErrorCode = 117
	TelemetryTooLarge                      ErrorCode = 118
	InvalidRegistration                    ErrorCode = 119
	TransactionAbortable                   ErrorCode = 120
	InvalidRecordState                     ErrorCode = 121
	ShareSessionNotFound                   ErrorCode = 122
	InvalidShareSessionEpoch               ErrorCode = 123
	FencedStateEpoch                       ErrorCode = 124
	InvalidVoterKey                        ErrorCode = 125
	DuplicateVoter                         ErrorCode = 126
	VoterNotFound                          ErrorCode = 127
	InvalidRegularExpression               ErrorCode = 128
	RebootstrapRequired                    ErrorCode = 129
	StreamsInvalidTopology                 ErrorCode = 130
	StreamsInvalidTopologyEpoch            ErrorCode = 131
	StreamsTopologyFenced                  ErrorCode = 132
	ShareSessionLimitReached               ErrorCode = 133
	GroupDeletionFailed                    ErrorCode = 134
	StreamsTopologyDescriptionUpdateFailed ErrorCode = 135
	ControllerIDNotRegistered              ErrorCode = 136
)

// How Kafka's Java client takes an error: whether it tries the request again, and
// whether it asks for fresh metadata first.
const (
	retriable = 1 << iota
	refreshesMetadata
)

// firstErrorCode is the code of errorTable's first row.
const firstErrorCode = UnknownServerError

var errorTable = [...]struct {
	name  string
	flags uint8
}{
	{"UNKNOWN_SERVER_ERROR", 0},
	{"NONE", 0},
	{"OFFSET_OUT_OF_RANGE", 0},
	{"CORRUPT_MESSAGE", retriable},
	{"UNKNOWN_TOPIC_OR_PARTITION", retriable | refreshesMetadata},
	{"INVALID_FETCH_SIZE", 0},
	{"LEADER_NOT_AVAILABLE", retriable | refreshesMetadata},
	{"NOT_LEADER_OR_FOLLOWER", retriable | refreshesMetadata},
	{"REQUEST_TIMED_OUT", retriable},
	{"BROKER_NOT_AVAILABLE", 0},
	{"REPLICA_NOT_AVAILABLE", retriable | refreshesMetadata},
	{"MESSAGE_TOO_LARGE", 0},
	{"STALE_CONTROLLER_EPOCH", 0},
	{"OFFSET_METADATA_TOO_LARGE", 0},
	{"NETWORK_EXCEPTION", retriable | refreshesMetadata},
	{"COORDINATOR_LOAD_IN_PROGRESS", retriable},
	{"COORDINATOR_NOT_AVAILABLE", retriable | refreshesMetadata},
	{"NOT_COORDINATOR", retriable | refreshesMetadata},
	{"INVALID_TOPIC_EXCEPTION", 0},
	{"RECORD_LIST_TOO_LARGE", 0},
	{"NOT_ENOUGH_REPLICAS", retriable},
	{"NOT_ENOUGH_REPLICAS_AFTER_APPEND", retriable},
	{"INVALID_REQUIRED_ACKS", 0},
	{"ILLEGAL_GENERATION", 0},
	{"INCONSISTENT_GROUP_PROTOCOL", 0},
	{"INVALID_GROUP_ID", 0},
	{"UNKNOWN_MEMBER_ID", 0},
	{"INVALID_SESSION_TIMEOUT", 0},
	{"REBALANCE_IN_PROGRESS", 0},
	{"INVALID_COMMIT_OFFSET_SIZE", 0},
	{"TOPIC_AUTHORIZATION_FAILED", 0},
	{"GROUP_AUTHORIZATION_FAILED", 0},
	{"CLUSTER_AUTHORIZATION_FAILED", 0},
	{"INVALID_TIMESTAMP", 0},
	{"UNSUPPORTED_SASL_MECHANISM", 0},
	{"ILLEGAL_SASL_STATE", 0},
	{"UNSUPPORTED_VERSION", 0},
	{"TOPIC_ALREADY_EXISTS", 0},
	{"INVALID_PARTITIONS", 0},
	{"INVALID_REPLICATION_FACTOR", 0},
	{"INVALID_REPLICA_ASSIGNMENT", 0},
	{"INVALID_CONFIG", 0},
	{"NOT_CONTROLLER", retriable},
	{"INVALID_REQUEST", 0},
	{"UNSUPPORTED_FOR_MESSAGE_FORMAT", 0},
	{"POLICY_VIOLATION", 0},
	{"OUT_OF_ORDER_SEQUENCE_NUMBER", 0},
	{"DUPLICATE_SEQUENCE_NUMBER", 0},
	{"INVALID_PRODUCER_EPOCH", 0},
	{"INVALID_TXN_STATE", 0},
	{"INVALID_PRODUCER_ID_MAPPING", 0},
	{"INVALID_TRANSACTION_TIMEOUT", 0},
	{"CONCURRENT_TRANSACTIONS", retriable},
	{"TRANSACTION_COORDINATOR_FENCED", 0},
	{"TRANSACTIONAL_ID_AUTHORIZATION_FAILED", 0},
	{"SECURITY_DISABLED", 0},
	{"OPERATION_NOT_ATTEMPTED", 0},
	{"KAFKA_STORAGE_ERROR", retriable | refreshesMetadata},
	{"LOG_DIR_NOT_FOUND", 0},
	{"SASL_AUTHENTICATION_FAILED", 0},
	{"UNKNOWN_PRODUCER_ID", 0},
	{"REASSIGNMENT_IN_PROGRESS", 0},
	{"DELEGATION_TOKEN_AUTH_DISABLED", 0},
	{"DELEGATION_TOKEN_NOT_FOUND", 0},
	{"DELEGATION_TOKEN_OWNER_MISMATCH", 0},
	{"DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", 0},
	{"DELEGATION_TOKEN_AUTHORIZATION_FAILED", 0},
	{"DELEGATION_TOKEN_EXPIRED", 0},
	{"INVALID_PRINCIPAL_TYPE", 0},
	{"NON_EMPTY_GROUP", 0},
	{"GROUP_ID_NOT_FOUND", 0},
	{"FETCH_SESSION_ID_NOT_FOUND", retriable},
	{"INVALID_FETCH_SESSION_EPOCH", retriable},
	{"LISTENER_NOT_FOUND", retriable | refreshesMetadata},
	{"TOPIC_DELETION_DISABLED", 0},
	{"FENCED_LEADER_EPOCH", retriable | refreshesMetadata},
	{"UNKNOWN_LEADER_EPOCH", retriable},
	{"UNSUPPORTED_COMPRESSION_TYPE", 0},
	{"STALE_BROKER_EPOCH", 0},
	{"OFFSET_NOT_AVAILABLE", retriable},
	{"MEMBER_ID_REQUIRED", 0},
	{"PREFERRED_LEADER_NOT_AVAILABLE", retriable | refreshesMetadata},
	{"GROUP_MAX_SIZE_REACHED", 0},
	{"FENCED_INSTANCE_ID", 0},
	{"ELIGIBLE_LEADERS_NOT_AVAILABLE", retriable | refreshesMetadata},
	{"ELECTION_NOT_NEEDED", retriable | refreshesMetadata},
	{"NO_REASSIGNMENT_IN_PROGRESS", 0},
	{"GROUP_SUBSCRIBED_TO_TOPIC", 0},
	{"INVALID_RECORD", 0},
	{"UNSTABLE_OFFSET_COMMIT", retriable},
	{"THROTTLING_QUOTA_EXCEEDED", retriable},
	{"PRODUCER_FENCED", 0},
	{"RESOURCE_NOT_FOUND", 0},
	{"DUPLICATE_RESOURCE", 0},
	{"UNACCEPTABLE_CREDENTIAL", 0},
	{"INCONSISTENT_VOTER_SET", 0},
	{"INVALID_UPDATE_VERSION", 0},
	{"FEATURE_UPDATE_FAILED", 0},
	{"PRINCIPAL_DESERIALIZATION_FAILURE", 0},
	{"SNAPSHOT_NOT_FOUND", 0},
	{"POSITION_OUT_OF_RANGE", 0},
	{"UNKNOWN_TOPIC_ID", retriable | refreshesMetadata},
	{"DUPLICATE_BROKER_REGISTRATION", 0},
	{"BROKER_ID_NOT_REGISTERED", 0},
	{"INCONSISTENT_TOPIC_ID", retriable | refreshesMetadata},
	{"INCONSISTENT_CLUSTER_ID", 0},
	{"TRANSACTIONAL_ID_NOT_FOUND", 0},
	{"FETCH_SESSION_TOPIC_ID_ERROR", retriable},
	{"INELIGIBLE_REPLICA", 0},
	{"NEW_LEADER_ELECTED", 0},
	{"OFFSET_MOVED_TO_TIERED_STORAGE", 0},
	{"FENCED_MEMBER_EPOCH", 0},
	{"UNRELEASED_INSTANCE_ID", 0},
	{"UNSUPPORTED_ASSIGNOR", 0},
	{"STALE_MEMBER_EPOCH", 0},
	{"MISMATCHED_ENDPOINT_TYPE", 0},
	{"UNSUPPORTED_ENDPOINT_TYPE", 0},
	{"UNKNOWN_CONTROLLER_ID", 0},
	{"UNKNOWN_SUBSCRIPTION_ID", 0},
	{"TELEMETRY_TOO_LARGE", 0},
	{"INVALID_REGISTRATION", 0},
	{"TRANSACTION_ABORTABLE", 0},
	{"INVALID_RECORD_STATE", 0},
	{"SHARE_SESSION_NOT_FOUND", retriable},
	{"INVALID_SHARE_SESSION_EPOCH", retriable},
	{"FENCED_STATE_EPOCH", 0},
	{"INVALID_VOTER_KEY", 0},
	{"DUPLICATE_VOTER", 0},
	{"VOTER_NOT_FOUND", 0},
	{"INVALID_REGULAR_EXPRESSION", 0},
	{"REBOOTSTRAP_REQUIRED", 0},
	{"STREAMS_INVALID_TOPOLOGY", 0},
	{"STREAMS_INVALID_TOPOLOGY_EPOCH", 0},
	{"STREAMS_TOPOLOGY_FENCED", 0},
	{"SHARE_SESSION_LIMIT_REACHED", retriable},
	{"GROUP_DELETION_FAILED", 0},
	{"STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED", 0},
	{"CONTROLLER_ID_NOT_REGISTERED", 0},
}

// Known tells whether Kafka 4.4 has the code.
func (e ErrorCode) Known() bool {
	return e >= firstErrorCode && int(e-firstErrorCode) < len(errorTable)
}

// String prints Kafka's name of the code, or its number when Kafka has none.
func (e ErrorCode) String() string {
	if !e.Known() {
		return "ERROR_" + strconv.Itoa(int(e))
	}
	return errorTable[e-firstErrorCode].name
}

// Retriable tells whether Kafka's Java client sends the request again.
func (e ErrorCode) Retriable() bool { return e.flags()&retriable != 0 }

// RefreshesMetadata tells whether Kafka's Java client asks for metadata before it
// sends the request again.
func (e ErrorCode) RefreshesMetadata() bool { return e.flags()&refreshesMetadata != 0 }

func (e ErrorCode) flags() uint8 {
	if !e.Known() {
		return 0
	}
	return errorTable[e-firstErrorCode].flags
}
