package broker_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func apiVersions(version int16) *kmsg.ApiVersionsRequest {
	req := kmsg.NewPtrApiVersionsRequest()
	req.SetVersion(version)
	req.ClientSoftwareName, req.ClientSoftwareVersion = "a-test", "1.0"
	return req
}

func TestApiVersionsTellsWhatIsServed(t *testing.T) {
	r := start(t)
	c := r.raw()
	for v := range int16(6) {
		resp := c.ask(apiVersions(v)).(*kmsg.ApiVersionsResponse)
		if resp.ErrorCode != 0 {
			t.Fatalf("version %d: error %d", v, resp.ErrorCode)
		}
		ranges := map[int16][2]int16{}
		for _, k := range resp.ApiKeys {
			ranges[k.ApiKey] = [2]int16{k.MinVersion, k.MaxVersion}
		}
		if ranges[0] != [2]int16{0, 13} || ranges[1] != [2]int16{4, 18} || ranges[18] != [2]int16{0, 5} {
			t.Errorf("version %d: Produce %v, Fetch %v, ApiVersions %v", v, ranges[0], ranges[1], ranges[18])
		}
		if ranges[11] != [2]int16{0, 9} || ranges[68] != [2]int16{0, 1} {
			t.Errorf("version %d: JoinGroup %v, ConsumerGroupHeartbeat %v", v, ranges[11], ranges[68])
		}
		if _, ok := ranges[24]; ok {
			t.Errorf("version %d: AddPartitionsToTxn is told, but not served", v)
		}
	}
}

func TestAnUnknownApiVersionsVersionIsAnsweredInVersionZero(t *testing.T) {
	r := start(t)
	c := r.raw()
	f := frame(77, apiVersions(3))
	binary.BigEndian.PutUint16(f[6:], 99)
	if _, err := c.Write(f); err != nil {
		t.Fatal(err)
	}
	correlation, body, err := c.answer()
	if err != nil || correlation != 77 {
		t.Fatalf("correlation %d, %v", correlation, err)
	}
	resp := kmsg.NewPtrApiVersionsResponse()
	if err := resp.ReadFrom(body); err != nil {
		t.Fatal(err)
	}
	if resp.ErrorCode != 35 || len(resp.ApiKeys) != 1 || resp.ApiKeys[0].ApiKey != 18 || resp.ApiKeys[0].MaxVersion != 5 {
		t.Errorf("answer %+v", resp)
	}
	// The connection stays open, so that the client can try again.
	if again := c.ask(apiVersions(3)).(*kmsg.ApiVersionsResponse); again.ErrorCode != 0 {
		t.Errorf("the second try: error %d", again.ErrorCode)
	}
}

func TestApiVersionsRefusesNamesThatAreNone(t *testing.T) {
	r := start(t)
	c := r.raw()
	for _, name := range []string{"", "-a", "a-", "a b", "ä", "a\n"} {
		req := apiVersions(3)
		req.ClientSoftwareName = name
		if resp := c.ask(req).(*kmsg.ApiVersionsResponse); resp.ErrorCode != 42 {
			t.Errorf("software name %q: error %d, want INVALID_REQUEST", name, resp.ErrorCode)
		}
	}
	other := "another-cluster"
	req := apiVersions(5)
	req.ClusterID, req.NodeID = &other, 1
	if resp := c.ask(req).(*kmsg.ApiVersionsResponse); resp.ErrorCode != 129 {
		t.Errorf("another cluster: error %d, want REBOOTSTRAP_REQUIRED", resp.ErrorCode)
	}
	mine := string(r.ClusterID())
	req.ClusterID = &mine
	if resp := c.ask(req).(*kmsg.ApiVersionsResponse); resp.ErrorCode != 0 {
		t.Errorf("the right cluster and broker: error %d", resp.ErrorCode)
	}
}

func TestWhatCannotBeParsedClosesTheConnection(t *testing.T) {
	r := start(t)
	metadata := kmsg.NewPtrMetadataRequest()
	metadata.SetVersion(9)
	patched := func(patch func(f []byte)) []byte {
		f := frame(1, metadata)
		patch(f)
		return f
	}
	for name, f := range map[string][]byte{
		"unknown key":        patched(func(f []byte) { binary.BigEndian.PutUint16(f[4:], 11) }),
		"negative key":       patched(func(f []byte) { binary.BigEndian.PutUint16(f[4:], 0xffff) }),
		"unknown version":    patched(func(f []byte) { binary.BigEndian.PutUint16(f[6:], 99) }),
		"negative size":      patched(func(f []byte) { binary.BigEndian.PutUint32(f, 0xffffffff) }),
		"size above limit":   patched(func(f []byte) { binary.BigEndian.PutUint32(f, 100<<20+1) }),
		"size below header":  patched(func(f []byte) { binary.BigEndian.PutUint32(f, 3) }),
		"body that ends":     patched(func(f []byte) { f[len(f)-1] = 0xff; f[len(f)-2] = 0xff; f[len(f)-3] = 0xff }),
		"a hello of TLS":     {0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03, 0, 0, 0, 0, 0, 0},
		"a question of HTTP": []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
		"produce version 2":  patched(func(f []byte) { binary.BigEndian.PutUint16(f[4:], 0); binary.BigEndian.PutUint16(f[6:], 2) }),
	} {
		t.Run(name, func(t *testing.T) {
			c := &raw{Conn: r.dial(), t: t}
			if _, err := c.Write(f); err != nil {
				t.Fatal(err)
			}
			c.closed(name)
		})
	}
}

func TestAnswersComeInTheOrderOfTheRequestsHoweverTheyArrive(t *testing.T) {
	r := start(t)
	r.createTopic("ordered", 1)
	var stream []byte
	want := []int16{}
	for i := range int32(60) {
		var req kmsg.Request
		switch i % 4 {
		case 0:
			req = apiVersions(3)
		case 1:
			req = produce(9, -1, "ordered", 0, batch("a", "b"))
		case 2:
			req = produce(9, 1, "ordered", 0, batch("c"))
		default:
			m := kmsg.NewPtrMetadataRequest()
			m.SetVersion(12)
			req = m
		}
		want = append(want, req.Key())
		stream = append(stream, frame(i, req)...)
	}
	for _, step := range []int{len(stream), 1000, 37} {
		c := r.raw()
		for at := 0; at < len(stream); at += step {
			if _, err := c.Write(stream[at:min(at+step, len(stream))]); err != nil {
				t.Fatal(err)
			}
		}
		for i := range want {
			correlation, _, err := c.answer()
			if err != nil {
				t.Fatalf("pieces of %d, answer %d: %v", step, i, err)
			}
			if int(correlation) != i {
				t.Fatalf("pieces of %d: answer %d has correlation id %d", step, i, correlation)
			}
		}
	}
}

func TestGoodRequestsBeforeABadOneAreAnswered(t *testing.T) {
	r := start(t)
	r.createTopic("before", 1)
	c := r.raw()
	bad := frame(3, apiVersions(3))
	binary.BigEndian.PutUint16(bad[4:], 999)
	stream := append(frame(1, produce(9, -1, "before", 0, batch("x"))), frame(2, apiVersions(3))...)
	if _, err := c.Write(append(stream, bad...)); err != nil {
		t.Fatal(err)
	}
	for want := int32(1); want <= 2; want++ {
		if got, _, err := c.answer(); err != nil || got != want {
			t.Fatalf("answer %d: correlation %d, %v", want, got, err)
		}
	}
	c.closed("a key that is not served")
}

func TestANullClientIdIsLegal(t *testing.T) {
	r := start(t)
	c := r.raw()
	f := kmsg.NewRequestFormatter().AppendRequest(nil, apiVersions(0), 5)
	if _, err := c.Write(f); err != nil {
		t.Fatal(err)
	}
	if got, _, err := c.answer(); err != nil || got != 5 {
		t.Fatalf("correlation %d, %v", got, err)
	}
}

func TestQuietConnectionsAreClosedAndWaitingOnesAreNot(t *testing.T) {
	r := start(t, "connections.max.idle.ms=1000")
	r.createTopic("idle", 1)
	quiet, waiting := r.raw(), r.raw()
	quiet.ask(apiVersions(3))
	req := fetch(11, "idle", 0, 0)
	req.MaxWaitMillis = 4000
	id := waiting.send(req)
	began := time.Now()
	quiet.closed("idle")
	if d := time.Since(began); d < 700*time.Millisecond {
		t.Errorf("closed after %v, want about 1 s", d)
	}
	resp := waiting.receive(id, req).(*kmsg.FetchResponse)
	if d := time.Since(began); resp.ErrorCode != 0 || d < 3500*time.Millisecond {
		t.Errorf("the long poll ended with error %d after %v", resp.ErrorCode, d)
	}
}

func TestConnectionsOfOneAddressAreLimited(t *testing.T) {
	r := start(t, "max.connections.per.ip=2")
	a, b := r.raw(), r.raw()
	a.ask(apiVersions(3))
	b.ask(apiVersions(3))
	c := r.raw()
	c.closed("one too many of an address")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(5 * time.Second)
	for {
		d := r.raw()
		d.send(apiVersions(3))
		if _, _, err := d.answer(); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the place of a closed connection is not free after 5 s")
		}
	}
}

func TestAtTheLimitOfConnectionsANewOneWaitsForAPlace(t *testing.T) {
	r := start(t, "max.connections=1")
	a := r.raw()
	a.ask(apiVersions(3))
	b := r.raw()
	id := b.send(apiVersions(3))
	if err := b.SetReadDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := b.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Fatal("answered beyond the limit")
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	b.receive(id, apiVersions(3))
}

func TestARaisedLimitOfConnectionsLetsTheWaitingIn(t *testing.T) {
	r := start(t, "max.connections=1")
	a := r.raw()
	a.ask(apiVersions(3))
	b := r.raw()
	id := b.send(apiVersions(3))
	alter := kmsg.NewPtrIncrementalAlterConfigsRequest()
	alter.SetVersion(1)
	res := kmsg.NewIncrementalAlterConfigsRequestResource()
	res.ResourceType = kmsg.ConfigResourceTypeBroker
	c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	c.Name, c.Value = "max.connections", new("2")
	res.Configs = append(res.Configs, c)
	alter.Resources = append(alter.Resources, res)
	if got := a.ask(alter).(*kmsg.IncrementalAlterConfigsResponse).Resources[0]; got.ErrorCode != 0 {
		t.Fatalf("alter max.connections: error %d, %v", got.ErrorCode, got.ErrorMessage)
	}
	// The one that waits in accept looks at the new limit before it takes its place.
	b.receive(id, apiVersions(3))
}
