// Package records is the language of __consumer_offsets: each record of a group coordinator as a value (Entry), and its bytes in Kafka's schemas, so that
// Kafka's dump tool and its coordinators read what we write, and we what they wrote.
//
// A key is an int16 type and a message of version 0, not flexible. A value is an int16 version and a message; no value is a tombstone. Unknown types and
// unknown tagged fields are passed over (KIP-915).
package records
