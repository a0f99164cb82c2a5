package check

import "fmt"

// What a broker at rest may hold beyond twice what it held at first. It has more topics, groups and producers to know then, and its heap keeps what it grew to
// for a while.
const (
	anonSlack       = 64 << 20
	descriptorSlack = 32
	goroutineSlack  = 64
)

// checkUsage holds what each broker has when all clients have left against what it had before the first came.
func (t *trial) checkUsage() {
	for _, broker := range sortedKeys(t.usage) {
		var before, after *Event
		for _, e := range t.usage[broker] {
			switch {
			case e.Load.Rest == Before && before == nil:
				before = e
			case e.Load.Rest == After:
				after = e
			}
		}
		if before == nil || after == nil {
			continue
		}
		for _, r := range []struct {
			what        string
			first, last int64
			slack       int64
		}{
			{"bytes of memory", before.Load.Anon, after.Load.Anon, anonSlack},
			{"descriptors beside its data files", int64(before.Load.Descriptors), int64(after.Load.Descriptors), descriptorSlack},
			{"goroutines", int64(before.Load.Goroutines), int64(after.Load.Goroutines), goroutineSlack},
		} {
			if limit := 2*r.first + r.slack; r.last > limit {
				t.violations = append(t.violations, Violation{Grown, "", after.T1, fmt.Sprintf("%s has %d %s when all clients have left, at first %d, and the limit is %d", broker, r.last, r.what, r.first, limit)})
			}
		}
	}
}
