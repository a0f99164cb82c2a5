package gossip

import (
	"bytes"
	"compress/lzw"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

func yes() bool { return true }

// pack writes msgpack behind the bytes.
func pack(t testing.TB, b []byte, values ...any) []byte {
	t.Helper()
	buf := bytes.NewBuffer(b)
	enc := msgpack.NewEncoder(buf)
	enc.UseCompactInts(true)
	enc.SetSortMapKeys(true)
	for _, v := range values {
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	return buf.Bytes()
}

func labelled(b []byte) []byte {
	return append(append([]byte{msgLabel, 4}, "test"...), b...)
}

// bomb is a compressed message of the library's own kind, which unpacks to a thousand times its size.
func bomb(t testing.TB) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := lzw.NewWriter(&packed, lzw.LSB, 8)
	if _, err := w.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return pack(t, []byte{9}, map[string]any{"Algo": 0, "Buf": packed.Bytes()})
}

func compound(parts ...[]byte) []byte {
	b := []byte{msgCompound, byte(len(parts))}
	for _, p := range parts {
		b = binary.BigEndian.AppendUint16(b, uint16(len(p)))
	}
	return append(b, bytes.Join(parts, nil)...)
}

func TestOnlyPacketsOfOursPass(t *testing.T) {
	ping := []byte{msgPing, 0x80}
	for name, c := range map[string]struct {
		packet []byte
		good   bool
	}{
		"ping":                {ping, true},
		"compound":            {compound(ping, []byte{msgAlive}, []byte{msgNack}), true},
		"checked":             {append([]byte{msgChecked, 1, 2, 3, 4}, ping...), true},
		"checked compound":    {append([]byte{msgChecked, 1, 2, 3, 4}, compound(ping)...), true},
		"nothing":             {nil, false},
		"checked nothing":     {[]byte{msgChecked, 1, 2, 3, 4}, false},
		"compressed":          {bomb(t)[:100], false},
		"compressed inside":   {compound(ping, []byte{9, 0x80}), false},
		"compound inside":     {compound(compound(ping)), false},
		"checked inside":      {compound(append([]byte{msgChecked, 1, 2, 3, 4}, ping...)), false},
		"user's":              {[]byte{8, 1, 2, 3}, false},
		"exchange":            {[]byte{msgPushPull, 0x80}, false},
		"sealed":              {[]byte{msgEncrypted, 0, 0, 0, 1}, false},
		"label inside":        {labelled(ping), false},
		"compound of nothing": {[]byte{msgCompound}, false},
		"missing lengths":     {[]byte{msgCompound, 200, 0, 1}, false},
		"missing part":        {[]byte{msgCompound, 1, 0, 9, 0}, false},
		"empty part":          {compound(nil), false},
	} {
		if err := inspectPacket(c.packet, yes); (err == nil) != c.good || (err != nil && !errors.Is(err, errPacket)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := inspectPacket(compound(ping, []byte{msgIndirectPing}), func() bool { return false }); !errors.Is(err, errPacket) {
		t.Errorf("a ping to pass on beyond the limit: %v", err)
	}
}

// feed passes bytes in pieces of n, and returns what the gate says of the whole, or io.ErrUnexpectedEOF if it has not decided.
func feed(g gate, b []byte, n int) error {
	for len(b) > 0 {
		k := min(n, len(b))
		if err := g.pass(b[:k]); err != nil {
			return err
		}
		b = b[k:]
	}
	if !g.open {
		return io.ErrUnexpectedEOF
	}
	return nil
}

func TestOnlyStreamsOfOursPass(t *testing.T) {
	header := func(nodes, more any, join any) []byte {
		return pack(t, []byte{msgPushPull}, map[string]any{"Join": join, "Nodes": nodes, "UserStateLen": more})
	}
	for name, c := range map[string]struct {
		stream []byte
		sealed bool
		want   error
	}{
		"exchange":              {append(header(3, 0, true), "the members"...), false, nil},
		"full exchange":         {header(nodesMax, 0, false), false, nil},
		"ping":                  {[]byte{msgPing, 0x80}, false, nil},
		"sealed":                {[]byte{msgEncrypted, 0, 0, 0, 9}, true, nil},
		"sealed, and no key":    {[]byte{msgEncrypted, 0, 0, 0, 9}, false, errSealed},
		"open, and a key":       {header(3, 0, true), true, errUnsealed},
		"a million members":     {header(1<<20, 0, true), false, errStream},
		"minus one member":      {header(-1, 0, true), false, errStream},
		"a state":               {header(3, 1<<24, true), false, errStream},
		"a text for a number":   {header("three", 0, true), false, errStream},
		"no map":                {pack(t, []byte{msgPushPull}, []int{1 << 20, 0, 1}), false, errStream},
		"a fourth field":        {pack(t, []byte{msgPushPull}, map[string]any{"A": 1, "Join": true, "Nodes": 1, "UserStateLen": 0}), false, errStream},
		"another field":         {pack(t, []byte{msgPushPull}, map[string]any{"Elephants": 1 << 20}), false, errStream},
		"an endless field":      {append([]byte{msgPushPull, 0x81, 0xdb, 0x7f, 0xff, 0xff, 0xff}, make([]byte, 100)...), false, errStream},
		"a header without end":  {append([]byte{msgPushPull, 0x83, 0xd9, headerBytesMax}, make([]byte, 100)...), false, errStream},
		"compressed":            {bomb(t), false, errStream},
		"user's":                {[]byte{8, 0x81}, false, errStream},
		"nothing of the kind":   {[]byte("GET / HTTP/1.1\r\n\r\n"), false, errStream},
		"more than a stream":    {append(header(3, 0, true), make([]byte, streamBytesMax)...), false, errStreamLong},
		"sealed and too much":   {append([]byte{msgEncrypted}, make([]byte, streamBytesMax)...), true, errStreamLong},
		"begins and stays away": {[]byte{msgPushPull, 0x83}, false, io.ErrUnexpectedEOF},
	} {
		for _, piece := range []int{1, 7, 4096, 1 << 20} {
			g := gate{label: "test", sealed: c.sealed}
			if err := feed(g, labelled(c.stream), piece); !errors.Is(err, c.want) || (c.want == nil && err != nil) {
				t.Errorf("%s in pieces of %d: %v", name, piece, err)
			}
			g = gate{sealed: c.sealed} // as an answer
			if err := feed(g, c.stream, piece); !errors.Is(err, c.want) || (c.want == nil && err != nil) {
				t.Errorf("%s as an answer, in pieces of %d: %v", name, piece, err)
			}
			g = gate{label: "best", sealed: c.sealed}
			if err := feed(g, labelled(c.stream), piece); !errors.Is(err, errLabel) {
				t.Errorf("%s under another label, in pieces of %d: %v", name, piece, err)
			}
		}
	}
}

// A hostile machine says all it can think of; the brokers go on, say so once, and keep what memory they had.
func TestHostileBytesCostLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t)
		brokers := crowd(t, network, 3)
		victim := brokers[0]
		enemy := network.bind(netip.MustParseAddrPort("10.6.6.6:666"))
		defer func() { _ = enemy.Close() }()
		to := net.UDPAddrFromAddrPort(victim.address)
		packets := [][]byte{
			nil,
			{0},
			labelled(nil), []byte("hello"), labelled(make([]byte, 60000)), labelled(bomb(t)[:1000]), labelled([]byte{8, 1, 2, 3}),
			labelled(pack(t, []byte{msgAlive}, map[string]any{"Incarnation": 1, "Node": "b9-0000", "Addr": []byte{1, 2, 3, 4}, "Port": 9, "Meta": make([]byte, 900), "Vsn": []int{1}})),
			labelled(pack(t, []byte{msgAlive}, map[string]any{"Incarnation": 1, "Node": "b9-0000", "Addr": []byte{1}, "Vsn": []int{1, 5, 2, 0, 0, 0}})),
			labelled([]byte{msgSuspect, 0xdb, 0xff, 0xff, 0xff, 0xff}), labelled([]byte{msgDead, 0xdd, 0xff, 0xff, 0xff, 0xff}),
			labelled(append([]byte{msgPing, 0x81, 0xa4}, "Node\xc6\xff\xff\xff\xff"...)),
			labelled(pack(t, []byte{msgIndirectPing}, map[string]any{"SeqNo": 1, "Target": []byte{10, 0, 0, 9}, "Port": 1, "Node": "x", "Nack": true})),
		}
		streams := [][]byte{
			nil, []byte("GET / HTTP/1.1\r\n"), labelled([]byte{msgPushPull, 0xdd, 0xff, 0xff, 0xff, 0xff}), labelled(bomb(t)),
			labelled(append(pack(t, []byte{msgPushPull}, map[string]any{"Nodes": nodesMax, "Join": true}), make([]byte, 1<<20)...)),
			labelled(append(pack(t, []byte{msgPushPull}, map[string]any{"Nodes": 2, "Join": true}), 0x81, 0xa3, 'V', 's', 'n', 0xc4, 1, 1, 0x80)),
			labelled(append([]byte{msgPing, 0x81, 0xa4}, "Node\xdb\xff\xff\xff\xff"...)),
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		const rounds = 50
		for range rounds {
			for _, p := range packets {
				for range 10 {
					if _, err := enemy.WriteTo(p, to); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, s := range streams {
				conn, err := enemy.dial(t.Context(), victim.address.String())
				if err != nil {
					t.Fatal(err)
				}
				if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
					t.Fatal(err)
				}
				_, _ = conn.Write(s) // the victim closes when it has seen enough
				if err := conn.Close(); err != nil {
					t.Fatal(err)
				}
			}
			pass(time.Second)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 8<<20 {
			t.Errorf("%d bytes are kept", kept)
		}
		sent := 0
		for _, b := range packets {
			sent += 10 * rounds * len(b)
		}
		for _, b := range streams {
			sent += rounds * len(b)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > uint64(8*sent) {
			t.Errorf("%d bytes allocated for %d sent", used, sent)
		}
		if !allSee(brokers...) {
			t.Error("the brokers do not see each other any more")
		}
		if len(victim.states()) != 2 {
			t.Errorf("the victim sees %v", victim.states())
		}
		for _, n := range victim.noted() {
			if len(n.Text) > 400 {
				t.Errorf("a note of %d bytes: %.100s…", len(n.Text), n.Text)
			}
		}
		texts := strings.Join(append(victim.said(codeRefused), victim.said(codeSeal)...), "\n")
		if !strings.Contains(texts, "10.6.6.6") || len(victim.noted()) > 8 {
			t.Errorf("%d notes: %v", len(victim.noted()), victim.noted())
		}
	})
}

// What the gate of packets refuses never gets to the library: each of these alone is worth a note of the gate's.
func TestGateOfPacketsStandsBeforeTheLibrary(t *testing.T) {
	for name, packet := range map[string][]byte{
		"too long":   labelled(append([]byte{msgPing}, make([]byte, packetBytesMax)...)),
		"compressed": labelled(bomb(t)[:packetBytesMax/2]),
		"user's":     labelled([]byte{8, 1, 2, 3}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := newNetwork(t)
				b := network.start(network.options(member(1, "a")))
				enemy := network.bind(netip.MustParseAddrPort("10.6.6.6:666"))
				defer func() { _ = enemy.Close() }()
				for range 3 {
					if _, err := enemy.WriteTo(packet, net.UDPAddrFromAddrPort(b.address)); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				if texts := b.said(codeRefused); len(texts) != 1 || !strings.Contains(texts[0], "a gossip packet from 10.6.6.6 is refused") {
					t.Errorf("%q, of %v", texts, b.noted())
				}
			})
		})
	}
}

func TestStreamsAreBoundedAndClosedByStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t)
		b := network.start(network.options(member(1, "a")))
		var open []net.Conn
		for i := range 3 * streamsMax {
			here, far := net.Pipe()
			b.g.Offer(pipe{Conn: far, network: network, remote: netip.MustParseAddrPort(fmt.Sprintf("10.1.0.%d:9", i))})
			open = append(open, here)
		}
		synctest.Wait()
		ends := func(conns []net.Conn) (n int) {
			for _, c := range conns {
				err := c.SetReadDeadline(time.Now().Add(time.Millisecond))
				if err == nil {
					_, err = c.Read(make([]byte, 1))
				}
				if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) {
					n++
				}
			}
			return n
		}
		if n := ends(open[streamsMax:]); n != 2*streamsMax {
			t.Errorf("%d of %d streams beyond the limit are closed", n, 2*streamsMax)
		}
		if n := ends(open[:streamsMax]); n != 0 {
			t.Errorf("%d of the first %d streams are closed", n, streamsMax)
		}
		b.g.Stop()
		b.g.transport.mu.Lock()
		if left := len(b.g.transport.streams); left != 0 {
			t.Errorf("the library still has %d streams", left)
		}
		b.g.transport.mu.Unlock()
		b.kill()
		if n := ends(open[:streamsMax]); n != streamsMax {
			t.Errorf("%d of %d streams are closed by the end", n, streamsMax)
		}
		here, far := net.Pipe()
		b.g.Offer(pipe{Conn: far, network: network, remote: netip.MustParseAddrPort("10.1.0.1:9")})
		if ends([]net.Conn{here}) != 1 {
			t.Error("a stream after the end stays open")
		}
	})
}

func TestPassingOnIsBoundedPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t)
		b := network.start(network.options(member(1, "a")))
		for range 3 {
			passed := 0
			for range 10 * indirectPerSecond {
				if b.g.transport.passOn() {
					passed++
				}
			}
			if passed != indirectPerSecond {
				t.Errorf("%d pings are passed on in a second", passed)
			}
			pass(time.Second)
		}
	})
}

func FuzzPacket(f *testing.F) {
	f.Add(compound([]byte{msgPing, 0x80}))
	f.Add(append([]byte{msgChecked, 1, 2, 3, 4}, compound([]byte{msgAlive})...))
	f.Fuzz(func(t *testing.T, b []byte) {
		asked := 0
		err := inspectPacket(b, func() bool { asked++; return true })
		if err != nil && !errors.Is(err, errPacket) {
			t.Fatalf("%v", err)
		}
		if asked > len(b) {
			t.Fatalf("%d pings in %d bytes", asked, len(b))
		}
	})
}

// The gate decides the same in whatever pieces the bytes come.
func FuzzStream(f *testing.F) {
	f.Add(labelled(pack(f, []byte{msgPushPull}, map[string]any{"Nodes": 3, "Join": true, "UserStateLen": 0})), 3, false)
	f.Add(labelled([]byte{msgEncrypted, 1, 2, 3}), 1, true)
	f.Fuzz(func(t *testing.T, b []byte, piece int, sealed bool) {
		if piece < 1 || piece > 1<<20 {
			return
		}
		whole, parts := feed(gate{label: "test", sealed: sealed}, b, len(b)+1), feed(gate{label: "test", sealed: sealed}, b, piece)
		if fmt.Sprint(whole) != fmt.Sprint(parts) {
			t.Fatalf("%v as a whole, %v in pieces of %d", whole, parts, piece)
		}
	})
}
