package consumer

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
)

// claim is one partition with its assignment epoch. Claims are kept in order and without doubles.
type claim struct {
	partition
	epoch int32
}

func (p partition) compare(o partition) int {
	if c := bytes.Compare(p.topic[:], o.topic[:]); c != 0 {
		return c
	}
	return cmp.Compare(p.index, o.index)
}

// claims unpacks partitions. Those without assignment epochs have the given one.
func claims(list []records.TopicPartitions, epoch int32) []claim {
	n := 0
	for i := range list {
		n += len(list[i].Partitions)
	}
	if n == 0 {
		return nil
	}
	flat := make([]claim, 0, n)
	for i := range list {
		for j, index := range list[i].Partitions {
			c := claim{partition{list[i].Topic, index}, epoch}
			if j < len(list[i].Epochs) {
				c.epoch = list[i].Epochs[j]
			}
			flat = append(flat, c)
		}
	}
	return ordered(flat)
}

// owned unpacks what a member reports. The order is the client's.
func owned(list []coord.TopicPartitions) []claim {
	var flat []claim
	for i := range list {
		for _, index := range list[i].Partitions {
			flat = append(flat, claim{partition: partition{list[i].Topic, index}})
		}
	}
	return ordered(flat)
}

func ordered(flat []claim) []claim {
	compare := func(a, b claim) int { return a.compare(b.partition) }
	if !slices.IsSortedFunc(flat, compare) {
		slices.SortFunc(flat, compare)
	}
	return slices.CompactFunc(flat, func(a, b claim) bool { return a.partition == b.partition })
}

// claimsMatch tells whether a and b are of the same partitions.
func claimsMatch(a, b []claim) bool {
	return slices.EqualFunc(a, b, func(a, b claim) bool { return a.partition == b.partition })
}

func lookup(flat []claim, p partition) (claim, bool) {
	i, ok := slices.BinarySearchFunc(flat, p, func(c claim, p partition) int { return c.compare(p) })
	if !ok {
		return claim{}, false
	}
	return flat[i], true
}

// split parts a into those that b has as well, and those that it has not.
func split(a, b []claim) (common, rest []claim) {
	for len(a) > 0 {
		switch {
		case len(b) > 0 && b[0].compare(a[0].partition) < 0:
			b = b[1:]
			continue
		case len(b) > 0 && b[0].partition == a[0].partition:
			common = append(common, a[0])
		default:
			rest = append(rest, a[0])
		}
		a = a[1:]
	}
	return common, rest
}

func intersects(a, b []claim) bool {
	for len(a) > 0 && len(b) > 0 {
		c := a[0].compare(b[0].partition)
		if c == 0 {
			return true
		}
		if c < 0 {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return false
}

// merge joins two sets that have nothing in common.
func merge(a, b []claim) []claim {
	if len(b) == 0 {
		return a
	}
	return ordered(append(slices.Clone(a), b...))
}

// pack makes an entry's form of claims, with their epochs.
func pack(flat []claim) []records.TopicPartitions {
	if len(flat) == 0 {
		return nil
	}
	var list []records.TopicPartitions
	indexes, epochs := make([]int32, len(flat)), make([]int32, len(flat))
	for i, start := 0, 0; i < len(flat); i++ {
		indexes[i], epochs[i] = flat[i].index, flat[i].epoch
		if i+1 == len(flat) || flat[i+1].topic != flat[i].topic {
			list = append(list, records.TopicPartitions{
				Topic: flat[i].topic, Partitions: indexes[start : i+1 : i+1], Epochs: epochs[start : i+1 : i+1],
			})
			start = i + 1
		}
	}
	return list
}

// samePartitions compares without the epochs; sameClaims with them.
func samePartitions(a, b []records.TopicPartitions) bool {
	return slices.EqualFunc(a, b, func(x, y records.TopicPartitions) bool {
		return x.Topic == y.Topic && slices.Equal(x.Partitions, y.Partitions)
	})
}

func sameClaims(a, b []records.TopicPartitions) bool {
	return slices.EqualFunc(a, b, func(x, y records.TopicPartitions) bool {
		return x.Topic == y.Topic && slices.Equal(x.Partitions, y.Partitions) && slices.Equal(x.Epochs, y.Epochs)
	})
}

// contains tells whether what a member reports is among what it was given.
func contains(given []records.TopicPartitions, reported []coord.TopicPartitions) bool {
	for i := range reported {
		for _, index := range reported[i].Partitions {
			if !holds(given, partition{reported[i].Topic, index}) {
				return false
			}
		}
	}
	return true
}

func holds(list []records.TopicPartitions, p partition) bool {
	for i := range list {
		if list[i].Topic == p.topic {
			_, ok := slices.BinarySearch(list[i].Partitions, p.index)
			return ok
		}
	}
	return false
}
