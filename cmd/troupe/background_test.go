package main

import (
	"slices"
	"testing"
)

func TestJobsRunInTheirOrderAndAreWaitedFor(t *testing.T) {
	b := newBackground()
	var got []int
	release := make(chan struct{})
	b.do(func() { <-release })
	for i := range 100 {
		b.do(func() { got = append(got, i) })
	}
	close(release)
	b.stop()
	if len(got) != 100 || !slices.IsSorted(got) {
		t.Errorf("the jobs ran as %v", got)
	}
	b.do(func() { got = nil })
	if got != nil {
		t.Error("a job given after the end did not run")
	}
}
