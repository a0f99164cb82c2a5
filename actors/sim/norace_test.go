//go:build !race

package sim_test

// How many seeds run when nobody says how many.
const seedsByDefault, clustersByDefault, powersByDefault = 100, 20, 30
