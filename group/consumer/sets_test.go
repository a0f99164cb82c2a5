package consumer_test

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/troupe-broker/troupe/group/coord"
)

func within(a, b map[part]bool) bool {
	for p := range a {
		if !b[p] {
			return false
		}
	}
	return true
}

func copyOf(set map[part]bool) map[part]bool {
	c := map[part]bool{}
	for p := range set {
		c[p] = true
	}
	return c
}

func partsOf(set map[part]bool) []part {
	list := make([]part, 0, len(set))
	for p := range set {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b part) int {
		return strings.Compare(string(binary.BigEndian.AppendUint32(a.topic[:], uint32(a.index))), string(binary.BigEndian.AppendUint32(b.topic[:], uint32(b.index))))
	})
	return list
}

func ownedOf(set map[part]bool) []coord.TopicPartitions {
	list := []coord.TopicPartitions{}
	for _, p := range partsOf(set) {
		if n := len(list); n > 0 && list[n-1].Topic == p.topic {
			list[n-1].Partitions = append(list[n-1].Partitions, p.index)
			continue
		}
		list = append(list, coord.TopicPartitions{Topic: p.topic, Partitions: []int32{p.index}})
	}
	return list
}
