// Package wire is what the broker and its clients say to each other: the Kafka
// protocol as of Apache Kafka 4.4, byte for byte.
package wire
