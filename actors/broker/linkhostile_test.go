package broker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// values are a frame of any values.
func values(t *testing.T, list ...any) []byte {
	t.Helper()
	b, err := msgpack.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func TestWhoIsWrongIsToldSo(t *testing.T) {
	noLeaks(t)
	b := newSide(t, sideOptions{self: identityOf(2, 20), pace: shortFarewell})
	other, same, itself, nobody := identityOf(1, 10), identityOf(2, 7), b.self, identityOf(-4, 1)
	other.Cluster = "another"
	for _, c := range []struct {
		name  string
		hello *peer.Hello
		code  string
	}{
		{"another cluster", helloOf(other, peer.Control, 2), codeLinkCluster},
		{"the same id", helloOf(same, peer.Control, 2), codeLinkBroker},
		{"itself", helloOf(itself, peer.Control, 2), codeLinkBroker},
		{"an id of nobody", helloOf(nobody, peer.Control, 2), codeLinkBroker},
		{"who looks for somebody else", helloOf(identityOf(1, 10), peer.Control, 3), codeLinkBroker},
		{"a later version", &peer.Hello{VersionMin: peer.VersionMax + 1, VersionMax: 9, Purpose: peer.Control, Expect: 2, Identity: identityOf(1, 10)}, codeLinkVersion},
		{"no purpose", helloOf(identityOf(1, 10), 7, 2), peer.CodeMisplaced},
	} {
		g := b.guest()
		g.write(greeting(c.hello))
		g.preface()
		g.refusedWith(c.name, c.code)
	}
	b.refuse = &limitError{codeLinkRun, "the metadata says otherwise"}
	g := b.guest()
	g.write(greeting(helloOf(identityOf(1, 10), peer.Control, 2)))
	g.preface()
	g.refusedWith("whom the metadata does not know", codeLinkRun)
	select {
	case x := <-b.told:
		t.Errorf("told %+v of a connection that was refused", x)
	default:
	}
}

func TestWhoAnswersWrongIsToldSo(t *testing.T) {
	noLeaks(t)
	a := newSide(t, sideOptions{self: identityOf(1, 10), pace: shortFarewell})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	a.know(2, l.Addr().String())
	impostor, other := identityOf(3, 30), identityOf(2, 20)
	other.Cluster = "another"
	for _, c := range []struct {
		name, code string
		answer     []byte
	}{
		{"another broker", codeLinkBroker, (&peer.Welcome{Version: 1, Identity: impostor}).AppendTo([]byte(peer.Preface))},
		{"another cluster", codeLinkCluster, (&peer.Welcome{Version: 1, Identity: other}).AppendTo([]byte(peer.Preface))},
		{"a later version", codeLinkVersion, (&peer.Welcome{Version: 9, Identity: identityOf(2, 20)}).AppendTo([]byte(peer.Preface))},
		{"a web server", peer.CodeNotAPeer, []byte("HTTP/1.1 400 Bad Request\r\n\r\n")},
		{"a greeting for an answer", peer.CodeMisplaced, greeting(helloOf(identityOf(2, 20), peer.Control, 1))},
		{"a large answer", peer.CodeTooLarge, append([]byte(peer.Preface), 0, 1, 0, 0, 1)},
	} {
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		g := &guest{conn, t}
		g.preface()
		if m, err := g.frame(); err != nil || m.(*peer.Hello).Expect != 2 || m.(*peer.Hello).Identity != a.self {
			t.Fatalf("%s: greeted with %+v, %v", c.name, m, err)
		}
		g.write(c.answer)
		g.refusedWith(c.name, c.code)
		_ = g.Close()
	}
	// A refusal in words is remembered, and not answered.
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	g := &guest{conn, t}
	g.preface()
	g.write((&peer.Refuse{Reason: codeLinkCluster, Text: "another cluster"}).AppendTo([]byte(peer.Preface)))
	g.closed("who was refused")
	_ = g.Close()
}

func TestWhatIsNoFrameEndsTheConnection(t *testing.T) {
	noLeaks(t)
	b := newSide(t, sideOptions{self: identityOf(2, 20), pace: shortFarewell})
	ping := (&peer.Ping{Number: 1}).AppendTo(nil)
	epoch := ident.BrokerEpoch(10)
	for _, c := range []struct {
		name, code string
		purpose    peer.Purpose
		bytes      []byte
	}{
		{"a length of 4 GiB", peer.CodeTooLarge, peer.Control, []byte{0xff, 0xff, 0xff, 0xff, 0}},
		{"a length above the limit", peer.CodeTooLarge, peer.Control, binary.BigEndian.AppendUint32(nil, peer.ControlMax+1)},
		{"an empty frame", peer.CodeMalformed, peer.Control, []byte{0, 0, 0, 0}},
		{"noise", peer.CodeMalformed, peer.Control, bytes.Repeat([]byte{0, 0, 0, 9, 0xc1, 0xc1, 0xc1, 0xc1, 0xc1, 0xc1, 0xc1, 0xc1, 0xc1}, 1000)},
		{"an element that is missing", peer.CodeMalformed, peer.Data, values(t, 13, 10, []any{[]any{}})},
		{"what must be known", peer.CodeUnknown, peer.Control, values(t, 77, "whatever")},
		{"a second greeting", peer.CodeMisplaced, peer.Control, helloOf(identityOf(1, 10), peer.Control, 2).AppendTo(nil)},
		{"asks on control", peer.CodeMisplaced, peer.Control, (&peer.Asks{Epoch: epoch}).AppendTo(nil)},
		{"a report on data", peer.CodeMisplaced, peer.Data, (&peer.Progress{Epoch: epoch}).AppendTo(nil)},
		{"an answer from who asks", peer.CodeMisplaced, peer.Data, (&peer.Answer{}).AppendTo(nil)},
		{"an ask for a digest on control", peer.CodeMisplaced, peer.Control, (&peer.DigestAsk{}).AppendTo(nil)},
		{"a digest from who asks", peer.CodeMisplaced, peer.Data, (&peer.DigestAnswer{}).AppendTo(nil)},
		{"an ask for a digest of nothing", peer.CodeMalformed, peer.Data, values(t, 19, []any{})},
		{"a letter too large", peer.CodeLetterSize, peer.Control, (&peer.Letter{Total: 1 << 40, Data: []byte{1}}).AppendTo(nil)},
		{"a piece without a beginning", peer.CodeLetterSize, peer.Control, (&peer.Letter{Offset: 10, Total: 12, Data: []byte{1}}).AppendTo(nil)},
		{"a piece of nothing", peer.CodeLetterSize, peer.Control, (&peer.Letter{Total: 12}).AppendTo(nil)},
		{"a request too large", peer.CodeLetterSize, peer.Control, (&peer.Request{ID: 1, Total: peer.RequestMax + 1, Body: []byte{1}}).AppendTo(nil)},
		{"the end of no request", peer.CodeLetterSize, peer.Control, (&peer.Request{ID: 1, Offset: 10, Total: 12, Body: []byte{1}}).AppendTo(nil)},
		{"a piece behind its letter", peer.CodeLetterSize, peer.Control, (&peer.Letter{Offset: ^uint64(0), Total: 12, Data: []byte{1}}).AppendTo(nil)},
	} {
		g := b.guest().welcomed(identityOf(1, epoch), c.purpose)
		g.write(append(bytes.Clone(ping), c.bytes...))
		g.refusedWith(c.name, c.code)
		b.await("closed", func(x told) bool {
			var protocol *wire.ProtocolError
			return errors.As(x.reason, &protocol) && protocol.Code == c.code
		})
	}
	// What is new and need not be known is passed over; so is what comes in single bytes.
	g := b.guest().welcomed(identityOf(1, epoch), peer.Control)
	for _, c := range append(values(t, 50, map[string]int{"new": 1}), ping...) {
		g.write([]byte{c})
	}
	if m, err := g.frame(); err != nil || m.(*peer.Pong).Number != 1 {
		t.Errorf("answered %+v, %v", m, err)
	}
	// Half of a frame, and then the end.
	g.write([]byte{0, 0, 1, 0, 0x93})
	_ = g.Close()
	if x := b.await("closed", nil); !errors.Is(x.reason, io.EOF) && !isReset(x.reason) {
		t.Errorf("closed because %v", x.reason)
	}
}

func TestWhoSaysNothingIsGivenUp(t *testing.T) {
	noLeaks(t)
	b := newSide(t, sideOptions{self: identityOf(2, 20), pace: quickPace})
	silent, begun := b.guest(), b.guest()
	begun.write([]byte(peer.Preface + "\x00\x00"))
	silent.closed("who says nothing at all")
	begun.preface()
	begun.closed("who does not end the greeting")

	// A frame that comes in drops is no life; one that comes at all is.
	for _, drip := range []int{0, 1, 4 << 10} {
		g := b.guest().welcomed(identityOf(1, 10), peer.Control)
		g.write(append(binary.BigEndian.AppendUint32(nil, peer.ControlMax), 0x93, 50, 0xc6, 0, 0x10, 0, 0))
		over := make(chan struct{})
		go func() {
			defer close(over)
			for range 60 { // of 25 ms
				if _, err := g.Write(make([]byte, drip)); err != nil {
					return
				}
				time.Sleep(25 * time.Millisecond)
			}
		}()
		if drip > 1000 {
			<-over
			if b.table.find(1, peer.Control, false) == nil {
				t.Error("a peer that sends is given up")
			}
			_ = g.Close()
			b.await("closed", nil)
			continue
		}
		x := b.await("closed", nil)
		var limit *limitError
		if !errors.As(x.reason, &limit) || limit.code != codeLinkSilent {
			t.Errorf("closed because %v", x.reason)
		}
		g.closed("a silent peer")
		<-over
	}
}

func TestAnEchoKeepsAQuietLinkAlive(t *testing.T) {
	noLeaks(t)
	a, b := newSide(t, sideOptions{self: identityOf(1, 10), pace: quickPace}), newSide(t, sideOptions{self: identityOf(2, 20), pace: quickPace})
	meet(a, b)
	pings := func() (n uint64) {
		for _, from := range []*side{a, b} {
			for _, purpose := range []peer.Purpose{peer.Control, peer.Data} {
				if l := from.table.find(3-from.self.Broker, purpose, true); l != nil {
					n++
				}
			}
		}
		return n
	}
	for over := time.Now().Add(2 * quickPace.silence); time.Now().Before(over); time.Sleep(20 * time.Millisecond) {
		if n := pings(); n != 4 {
			t.Fatalf("%d of 4 links are open while nothing is said", n)
		}
	}
}

func TestWhoTakesNothingIsGivenUp(t *testing.T) {
	noLeaks(t)
	b := newSide(t, sideOptions{self: identityOf(2, 20), pace: quickPace})
	// On control, when too much waits.
	g := b.guest().welcomed(identityOf(1, 10), peer.Control)
	l := b.await("opened", nil).link
	alive := make(chan struct{})
	go func() { // it does not read, but it speaks
		defer close(alive)
		for i := uint64(0); ; i++ {
			if _, err := g.Write((&peer.Ping{Number: i}).AppendTo(nil)); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	data := make([]byte, 512<<10)
	for range 100 {
		if l.ref.Post(&linkMessage{&peer.Announcement{Body: data}}) != nil {
			break
		}
	}
	x := b.await("closed", nil)
	var limit *limitError
	if !errors.As(x.reason, &limit) || limit.code != codeLinkQueue {
		t.Errorf("control closed because %v", x.reason)
	}
	<-alive

	// On data, when no byte is taken and nothing is said.
	g = b.guest().welcomed(identityOf(1, 10), peer.Data)
	l = b.await("opened", nil).link
	for range 12 {
		if err := l.ref.Post(&linkMessage{&peer.Announcement{Body: data}}); err != nil {
			break
		}
	}
	x = b.await("closed", nil)
	if !errors.As(x.reason, &limit) || limit.code != codeLinkSilent || !strings.Contains(limit.reason, "taken no byte") {
		t.Errorf("data closed because %v", x.reason)
	}
	_ = g.Close()
}

func TestStreamsOfGossipAreHandedOverWhole(t *testing.T) {
	noLeaks(t)
	b := newSide(t, sideOptions{self: identityOf(2, 20)})
	g := b.guest()
	g.write([]byte{244, 'h', 'e', 'l', 'l', 'o'})
	c := <-b.streams
	defer func() { _ = c.Close() }()
	var got [6]byte
	if _, err := io.ReadFull(c, got[:]); err != nil || string(got[:]) != "\xf4hello" {
		t.Errorf("gossip reads %q, %v", got, err)
	}
	if _, err := c.Write([]byte("answer")); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(g, got[:]); err != nil || string(got[:]) != "answer" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestThePortTakesOnlySoManyThatSayNothing(t *testing.T) {
	noLeaks(t)
	b := newSide(t, sideOptions{self: identityOf(2, 20)})
	var all []*guest
	for range greetersMax {
		all = append(all, b.guest())
	}
	// The kernel hands them over in order: when the last but one is closed, all before it are in.
	b.guest().closed("one too many")
	all[0].write(greeting(helloOf(identityOf(1, 10), peer.Control, 2)))
	b.await("opened", nil) // makes room for another
	all[0].preface()
	b.guest().welcomed(identityOf(1, 10), peer.Data)
	for _, g := range all {
		_ = g.Close()
	}
}
