package main

import (
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/actors/relay"
)

func TestDevSplitsAndHeals(t *testing.T) {
	free, err := relay.Free(8)
	if err != nil {
		t.Fatal(err)
	}
	n := newDevNetwork(free[:4], free[4:])
	defer n.Close()
	back, err := net.Listen("tcp4", n.back(2))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = back.Close() }()
	for broker, pid := range []int{os.Getpid(), 0} { // this process is broker 1, and what listens in its place is broker 2
		if err := n.Up(broker+1, pid); err != nil {
			t.Fatal(err)
		}
	}
	sides := func(want ...[]int) {
		t.Helper()
		for i, others := range want {
			if got := n.cutOff(i + 1); !slices.Equal(got, others) {
				t.Errorf("broker %d is cut off from %v, want %v", i+1, got, others)
			}
		}
	}
	call := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp4", n.front(2))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := io.WriteString(c, "hello"); err != nil {
			t.Fatal(err)
		}
		return c
	}
	heard := func() {
		t.Helper()
		if err := back.(*net.TCPListener).SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		c, err := back.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if got, err := io.ReadAll(io.LimitReader(c, 5)); err != nil || string(got) != "hello" {
			t.Errorf("%q arrives, %v", got, err)
		}
	}
	sides(nil, nil, nil, nil)
	n.split(2)
	sides([]int{2}, []int{1, 3, 4}, []int{2}, []int{2})
	n.split(1, 3)
	sides([]int{2, 4}, []int{1, 3, 4}, []int{2, 4}, []int{1, 2, 3})
	call()
	if err := back.(*net.TCPListener).SetDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if c, err := back.Accept(); err == nil {
		t.Error("a connection comes through the cut", c.Close())
	}
	n.split(1, 2) // they find each other again
	sides([]int{3, 4}, []int{3, 4}, []int{1, 2, 4}, []int{1, 2, 3})
	heard()
	n.heal()
	sides(nil, nil, nil, nil)
	call()
	heard()
}
