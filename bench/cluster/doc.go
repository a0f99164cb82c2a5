// Cluster measures three brokers as one: how long a partition takes no writes when a broker fails, what an acknowledgement by all replicas takes, and what
// a cluster costs that does nothing.
//
//	go run ./bench/cluster -target troupe,kafka
//	go run ./bench/cluster -rows failover -faults leader,controller -trials 5
//	go run ./bench/cluster -h
//
// The program starts everything it measures: three processes of Troupe (built from this checkout), and three of Apache Kafka, each broker and controller at
// once, through bench/peer. One cluster runs at a time. Every value goes to samples.jsonl below -out, one JSON line each, and the tables to summary.txt.
//
// # Failover
//
// A trial makes a topic of one partition with three replicas, led by the broker that the fault asks for, and lets bench/load's Chase write to it: one request
// in flight, acks=all, without patience: it asks all brokers every few milliseconds who leads. Then the fault: SIGKILL or SIGSTOP of one broker, or a bridge
// that drops what comes from it and goes to it. The gap is the longest time between two acknowledgements from then until writes have flowed again for a second. The
// broker comes back, and the next trial begins when all replicas are in sync and all brokers name the same controller. A client as people use it (franz-go
// with its defaults) writes to a second topic with the same leader, and is a row of its own: what it waits longer is its back-off.
//
// In the rows "gossip alone" heartbeats are ten seconds apart and a session lasts a minute, so that nothing but gossip can tell that a broker is dead.
// Kafka has no such thing.
//
// # Latency and cost
//
// An open loop with acks=all, in the classes cached and synced, counted from the time each request was due. CPU is that of the three brokers together, user
// and system, for 10^9 bytes of values. The targets alternate, and each is driven for a while before it is measured.
//
// # Idle
//
// CPU and RssAnon of each broker over a while in which no client is connected, without and with a topic of many partitions, each with three replicas.
//
// # Many partitions
//
// A topic of ten thousand partitions, each with a replica on each broker; Troupe lets each lead a third of them. One broker is killed, and the others are asked for the
// end of every partition until all have been answered by a leader; it comes back, and is in sync with all; and at last all three are killed at once. The row has to
// be named: -rows many.
package main
