package actors_test

import (
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/actors"
)

type nothing struct{}

func (nothing) Receive(*actors.Ctx, any) error { return nil }

func create() actors.Actor { return nothing{} }

func TestAWrongDeclarationIsRefusedWithTheReason(t *testing.T) {
	ok := actors.Info{Kind: actors.Observer, Name: "wrong", Doc: "Does nothing.", New: create}
	for want, change := range map[string]func(i *actors.Info){
		`no kind "record"`:          func(i *actors.Info) { i.Kind = "record" },
		"lower-case letters":        func(i *actors.Info) { i.Name = "Wrong" },
		"lower-case letters, digit": func(i *actors.Info) { i.Name = "a.b" },
		"Doc is empty":              func(i *actors.Info) { i.Doc = "" },
		"mailbox is negative":       func(i *actors.Info) { i.Mailbox.BytesMax = -1 },
		"New is nil":                func(i *actors.Info) { i.New = nil },
		"one instance per process":  func(i *actors.Info) { i.Scope = "partition" },
		"ends the broker":           func(i *actors.Info) { i.Policy = actors.Policy{OnBug: actors.Exit, RestartsMax: 1} },
		"must end in Halt":          func(i *actors.Info) { i.Policy = actors.Policy{OnBug: actors.Restart, Then: actors.Exit} },
		"core cast declares":        func(i *actors.Info) { i.Kind = actors.Core },
		"registered twice":          func(i *actors.Info) { i.Name = "topichits" },
	} {
		i := ok
		change(&i)
		func() {
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, want) {
					t.Errorf("want a panic with %q, got %q", want, got)
				}
			}()
			actors.Register(i)
		}()
	}
	if _, there := actors.Lookup("observer.wrong"); there {
		t.Error("a wrong declaration was taken")
	}
}

func TestTheCoreIsSpawnedAsRegistered(t *testing.T) {
	spec := actors.CoreInfo("session").Spec("session-1", nil)
	if spec.Kind != "core.session" || spec.Name != "session-1" || spec.OnBug.OnBug.String() != "stop" {
		t.Errorf("spec %+v", spec)
	}
	defer func() {
		if recover() == nil {
			t.Error("an actor outside the cast was given a spec")
		}
	}()
	actors.CoreInfo("nobody")
}

func TestAnExtensionGetsDefaults(t *testing.T) {
	i, ok := actors.Lookup("observer.topichits")
	if !ok || i.Policy != actors.DefaultPolicy || i.Scope != "process" {
		t.Errorf("registered %+v", i)
	}
}
