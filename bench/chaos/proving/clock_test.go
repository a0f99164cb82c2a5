package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/wire/ident"
)

func TestTheWallJumpsAndMonotonicTimeDoesNot(t *testing.T) {
	c, err := newClock("")
	if err != nil {
		t.Fatal(err)
	}
	defer c.stop()
	mono, wall := c.Now()
	now, _ := c.real.Now()
	c.set(now, -86_400_000, 0)
	after, back := c.Now()
	if after < mono || back > wall-86_400_000+60_000 || back < wall-86_400_000 {
		t.Errorf("from (%d, %d) to (%d, %d)", mono, wall, after, back)
	}
}

func TestDriftAddsUp(t *testing.T) {
	c := &clock{speed: 1, mono: 100, since: 100}
	const second = ident.Instant(time.Second)
	c.set(100, 0, 50_000)
	if mono, drift := c.at(100 + 10*second); mono != 100+10*second+second/2 || drift != 500 {
		t.Errorf("after ten seconds 5 %% fast: %d, the wall by %d ms", mono, drift)
	}
	c.set(100+10*second, 0, -50_000)
	if mono, drift := c.at(100 + 20*second); mono != 100+20*second || drift != 0 {
		t.Errorf("after as many slow: %d, the wall by %d ms", mono, drift)
	}
}

func TestTheClockIsReadAgainWhenItsFileChanges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "clock")
	if err := os.WriteFile(file, []byte("0 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := newClock(file)
	if err != nil {
		t.Fatal(err)
	}
	defer c.stop()
	_, before := c.Now()
	if err := os.WriteFile(file, []byte("3600000 -100\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, wall := c.Now(); wall >= before+3_600_000 {
			return
		}
		if time.Since(began) > 20*time.Second {
			t.Fatal("the clock did not jump")
		}
	}
}

func TestArgumentsAreThoseOfServe(t *testing.T) {
	set, err := parse([]string{"serve", "--listen", "127.0.0.1:1", "--data-dir", "/d", "-X", "log.segment.bytes=1048576"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"listeners": "127.0.0.1:1", "log.dirs": "/d", "log.segment.bytes": "1048576"} {
		if got, _ := set.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, bad := range [][]string{{"dev"}, {"serve", "--wrong", "x"}, {"serve", "-X"}, {"serve", "-X", "no.such.key=1"}} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
