package config

import (
	"slices"
	"strconv"
	"strings"
)

// Listener is one address of listeners or advertised.listeners.
type Listener struct {
	Name     string
	Host     string // empty: every interface
	Port     uint16 // 0: any free one
	Protocol string // PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL; set by BrokerOf
}

// protocols are Kafka's security protocols.
var protocols = []string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}

// parseListeners reads NAME://host:port words; a bare host:port is the PLAINTEXT listener. Names and ports are each used once.
func parseListeners(words []string) ([]Listener, string) {
	var out []Listener
	for _, w := range words {
		name, address, ok := strings.Cut(w, "://")
		if !ok {
			name, address = "PLAINTEXT", w
		}
		if !listenerName(name) {
			return nil, strconv.Quote(w) + " is not NAME://host:port with a name of letters, digits, _ and -"
		}
		host, port, problem := splitHostPort(address)
		if problem != "" {
			return nil, strconv.Quote(w) + ": " + problem
		}
		l := Listener{Name: strings.ToUpper(name), Host: host, Port: port}
		for _, o := range out {
			if o.Name == l.Name {
				return nil, "it names the listener " + l.Name + " twice"
			}
			if o.Port == l.Port && l.Port != 0 && o.Host == l.Host {
				return nil, "it uses port " + strconv.Itoa(int(l.Port)) + " twice"
			}
		}
		out = append(out, l)
	}
	return out, ""
}

func listenerName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}

// splitHostPort reads host:port, with IPv6 hosts in brackets.
func splitHostPort(s string) (host string, port uint16, problem string) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return "", 0, "it must be host:port"
	}
	host = s[:i]
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	} else if strings.ContainsAny(host, ":[]") {
		return "", 0, "an IPv6 address needs brackets, as in [::1]:9092"
	}
	n, err := strconv.ParseUint(s[i+1:], 10, 16)
	if err != nil {
		return "", 0, "the port must be a number from 0 to 65535"
	}
	return host, uint16(n), ""
}

// parseProtocols reads NAME:PROTOCOL words.
func parseProtocols(words []string) (map[string]string, string) {
	out := make(map[string]string, len(words))
	for _, w := range words {
		name, protocol, ok := strings.Cut(w, ":")
		if !ok || !listenerName(name) || !slices.Contains(protocols, protocol) {
			return nil, strconv.Quote(w) + " is not NAME:PROTOCOL with one of " + strings.Join(protocols, ", ")
		}
		if _, twice := out[strings.ToUpper(name)]; twice {
			return nil, "it maps the listener " + strings.ToUpper(name) + " twice"
		}
		out[strings.ToUpper(name)] = protocol
	}
	return out, ""
}
