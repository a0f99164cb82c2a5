package handler

import (
	"slices"

	"github.com/troupe-broker/troupe/wire"
)

// table maps an API key to the function that answers it, one line an API. Produce, Fetch and Heartbeat are not in it: the session gives their
// frames to the operations of the broker package, which use this package's Produce, Fetch and Heartbeat.
var table = map[int16]Func{
	int16(wire.KeyListOffsets):             listOffsets,
	int16(wire.KeyMetadata):                metadata,
	int16(wire.KeyOffsetCommit):            offsetCommit,
	int16(wire.KeyOffsetFetch):             offsetFetch,
	int16(wire.KeyFindCoordinator):         findCoordinator,
	int16(wire.KeyJoinGroup):               joinGroup,
	int16(wire.KeyLeaveGroup):              leaveGroup,
	int16(wire.KeySyncGroup):               syncGroup,
	int16(wire.KeyDescribeGroups):          describeGroups,
	int16(wire.KeyListGroups):              listGroups,
	int16(wire.KeyApiVersions):             apiVersions,
	int16(wire.KeyCreateTopics):            createTopics,
	int16(wire.KeyDeleteTopics):            deleteTopics,
	int16(wire.KeyDeleteRecords):           deleteRecords,
	int16(wire.KeyInitProducerID):          initProducerID,
	int16(wire.KeyOffsetForLeaderEpoch):    offsetForLeaderEpoch,
	int16(wire.KeyDescribeConfigs):         describeConfigs,
	int16(wire.KeyAlterConfigs):            alterConfigs,
	int16(wire.KeyDescribeLogDirs):         describeLogDirs,
	int16(wire.KeyCreatePartitions):        createPartitions,
	int16(wire.KeyDeleteGroups):            deleteGroups,
	int16(wire.KeyElectLeaders):            electLeaders,
	int16(wire.KeyIncrementalAlterConfigs): incrementalAlterConfigs,
	int16(wire.KeyAlterReassignments):      alterPartitionReassignments,
	int16(wire.KeyListReassignments):       listPartitionReassignments,
	int16(wire.KeyOffsetDelete):            offsetDelete,
	int16(wire.KeyDescribeQuorum):          describeQuorum,
	int16(wire.KeyUpdateFeatures):          updateFeatures,
	int16(wire.KeyDescribeCluster):         describeCluster,
	int16(wire.KeyDescribeProducers):       describeProducers,
	int16(wire.KeyUnregisterBroker):        unregisterBroker,
	int16(wire.KeyConsumerGroupHeartbeat):  consumerGroupHeartbeat,
	int16(wire.KeyConsumerGroupDescribe):   consumerGroupDescribe,
	int16(wire.KeyListConfigResources):     listConfigResources,
	int16(wire.KeyDescribeTopicPartitions): describeTopicPartitions,
	int16(wire.KeyAddRaftVoter):            addRaftVoter,
	int16(wire.KeyRemoveRaftVoter):         removeRaftVoter,
}

// For returns the handler of an API key, or nil when the broker does not serve it through this table.
func For(key int16) Func { return table[key] }

// Keys returns the keys that have a handler, in order.
func Keys() []int16 {
	keys := make([]int16, 0, len(table))
	for key := range table {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
