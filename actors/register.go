package actors

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/troupe-broker/troupe/actors/runtime"
)

// Kind is the first half of an actor's id: the contract between it and the broker.
type Kind string

// The kinds; see the package comment.
const (
	Core     Kind = "core"
	Observer Kind = "observer"
)

// Mailbox bounds what may wait for an actor. Zeros take the defaults.
type Mailbox struct {
	// CountMax is a number of messages. Default: 1024.
	CountMax int
	// BytesMax is their size in memory. Default: 8 MiB.
	BytesMax int
}

// Info says what an actor is.
type Info struct {
	Kind Kind
	// Name is lower-case letters, digits and dashes, unique within the kind.
	Name string
	// Doc is what a person reads in a list: one sentence.
	Doc string
	// Scope is what there is one instance of the actor for. An observer's is
	// "process", also when it is left empty.
	Scope string
	// OnIOError says what the actor does when its disk or socket fails, for the table
	// of the cast.
	OnIOError string
	// Mailbox bounds what waits.
	Mailbox Mailbox
	// Policy says what follows a bug. Zero takes DefaultPolicy, except for the core.
	Policy Policy
	// New makes an instance, again for each restart. The core cast has none: it is
	// spawned by the broker with what it needs.
	New func() Actor
}

// ID is kind and name: "observer.topichits".
func (i Info) ID() string { return string(i.Kind) + "." + i.Name }

// Spec is how the runtime spawns an actor of the core cast: kind, policy and bounds
// are as registered.
func (i Info) Spec(name string, b runtime.Behaviour) runtime.Spec {
	return runtime.Spec{
		Name: name, Kind: i.ID(), Behaviour: b, OnBug: i.Policy.runtime(),
		CountMax: i.Mailbox.CountMax, BytesMax: i.Mailbox.BytesMax,
	}
}

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// check reports what is wrong with a declaration, "" when nothing is.
func (i Info) check() string {
	switch {
	case i.Kind != Core && i.Kind != Observer:
		return fmt.Sprintf("there is no kind %q", i.Kind)
	case !nameForm.MatchString(i.Name):
		return "a name is lower-case letters, digits and dashes"
	case i.Doc == "":
		return "Doc is empty: say in a sentence what it does"
	case i.Mailbox.CountMax < 0 || i.Mailbox.BytesMax < 0:
		return "a bound of its mailbox is negative"
	case i.Kind == Core:
		if i.New != nil || i.Scope == "" || i.OnIOError == "" {
			return "the core cast declares Scope and OnIOError, and no New"
		}
		return ""
	case i.New == nil:
		return "New is nil"
	case i.Scope != "process":
		return fmt.Sprintf("kind %s has one instance per process, not per %s", i.Kind, i.Scope)
	}
	return i.Policy.extension()
}

var registry struct {
	sync.Mutex
	infos map[string]Info
}

// Register declares an actor. It is called from init functions and panics when the
// declaration is wrong or the id is taken.
func Register(i Info) {
	if i.Kind != Core {
		if i.Policy == (Policy{}) {
			i.Policy = DefaultPolicy
		}
		i.Scope = cmp.Or(i.Scope, "process")
	}
	if wrong := i.check(); wrong != "" {
		panic(fmt.Sprintf("actors: %s cannot be registered: %s", i.ID(), wrong))
	}
	registry.Lock()
	defer registry.Unlock()
	if _, taken := registry.infos[i.ID()]; taken {
		panic(fmt.Sprintf("actors: %s is registered twice", i.ID()))
	}
	if registry.infos == nil {
		registry.infos = make(map[string]Info)
	}
	registry.infos[i.ID()] = i
}

// Registered lists the declarations, ordered by id.
func Registered() []Info {
	registry.Lock()
	defer registry.Unlock()
	all := make([]Info, 0, len(registry.infos))
	for _, i := range registry.infos {
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b Info) int { return cmp.Compare(a.ID(), b.ID()) })
	return all
}

// Lookup finds a declaration by id.
func Lookup(id string) (Info, bool) {
	registry.Lock()
	defer registry.Unlock()
	i, ok := registry.infos[id]
	return i, ok
}

// CoreInfo is the declaration of one of the broker's own cast. A name that is not in
// the table of the package comment is a bug.
func CoreInfo(name string) Info {
	i, ok := Lookup(string(Core) + "." + name)
	if !ok {
		panic("actors: the cast has no " + name)
	}
	return i
}
