// Package checkup is what `troupe partition` asks brokers about the replicas they keep, and what they say.
//
// The question is no API of its own: none is advertised to Kafka's clients. It rides in a tagged field ([Tag]) of a DescribeLogDirs request of version 2 or later
// (KIP-482), that names its partitions, and the answer in a field with the same tag of each partition in the response. An order that is refused as a whole is
// answered by such a field of the response itself, with why: version 2 has no error code there, and a code has no words. A broker that does not know the tag, Kafka's
// among them, answers as if it was not there; who asks sees that no report came. Both are JSON: what a reader does not know is skipped, and what a writer does not
// know is left out. Keys are only ever added.
//
// # Glossary
//
//   - check: reading all of a replica's log that is on stable storage, with a look at each checksum, and comparing it with the leader's. Checks of a replica are
//     numbered, from 1 on, in each run of its broker.
//   - order: what is asked for. report: what a broker says of one replica. refusal: why nothing is done, and nothing said of any.
package checkup

import (
	"encoding/json"
	"fmt"
)

// Tag is of the fields with an [Order], a [Report] and a [Refusal]: "TRP". Kafka numbers its own tags from 0 on.
const Tag = 0x545250

// PlacesMax is how many partitions one order may name.
const PlacesMax = 1000

// RangesMax is how many ranges of a kind one report has.
const RangesMax = 100

// orderMax bounds an order, in bytes.
const orderMax = 1 << 10

// Do is what is to be done with the replicas.
type Do string

// What can be ordered.
const (
	Look   Do = "look"   // nothing
	Verify Do = "verify" // check them, soon
	Repair Do = "repair" // try to mend what is known to be damaged, now
)

// Order is what is asked for.
type Order struct {
	Do        Do   `json:"do"`
	Divergent bool `json:"divergent,omitempty"` // Repair: replace what differs from the leader, too
}

// Encode gives the bytes of the field.
func (o *Order) Encode() []byte { return encode(o) }

// DecodeOrder reads what a client has sent.
func DecodeOrder(b []byte) (o Order, err error) {
	if len(b) > orderMax {
		return o, fmt.Errorf("an order of %d bytes; at most %d", len(b), orderMax)
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return o, fmt.Errorf("an order that does not parse: %w", err)
	}
	switch o.Do {
	case Look, Verify, Repair:
		return o, nil
	}
	return o, fmt.Errorf("there is no order %.20q", string(o.Do))
}

// Range is offsets [From, To).
type Range struct {
	From int64  `json:"from"`
	To   int64  `json:"to"`
	Kind string `json:"kind,omitempty"` // of a difference, in words
}

// Mending is whether damaged ranges come back.
type Mending string

// The states of mending.
const (
	Sound      Mending = "none"       // nothing is known to be damaged
	Underway   Mending = "running"    // a range is being fetched
	Waiting    Mending = "waiting"    // it is tried again; Why says what is in the way
	Impossible Mending = "impossible" // and will stay so; Why says what an operator can do
)

// Report is what a broker says of one replica. Offsets are -1 where they are not known.
type Report struct {
	Run     int64  `json:"run"`   // of the broker: its epoch. The numbers of another run mean nothing.
	Asked   int64  `json:"asked"` // Verify: the check that was asked for
	Done    int64  `json:"done"`  // the last check that is over; 0: none is
	State   string `json:"state"` // leader, follower or offline, which it also is while its log is opened
	Leader  int32  `json:"leader"`
	Error   string `json:"error,omitempty"` // why the order could not be carried out
	Start   int64  `json:"log_start"`
	High    int64  `json:"high_watermark"`
	End     int64  `json:"log_end"`
	Bytes   int64  `json:"bytes"` // of the log
	Running bool   `json:"running"`
	At      int64  `json:"at"` // offset that the check under way has reached

	// Of the last check that is over:

	Whole       bool    `json:"whole"` // it came to its end
	Checked     int64   `json:"checked_bytes"`
	Found       []Range `json:"found,omitempty"` // damaged: what of it is not among Damaged was mended since
	Compared    int64   `json:"compared_offsets"`
	NotCompared string  `json:"not_compared,omitempty"` // why not all was
	Divergent   []Range `json:"divergent,omitempty"`
	MoreDiffer  int     `json:"more_divergent,omitempty"` // ranges that are not in the list

	// As it is now:

	Damaged    []Range `json:"damaged,omitempty"`
	MoreDamage int     `json:"more_damaged,omitempty"`
	Mending    Mending `json:"mending"`
	Why        string  `json:"why,omitempty"`
}

// Encode gives the bytes of the field.
func (r *Report) Encode() []byte { return encode(r) }

// DecodeReport reads what a broker has sent.
func DecodeReport(b []byte) (r Report, err error) {
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("a report that does not parse: %w", err)
	}
	return r, nil
}

// Refusal is what a broker says to an order that it does not take.
type Refusal struct {
	Error string `json:"error"`
}

// Encode gives the bytes of the field.
func (r *Refusal) Encode() []byte { return encode(r) }

// DecodeRefusal reads what a broker has sent.
func DecodeRefusal(b []byte) (r Refusal, err error) {
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("a refusal that does not parse: %w", err)
	}
	return r, nil
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("checkup: " + err.Error()) // these types have nothing that cannot be encoded
	}
	return b
}
