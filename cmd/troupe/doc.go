// Command troupe is the broker and its command line in one binary.
//
//	troupe serve       run a broker in the foreground
//	troupe topic       create, list, describe, alter and delete topics
//	troupe partition   check replicas on disk and against each other; fetch what is damaged again
//	troupe produce     write records from lines or JSON
//	troupe consume     read records by topic, partition, offset or time
//	troupe group       list, describe, reset and delete consumer groups
//	troupe cluster     brokers, voters and balance of a cluster; release a promise to found one
//	troupe dev         several brokers as child processes, which can be killed, paused and cut off
//	troupe broker      empty a broker, and take it out for good
//	troupe roll        say whether a broker may be restarted now, and wait until it may
//	troupe config      read and change settings of topics and brokers; look a key up
//	troupe dump        print the files of a data directory, offline and read-only
//	troupe version     what was built, from what
//	troupe completion  scripts for bash, zsh, fish and PowerShell
//
// # Where things are
//
// main.go has streams, signals and exit codes and nothing else has. root.go builds the command tree; each command is a
// file of its name, which turns flags into one options struct and calls one function. client.go is the one place that
// makes a Kafka client, and asks one what several commands want to know; failure.go the one place that turns an error into what a person reads. serve.go joins the
// packages of the broker: settings (the layers of configuration), the real world (file system, clock, entropy, log)
// and actors/broker. monitor.go serves /metrics and /readyz. dev.go has the loop of `troupe dev`, devbroker.go one of its
// children, devverbs.go what it can be told, devnetwork.go what lies between them (package relay). placements.go plans who gets which
// replica, moves.go carries such plans out, brokers.go and balance.go are the commands that use them; roll.go looks whether a restart is safe. partition.go has the
// commands that check replicas, partition_ask.go how brokers are asked for that, voters.go those of the metadata quorum.
//
// # What the commands promise
//
//   - Results go to stdout, everything else to stderr. `-o json` and `-o yaml` print the same data as `-o text`; their keys
//     are a contract and only grow.
//   - An error is one line with a TRP code and, when there is one, a hint with the next command; with `-o json` it is one
//     object. docs/errors.md explains each code.
//   - Exit codes: 0 done, 1 it failed, 2 the command line or the configuration is wrong, 3 the broker found a bug in itself,
//     11 a restart is not safe now, 130 a second signal ended it at once.
//   - Progress of long work is written to stderr, and only when that is a terminal or --progress asks for it.
package main
