package actortest_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/actors"
	"github.com/troupe-broker/troupe/actors/actortest"
)

// bad is an actor with one fault, for each question of Conformance.
type bad struct {
	fault string
	heard int
	kept  [][]byte
}

var faults = map[string]string{
	"undocumented": "Doc is a sentence",
	"lax":          "started with an unknown setting",
	"disorder":     "counts",
	"panics":       "panic at *actors.Stopping",
	"fails":        "Receive returned",
	"stubborn":     "panic at Started",
	"loud":         "panic at Stopping",
	"wasteful":     "allocates",
	"leaky":        "started a goroutine",
	"none":         "",
}

// order is how often instances were made: an actor that depends on it is not the same
// in every run.
var order int

// leak ends the goroutines of the leaky actor when the test is over.
var leak = make(chan struct{})

func init() {
	for fault := range faults {
		doc := "Has a fault."
		if fault == "undocumented" {
			doc = "has a fault"
		}
		actors.Register(actors.Info{Kind: actors.Observer, Name: "bad-" + fault, Doc: doc, New: func() actors.Actor { return &bad{fault: fault} }})
	}
}

func (b *bad) Provision(c *actors.Ctx) error {
	order++
	switch b.fault {
	case "lax":
		return c.Config(&struct {
			Any string `config:"no.such.setting"`
		}{})
	case "stubborn":
		if order%2 == 0 {
			return errors.New("already there")
		}
	case "leaky":
		go func() { <-leak }()
	}
	return nil
}

func (b *bad) Receive(c *actors.Ctx, msg any) error {
	b.heard++
	switch b.fault {
	case "disorder":
		c.Count("instance", float64(order))
	case "panics":
		if _, ok := msg.(*actors.Stopping); ok {
			panic("not now")
		}
	case "fails":
		return errors.New("no")
	case "wasteful":
		b.kept = append(b.kept[:0], make([]byte, 100))
	}
	return nil
}

func (b *bad) Stop(*actors.Ctx) {
	if b.fault == "loud" {
		panic("never")
	}
}

// Conformance itself fails or passes in a copy of this test.
func TestConformanceFindsTheFault(t *testing.T) {
	if fault := os.Getenv("TROUPE_TEST_FAULT"); fault != "" {
		actortest.Conformance(t, "observer.bad-"+fault, actortest.Example{Messages: []any{&actors.Stopping{}, &actors.Started{}}})
		return
	}
	for fault, want := range faults {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestConformanceFindsTheFault$")
			cmd.Env = append(os.Environ(), "TROUPE_TEST_FAULT="+fault)
			out, err := cmd.CombinedOutput()
			if (err != nil) != (want != "") || !strings.Contains(string(out), want) {
				t.Errorf("%v, want a failure with %q\n%s", err, want, out)
			}
		})
	}
}

// waiter emits after a while, counts what it hears and tells a peer.
type waiter struct{}

func init() {
	actors.Register(actors.Info{Kind: actors.Observer, Name: "waiter", Doc: "Waits.", New: func() actors.Actor { return waiter{} }})
}

type late struct{ after time.Duration }

func (waiter) Receive(c *actors.Ctx, msg any) error {
	switch m := msg.(type) {
	case time.Duration:
		c.After(m, late{m})
	case late:
		c.Emit(m)
		c.Observe("waited_seconds", m.after.Seconds())
	default:
		return c.Send("observer.peer", msg)
	}
	return nil
}

func TestTheKitMovesTimeAndRecords(t *testing.T) {
	k := actortest.New(t, "observer.waiter", actortest.Peer("observer.peer"))
	k.Send(2*time.Second, time.Second, "hello")
	k.Pass(1500 * time.Millisecond)
	// What is emitted reaches every observer, the peer too.
	want := []actortest.Sent{{"observer.peer", "hello"}, {"", late{time.Second}}, {"observer.peer", late{time.Second}}}
	for _, s := range want {
		if got := k.Sent(); len(got) != len(want) || !slices.Contains(got, s) {
			t.Fatalf("sent %v, want %v", got, want)
		}
	}
	k.Pass(time.Second)
	sum, n := k.Summary("waited_seconds")
	if len(k.Sent()) != 5 || sum != 3 || n != 2 || k.Handled() != 5 {
		t.Errorf("sent %v, waited %v in %d, handled %d", k.Sent(), sum, n, k.Handled())
	}
}

func TestTheKitMakesFaults(t *testing.T) {
	k := actortest.New(t, "observer.waiter", actortest.Seed(9))
	k.Send("to nobody")
	k.Run()
	if k.Counter("errors") != 1 || k.Handled() != 1 {
		t.Errorf("%v errors, %d handled", k.Counter("errors"), k.Handled())
	}
	k.Fill(true)
	k.Send(time.Second)
	k.Fill(false)
	k.Send(time.Second)
	k.Run()
	k.Restart()
	k.Pass(time.Minute) // the timer went with its instance
	if k.Rejected() != 1 || k.Instances() != 2 || len(k.Sent()) != 0 || len(k.Failures()) != 0 {
		t.Errorf("%d rejected, %d instances, sent %v, failures %v", k.Rejected(), k.Instances(), k.Sent(), k.Failures())
	}
	if _, err := actortest.Start(t, "observer.nobody"); err == nil || !strings.Contains(err.Error(), "does the test import its package?") {
		t.Errorf("start of nobody: %v", err)
	}
}

func TestSeedsAreDifferentOrders(t *testing.T) {
	orders := map[string]bool{}
	actortest.Seeds(t, 10, func(t *testing.T, seed actortest.Option) {
		t.Helper()
		k := actortest.New(t, "observer.waiter", actortest.Peer("observer.peer"), seed)
		k.Send(time.Millisecond, "a", time.Microsecond, "b", 20*time.Microsecond, "c")
		k.Pass(time.Second)
		order := ""
		for _, s := range k.Sent() {
			order += fmt.Sprint(s)
		}
		orders[order] = true
	})
	if len(orders) < 2 {
		t.Error("ten seeds gave one order")
	}
}
