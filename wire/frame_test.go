package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
)

// request encodes a whole frame as kmsg's formatter does.
func request(req kmsg.Request, correlation int32, client *string) []byte {
	return formatter(client).AppendRequest(nil, req, correlation)
}

func formatter(client *string) *kmsg.RequestFormatter {
	if client == nil {
		return kmsg.NewRequestFormatter()
	}
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID(*client))
}

func metadataRequest(version int16) kmsg.Request {
	req := kmsg.NewPtrMetadataRequest()
	req.Version = version
	return req
}

func TestAFrameIsKnownPieceByPiece(t *testing.T) {
	client := "me"
	first, second := request(metadataRequest(9), 7, &client), request(metadataRequest(1), 8, nil)
	wireBytes := append(bytes.Clone(first), second...)
	s := wire.Scanner{Limit: 1 << 20}
	for n := range len(first) + 5 {
		f, err := s.Scan(wireBytes[:n])
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case n < 4 && (f.Size != 0 || f.API != nil || f.Complete):
			t.Fatalf("%d bytes: %+v", n, f)
		case n >= 4 && f.Size != len(first):
			t.Fatalf("%d bytes: size %d, want %d", n, f.Size, len(first))
		case n >= 8 && (f.API == nil || f.API.Key != wire.KeyMetadata || f.Version != 9):
			t.Fatalf("%d bytes: %+v", n, f)
		case f.Complete != (n >= len(first)):
			t.Fatalf("%d bytes: complete %v", n, f.Complete)
		case f.Complete && !bytes.Equal(f.Body, first[4:]):
			t.Fatalf("%d bytes: body %x", n, f.Body)
		}
	}
	f, err := s.Scan(wireBytes[len(first):])
	if err != nil || !f.Complete || f.Version != 1 || !bytes.Equal(f.Body, second[4:]) {
		t.Fatalf("the second frame: %+v, %v", f, err)
	}
}

func TestBadFramesAreRefusedAsSoonAsTheyShow(t *testing.T) {
	frame := func(length int32, key, version int16) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(length))
		b = binary.BigEndian.AppendUint16(b, uint16(key))
		return binary.BigEndian.AppendUint16(b, uint16(version))
	}
	for _, c := range []struct {
		name    string
		scanner wire.Scanner
		bytes   []byte
		code    string
	}{
		{"negative", wire.Scanner{Limit: 1000}, frame(-1, 0, 0)[:4], wire.CodeFrameLength},
		{"the most negative", wire.Scanner{Limit: 1000}, frame(math.MinInt32, 0, 0)[:4], wire.CodeFrameLength},
		{"empty", wire.Scanner{Limit: 1000}, frame(0, 0, 0)[:4], wire.CodeFrameLength},
		{"shorter than a header", wire.Scanner{Limit: 1000}, frame(9, 0, 0)[:4], wire.CodeFrameLength},
		{"HTTP", wire.Scanner{Limit: 100 << 20}, []byte("GET / HTTP/1.1\r\n"), wire.CodeFrameTooLarge},
		{"TLS", wire.Scanner{Limit: 100 << 20}, []byte{0x16, 3, 1, 2, 0, 1, 0, 1}, wire.CodeFrameTooLarge},
		{"above the limit", wire.Scanner{Limit: 1000}, frame(1001, 0, 0)[:4], wire.CodeFrameTooLarge},
		{"above the limit before authentication", wire.Scanner{Limit: 1000, Early: true}, frame(1001, 0, 0)[:4], wire.CodeFrameEarly},
		{"above the API's limit", wire.Scanner{Limit: math.MaxInt32}, frame(64<<10+1, 18, 0), wire.CodeFrameOfAPI},
		{"a key that is not served", wire.Scanner{Limit: 1000}, frame(100, 24, 0), wire.CodeNotServed},
		{"a negative key", wire.Scanner{Limit: 1000}, frame(100, -1, 0), wire.CodeNotServed},
		{"Produce version 2", wire.Scanner{Limit: 1000}, frame(100, 0, 2), wire.CodeNotServed},
		{"a negative version", wire.Scanner{Limit: 1000}, frame(100, 3, -1), wire.CodeNotServed},
	} {
		_, err := c.scanner.Scan(c.bytes)
		if err == nil || !strings.HasPrefix(err.Error(), c.code) {
			t.Errorf("%s: %v, want %s", c.name, err, c.code)
		}
	}
	s := wire.Scanner{Limit: 1000}
	if f, err := s.Scan(frame(1000, 0, 9)); err != nil || f.Size != 1004 {
		t.Errorf("a frame at the limit: %+v, %v", f, err)
	}
	if f, err := s.Scan(frame(100, 18, 99)); err != nil || f.API == nil {
		t.Errorf("a version of ApiVersions to come: %+v, %v", f, err)
	}
}

func TestScanningAllocatesNothing(t *testing.T) {
	client := "me"
	b := request(metadataRequest(9), 7, &client)
	s := wire.Scanner{Limit: 1 << 20}
	if allocs := testing.AllocsPerRun(100, func() {
		f, err := s.Scan(b)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := wire.ParseRequestHeader(f.Body); err != nil {
			t.Fatal(err)
		}
	}); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestHeadersAreReadAsKmsgWritesThem(t *testing.T) {
	long := strings.Repeat("c", 300)
	empty := ""
	for _, api := range wire.APIs() {
		for version := api.Min; version <= api.Max; version++ {
			for _, client := range []*string{nil, &empty, &long} {
				req := kmsg.RequestForKey(int16(api.Key))
				req.SetVersion(version)
				frame := request(req, -77, client)
				h, body, err := wire.ParseRequestHeader(frame[4:])
				if err != nil {
					t.Fatalf("%s version %d: %v", api.Name, version, err)
				}
				if h.Key != api.Key || h.API.Key != api.Key || h.Version != version || h.CorrelationID != -77 || !sameNullable(client, h.ClientID) {
					t.Fatalf("%s version %d: %+v", api.Name, version, h)
				}
				if want := req.AppendTo(nil); !bytes.Equal(body, want) {
					t.Fatalf("%s version %d: body %x, want %x", api.Name, version, body, want)
				}
				header := len(frame) - 4 - len(body)
				var refused *wire.ProtocolError
				for cut := range header {
					if _, _, err := wire.ParseRequestHeader(frame[4 : 4+cut]); !errors.As(err, &refused) || refused.Code != wire.CodeHeader {
						t.Fatalf("%s version %d: %d bytes of a header of %d: %v", api.Name, version, cut, header, err)
					}
				}
			}
		}
	}
}

func TestHeadersWithTaggedFieldsAreRead(t *testing.T) {
	b := []byte{0, 3, 0, 9, 0, 0, 0, 1, 0xff, 0xff, 2, 0, 1, 'x', 5, 0, 'b', 'o', 'd', 'y'}
	h, body, err := wire.ParseRequestHeader(b)
	if err != nil || string(body) != "body" || h.ClientID != nil {
		t.Fatalf("%+v, %q, %v", h, body, err)
	}
}

// A client that is newer than the broker asks for ApiVersions in a version that
// does not exist here yet; it is owed an answer, so its correlation id must be
// read (KIP-511).
func TestAnUnknownVersionOfApiVersionsKeepsItsHeader(t *testing.T) {
	b := []byte{0, 18, 0, 99, 0, 0, 0, 42, 0, 2, 'm', 'e', 0, 'a', 'n', 'y'}
	h, _, err := wire.ParseRequestHeader(b)
	var unsupported *wire.UnsupportedError
	if !errors.As(err, &unsupported) || unsupported.Version != 99 || unsupported.API == nil || h.CorrelationID != 42 || string(h.ClientID) != "me" || h.API.Key != wire.KeyApiVersions {
		t.Errorf("%+v, %v", h, err)
	}
	b[1] = 3
	if h, _, err := wire.ParseRequestHeader(b); !errors.As(err, &unsupported) || h.API != nil {
		t.Errorf("Metadata: %+v, %v", h, err)
	}
	b[1] = 24
	if _, _, err := wire.ParseRequestHeader(b); !errors.As(err, &unsupported) || unsupported.API != nil || !strings.Contains(err.Error(), "key 24") {
		t.Errorf("AddPartitionsToTxn: %v", err)
	}
}

func TestResponsesAreFramed(t *testing.T) {
	for _, c := range []struct {
		key     wire.Key
		version int16
		header  []byte
	}{
		{wire.KeyMetadata, 8, []byte{0, 0, 0, 9}},
		{wire.KeyMetadata, 9, []byte{0, 0, 0, 9, 0}},
		{wire.KeyApiVersions, 0, []byte{0, 0, 0, 9}},
		{wire.KeyApiVersions, 5, []byte{0, 0, 0, 9}},
	} {
		api, _ := wire.Lookup(c.key)
		dst := wire.BeginResponse([]byte("before"), api, c.version, 9)
		dst = append(dst, "body"...)
		if err := wire.EndResponse(dst, 6, 1000); err != nil {
			t.Fatal(err)
		}
		want := binary.BigEndian.AppendUint32([]byte("before"), uint32(len(c.header)+4+1000))
		want = append(append(want, c.header...), "body"...)
		if !bytes.Equal(dst, want) {
			t.Errorf("%v version %d:\ngot  %x\nwant %x", c.key, c.version, dst, want)
		}
		var refused *wire.ProtocolError
		if err := wire.EndResponse(dst, 6, math.MaxInt32); !errors.As(err, &refused) || refused.Code != wire.CodeResponseSize {
			t.Errorf("a response of more than 2 GiB: %v", err)
		}
	}
}

func FuzzScan(f *testing.F) {
	client := "me"
	f.Add(request(metadataRequest(9), 7, &client), int32(100))
	f.Add(append(request(metadataRequest(0), 7, nil), request(metadataRequest(12), 8, &client)...), int32(1<<20))
	f.Add([]byte("GET / HTTP/1.1\r\n"), int32(100<<20))
	f.Fuzz(func(t *testing.T, b []byte, limit int32) {
		s := wire.Scanner{Limit: limit}
		for rest := b; ; {
			frame, err := s.Scan(rest)
			// What is known of a frame does not change when more of it arrives.
			for n := range min(len(rest), 12) {
				part, partErr := s.Scan(rest[:n])
				if partErr != nil && err == nil {
					t.Fatalf("%d bytes are refused, %d are not: %v", n, len(rest), partErr)
				}
				if part.Size != 0 && part.Size != frame.Size && err == nil {
					t.Fatalf("size %d after %d bytes, %d after %d", part.Size, n, frame.Size, len(rest))
				}
			}
			if err != nil || !frame.Complete {
				return
			}
			if frame.Size != len(frame.Body)+4 || frame.Size-4 > int(limit) {
				t.Fatalf("%+v with limit %d", frame, limit)
			}
			rest = rest[frame.Size:]
		}
	})
}

func FuzzRequestHeader(f *testing.F) {
	client := "me"
	for _, version := range []int16{0, 8, 9, 13} {
		f.Add(request(metadataRequest(version), 7, &client)[4:])
	}
	f.Add([]byte{0, 18, 0, 99, 0, 0, 0, 42, 0, 2, 'm', 'e', 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, body, err := wire.ParseRequestHeader(b)
		var refused *wire.ProtocolError
		var unsupported *wire.UnsupportedError
		switch {
		case err == nil && (!h.API.Serves(h.Version) || len(body) > len(b)-10 || !bytes.HasSuffix(b, body)):
			t.Fatalf("%+v, %d of %d bytes left", h, len(body), len(b))
		case err != nil && !errors.As(err, &refused) && !errors.As(err, &unsupported):
			t.Fatalf("%#v", err)
		case err != nil && body != nil:
			t.Fatal("a refused header has a body")
		}
	})
}

func BenchmarkScanAndHeader(b *testing.B) {
	for _, version := range []int16{8, 12} {
		b.Run(fmt.Sprintf("version=%d", version), func(b *testing.B) {
			client := "client-1"
			frame := request(metadataRequest(version), 7, &client)
			s := wire.Scanner{Limit: 1 << 20}
			b.ReportAllocs()
			for b.Loop() {
				f, err := s.Scan(frame)
				if err != nil {
					b.Fatal(err)
				}
				if _, _, err := wire.ParseRequestHeader(f.Body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
