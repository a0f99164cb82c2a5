package gossip

import (
	"io"
	"net"
	"strings"
)

// Codes of notes; docs/errors.md explains them.
const (
	codeForeign = "TRP-4204" // a member of another cluster
	codeSeal    = "TRP-4205" // keys or labels do not fit
	codeRefused = "TRP-4207" // malformed, or too much
	codeOneWay  = "TRP-4208" // TCP works and UDP does not

	// CodeUnreachable is that of a seed or a registered broker that cannot be reached. While brokers start that is usual.
	CodeUnreachable = "TRP-4206"
)

const (
	offendersMax = 256 // remembered
	notesMax     = 64  // waiting to be taken
)

// notebook keeps notes until they are taken, one for each offender, and no more than it has room for. Its owner locks it.
type notebook struct {
	waiting []Note
	said    map[string]struct{}
}

// write notes text unless the offender has been written of under this code.
func (b *notebook) write(code, offender, text string) {
	key := code + " " + offender
	if _, said := b.said[key]; said || len(b.said) > offendersMax || len(b.waiting) >= notesMax {
		return
	}
	if b.said == nil {
		b.said = map[string]struct{}{}
	}
	b.said[key] = struct{}{}
	if len(b.said) > offendersMax {
		code, text = codeRefused, "gossip has refused so many that further ones are not named"
	}
	b.waiting = append(b.waiting, Note{Code: code, Text: text})
}

// forget lets the offender be written of again.
func (b *notebook) forget(code, offender string) { delete(b.said, code+" "+offender) }

func (b *notebook) take() []Note {
	notes := b.waiting
	b.waiting = nil
	return notes
}

// Sentences of memberlist that are worth a note of ours: they tell what cannot be seen from outside the library. A test of each fails when a new
// version of the library says it otherwise.
const (
	sayingWrongKey = "no installed keys could decrypt"
	sayingOneWay   = "Was able to connect to "
)

// libraryLog is where memberlist writes its log. Nearly all of it is about single packets and is dropped.
type libraryLog struct{ roster *roster }

var _ io.Writer = libraryLog{}

// Write takes one line.
func (l libraryLog) Write(line []byte) (int, error) {
	text := string(line)
	if _, from, found := strings.Cut(strings.TrimSpace(text), "from="); found && strings.Contains(text, sayingWrongKey) {
		l.roster.note(codeSeal, hostOf(from), "gossip from "+hostOf(from)+" is sealed with a key that this broker does not have")
	}
	if _, rest, found := strings.Cut(text, sayingOneWay); found {
		name, _, _ := strings.Cut(rest, " ")
		l.roster.note(codeOneWay, name, "the peer port of "+name+" answers on TCP and not on UDP: is UDP let through to the same number, both ways?")
	}
	return len(line), nil
}

// hostOf cuts the port off, since each connection has another one.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}
