// Package report keeps what a benchmark measured and turns it into ratios.
//
// A Sample is one run of one workload against one target in one round. Samples are
// written as JSON lines while the benchmark runs: they are the raw output that every
// claim points to. A Line compares two targets of one workload: the ratio is taken
// inside each round, and the median, smallest and largest of those ratios are printed.
// A round whose floors disagree or whose machine was busy with something else is void
// and counts for nothing; how many were void is printed too.
package report
