package main

// deviation is a place where Troupe differs from Apache Kafka on purpose. A check that meets one says so in the report
// in place of its verdict. The list shrinks; what is not in it is a bug.
type deviation string

const (
	// The end of an open segment is reserved ahead of the writer, so that a full disk is an error when space is taken
	// and never a fault while bytes are copied. Kafka does the same with preallocate=true, and its dump tool stops
	// there too. Closed segments, and all of them after an orderly stop, end with their last batch.
	deviationReserved deviation = "the open segment ends in reserved space until it is closed or the broker stops"
)
