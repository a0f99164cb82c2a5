package gossip

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/troupe-broker/troupe/wire/ident"
)

func fullMember() Member {
	m := member(258, "lkc_cluster-of-22-char")
	m.Expect, m.Leaving = 3, true
	m.Clients = []string{"PLAINTEXT://broker-258.example:9092", "INTERNAL://[fd00::258]:19092"}
	return m
}

func TestMemberSurvivesItsBytes(t *testing.T) {
	for _, m := range []Member{member(0, ""), member(1, "c"), fullMember()} {
		b, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeMember(b)
		if err != nil || !got.equal(&m) {
			t.Errorf("%+v became %+v, %v", m, got, err)
		}
	}
}

// Brokers of other versions read these bytes: they change by growing at the end only.
func TestMemberBytesAreGolden(t *testing.T) {
	m := fullMember()
	b, err := m.encode()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/member.hex")
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(b); got != strings.TrimSpace(string(want)) {
		t.Errorf("the bytes are\n%s\nand were\n%s", got, want)
	}
}

func TestMemberOfANewerVersionIsReadAsFarAsKnown(t *testing.T) {
	m := fullMember()
	b, err := m.encode()
	if err != nil {
		t.Fatal(err)
	}
	if b[0] != 0x90+memberFields {
		t.Fatalf("the array begins with %#x", b[0])
	}
	longer := append([]byte{b[0] + 1}, b[1:]...)
	longer = append(longer, 0x93, 1, 2, 3)
	got, err := decodeMember(longer)
	if err != nil || !got.equal(&m) {
		t.Errorf("%+v became %+v, %v", m, got, err)
	}
	longer[1] = memberFormat + 1
	if _, err := decodeMember(longer); !errors.Is(err, errMember) || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("a format that nobody knows: %v", err)
	}
}

func TestTooLongMemberSaysWhatIsLong(t *testing.T) {
	m := fullMember()
	m.Rack = strings.Repeat("r", 400)
	_, err := m.encode()
	if !errors.Is(err, ErrTooLong) || !strings.Contains(err.Error(), "the rack 400") || !strings.Contains(err.Error(), "512") {
		t.Errorf("%v", err)
	}
	m.Rack = ""
	for b, err := m.encode(); err == nil; b, err = m.encode() {
		if len(b) > metaBytesMax {
			t.Fatalf("%d bytes passed", len(b))
		}
		m.Rack += "x"
	}
	m.Rack = m.Rack[1:]
	if b, err := m.encode(); err != nil || len(b) != metaBytesMax {
		t.Errorf("one less is %d bytes, %v", len(b), err)
	}
}

func TestMalformedMembersAreRefused(t *testing.T) {
	good := fullMember()
	b, err := good.encode()
	if err != nil {
		t.Fatal(err)
	}
	for n := range b {
		if _, err := decodeMember(b[:n]); !errors.Is(err, errMember) {
			t.Errorf("the first %d of %d bytes: %v", n, len(b), err)
		}
	}
	if _, err := decodeMember(append(b, make([]byte, metaBytesMax)...)); !errors.Is(err, errMember) {
		t.Errorf("bytes beyond the limit: %v", err)
	}
	for _, m := range []Member{{Broker: -1, Incarnation: [16]byte{1}}, {Broker: 1}, {Broker: 1, Incarnation: [16]byte{1}, Expect: -1}} {
		if _, err := m.encode(); !errors.Is(err, errMember) {
			t.Errorf("%+v is told to others: %v", m, err)
		}
	}
	many := member(1, "")
	many.Clients = make([]string, clientsMax+1)
	if _, err := many.encode(); !errors.Is(err, errMember) {
		t.Errorf("%d client addresses: %v", len(many.Clients), err)
	}
}

// A declared length must not size a buffer: a member has 512 bytes, whatever it says.
func TestDeclaredLengthsAllocateNothing(t *testing.T) {
	var buf bytes.Buffer
	enc := msgpack.NewEncoder(&buf)
	if err := errors.Join(enc.EncodeArrayLen(memberFields), enc.EncodeUint(memberFormat), enc.EncodeInt(1), enc.EncodeBytesLen(1<<31-1)); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const times = 100
	for range times {
		if _, err := decodeMember(buf.Bytes()); !errors.Is(err, errMember) {
			t.Fatalf("%v", err)
		}
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / times; got > 4096 {
		t.Errorf("%d bytes allocated for %d", got, buf.Len())
	}
}

func FuzzMember(f *testing.F) {
	for _, m := range []Member{member(0, ""), fullMember()} {
		b, err := m.encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMember(b)
		if err != nil {
			if !errors.Is(err, errMember) {
				t.Fatalf("%v is no member's error", err)
			}
			return
		}
		again, err := m.encode()
		if err != nil {
			if len(b) < metaBytesMax/2 {
				t.Fatalf("what was read cannot be written: %v", err)
			}
			return // written longer than it came
		}
		if got, err := decodeMember(again); err != nil || !got.equal(&m) {
			t.Fatalf("%+v became %+v, %v", m, got, err)
		}
	})
}

func TestNameHoldsIDAndIncarnation(t *testing.T) {
	m := Member{Broker: ident.BrokerID(7), Incarnation: [16]byte{0xab, 0xcd, 7: 0xef, 8: 0xff}}
	if got := m.Name(); got != "b7-abcd0000000000ef" {
		t.Errorf("the name is %s", got)
	}
}
