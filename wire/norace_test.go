//go:build !race

package wire_test

// raceEnabled says whether the race detector, which allocates, is on.
const raceEnabled = false
