// Package mutants puts known bugs into the tree and looks whether the random tests find them. A test that nobody has seen fail proves nothing; this one shows
// how many seeds each bug takes, and which rule it breaks.
//
// # Lists
//
// A suite is a list of mutants beside the tests that hunt them, in the testdata of actors/sim, one for a broker that is alone and one for several, and of
// group. Lines:
//
//	mutant NAME
//	bug N          the entry of the catalogue of real bugs that it brings back; 0: a rule of our own
//	why TEXT       what is wrong then
//	test DIR NAME  it lives where no random test comes: this test hunts it
//	file PATH      the next lines change this file: - gives way to +, | stays; the old text is there exactly once
//
// A file may be named again for another change of it.
//
// # Hunting
//
// A mutant is built by go test -c -overlay, so that the tree stays as it is, and its seeds are run until one fails, the process dies, or nothing is heard
// of it for minutes. One that the seeds do not find is given to the tests of its own folder, and then to all others of the hunters: models, twins,
// conversations, stories, tables.
//
// TestMutantsStillApply keeps the lists true and is cheap; TestMutants hunts when -mutants says which (make mutants).
package mutants
