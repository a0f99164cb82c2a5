// Command interop asks Kafka clients and Kafka's own tools whether a broker is one. It starts a broker (Troupe as
// built from this tree, or Apache Kafka as the oracle that the checks themselves are proven against), lets every
// client create topics, write and read, compares what each of them read with what each of them wrote, and prints one
// line a check:
//
//	ok    sarama        v1.61.1   read zstd acks=all of franz-go                     14 ms
//
//	go run ./bench/interop                     the smoke part, against Troupe
//	go run ./bench/interop -suite all          the whole matrix
//	go run ./bench/interop -target kafka       the same checks against Apache Kafka
//
// A check that passes against Kafka and fails against Troupe is a bug of Troupe, or a deviation: those are named in
// deviations.go with the reason, and nowhere else.
//
// # Clients
//
// Each client library is driven by a small program of its own under drivers/, in the library's language. All of them
// speak one conversation: the suite writes one JSON object a line to the driver's standard input and reads one JSON
// object a line from its standard output; what the library itself prints goes to a log.
//
//	-> {"id":1,"op":"hello","bootstrap":"127.0.0.1:40001,127.0.0.1:40002"}
//	<- {"id":1,"hello":{"client":"kafkajs","version":"2.2.4","codecs":[…],"idempotent":true,"lacks":["header-order"]}}
//	-> {"id":2,"op":"create","topic":"t","count":3,"config":{"compression.type":"zstd"}}
//	<- {"id":2}
//	-> {"id":3,"op":"produce","topic":"t","partition":0,"codec":"lz4","acks":-1,"idempotent":false,"records":[…]}
//	<- {"id":3,"offsets":[0,1,2]}
//	-> {"id":4,"op":"read","topic":"t","partition":0,"from":0,"count":3,"waitMs":30000}
//	<- {"id":4,"records":[…]}
//	-> {"id":5,"op":"admin","topic":"t","count":5,"config":{"retention.ms":"1000"},"from":2}
//	<- {"id":5,"admin":{"partitions":5,"value":"1000","earliest":2,"latest":3}}
//	-> {"id":6,"op":"delete","topic":"t"}
//	<- {"id":6,"error":{"code":3,"message":"…"}}
//
// To consume as a member of a group, which goes on until the member leaves, there are three more:
//
//	-> {"id":7,"op":"join","member":"g/first","group":"g","topics":["t"],"protocol":"classic","assignor":"range",
//	    "reset":"earliest","sessionMs":3000,"log":"/tmp/first.journal"}
//	<- {"id":7}
//	-> {"id":8,"op":"leave","member":"g/first"}
//	<- {"id":8}
//	-> {"id":9,"op":"commit","group":"h","topic":"t","partition":0,"from":17,"metadata":"why"}
//	<- {"id":9,"committed":{"offset":17,"metadata":"why"}}
//
// A join is answered at once. The member then writes into the file "log" what happens to it, a line an event, each before
// what follows from it: what it got before it commits it. So the file of a process that was killed tells what it had done.
// "pattern" in place of "topics" subscribes by a regular expression, "instance" makes a static member, and "seek" moves one partition when it is first
// assigned. The Java driver lets a member go without a word to its group when "leave" says "abandon".
//
//	assigned 1700000000000 t 3 -1
//	got 1700000000001 t 3 41
//	committed 1700000000002 t 3 42
//	refused 1700000000003 the broker's words for a commit it did not take
//
// A record is {"key":B,"value":B,"headers":[{"name":S,"value":B}],"timestamp":MS,"offset":N} where B is base64 or null.
// The Java driver knows one operation more, "tool": it runs a tool's main method with arguments and standard input and
// answers with exit code, output and errors. kcat has no driver: the suite runs the program itself.
//
// # Glossary
//
//   - Cell: one way to write: codec, acks, idempotent or not. Each cell of a client has a partition of its own in that
//     client's topic.
//   - Corpus: the records that every cell holds. Each has a reason to be there: null and empty keys and values,
//     duplicate headers, bytes that are no text, a value larger than a batch.
//   - Lacks: what a client cannot do, by its own interface: keep the order of headers, set a timestamp. The comparison
//     takes it into account and nothing else.
//   - Target: the broker under test.
//   - Section: a part of the suite: clients, topics, tools, groups, restart, cluster, full.
//   - Trio: three brokers that are one cluster, for the section of that name: Kafka's tools look at it while all are well, while one is dead, and when all
//     are back; then a leader is killed under each client. Broker 3 of it dies first.
//   - Way: how a client can be a member of a group: by which protocol, with which assignor, by names or by a pattern.
//   - Story: one group from its first member to its last, while records keep coming: members join and leave, one is
//     killed, another comes in its place. Its verdict: nothing lost, nothing got again that was committed, commits that
//     only rise. Stories go on side by side, since they mostly wait.
//
// # Machines
//
// Java, Maven, Python, Node.js and kcat are used as found; the libraries are installed by the languages' own package
// clients into .cache/interop, pinned, once. On a machine that lacks a language its clients are skipped and the line
// says why; with CI=true in the environment that is a failure, since what did not run is not known to work.
package main
