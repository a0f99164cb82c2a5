package peer

import "strconv"

// Code says what a frame is. The ledger in the package comment has all of them.
type Code uint8

// The codes. They are never used again: 9 and 10 are retired.
const (
	CodeHello        Code = 1
	CodeWelcome      Code = 2
	CodeRefuse       Code = 3
	CodePing         Code = 4
	CodePong         Code = 5
	CodeLetter       Code = 6
	CodeRequest      Code = 7
	CodeResponse     Code = 8
	CodeProgress     Code = 11
	CodeWatermarks   Code = 12
	CodeAsks         Code = 13
	CodeAnswer       Code = 14
	CodeWithdraw     Code = 15
	CodeAnnouncement Code = 16
	CodeRangeAsk     Code = 17
	CodeRangeAnswer  Code = 18
	CodeDigestAsk    Code = 19
	CodeDigestAnswer Code = 20
)

// Required is the first of the codes that a reader must know.
const Required = Code(0x40)

// codeMax keeps a code in one byte of msgpack.
const codeMax = 0x7f

// MustKnow tells whether a reader that does not know the code has to end the
// connection; other unknown frames are skipped.
func (c Code) MustKnow() bool { return c >= Required }

var codeNames = [...]string{
	CodeHello: "Hello", CodeWelcome: "Welcome", CodeRefuse: "Refuse", CodePing: "Ping", CodePong: "Pong", CodeLetter: "Letter",
	CodeRequest: "Request", CodeResponse: "Response",
	CodeProgress: "Progress", CodeWatermarks: "Watermarks", CodeAsks: "Asks", CodeAnswer: "Answer", CodeWithdraw: "Withdraw",
	CodeAnnouncement: "Announcement", CodeRangeAsk: "RangeAsk", CodeRangeAnswer: "RangeAnswer",
	CodeDigestAsk: "DigestAsk", CodeDigestAnswer: "DigestAnswer",
}

// Known tells whether the code is in the ledger of this build.
func (c Code) Known() bool { return int(c) < len(codeNames) && codeNames[c] != "" }

// Since is the version that the message came with, as the ledger says. It must not be
// sent before that version is committed for the whole cluster. What this build does not
// know came later.
func (c Code) Since() uint8 {
	switch {
	case c == CodeDigestAsk || c == CodeDigestAnswer:
		return 3
	case c == CodeRangeAsk || c == CodeRangeAnswer:
		return 2
	case c.Known():
		return 1
	}
	return VersionMax + 1
}

// String is the name of the message, or the number of an unknown one.
func (c Code) String() string {
	if c.Known() {
		return codeNames[c]
	}
	return "code " + strconv.Itoa(int(c))
}

// On tells whether a message has a place on a connection of this purpose, once the
// handshake is done.
func (c Code) On(p Purpose) bool {
	switch c {
	case CodeRefuse, CodePing, CodePong:
		return true
	case CodeLetter, CodeRequest, CodeResponse, CodeProgress, CodeWatermarks, CodeAnnouncement:
		return p == Control
	case CodeAsks, CodeAnswer, CodeWithdraw, CodeRangeAsk, CodeRangeAnswer, CodeDigestAsk, CodeDigestAnswer:
		return p == Data
	default:
		return false
	}
}

// Founding tells whether a message may be sent while one of the two has no cluster.
func (c Code) Founding() bool {
	switch c {
	case CodeRefuse, CodePing, CodePong, CodeLetter, CodeAnnouncement:
		return true
	default:
		return false
	}
}

// FromDialler tells whether a message of a data connection comes from who dialled.
func (c Code) FromDialler() bool {
	return c != CodeAnswer && c != CodeRangeAnswer && c != CodeDigestAnswer
}

// Message is anything of the ledger.
type Message interface {
	// Code says which.
	Code() Code
	// AppendTo appends the message as a whole frame, its length included.
	AppendTo(dst []byte) []byte
	// Decode takes the message out of a frame's body, which it aliases. Lists that
	// the message has are used again. The error is a wire.ProtocolError; the message
	// is not to be looked at then.
	Decode(b Body) error
}

// New makes an empty message of a known code.
func New(c Code) Message {
	switch c {
	case CodeHello:
		return new(Hello)
	case CodeWelcome:
		return new(Welcome)
	case CodeRefuse:
		return new(Refuse)
	case CodePing:
		return new(Ping)
	case CodePong:
		return new(Pong)
	case CodeLetter:
		return new(Letter)
	case CodeRequest:
		return new(Request)
	case CodeResponse:
		return new(Response)
	case CodeProgress:
		return new(Progress)
	case CodeWatermarks:
		return new(Watermarks)
	case CodeAsks:
		return new(Asks)
	case CodeAnswer:
		return new(Answer)
	case CodeWithdraw:
		return new(Withdraw)
	case CodeAnnouncement:
		return new(Announcement)
	case CodeRangeAsk:
		return new(RangeAsk)
	case CodeRangeAnswer:
		return new(RangeAnswer)
	case CodeDigestAsk:
		return new(DigestAsk)
	case CodeDigestAnswer:
		return new(DigestAnswer)
	default:
		panic("peer: New of an unknown " + c.String())
	}
}
