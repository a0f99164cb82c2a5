package config

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// PeerListener is the name under which a broker's registration has its peer port. No listener for clients can have it.
const PeerListener = "PEER"

// PeerValues is what a broker does about others.
type PeerValues struct {
	Listen      string // host:port; empty: it has no peer port
	Advertise   string // host:port; port 0 stands for the one that is open
	Join        []string
	Expect      int  // founders; 0: it founds nothing
	Numbered    bool // its id was given to it
	Insecure    bool // it may be open to others than this machine without protection
	Certificate string
	Key         string
	CA          string
	GossipKeys  [][]byte
	GossipLabel string
}

// peersOf resolves the keys about other brokers. The error is an *Error with code TRP-1007.
func peersOf(s Stack) (PeerValues, error) {
	v := PeerValues{
		Listen: s.BrokerText("peer.listen"), Advertise: s.BrokerText("peer.advertise"), Join: s.value(brokerTable, "join").Words, Expect: int(s.BrokerInt("bootstrap.expect")),
		Certificate: s.BrokerText("peer.tls.certificate"), Key: s.BrokerText("peer.tls.key"), CA: s.BrokerText("peer.tls.ca"), GossipLabel: s.BrokerText("gossip.label"),
		Insecure: s.BrokerBool("peer.insecure"),
	}
	v.GossipKeys, _ = parseKeys(s.BrokerText("gossip.keys"))
	node, byNode := s.Static.Get("node.id")
	_, byBroker := s.Static.Get("broker.id")
	v.Numbered = byNode && node != "" || byBroker && s.BrokerInt("broker.id") >= 0
	if v.Expect < 0 {
		v.Expect = 1
		if len(v.Join) > 0 {
			v.Expect = 0
		}
	}
	if err := v.found(); err != nil {
		return PeerValues{}, err
	}
	if v.Listen == "" {
		return v, nil
	}
	if err := v.protect(); err != nil {
		return PeerValues{}, err
	}
	return v, v.advertised()
}

// found checks what is said about the founding of a cluster.
func (v *PeerValues) found() error {
	expect := strconv.Itoa(v.Expect)
	switch {
	case v.Expect == 1 && len(v.Join) > 0:
		return &Error{Code: Conflict, Key: "bootstrap.expect", Value: expect, Problem: "a broker that joins others founds no cluster alone: leave out this, or join"}
	case v.Expect > 1 && !v.Numbered:
		return &Error{Code: Conflict, Key: "bootstrap.expect", Value: expect, Problem: "each founder needs a number of its own: give it by --broker-id N"}
	case v.Listen == "" && v.Expect > 1:
		return &Error{Code: Conflict, Key: "bootstrap.expect", Value: expect, Problem: "founders need a peer port to reach each other at: start with --peer-listen HOST:9094"}
	case v.Listen == "" && len(v.Join) > 0:
		return &Error{Code: Conflict, Key: "join", Value: strings.Join(v.Join, ","), Problem: "a broker among others needs a peer port: start with --peer-listen HOST:9094"}
	}
	return nil
}

// protect refuses a peer port that strangers could speak at.
func (v *PeerValues) protect() error {
	files := 0
	for _, f := range []string{v.Certificate, v.Key, v.CA} {
		if f != "" {
			files++
		}
	}
	if files != 0 && files != 3 {
		return &Error{Code: Conflict, Key: "peer.tls.certificate", Value: v.Certificate, Problem: "peer.tls.certificate, peer.tls.key and peer.tls.ca belong together: give all three, or none"}
	}
	if v.Exposed() && !v.Insecure {
		return &Error{Code: Conflict, Key: "peer.listen", Value: v.Listen, Problem: fmt.Sprintf(
			"others than this machine reach it, and could speak as brokers: set gossip.keys and peer.tls.certificate, peer.tls.key, peer.tls.ca; or, on a network you trust, start with --peer-listen %s --insecure", v.Listen)}
	}
	return nil
}

// Exposed tells whether strangers could speak at the peer port: others than this machine reach it, and gossip or links are not encrypted.
func (v *PeerValues) Exposed() bool {
	host, _, _ := splitHostPort(v.Listen)
	return v.Listen != "" && !loopback(host) && (v.Certificate == "" || len(v.GossipKeys) == 0)
}

// advertised finds what other brokers are told.
func (v *PeerValues) advertised() error {
	if v.Advertise == "" {
		v.Advertise = v.Listen
		if host, port, _ := splitHostPort(v.Listen); wildcard(host) {
			return &Error{Code: Conflict, Key: "peer.listen", Value: v.Listen, Problem: fmt.Sprintf(
				"it opens every interface, and other brokers must be told one address: set peer.advertise, or start with --peer-listen %s --peer-advertise HOST:%d", v.Listen, port)}
		}
		return nil
	}
	if host, _, _ := splitHostPort(v.Advertise); wildcard(host) {
		return &Error{Code: Conflict, Key: "peer.advertise", Value: v.Advertise, Problem: "other brokers cannot connect to " + strconv.Quote(host) + ": name a host they can reach"}
	}
	return nil
}

// loopback tells whether only this machine reaches a host.
func loopback(host string) bool {
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.") && strings.Trim(host, "0123456789.") == ""
}

// AdvertisePeer is the address of a peer port as others are told it, given the port that is open.
func (v *PeerValues) AdvertisePeer(open uint16) string {
	host, port, _ := splitHostPort(v.Advertise)
	if port == 0 {
		port = open
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(int(port))
}

// founders wants a number of voters, or -1.
func founders(v Value) string {
	if !slices.Contains([]int64{-1, 1, 3, 5}, v.Int) {
		return "a cluster is founded by 1, 3 or 5 brokers; others join it without this"
	}
	return ""
}

// hostPorts wants host:port words.
func hostPorts(v Value) string {
	for _, w := range v.Words {
		if _, _, problem := splitHostPort(w); problem != "" {
			return strconv.Quote(w) + ": " + problem
		}
	}
	return ""
}

// parseKeys reads keys in base64, separated by commas.
func parseKeys(text string) ([][]byte, string) {
	var keys [][]byte
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(word)
		if n := len(key); err != nil || n != 16 && n != 24 && n != 32 {
			return nil, "key " + strconv.Itoa(len(keys)+1) + " is not 16, 24 or 32 bytes in base64; `openssl rand -base64 32` makes one"
		}
		keys = append(keys, key)
	}
	return keys, ""
}

func keyList(v Value) string {
	_, problem := parseKeys(v.Text)
	return problem
}

// gossipLabel wants what fits into the head of a packet.
func gossipLabel(v Value) string {
	if n := len(v.Text); n == 0 || n > 64 {
		return "it must have 1 to 64 bytes"
	}
	return ""
}
