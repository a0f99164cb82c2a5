package sim

import (
	"fmt"
	"time"
)

// longer is how many times the work of a long plan is that of the short one of its seed.
const longer = 8

// NewLongClusterPlan expands a seed to a plan of several brokers that are at work for long: the clients and the brokers are those of NewClusterPlan, its
// faults come in the first part of the work, and each other part has as many again, drawn likewise.
func NewLongClusterPlan(seed uint64) *Plan {
	p := NewClusterPlan(seed)
	part := p.Duration
	for i := 1; i < longer; i++ {
		n := len(p.Faults)
		p.planClusterFaults(stream(seed, fmt.Sprint("cluster/faults/", i)))
		for k := range p.Faults[n:] {
			p.Faults[n+k].At += time.Duration(i) * part
		}
	}
	p.Duration *= longer
	if _, set := p.Settings.Get("log.cleaner.backoff.ms"); !set {
		p.Settings = p.Settings.With("log.cleaner.backoff.ms", "15000") // the default, put down because the work lasts long enough for it
	}
	return p
}
