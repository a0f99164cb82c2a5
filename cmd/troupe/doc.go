// Command troupe is the broker and its command line in one binary.
//
//	troupe serve       run a broker in the foreground
//	troupe topic       create, list, describe, alter and delete topics
//	troupe produce     write records from lines or JSON
//	troupe consume     read records by topic, partition, offset or time
//	troupe group       list, describe, reset and delete consumer groups
//	troupe config      read and change settings of topics and brokers; look a key up
//	troupe dump        print the files of a data directory, offline and read-only
//	troupe version     what was built, from what
//	troupe completion  scripts for bash, zsh, fish and PowerShell
//
// # Where things are
//
// main.go has streams, signals and exit codes and nothing else has. root.go builds the command tree; each command is a
// file of its name, which turns flags into one options struct and calls one function. client.go is the one place that
// makes a Kafka client; failure.go the one place that turns an error into what a person reads. serve.go joins the
// packages of the broker: settings (the layers of configuration), the real world (file system, clock, entropy, log)
// and actors/broker. monitor.go serves /metrics and /readyz.
//
// # What the commands promise
//
//   - Results go to stdout, everything else to stderr. `-o json` and `-o yaml` print the same data as `-o text`; their keys
//     are a contract and only grow.
//   - An error is one line with a TRP code and, when there is one, a hint with the next command; with `-o json` it is one
//     object. docs/errors.md explains each code.
//   - Exit codes: 0 done, 1 it failed, 2 the command line or the configuration is wrong, 3 the broker found a bug in itself,
//     130 a second signal ended it at once.
//   - Progress of long work is written to stderr, and only when that is a terminal or --progress asks for it.
package main
