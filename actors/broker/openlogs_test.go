package broker

import "testing"

// TestOpenLogsAreBoundedByWhatIsShort: a process with a million descriptors has 65,530 mappings all the same.
func TestOpenLogsAreBoundedByWhatIsShort(t *testing.T) {
	for _, c := range []struct{ descriptors, mappings, want int }{
		{20_000, 65_530, 20_000 * logShare / 100},
		{1 << 20, 65_530, 65_530 * logShare / 100},
		{1 << 20, 1 << 20, 1 << 20 * logShare / 100},
		{10, 65_530, logsMin},
	} {
		if got := openLogsMax(c.descriptors, c.mappings); got != c.want {
			t.Errorf("%d descriptors and %d mappings: %d logs, want %d", c.descriptors, c.mappings, got, c.want)
		}
	}
	if n := mappingLimit(); n < 1000 {
		t.Errorf("the kernel allows %d mappings", n)
	}
}
