//go:build race

package sim_test

// A simulation is one goroutine, in which the race detector finds nothing: a few seeds show that it runs.
const seedsByDefault, clustersByDefault, powersByDefault = 20, 4, 4
