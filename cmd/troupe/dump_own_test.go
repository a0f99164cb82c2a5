package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The files that Kafka does not have: as a broker wrote them, and harmed.
func TestDumpReadsTheFilesOfTheDirectoryAndFindsTheirDamage(t *testing.T) {
	model := filepath.Join(t.TempDir(), "data")
	p := start(t, model)
	p.cli(t, "", "topic", "create", "orders")
	p.cli(t, "a:1\nb:2\n", "produce", "orders")
	live := troupe(t, "", nil, "dump", filepath.Join(model, "control-block"))
	p.stop(t)
	if live.code != exitDone || !strings.Contains(live.out, "BOOT ID") || !strings.Contains(live.out, "FLUSHED") {
		t.Errorf("the control block of a running broker: exit %d\n%s%s", live.code, live.out, live.err)
	}
	sound := []struct{ file, want string }{
		{"control-block", "LEADER EPOCH"},
		{"recovery-point-offset-checkpoint.sealed", "TOPIC ID"},
		{"log-start-offset-checkpoint.sealed", ""},
		{".lock", "-"},
		{".kafka_cleanshutdown", "brokerEpoch"},
		{"meta.properties", "cluster.id"},
		{"orders-0/partition.metadata", "topic_id"},
	}
	for _, c := range sound {
		if r := troupe(t, "", nil, "dump", filepath.Join(model, c.file)); r.code != exitDone || !strings.Contains(r.out, c.want) {
			t.Errorf("%s: exit %d, there is no %q in\n%s%s", c.file, r.code, c.want, r.out, r.err)
		}
	}
	for _, c := range []struct {
		name, file string
		harm       func(b []byte) []byte
		want       string
	}{
		{"another head", "control-block", func(b []byte) []byte { b[20] ^= 1; return b }, "the head of the control block is lost"},
		{"no head", "control-block", func([]byte) []byte { return nil }, "the head of the control block is lost"},
		{"a torn slot", "control-block", func(b []byte) []byte { return spoilSlots(b) }, "neither half of the slot"},
		{"another offset", "recovery-point-offset-checkpoint.sealed", func(b []byte) []byte { b[len("0\n1\norders 0 ")]++; return b }, "checksum"},
		{"no checksum", "recovery-point-offset-checkpoint.sealed", func(b []byte) []byte { return b[:strings.LastIndex(string(b), "crc32c")] }, "the line with the checksum is missing"},
		{"fewer lines", "recovery-point-offset-checkpoint.sealed", func([]byte) []byte { return sealed("0\n2\norders 0 2 1 AAAAAAAAAAAAAAAAAAAAAQ\n") }, "2 entries are announced, and 1 follow"},
		{"a flag that is none", "recovery-point-offset-checkpoint.sealed", func([]byte) []byte { return sealed("0\n1\norders 0 2 x AAAAAAAAAAAAAAAAAAAAAQ\n") }, "an entry is a topic"},
		{"half a marker", ".kafka_cleanshutdown", func(b []byte) []byte { return b[:len(b)-1] }, "the marker is not believed"},
		{"another topic id", "orders-0/partition.metadata", func(b []byte) []byte { b[len("version: 0\ntopic_id: A")] ^= 1; return b }, "checksum"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join(model, c.file))
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), filepath.Base(c.file))
			writeOver(t, file, c.harm(b))
			r := troupe(t, "", nil, "dump", file)
			if r.code != exitFailed || !strings.Contains(r.err, codeDamage) || !strings.Contains(r.err, c.want) {
				t.Errorf("exit %d, %s; want %q", r.code, r.err, c.want)
			}
		})
	}
}

// spoilSlots changes a byte in both halves of each slot that holds something.
func spoilSlots(b []byte) []byte {
	const head, half = 4096, 128
	for at := head; at+half <= len(b); at += half {
		if b[at] != 0 {
			b[at+16] ^= 1
		}
	}
	return b
}
