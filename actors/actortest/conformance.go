package actortest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/actors"
)

// Example is what Conformance tries an actor with.
type Example struct {
	// Settings are valid settings, by key.
	Settings map[string]string
	// Messages are messages that the actor handles without an error, whatever came
	// before them. At least two.
	Messages []any
	// Allocs is how often the handling of any of them may allocate.
	Allocs float64
}

// conformanceSeeds is the number of orders that are tried.
const conformanceSeeds = 20

// Conformance asks of an actor what is asked of every actor.
func Conformance(t *testing.T, id string, e Example) {
	t.Helper()
	if len(e.Messages) < 2 {
		t.Fatal("an example has at least two messages")
	}
	c := conformance{id, e}
	t.Run("says what it is", c.documented)
	t.Run("leaves no goroutine behind", c.leaks)
	t.Run("refuses settings it does not know", c.strict)
	t.Run("counts the same in every order of events", c.sameInEveryOrder)
	t.Run("survives a restart between any two messages", c.restarts)
	t.Run("goes on after a full mailbox", c.full)
	t.Run("stops at any moment, more than once", c.stops)
	t.Run("keeps to its budget of allocations", c.allocates)
}

type conformance struct {
	id string
	e  Example
}

// kit starts the actor. Seed 0 is the one that looks for goroutines.
func (c conformance) kit(t *testing.T, seed uint64) *Kit {
	t.Helper()
	var opts []Option
	opts = append(opts, Seed(seed))
	if seed > 0 {
		opts = append(opts, unleaked())
	}
	for key, value := range c.e.Settings {
		opts = append(opts, Setting(key, value))
	}
	return New(t, c.id, opts...)
}

func (c conformance) healthy(t *testing.T, k *Kit) {
	t.Helper()
	for _, f := range k.Failures() {
		t.Errorf("panic at %s: %v\n%s", f.At, f.Reason, f.Stack)
	}
	if n := k.Counter("errors"); n > 0 {
		t.Errorf("Receive returned %v errors", n)
	}
}

func (c conformance) documented(t *testing.T) {
	info, ok := actors.Lookup(c.id)
	if !ok {
		t.Fatalf("%s is not registered", c.id)
	}
	if doc := info.Doc; !strings.HasSuffix(doc, ".") || doc[:1] != strings.ToUpper(doc[:1]) {
		t.Errorf("Doc is a sentence: %q", doc)
	}
}

func (c conformance) leaks(t *testing.T) {
	k := c.kit(t, 0)
	k.Send(c.e.Messages...)
	k.Pass(time.Minute)
}

func (c conformance) strict(t *testing.T) {
	_, err := Start(t, c.id, Setting("no.such.setting", "1"), unleaked())
	var bad *actors.ConfigError
	if !errors.As(err, &bad) || !strings.Contains(bad.Key, "no.such.setting") {
		t.Errorf("started with an unknown setting, or refused it without its name: %v", err)
	}
}

func (c conformance) sameInEveryOrder(t *testing.T) {
	var first []actors.Sample
	for seed := uint64(1); seed <= conformanceSeeds; seed++ {
		k := c.kit(t, seed)
		k.Send(c.e.Messages...)
		k.Run()
		c.healthy(t, k)
		if k.Handled() != len(c.e.Messages) {
			t.Fatalf("seed %d: %d messages handled of %d", seed, k.Handled(), len(c.e.Messages))
		}
		if got := k.Samples(); seed == 1 {
			first = got
		} else if !reflect.DeepEqual(got, first) {
			t.Fatalf("seed %d counts %v, seed 1 counted %v", seed, got, first)
		}
	}
}

func (c conformance) restarts(t *testing.T) {
	for at := range len(c.e.Messages) + 1 {
		t.Run(fmt.Sprintf("before message %d", at), func(t *testing.T) {
			k := c.kit(t, uint64(at+1))
			k.Send(c.e.Messages[:at]...)
			k.Run()
			k.Restart()
			k.Send(c.e.Messages[at:]...)
			k.Run()
			c.healthy(t, k)
			if k.Instances() != 2 || k.Handled() != len(c.e.Messages) {
				t.Errorf("%d instances handled %d messages of %d", k.Instances(), k.Handled(), len(c.e.Messages))
			}
		})
	}
}

func (c conformance) full(t *testing.T) {
	k := c.kit(t, 1)
	k.Fill(true)
	k.Send(c.e.Messages...)
	k.Fill(false)
	k.Send(c.e.Messages...)
	k.Run()
	c.healthy(t, k)
	if k.Rejected() != len(c.e.Messages) || k.Handled() != len(c.e.Messages) {
		t.Errorf("%d refused and %d handled, want %d each", k.Rejected(), k.Handled(), len(c.e.Messages))
	}
}

func (c conformance) stops(t *testing.T) {
	for at := range len(c.e.Messages) + 1 {
		k := c.kit(t, uint64(at+1))
		k.Send(c.e.Messages[:at]...)
		k.Stop()
		k.Stop()
		k.Pass(time.Hour) // a timer that outlived its actor would show
		c.healthy(t, k)
	}
}

func (c conformance) allocates(t *testing.T) {
	k := c.kit(t, 1)
	k.Send(c.e.Messages...)
	for _, m := range c.e.Messages {
		k.MaxAllocs(c.e.Allocs, m)
	}
	c.healthy(t, k)
}
