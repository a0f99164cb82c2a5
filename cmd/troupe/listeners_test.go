package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/cluster/config"
)

func TestTheHintForEveryInterfaceIsACommandToType(t *testing.T) {
	for given, want := range map[string]string{
		"127.0.0.1:9092":           "",
		":9092":                    "troupe serve --listen :9092 --advertise ",
		"PLAINTEXT://0.0.0.0:9092": "troupe serve --listen 0.0.0.0:9092 --advertise ",
		"PLAINTEXT://[::]:9092":    "troupe serve --listen [::]:9092 --advertise ",
		"INNER://127.0.0.1:1,PLAINTEXT://0.0.0.0:9092": "troupe serve --listen 0.0.0.0:9092 --advertise ",
	} {
		got := advertiseHint(config.SetOf(config.Entry{Name: "listeners", Value: given}))
		if (want == "") != (got == "") || !strings.HasPrefix(got, want) || got != "" && !strings.HasSuffix(got, ":9092") {
			t.Errorf("%s: %q, want %q and an address", given, got, want)
		}
	}
}

func TestOpenDoorsAreThoseThatOthersReach(t *testing.T) {
	door := func(host string, port uint16) config.Listener {
		return config.Listener{Name: "PLAINTEXT", Host: host, Port: port}
	}
	open := openDoors([]config.Listener{door("127.0.0.1", 9092), door("", 9092), door("::1", 1), door("localhost", 2), door("10.0.0.1", 3)})
	if want := []string{":9092", "10.0.0.1:3"}; !slices.Equal(open, want) {
		t.Errorf("open doors are %v, want %v", open, want)
	}
}
