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
//	-> {"id":1,"op":"hello","bootstrap":"127.0.0.1:40001"}
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
//   - Section: a part of the suite: clients, topics, tools.
//
// # Machines
//
// Java, Maven, Python, Node.js and kcat are used as found; the libraries are installed by the languages' own package
// clients into .cache/interop, pinned, once. On a machine that lacks a language its clients are skipped and the line
// says why; with CI=true in the environment that is a failure, since what did not run is not known to work.
package main
