package runtime_test

import (
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/actors/runtime"
)

func TestJobsRunInTheirOrderAndAreWaitedFor(t *testing.T) {
	b := runtime.NewBackground()
	var got []int
	release := make(chan struct{})
	b.Do(func() { <-release })
	for i := range 100 {
		b.Do(func() { got = append(got, i) })
	}
	close(release)
	b.Stop()
	if len(got) != 100 || !slices.IsSorted(got) {
		t.Errorf("the jobs ran as %v", got)
	}
	b.Do(func() { got = nil })
	if got != nil {
		t.Error("a job given after the end did not run")
	}
}
