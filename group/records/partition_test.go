package records_test

import (
	"testing"

	"github.com/troupe-broker/troupe/group/records"
)

// TestPartitionOf has what Java computed: String.hashCode, Utils.abs, %.
func TestPartitionOf(t *testing.T) {
	for _, c := range []struct {
		group string
		abs   int32 // of the hash
	}{
		{"", 0},
		{"g", 103},
		{"my-group", 1906497762},
		{"console-consumer-12345", 158455506},
		{"grüße", 98768023},
		{"群組", 1045024},
		{"🐘-group", 508539475},    // a pair of surrogates
		{"polygenelubricants", 0}, // the least int32, which has no absolute value
		{"a very long group name that goes round the 32 bits of the hash more than once", 1922523563},
		{"\xff", 0xfffd},
	} {
		for _, partitions := range []int32{1, 7, 50, 1<<31 - 1} {
			if got := records.PartitionOf(c.group, partitions); got != c.abs%partitions {
				t.Errorf("%q is in partition %d of %d, want %d", c.group, got, partitions, c.abs%partitions)
			}
		}
	}
}
