package broker

import "testing"

// An answer that is longer than was thought moves to a buffer of its own. The store must not collect those: it would be full of sizes that nobody asks for.
func TestAnswersThatOutgrowTheirBuffersDoNotFillTheStore(t *testing.T) {
	s := newBuffers(1 << 20)
	o := &output{store: s}
	kept := int64(0)
	for i := range 10 {
		o.end(append(o.begin(outputMin), make([]byte, 56<<10)...)) // a size that the store has a class for
		o.end(append(o.begin(outputMin), "and one that fits"...))
		if o.reset(); i == 0 {
			kept = s.kept
		}
	}
	if s.kept > kept {
		t.Errorf("the store keeps %d bytes after ten answers, %d after one", s.kept, kept)
	}
}
