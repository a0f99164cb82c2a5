// Partition compares brokers on one partition, beside what the machine itself charges
// for the same work.
//
//	go run ./bench/partition                 # Troupe beside the floors, about 10 minutes
//	go run ./bench/partition -kafka stock,tuned -rounds 7
//	go run ./bench/partition -h
//
// The program starts everything it measures: the floor servers of bench/floor (itself,
// with -floor), Troupe (built from this checkout) and, when asked, Apache Kafka through
// bench/peer. Servers share CPU 0 and only one of them is driven at a time; the
// generator has CPU 1. A round runs every workload against every target in a shuffled
// order between two runs of the floor. All raw samples, the summary and one HTML page
// are written into a directory below -out.
//
// With -cold SIZE a log of that size is read beside an open loop as well, once from memory and once from the disk, at a fixed pace: what a consumer that
// catches up takes from those that are live.
//
// A figure is worth something as a ratio inside its round. The CPU cost (CPU-seconds of
// the server for a gigabyte of payload) resists a noisy machine best. A speed is the
// server's only if the null broker, which stores nothing, is at least 1.5 times faster
// with the same generator; the summary says where it is not.
package main
