package broker

import (
	"testing"

	"github.com/troupe-broker/troupe/wire/ident"
)

// A load goes on behind offsets that are missing, up to the end that the log had when it began.
func TestALoadPassesOverMissingOffsets(t *testing.T) {
	l := &groupLoad{end: ident.NoOffset}
	for _, step := range []struct {
		start, end, reached ident.Offset
		next                ident.Offset
		moved               bool
	}{
		{start: 5, end: 20, reached: 0, next: 5, moved: true},    // what was below has been deleted
		{start: 5, end: 25, reached: 5, next: 5, moved: false},   // the rest is not committed yet
		{start: 5, end: 25, reached: 20, next: 20, moved: true},  // a gap, up to the end
		{start: 5, end: 25, reached: 20, next: 20, moved: false}, // done
	} {
		if moved := l.advance(step.start, step.end, step.reached); moved != step.moved || l.next != step.next || l.end != 20 {
			t.Errorf("%+v: moved %v to %d, end %d", step, moved, l.next, l.end)
		}
	}
}
