package chaos

import (
	"strings"
	"testing"
)

// The checks are held against histories with one fault each: a check that cannot fail protects nothing.
func TestChecksFindEachKindOfLoss(t *testing.T) {
	place := Place{"t", 0}
	writers := map[string]*Writer{"a": {Name: "a", Place: place}, "b": {Name: "b", Place: place}}
	good := []Seen{{0, "a", 0}, {1, "b", 0}, {2, "a", 1}, {3, "b", 1}}
	acked := map[string][]int64{"a": {0, 2}, "b": {1, unknown}}
	for _, c := range []struct {
		name string
		log  []Seen
		want string
	}{
		{"nothing", good, ""},
		{"the last acknowledged record is gone", good[:2], "record 1 of a, acknowledged at offset 2, is lost"},
		{"a hole", []Seen{good[0], good[1], {4, "a", 1}, {5, "b", 1}}, "offset 4 follows 1"},
		{"moved", []Seen{{0, "b", 0}, {1, "a", 0}, {2, "a", 1}}, "record 0 of a was acknowledged at offset 0 and is at 1"},
		{"twice", []Seen{{0, "a", 0}, {1, "b", 0}, {2, "a", 1}, {3, "a", 1}}, "record 1 of a follows record 1"},
		{"out of order", []Seen{{0, "a", 0}, {1, "b", 0}, {2, "a", 1}, {3, "b", 2}, {4, "b", 1}}, "record 2 of b follows record 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := History{place: c.log}.Check(acked, writers)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("a sound history is refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("want %q, got %v", c.want, err)
			}
		})
	}
}

func TestWhatAReaderHadMustStay(t *testing.T) {
	place := Place{"t", 0}
	before := History{place: {{0, "a", 0}, {1, "a", 1}}}
	if err := (History{place: {{0, "a", 0}, {1, "a", 1}, {2, "a", 2}}}).Extends(before); err != nil {
		t.Errorf("a longer history is refused: %v", err)
	}
	for name, now := range map[string][]Seen{"shorter": {{0, "a", 0}}, "rewritten": {{0, "a", 0}, {1, "b", 0}}} {
		if (History{place: now}).Extends(before) == nil {
			t.Errorf("%s: passed", name)
		}
	}
}

func TestValuesAreRecognised(t *testing.T) {
	w := &Writer{Name: "w"}
	for _, n := range []int{0, 1, 25, 1499, 100_000} {
		name, number, err := parseValue(w.Value(n))
		if err != nil || name != "w" || number != n {
			t.Errorf("value %d reads as %s/%d, %v", n, name, number, err)
		}
	}
	if _, _, err := parseValue([]byte("hello")); err == nil {
		t.Error("a strange value passed")
	}
}
