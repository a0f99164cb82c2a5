package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTabOffersWhatTheCommandTakes(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "data"))
	p.cli(t, "", "topic", "create", "orders", "payments")
	for _, c := range []struct {
		line  []string
		want  []string // all of these
		never []string // none of these
	}{
		{[]string{"top"}, []string{"topic"}, []string{"serve"}},
		{[]string{"topic", "describe", ""}, []string{"orders", "payments"}, nil},
		{[]string{"topic", "create", "x", "--config", "retention."}, []string{"retention.ms=", "retention.bytes="}, []string{"segment.ms="}},
		{[]string{"topic", "alter", "x", "--delete-config", "write"}, []string{"write.caching"}, nil},
		{[]string{"group", "reset", "x", "--topic", ""}, []string{"orders", "payments"}, nil},
		{[]string{"group", "list", "--state", "S"}, []string{"Stable"}, nil},
		{[]string{"config", "describe", ""}, []string{"topic", "broker"}, nil},
		{[]string{"config", "describe", "topic", ""}, []string{"orders", "payments"}, []string{"default"}},
		{[]string{"config", "alter", "broker", ""}, []string{"default"}, []string{"orders"}},
		{[]string{"config", "alter", "broker", "default", "--set", ""}, []string{"log.retention.ms="}, []string{"retention.ms=", "num.partitions="}},
		{[]string{"config", "alter", "topic", "orders", "--delete", ""}, []string{"retention.ms"}, []string{"log.retention.ms"}},
		{[]string{"serve", "--set", "num"}, []string{"num.partitions="}, nil},
	} {
		r := troupe(t, "", []string{"TROUPE_BOOTSTRAP=" + p.addr()}, append([]string{"__complete"}, c.line...)...)
		var offered []string
		for line := range strings.Lines(r.out) {
			word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			offered = append(offered, word)
		}
		for _, w := range c.want {
			if !slices.Contains(offered, w) {
				t.Errorf("%q: %q is not offered, but %q", c.line, w, offered)
			}
		}
		for _, w := range c.never {
			if slices.Contains(offered, w) {
				t.Errorf("%q: %q is offered", c.line, w)
			}
		}
	}
	p.stop(t)
}
