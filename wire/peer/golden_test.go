package peer_test

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/troupe-broker/troupe/wire/peer"
)

// Brokers of two versions read each other's frames. A line may be added; one that
// changes, or goes, means that they do not.
var rewrite = flag.Bool("rewrite", false, "write the golden frames anew")

const goldenFrames = "testdata/golden/frames.txt"

func TestFramesAreWhatTheyWere(t *testing.T) {
	var out strings.Builder
	for _, m := range samples() {
		fmt.Fprintf(&out, "%-14s %x\n", m.Code(), m.AppendTo(nil))
	}
	if *rewrite {
		if err := os.WriteFile(goldenFrames, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(goldenFrames)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("the frames have changed: brokers of two versions would not understand each other. Got\n%s", out.String())
	}
	for line := range strings.Lines(string(want)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		frame, err := hex.DecodeString(strings.TrimSpace(text))
		if err != nil {
			t.Fatal(err)
		}
		b := body(t, frame)
		m := peer.New(b.Code())
		if err := m.Decode(b); err != nil || m.Code().String() != name {
			t.Errorf("%s: %v, %v", line, m, err)
		}
	}
}

func TestMessagesReadAsTheyWereWritten(t *testing.T) {
	seen := map[peer.Code]bool{}
	for _, m := range samples() {
		frame := append([]byte("before"), m.AppendTo(nil)...)
		if again := m.AppendTo([]byte("before")); !bytes.Equal(again, frame) {
			t.Errorf("%v is another frame behind something else", m.Code())
		}
		got := peer.New(m.Code())
		if err := got.Decode(body(t, frame[len("before"):])); err != nil {
			t.Errorf("%v: %v", m.Code(), err)
		}
		if !reflect.DeepEqual(got, m) && fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", m) {
			t.Errorf("%v reads as\n%+v, was\n%+v", m.Code(), got, m)
		}
		seen[m.Code()] = true
	}
	for c := peer.Code(1); c <= peer.CodeAnnouncement; c++ {
		if c.Known() && !seen[c] {
			t.Errorf("no sample of %v", c)
		}
	}
}

// The library reads what we wrote and writes the same again: our short forms are its
// short forms, for every kind of value and every size of number.
func TestFramesAreWhatTheLibraryWrites(t *testing.T) {
	for _, m := range samples() {
		sameByTheLibrary(t, m)
	}
	for shift := range 64 {
		for _, d := range []uint64{0, 1, ^uint64(0)} {
			n := uint64(1)<<shift + d
			sameByTheLibrary(t, &peer.Ping{Number: n})
			sameByTheLibrary(t, &peer.Hello{Identity: peer.Identity{Epoch: -1 - 1<<62>>shift}})
		}
	}
	for _, n := range []int{0, 31, 32, 255, 256, 1000, 65_535, 65_536, 70_000} {
		text := strings.Repeat("x", min(n, 1<<10))
		sameByTheLibrary(t, &peer.Refuse{Text: text})
		sameByTheLibrary(t, &peer.Letter{Data: make([]byte, n)})
		sameByTheLibrary(t, &peer.Withdraw{List: make([]peer.Withdrawn, n)})
	}
}

func sameByTheLibrary(t *testing.T, m peer.Message) {
	t.Helper()
	frame := m.AppendTo(nil)
	dec := msgpack.NewDecoder(bytes.NewReader(frame[peer.LengthSize:]))
	values, err := dec.DecodeInterface()
	if err != nil {
		t.Fatalf("%v: the library cannot read %x: %v", m.Code(), frame, err)
	}
	var again bytes.Buffer
	enc := msgpack.NewEncoder(&again)
	enc.UseCompactInts(true)
	if err := enc.Encode(values); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again.Bytes(), frame[peer.LengthSize:]) {
		t.Fatalf("%v: the library writes\n%x, we\n%x", m.Code(), again.Bytes(), frame[peer.LengthSize:])
	}
}

func TestAnAnswersHeadPromisesItsPayload(t *testing.T) {
	a := peer.Answer{Topic: topicA, From: 5}
	for _, n := range []int{0, 1, 255, 256, 65_535, 65_536, 1 << 20} {
		a.Payload = bytes.Repeat([]byte{0xab}, n)
		head := a.AppendHead(nil, n)
		if len(head) > peer.AnswerHeadMax {
			t.Errorf("a head of %d bytes", len(head))
		}
		if whole := a.AppendTo(nil); !bytes.Equal(whole, append(head, a.Payload...)) {
			t.Errorf("%d bytes: head and payload are not the frame", n)
		}
	}
}
