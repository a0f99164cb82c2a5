package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A diff of a golden file may be committed when the new words are what a person should read; what scripts read (JSON keys,
// exit codes) only grows.
var update = flag.Bool("update", false, "rewrite the golden files")

// result is what one command line did.
type result struct {
	out, err string
	code     int
}

// troupe runs a command line in this process. env is NAME=VALUE.
func troupe(t *testing.T, stdin string, env []string, args ...string) result {
	t.Helper()
	var out, err bytes.Buffer
	lookup := func(name string) (string, bool) {
		for _, e := range env {
			if n, v, _ := strings.Cut(e, "="); n == name {
				return v, true
			}
		}
		return "", false
	}
	code := run(t.Context(), args, &session{
		in: strings.NewReader(stdin), out: &out, err: &err,
		env: lookup, environ: func() []string { return env },
		flush: func() error { return nil },
	})
	return result{out.String(), err.String(), code}
}

// golden compares text with a file of testdata/golden.
func golden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; `go test ./cmd/troupe -run Golden -update` writes it", err)
	}
	if text != string(want) {
		t.Errorf("%s differs.\n--- got\n%s\n--- want\n%s", file, text, want)
	}
}

// transcript prints command lines with what they did.
func transcript(t *testing.T, replace *strings.Replacer, lines [][]string) string {
	t.Helper()
	var b strings.Builder
	for _, args := range lines {
		r := troupe(t, "", nil, args...)
		fmt.Fprintf(&b, "$ troupe %s\n%s%s[exit %d]\n\n", strings.Join(args, " "), r.out, r.err, r.code)
	}
	return replace.Replace(b.String())
}

func TestGoldenHelp(t *testing.T) {
	root := newRoot(&session{env: func(string) (string, bool) { return "", false }})
	var lines [][]string
	var walk func(c *cobra.Command, path []string)
	walk = func(c *cobra.Command, path []string) {
		lines = append(lines, append(append([]string{}, path...), "--help"))
		for _, sub := range c.Commands() {
			if sub.Name() != "completion" && !sub.Hidden { // the library's own words
				walk(sub, append(append([]string{}, path...), sub.Name()))
			}
		}
	}
	walk(root, nil)
	golden(t, "help", transcript(t, strings.NewReplacer(), lines))
}

func TestGoldenMistakes(t *testing.T) {
	golden(t, "mistakes", transcript(t, strings.NewReplacer(), [][]string{
		{"nonsense"},
		{"topic", "remove", "x"},
		{"topic", "create"},
		{"topic", "create", "x", "--config", "retention.ms"},
		{"topic", "create", "x", "--partitions", "many"},
		{"topic", "delete", "x"},
		{"topic", "alter", "x"},
		{"topic", "list", "-o", "xml"},
		{"topic", "list", "x"},
		{"produce", "x", "--acks", "2"},
		{"produce", "x", "--batch-bytes", "-5"},
		{"produce", "x", "--batch-bytes", "200000000"},
		{"produce", "x", "--rate", "-1"},
		{"consume", "x", "-n", "-1"},
		{"cluster", "balance", "--at-a-time", "0"},
		{"broker", "drain", "3", "--at-a-time", "-1"},
		{"broker", "decommission", "3", "--at-a-time", "-1"},
		{"produce", "x", "--compression", "rar"},
		{"produce", "x", "--format", "csv"},
		{"produce", "x", "--header", "novalue"},
		{"produce", "x", "--file", "no/such/file"},
		{"consume", "x", "--from", "yesterday"},
		{"consume", "x", "--format", "%q"},
		{"consume", "x", "--follow", "--until", "5"},
		{"group", "list", "--state", "Asleep"},
		{"group", "list", "--type", "share"},
		{"group", "describe"},
		{"group", "delete", "x"},
		{"group", "delete-offsets", "x"},
		{"partition", "verify"},
		{"partition", "verify", "t:x"},
		{"partition", "verify", "t:-1"},
		{"partition", "verify", "t:0", "--broker", "-2"},
		{"partition", "verify", "t:0", "--broker", "first"},
		{"partition", "repair", "t:0", "--divergent"},
		{"partition", "verify", "t:0", "--timeout", "0s"},
		{"partition", "repair", "t"},
		{"partition", "repair", ":0"},
		{"group", "reset", "x", "--all-topics"},
		{"group", "reset", "x", "--to-earliest"},
		{"group", "reset", "x", "--topic", "t:many", "--to-earliest"},
		{"group", "reset", "x", "--topic", "t", "--all-topics", "--to-earliest"},
		{"group", "reset", "x", "--topic", "t", "--to-earliest", "--to-latest"},
		{"group", "reset", "x", "--topic", "t", "--to-earliest", "--execute", "--dry-run"},
		{"group", "reset", "x", "--topic", "t", "--to-datetime", "yesterday"},
		{"group", "reset", "x", "--topic", "t", "--by-duration", "P1M"},
		{"group", "reset", "x", "--topic", "t", "--from-file", "some.csv"},
		{"group", "reset", "x", "--from-file", "no/such/file"},
		{"config", "describe", "user", "x"},
		{"config", "alter", "topic", "x"},
		{"config", "check", "-X", "retention"},
		{"config", "check", "-X", "actors.enabled=observer.nobody"},
		{"config", "check", "-X", "actors.enabled=observer.topichits", "-X", "actors.observer.topichits.panic.after=3"},
		{"config", "check", "--peer-listen", "127.0.0.1:0", "-X", "peer.tls.certificate=no/such/cert", "-X", "peer.tls.key=no/such/key", "-X", "peer.tls.ca=no/such/ca"},
		{"config", "explain", "actors.enabled"},
		{"config", "explain", "log.dir"},
		{"config", "explain", "log.retenton.ms"},
		{"cluster", "forget-bootstrap", "--data-dir", "no/such/directory"},
		{"dump", "no/such/file"},
		{"dump", "main.go"},
		{"dump", "testdata", "-o", "json"},
		{"topic", "list", "--bootstrap", "127.0.0.1:1", "--timeout", "2s"},
		{"topic", "list", "--bootstrap", "127.0.0.1:1", "--timeout", "2s", "-o", "json"},
		{"topic", "list", "--bootstrap", ","},
	}))
}
