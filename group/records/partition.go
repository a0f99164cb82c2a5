package records

// PartitionOf is the partition of __consumer_offsets that a group belongs to, of so many: Java's String.hashCode over the UTF-16 units of its id, its
// absolute value (0 for the least int32, which has none), modulo (GroupCoordinatorService.partitionFor, Utils.abs). Bytes that are no UTF-8 count as U+FFFD
// each. partitions is at least 1.
func PartitionOf(group string, partitions int32) int32 {
	var hash int32
	for _, r := range group {
		if r > 0xffff {
			r -= 0x10000
			hash = 31*hash + (0xd800 + r>>10)
			r = 0xdc00 + r&0x3ff
		}
		hash = 31*hash + r
	}
	if hash < 0 {
		hash = -hash // the least one stays negative
	}
	return max(0, hash) % partitions
}
