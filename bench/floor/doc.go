// Package floor measures what the machine itself charges for the work a broker cannot
// avoid, in the same round as the brokers. Every figure of the benchmarks is a ratio to
// one of these floors or to a peer, never a number by itself.
//
//	D1  copy memory: from a hot buffer, and across more than the caches hold
//	D2  append requests to a file: a populated mapping, a fresh mapping, pwrite
//	D3  CRC-32C
//	D4  receive a request over loopback, check its CRC, copy it into a populated
//	    mapping, answer: the least a produce can cost. One Go process, one goroutine a
//	    connection
//	D5  answer a request with a header and a region of a cached file by sendfile: the
//	    least a fetch can cost
//	D6  a small request and its answer over loopback, one at a time
//	D8  fdatasync after an append
//	D9  read and write the disk past the page cache
//	D10 walk the batch headers of a log, and check all its CRCs
//
// D4, D5 and D6 are servers: they run as processes of their own (Serve), are pinned like
// a broker, are driven by the generator of bench/load, and their CPU time is read from
// outside, exactly as a broker's. The null broker is D4 without the CRC and the append:
// it shows the generator's own ceiling.
package floor
