//go:build !race

package peer_test

// raceEnabled says whether the race detector, which allocates, is on.
const raceEnabled = false
