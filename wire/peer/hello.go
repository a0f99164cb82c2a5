package peer

import (
	"github.com/troupe-broker/troupe/wire/ident"
)

// Purpose is what a connection is for. The two kinds never wait for each other.
type Purpose uint8

// The purposes.
const (
	// Control carries what must not wait: letters, requests, reports, probes.
	Control Purpose = 1
	// Data carries asks from who dialled, and answers to them.
	Data Purpose = 2
)

// String is the word for it.
func (p Purpose) String() string {
	switch p {
	case Control:
		return "control"
	case Data:
		return "data"
	}
	return "unknown"
}

// Identity is who one side is.
type Identity struct {
	Cluster     ident.ClusterID // empty while it has none
	Broker      ident.BrokerID
	Epoch       ident.BrokerEpoch // NoBrokerEpoch until it is registered
	Directory   ident.DirectoryID // the data directory of its metadata
	Node        ident.NodeID
	Incarnation [16]byte // of this run of its process
}

const identityFields = 6

func (i *Identity) appendTo(dst []byte) []byte {
	dst = appendArray(dst, identityFields)
	dst = appendString(dst, string(i.Cluster))
	dst = appendInt(dst, int64(i.Broker))
	dst = appendInt(dst, int64(i.Epoch))
	dst = appendID(dst, i.Directory)
	dst = appendUint(dst, uint64(i.Node))
	return appendID(dst, i.Incarnation)
}

func (i *Identity) read(r *reader) {
	outer := r.enter()
	i.Cluster = ident.ClusterID(r.text())
	i.Broker = ident.BrokerID(r.int32())
	i.Epoch = ident.BrokerEpoch(r.int64())
	i.Directory = r.id()
	i.Node = ident.NodeID(r.uint64())
	i.Incarnation = r.id()
	r.leave(outer)
}

// Hello is the first frame of who dialled.
type Hello struct {
	VersionMin uint8
	VersionMax uint8
	Purpose    Purpose
	Expect     ident.BrokerID // whom it means to have reached; NoBroker: anybody
	Identity   Identity
}

// Code implements Message.
func (*Hello) Code() Code { return CodeHello }

// AppendTo implements Message.
func (m *Hello) AppendTo(dst []byte) []byte {
	at := len(dst)
	dst = begin(dst, CodeHello, 5)
	dst = appendUint(dst, uint64(m.VersionMin))
	dst = appendUint(dst, uint64(m.VersionMax))
	dst = appendUint(dst, uint64(m.Purpose))
	dst = appendInt(dst, int64(m.Expect))
	return end(m.Identity.appendTo(dst), at, 0)
}

// Decode implements Message.
func (m *Hello) Decode(b Body) error {
	r := b.r
	m.VersionMin, m.VersionMax, m.Purpose, m.Expect = r.uint8(), r.uint8(), Purpose(r.uint8()), ident.BrokerID(r.int32())
	m.Identity.read(&r)
	return b.done(&r)
}

// Versions are the versions of the messages that a side speaks, from Min to Max.
type Versions struct{ Min, Max uint8 }

// Spoken are those of this build.
var Spoken = Versions{VersionMin, VersionMax}

// Agree finds the version to speak with a side that speaks these: the greatest of both
// ranges. false: there is none.
func (v Versions) Agree(lowest, greatest uint8) (version uint8, ok bool) {
	version = min(v.Max, greatest)
	return version, version >= max(v.Min, lowest)
}

// Welcome is the first frame of the other side, when it agrees.
type Welcome struct {
	Version  uint8 // spoken from now on
	Identity Identity
}

// Code implements Message.
func (*Welcome) Code() Code { return CodeWelcome }

// AppendTo implements Message.
func (m *Welcome) AppendTo(dst []byte) []byte {
	at := len(dst)
	dst = begin(dst, CodeWelcome, 2)
	dst = appendUint(dst, uint64(m.Version))
	return end(m.Identity.appendTo(dst), at, 0)
}

// Decode implements Message.
func (m *Welcome) Decode(b Body) error {
	r := b.r
	m.Version = r.uint8()
	m.Identity.read(&r)
	return b.done(&r)
}

// Refuse is the last frame of a side that ends the connection for a reason.
type Refuse struct {
	Reason string // a code of docs/errors.md
	Text   string // for people
}

// Code implements Message.
func (*Refuse) Code() Code { return CodeRefuse }

// AppendTo implements Message. Texts that are too long are cut.
func (m *Refuse) AppendTo(dst []byte) []byte {
	at := len(dst)
	dst = begin(dst, CodeRefuse, 2)
	dst = appendString(dst, cut(m.Reason))
	return end(appendString(dst, cut(m.Text)), at, 0)
}

// Decode implements Message.
func (m *Refuse) Decode(b Body) error {
	r := b.r
	m.Reason, m.Text = r.text(), r.text()
	return b.done(&r)
}

func cut(s string) string { return s[:min(len(s), textMax)] }

// Ping asks for an echo.
type Ping struct{ Number uint64 }

// Code implements Message.
func (*Ping) Code() Code { return CodePing }

// AppendTo implements Message.
func (m *Ping) AppendTo(dst []byte) []byte { return appendNumber(dst, CodePing, m.Number) }

// Decode implements Message.
func (m *Ping) Decode(b Body) (err error) {
	m.Number, err = decodeNumber(b)
	return err
}

// Pong is the echo of a Ping.
type Pong struct{ Number uint64 }

// Code implements Message.
func (*Pong) Code() Code { return CodePong }

// AppendTo implements Message.
func (m *Pong) AppendTo(dst []byte) []byte { return appendNumber(dst, CodePong, m.Number) }

// Decode implements Message.
func (m *Pong) Decode(b Body) (err error) {
	m.Number, err = decodeNumber(b)
	return err
}

func appendNumber(dst []byte, c Code, n uint64) []byte {
	at := len(dst)
	return end(appendUint(begin(dst, c, 1), n), at, 0)
}

func decodeNumber(b Body) (uint64, error) {
	r := b.r
	n := r.uint64()
	r.leave(0)
	return n, r.err(b.code)
}
