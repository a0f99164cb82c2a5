package wire

import (
	"math"
	"strconv"
)

// Key is the number of a Kafka API.
type Key int16

// The keys of the APIs that are served.
const (
	KeyProduce                 Key = 0
	KeyFetch                   Key = 1
	KeyListOffsets             Key = 2
	KeyMetadata                Key = 3
	KeyOffsetCommit            Key = 8
	KeyOffsetFetch             Key = 9
	KeyFindCoordinator         Key = 10
	KeyJoinGroup               Key = 11
	KeyHeartbeat               Key = 12
	KeyLeaveGroup              Key = 13
	KeySyncGroup               Key = 14
	KeyDescribeGroups          Key = 15
	KeyListGroups              Key = 16
	KeyApiVersions             Key = 18
	KeyCreateTopics            Key = 19
	KeyDeleteTopics            Key = 20
	KeyDeleteRecords           Key = 21
	KeyInitProducerID          Key = 22
	KeyOffsetForLeaderEpoch    Key = 23
	KeyDescribeConfigs         Key = 32
	KeyAlterConfigs            Key = 33
	KeyDescribeLogDirs         Key = 35
	KeyCreatePartitions        Key = 37
	KeyDeleteGroups            Key = 42
	KeyElectLeaders            Key = 43
	KeyIncrementalAlterConfigs Key = 44
	KeyAlterReassignments      Key = 45
	KeyListReassignments       Key = 46
	KeyOffsetDelete            Key = 47
	KeyDescribeQuorum          Key = 55
	KeyUpdateFeatures          Key = 57
	KeyDescribeCluster         Key = 60
	KeyDescribeProducers       Key = 61
	KeyUnregisterBroker        Key = 64
	KeyConsumerGroupHeartbeat  Key = 68
	KeyConsumerGroupDescribe   Key = 69
	KeyListConfigResources     Key = 74
	KeyDescribeTopicPartitions Key = 75
	KeyAddRaftVoter            Key = 80
	KeyRemoveRaftVoter         Key = 81
)

// String prints the API's name, or the key's number when it is not served.
func (k Key) String() string {
	if api, ok := Lookup(k); ok {
		return api.Name
	}
	return "key " + strconv.Itoa(int(k))
}

// Right is what an API's caller must be allowed to do, in Kafka's words for the
// operations of its access control (AclOperation.java). On which resource is the
// handler's matter.
type Right string

// The rights that the table demands.
const (
	RightNone            Right = ""
	RightRead            Right = "Read"
	RightWrite           Right = "Write"
	RightCreate          Right = "Create"
	RightDelete          Right = "Delete"
	RightAlter           Right = "Alter"
	RightDescribe        Right = "Describe"
	RightDescribeConfigs Right = "DescribeConfigs"
	RightAlterConfigs    Right = "AlterConfigs"
)

// API is one row of the table: what is served of one API and what it costs.
type API struct {
	Key      Key
	Name     string // Kafka's
	Min, Max int16  // versions that are served
	Flexible int16  // first version with compact lengths and tagged fields; neverFlexible: none

	// AdvertisedMin stands in ApiVersions for Min. It is lower for Produce only:
	// older librdkafka takes the presence of version 0 for a sign that the broker
	// has features of later versions (KAFKA-18659).
	AdvertisedMin int16

	Right    Right
	Internal bool // served, but not advertised to clients

	// BodyMax is the greatest frame, in bytes after its length field. 0: only
	// socket.request.max.bytes limits it.
	BodyMax int32

	// Amplification is how many bytes decoding may allocate for each byte of the
	// frame, beside the frame itself; DecodeBody says how it is measured. For
	// Produce and Fetch, which are decoded without allocating, it is what keeping
	// an answer for each partition takes. What other answers take depends on what
	// exists in the cluster: it is the handler's care to answer everything once.
	Amplification int32
}

// Limits of frames by what they carry, chosen so that the credit for the largest
// stays around 100 MiB. A mebibyte is some tens of thousands of topics or
// partitions.
const (
	fewBytes   = 64 << 10
	listBytes  = 512 << 10
	longBytes  = 1 << 20
	fetchBytes = 4 << 20
)

// neverFlexible stands for the first flexible version of an API that has none.
const neverFlexible = math.MaxInt16

// table is what is served, in the order of the keys. To serve another API, add its
// key above, its row here, and its handler; the tests compare the row with kmsg
// and measure its amplification.
var table = [...]API{
	{Key: KeyProduce, Name: "Produce", Min: 3, Max: 13, Flexible: 9, AdvertisedMin: 0, Right: RightWrite, Amplification: 2},
	{Key: KeyFetch, Name: "Fetch", Min: 4, Max: 18, Flexible: 12, AdvertisedMin: 4, Right: RightRead, BodyMax: fetchBytes, Amplification: 16},
	{Key: KeyListOffsets, Name: "ListOffsets", Min: 1, Max: 11, Flexible: 6, AdvertisedMin: 1, Right: RightDescribe, BodyMax: longBytes, Amplification: 80},
	{Key: KeyMetadata, Name: "Metadata", Min: 0, Max: 13, Flexible: 9, AdvertisedMin: 0, Right: RightDescribe, BodyMax: longBytes, Amplification: 120},
	{Key: KeyOffsetCommit, Name: "OffsetCommit", Min: 2, Max: 10, Flexible: 8, AdvertisedMin: 2, Right: RightRead, BodyMax: longBytes, Amplification: 80},
	{Key: KeyOffsetFetch, Name: "OffsetFetch", Min: 1, Max: 10, Flexible: 6, AdvertisedMin: 1, Right: RightDescribe, BodyMax: longBytes, Amplification: 80},
	{Key: KeyFindCoordinator, Name: "FindCoordinator", Min: 0, Max: 6, Flexible: 3, AdvertisedMin: 0, Right: RightDescribe, BodyMax: fewBytes, Amplification: 80},
	{Key: KeyJoinGroup, Name: "JoinGroup", Min: 0, Max: 9, Flexible: 6, AdvertisedMin: 0, Right: RightRead, BodyMax: longBytes, Amplification: 85},
	{Key: KeyHeartbeat, Name: "Heartbeat", Min: 0, Max: 4, Flexible: 4, AdvertisedMin: 0, Right: RightRead, BodyMax: fewBytes, Amplification: 80},
	{Key: KeyLeaveGroup, Name: "LeaveGroup", Min: 0, Max: 5, Flexible: 4, AdvertisedMin: 0, Right: RightRead, BodyMax: listBytes, Amplification: 85},
	{Key: KeySyncGroup, Name: "SyncGroup", Min: 0, Max: 5, Flexible: 4, AdvertisedMin: 0, Right: RightRead, BodyMax: longBytes, Amplification: 85},
	{Key: KeyDescribeGroups, Name: "DescribeGroups", Min: 0, Max: 6, Flexible: 5, AdvertisedMin: 0, Right: RightDescribe, BodyMax: listBytes, Amplification: 80},
	{Key: KeyListGroups, Name: "ListGroups", Min: 0, Max: 5, Flexible: 3, AdvertisedMin: 0, Right: RightDescribe, BodyMax: fewBytes, Amplification: 80},
	{Key: KeyApiVersions, Name: "ApiVersions", Min: 0, Max: 5, Flexible: 3, AdvertisedMin: 0, Right: RightNone, BodyMax: fewBytes, Amplification: 80},
	{Key: KeyCreateTopics, Name: "CreateTopics", Min: 2, Max: 7, Flexible: 5, AdvertisedMin: 2, Right: RightCreate, BodyMax: listBytes, Amplification: 100},
	{Key: KeyDeleteTopics, Name: "DeleteTopics", Min: 1, Max: 6, Flexible: 4, AdvertisedMin: 1, Right: RightDelete, BodyMax: listBytes, Amplification: 80},
	{Key: KeyDeleteRecords, Name: "DeleteRecords", Min: 0, Max: 2, Flexible: 2, AdvertisedMin: 0, Right: RightDelete, BodyMax: listBytes, Amplification: 80},
	{Key: KeyInitProducerID, Name: "InitProducerId", Min: 0, Max: 5, Flexible: 2, AdvertisedMin: 0, Right: RightWrite, BodyMax: fewBytes, Amplification: 80},
	{Key: KeyOffsetForLeaderEpoch, Name: "OffsetForLeaderEpoch", Min: 2, Max: 4, Flexible: 4, AdvertisedMin: 2, Right: RightDescribe, BodyMax: longBytes, Amplification: 80},
	{Key: KeyDescribeConfigs, Name: "DescribeConfigs", Min: 1, Max: 4, Flexible: 4, AdvertisedMin: 1, Right: RightDescribeConfigs, BodyMax: listBytes, Amplification: 80},
	{Key: KeyAlterConfigs, Name: "AlterConfigs", Min: 0, Max: 2, Flexible: 2, AdvertisedMin: 0, Right: RightAlterConfigs, BodyMax: listBytes, Amplification: 100},
	{Key: KeyDescribeLogDirs, Name: "DescribeLogDirs", Min: 1, Max: 5, Flexible: 2, AdvertisedMin: 1, Right: RightDescribe, BodyMax: listBytes, Amplification: 80},
	{Key: KeyCreatePartitions, Name: "CreatePartitions", Min: 0, Max: 3, Flexible: 2, AdvertisedMin: 0, Right: RightAlter, BodyMax: listBytes, Amplification: 80},
	{Key: KeyDeleteGroups, Name: "DeleteGroups", Min: 0, Max: 3, Flexible: 2, AdvertisedMin: 0, Right: RightDelete, BodyMax: listBytes, Amplification: 80},
	{Key: KeyElectLeaders, Name: "ElectLeaders", Min: 0, Max: 2, Flexible: 2, AdvertisedMin: 0, Right: RightAlter, BodyMax: listBytes, Amplification: 80},
	{Key: KeyIncrementalAlterConfigs, Name: "IncrementalAlterConfigs", Min: 0, Max: 1, Flexible: 1, AdvertisedMin: 0, Right: RightAlterConfigs, BodyMax: listBytes, Amplification: 90},
	{Key: KeyAlterReassignments, Name: "AlterPartitionReassignments", Min: 0, Max: 1, Flexible: 0, AdvertisedMin: 0, Right: RightAlter, BodyMax: listBytes, Amplification: 80},
	{Key: KeyListReassignments, Name: "ListPartitionReassignments", Min: 0, Max: 0, Flexible: 0, AdvertisedMin: 0, Right: RightDescribe, BodyMax: listBytes, Amplification: 80},
	{Key: KeyOffsetDelete, Name: "OffsetDelete", Min: 0, Max: 0, Flexible: neverFlexible, AdvertisedMin: 0, Right: RightDelete, BodyMax: longBytes, Amplification: 8},
	{Key: KeyDescribeQuorum, Name: "DescribeQuorum", Min: 0, Max: 2, Flexible: 0, AdvertisedMin: 0, Right: RightDescribe, BodyMax: fewBytes, Amplification: 80},
	{Key: KeyUpdateFeatures, Name: "UpdateFeatures", Min: 0, Max: 2, Flexible: 0, AdvertisedMin: 0, Right: RightAlter, BodyMax: fewBytes, Amplification: 80},
	{Key: KeyDescribeCluster, Name: "DescribeCluster", Min: 0, Max: 2, Flexible: 0, AdvertisedMin: 0, Right: RightDescribe, BodyMax: fewBytes, Amplification: 80},
	{Key: KeyDescribeProducers, Name: "DescribeProducers", Min: 0, Max: 0, Flexible: 0, AdvertisedMin: 0, Right: RightRead, BodyMax: listBytes, Amplification: 80},
	{Key: KeyUnregisterBroker, Name: "UnregisterBroker", Min: 0, Max: 0, Flexible: 0, AdvertisedMin: 0, Right: RightAlter, BodyMax: fewBytes, Amplification: 80},
	{Key: KeyConsumerGroupHeartbeat, Name: "ConsumerGroupHeartbeat", Min: 0, Max: 1, Flexible: 0, AdvertisedMin: 0, Right: RightRead, BodyMax: longBytes, Amplification: 80},
	{Key: KeyConsumerGroupDescribe, Name: "ConsumerGroupDescribe", Min: 0, Max: 1, Flexible: 0, AdvertisedMin: 0, Right: RightDescribe, BodyMax: listBytes, Amplification: 80},
	{Key: KeyListConfigResources, Name: "ListConfigResources", Min: 0, Max: 1, Flexible: 0, AdvertisedMin: 0, Right: RightDescribeConfigs, BodyMax: fewBytes, Amplification: 80},
	{Key: KeyDescribeTopicPartitions, Name: "DescribeTopicPartitions", Min: 0, Max: 0, Flexible: 0, AdvertisedMin: 0, Right: RightDescribe, BodyMax: longBytes, Amplification: 120},
	{Key: KeyAddRaftVoter, Name: "AddRaftVoter", Min: 0, Max: 1, Flexible: 0, AdvertisedMin: 0, Right: RightAlter, BodyMax: fewBytes, Amplification: 80},
	{Key: KeyRemoveRaftVoter, Name: "RemoveRaftVoter", Min: 0, Max: 0, Flexible: 0, AdvertisedMin: 0, Right: RightAlter, BodyMax: fewBytes, Amplification: 80},
}

// byKey finds a row by its key in one step: 0 for none, else the row's place plus 1.
var byKey = func() (places [128]uint8) {
	for i := range table {
		places[table[i].Key] = uint8(i) + 1
	}
	return places
}()

// Lookup finds the row of a key; false when the API is not served. The row is
// shared: do not change it.
func Lookup(k Key) (*API, bool) {
	if k < 0 || int(k) >= len(byKey) || byKey[k] == 0 {
		return nil, false
	}
	return &table[byKey[k]-1], true
}

// APIs returns the rows in the order of their keys, internal ones too. They are
// shared: do not change them.
func APIs() []API { return table[:] }

// Serves tells whether the version is served.
func (a *API) Serves(version int16) bool { return version >= a.Min && version <= a.Max }

// IsFlexible tells whether the version has compact lengths and tagged fields.
func (a *API) IsFlexible(version int16) bool { return version >= a.Flexible }

// smallMemory is what any request costs beside its bytes: the request's own
// struct, the response's, and their first slices.
const smallMemory = 4 << 10

// Memory is how many bytes of credit a request of this API reserves whose frame
// has size bytes on the wire: the frame, and Amplification times as much again.
func (a *API) Memory(size int) int64 {
	return int64(size)*(1+int64(a.Amplification)) + smallMemory
}
