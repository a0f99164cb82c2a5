//go:build race

package broker

// RaceEnabled says whether the race detector, which allocates, is on.
const RaceEnabled = true
