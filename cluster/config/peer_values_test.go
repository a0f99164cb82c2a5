package config

import (
	"errors"
	"strings"
	"testing"
)

func peers(pairs ...string) (PeerValues, error) {
	var entries []Entry
	for _, p := range pairs {
		name, value, _ := strings.Cut(p, "=")
		entries = append(entries, Entry{Name: name, Value: value})
	}
	v, err := BrokerOf(Stack{Static: SetOf(entries...)})
	return v.Peer, err
}

func TestABrokerOfItsOwnHasNoPeerPort(t *testing.T) {
	v, err := peers()
	if err != nil || v.Listen != "" || v.Expect != 1 {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestWhoJoinsFoundsNothingByDefault(t *testing.T) {
	v, err := peers("join=a:9094,b:9094", "peer.listen=127.0.0.1:0")
	if err != nil || v.Expect != 0 || len(v.Join) != 2 {
		t.Fatalf("%+v, %v", v, err)
	}
	if a := v.AdvertisePeer(77); a != "127.0.0.1:77" {
		t.Errorf("it advertises %s", a)
	}
}

func TestAPeerPortMustBeSafeAndReachable(t *testing.T) {
	key := "gossip.keys=MDEyMzQ1Njc4OWFiY2RlZg=="
	tls := []string{"peer.tls.certificate=c", "peer.tls.key=k", "peer.tls.ca=a"}
	for _, c := range []struct {
		name  string
		pairs []string
		key   string // "": it is fine
		words string
	}{
		{"loopback", []string{"peer.listen=127.0.0.1:9094"}, "", ""},
		{"loopback of IPv6", []string{"peer.listen=[::1]:9094"}, "", ""},
		{"a name like a loopback", []string{"peer.listen=127.example.com:9094"}, "peer.listen", "--insecure"},
		{"localhost", []string{"peer.listen=localhost:9094"}, "", ""},
		{"others reach it", []string{"peer.listen=10.0.0.1:9094"}, "peer.listen", "--peer-listen 10.0.0.1:9094 --insecure"},
		{"with keys only", []string{"peer.listen=10.0.0.1:9094", key}, "peer.listen", "peer.tls.certificate"},
		{"with keys and tls", append([]string{"peer.listen=10.0.0.1:9094", key}, tls...), "", ""},
		{"insecure", []string{"peer.listen=10.0.0.1:9094", "peer.insecure=true"}, "", ""},
		{"some of tls", []string{"peer.listen=127.0.0.1:9094", tls[0]}, "peer.tls.certificate", "all three"},
		{"wildcard", []string{"peer.listen=0.0.0.0:9094", "peer.insecure=true"}, "peer.listen", "--peer-advertise HOST:9094"},
		{"wildcard, advertised", []string{"peer.listen=0.0.0.0:9094", "peer.insecure=true", "peer.advertise=h:9094"}, "", ""},
		{"nowhere", []string{"peer.listen=127.0.0.1:9094", "peer.advertise=0.0.0.0:9094"}, "peer.advertise", "a host they can reach"},
		{"founder without number", []string{"peer.listen=127.0.0.1:9094", "bootstrap.expect=3"}, "bootstrap.expect", "--broker-id"},
		{"founder", []string{"peer.listen=127.0.0.1:9094", "bootstrap.expect=3", "node.id=2"}, "", ""},
		{"founder by the old name", []string{"peer.listen=127.0.0.1:9094", "bootstrap.expect=3", "broker.id=2"}, "", ""},
		{"founder without port", []string{"bootstrap.expect=3", "node.id=2"}, "bootstrap.expect", "--peer-listen"},
		{"joiner without port", []string{"join=a:9094"}, "join", "--peer-listen"},
		{"lone founder that joins", []string{"join=a:9094", "peer.listen=127.0.0.1:9094", "bootstrap.expect=1"}, "bootstrap.expect", "leave out"},
		{"a listener of that name", []string{"listeners=PEER://127.0.0.1:9092", "listener.security.protocol.map=PEER:PLAINTEXT"}, "listeners", "PEER"},
	} {
		v, err := peers(c.pairs...)
		var bad *Error
		switch {
		case c.key == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.key != "" && (!errors.As(err, &bad) || bad.Key != c.key || !strings.Contains(bad.Problem, c.words)):
			t.Errorf("%s: %v, want the key %s and %q", c.name, err, c.key, c.words)
		case c.name == "insecure" && !v.Exposed(), c.name == "loopback" && v.Exposed():
			t.Errorf("%s: exposed is %v", c.name, v.Exposed())
		}
	}
}

func TestValuesAboutPeersAreChecked(t *testing.T) {
	for _, c := range []struct{ key, value string }{
		{"bootstrap.expect", "2"},
		{"bootstrap.expect", "0"},
		{"join", "a"},
		{"join", "a:9094,b"},
		{"peer.listen", "a"},
		{"gossip.keys", "abc"},
		{"gossip.keys", "MDEyMzQ1Njc4OWFiY2RlZg==,eA=="},
		{"gossip.label", ""},
		{"gossip.label", strings.Repeat("x", 65)},
	} {
		k, _ := Broker().Lookup(c.key)
		if _, err := k.Parse(c.value); err == nil {
			t.Errorf("%s=%s is taken", c.key, c.value)
		}
	}
}
