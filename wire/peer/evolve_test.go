package peer_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/peer"
)

// reframe has the library read a frame, change its values and write them.
func reframe(t *testing.T, m peer.Message, change func([]any) []any) []byte {
	t.Helper()
	frame := m.AppendTo(nil)
	values, err := msgpack.NewDecoder(bytes.NewReader(frame[peer.LengthSize:])).DecodeSlice()
	if err != nil {
		t.Fatal(err)
	}
	return frameOf(t, change(values)...)
}

func frameOf(t *testing.T, values ...any) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := msgpack.NewEncoder(&b)
	if err := enc.EncodeArrayLen(len(values)); err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(b.Len())), b.Bytes()...)
}

// tails are what a newer broker may write behind the fields that we know.
var tails = []any{
	7, -1e9, "text", []byte("bytes"), nil, true, 3.5, float32(2),
	[]any{1, []any{2, "x"}},
	map[string]any{"a": 1, "b": []any{nil}},
	make([]byte, 300), make([]byte, 70_000), int64(-1 << 62), uint64(1 << 63), int8(-100), int16(-1000),
}

// grow puts the tails behind every array of a value.
func grow(v any) any {
	list, ok := v.([]any)
	if !ok {
		return v
	}
	var out []any
	lists := len(list) > 0
	for _, e := range list {
		_, is := e.([]any)
		lists = lists && is
		out = append(out, grow(e))
	}
	if lists {
		return out // a list of structs, whose elements have grown
	}
	return append(out, tails...)
}

func TestWhatANewerBrokerAddsIsSkipped(t *testing.T) {
	for _, m := range samples() {
		if p, ok := m.(*peer.Progress); ok && len(p.List) == 0 {
			continue // an empty list does not look like one of structs
		}
		frame := reframe(t, m, func(values []any) []any { return grow(values).([]any) })
		got := peer.New(m.Code())
		if err := got.Decode(body(t, frame)); err != nil {
			t.Errorf("%v: %v", m.Code(), err)
			continue
		}
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", m) {
			t.Errorf("%v with unknown fields reads as\n%+v, want\n%+v", m.Code(), got, m)
		}
	}
}

func TestWhatAnOlderBrokerDoesNotWriteIsZero(t *testing.T) {
	hello := reframe(t, samples()[0], func(v []any) []any { return v[:3] })
	var h peer.Hello
	if err := h.Decode(body(t, hello)); err != nil || h != (peer.Hello{VersionMin: 1, VersionMax: 1}) {
		t.Errorf("a short Hello reads as %+v, %v", h, err)
	}
	// What is about one partition has its id, or it is no message.
	placed := []peer.Code{peer.CodeAnswer, peer.CodeRangeAsk, peer.CodeRangeAnswer, peer.CodeDigestAsk, peer.CodeDigestAnswer}
	for _, m := range samples() {
		short := reframe(t, m, func(v []any) []any { return v[:1] })
		got := peer.New(m.Code())
		if err := got.Decode(body(t, short)); (err != nil) != slices.Contains(placed, m.Code()) {
			t.Errorf("%v without fields: %v", m.Code(), err)
		}
	}
	// An element of a list has its id, or there is no element.
	var w peer.Withdraw
	if err := w.Decode(body(t, frameOf(t, 15, 1, []any{[]any{topicA[:], 3}}))); err != nil || w.List[0] != (peer.Withdrawn{Topic: topicA, Partition: 3}) {
		t.Errorf("a short element reads as %+v, %v", w, err)
	}
	if err := w.Decode(body(t, frameOf(t, 15, 1, []any{[]any{}, make([]byte, 40)}))); err == nil {
		t.Errorf("an element without an id reads as %+v", w)
	}
}

func TestWhatIsNoMessageIsSaidSo(t *testing.T) {
	long := make([]byte, 2000)
	for name, frame := range map[string][]byte{
		"no array":              {0, 0, 0, 1, 0x05},
		"no code":               {0, 0, 0, 1, 0x90},
		"a code of 200":         frameOf(t, 200),
		"a code below zero":     frameOf(t, -4),
		"text for a number":     frameOf(t, 4, "1"),
		"below zero":            frameOf(t, 4, -1),
		"a short id":            frameOf(t, 2, 1, []any{"c", 1, 1, []byte("short")}),
		"a large number":        frameOf(t, 1, 1, 1, 1, 1<<40),
		"a larger number":       frameOf(t, 2, 1, []any{"c", 1, uint64(1 << 63)}),
		"a long text":           frameOf(t, 3, string(long)),
		"nested deep":           append([]byte{0, 0, 0, 100, 0x93, 4, 1}, bytes.Repeat([]byte{0x91}, 97)...),
		"more elements":         {0, 0, 0, 8, 0x93, 15, 1, 0xdd, 0xff, 0xff, 0xff, 0xff},
		"more bytes":            {0, 0, 0, 8, 0x93, 16, 0x90, 0xc6, 0xff, 0xff, 0xff, 0xff},
		"ends in a number":      {0, 0, 0, 4, 0x92, 4, 0xcf, 1},
		"a value of no kind":    {0, 0, 0, 4, 0x93, 4, 1, 0xc1},
		"a tail of many arrays": append([]byte{0, 0, 0, 8, 0x93, 4, 1}, 0xdd, 0xff, 0xff, 0xff, 0xff),
	} {
		size, complete, err := peer.Scan(frame, 1<<20)
		if err != nil || !complete || size != len(frame) {
			t.Fatalf("%s: %d, %v, %v", name, size, complete, err)
		}
		b, err := peer.Open(frame)
		if err == nil && b.Code().Known() {
			err = peer.New(b.Code()).Decode(b)
		}
		var protocol *wire.ProtocolError
		if !errors.As(err, &protocol) || protocol.Code != peer.CodeMalformed {
			t.Errorf("%s: %v, want a ProtocolError %s", name, err, peer.CodeMalformed)
		}
	}
}

func TestFramesAboveTheLimitAreRefusedByTheirLength(t *testing.T) {
	for _, c := range []struct {
		frame    []byte
		size     int
		complete bool
		code     string
	}{
		{nil, 0, false, ""},
		{[]byte{0, 0, 0}, 0, false, ""},
		{[]byte{0, 0, 0, 100}, 104, false, ""},
		{[]byte{0, 0, 0, 2, 0x91}, 6, false, ""},
		{[]byte{0, 0, 0, 1, 0x91, 4}, 5, true, ""},
		{[]byte{0, 0, 0, 0}, 0, false, peer.CodeMalformed},
		{[]byte{0, 0, 0, 101}, 0, false, peer.CodeTooLarge},
		{[]byte{0xff, 0xff, 0xff, 0xff}, 0, false, peer.CodeTooLarge},
	} {
		size, complete, err := peer.Scan(c.frame, 100)
		code := ""
		if protocol, ok := errors.AsType[*wire.ProtocolError](err); ok {
			code = protocol.Code
		}
		if size != c.size || complete != c.complete || code != c.code {
			t.Errorf("%x: %d, %v, %v", c.frame, size, complete, err)
		}
	}
}

func TestVersionsAgreeOnTheGreatestOfBoth(t *testing.T) {
	for _, c := range []struct {
		lowest, greatest, want uint8
		ok                     bool
	}{{1, 1, 1, true}, {1, 9, peer.VersionMax, true}, {0, 1, 1, true}, {peer.VersionMax + 1, 9, 0, false}, {0, 0, 0, false}} {
		if v, ok := peer.Spoken.Agree(c.lowest, c.greatest); ok != c.ok || ok && v != c.want {
			t.Errorf("%d to %d: %d, %v", c.lowest, c.greatest, v, ok)
		}
	}
}

func TestEveryMessageHasItsPlace(t *testing.T) {
	for c := peer.Code(1); c <= peer.CodeAnnouncement; c++ {
		if retired := c == 9 || c == 10; retired == c.Known() {
			t.Errorf("%v is known: %v", c, c.Known())
		}
		if !c.Known() {
			continue
		}
		handshake := c == peer.CodeHello || c == peer.CodeWelcome
		if handshake == (c.On(peer.Control) || c.On(peer.Data)) {
			t.Errorf("%v: on control %v, on data %v", c, c.On(peer.Control), c.On(peer.Data))
		}
		if c.MustKnow() {
			t.Errorf("%v is above Required", c)
		}
	}
	if peer.Code(60).Known() || peer.Code(60).On(peer.Control) || !peer.Code(64).MustKnow() {
		t.Error("an unknown code has a place, or need not be known")
	}
}
