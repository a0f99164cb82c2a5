package runtime_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
)

// forbidden names parts of the actor library that are broken or not ours to use, with
// what takes their place. Each defect was reproduced before it was put here.
var forbidden = map[string]string{
	"Bounded":                       "a full one keeps its sender spinning; use Spec.CountMax and BytesMax",
	"BoundedDropping":               "it spins for ever once it has dropped; use Spec.CountMax and BytesMax",
	"Unbounded":                     "it never shrinks and loses messages on stop; use mailbox",
	"UnboundedLockfree":             "as Unbounded",
	"UnboundedPriority":             "as Unbounded",
	"UnboundedPriorityMpsc":         "as Unbounded",
	"SetReceiveTimeout":             "a data race, on the real clock; use Turn.After",
	"Stash":                         "it redelivers in reverse order; keep a queue",
	"ReenterAfter":                  "it runs the old closure on the state after a restart; send yourself a message",
	"RequestFuture":                 "it blocks, allocates and races; carry a reply in the message",
	"StopFuture":                    "it waits on the real clock; use Ref.Done",
	"Poison":                        "a user message, refused by a full mailbox; use Ref.Stop",
	"PoisonFuture":                  "as Poison",
	"NewFuture":                     "as RequestFuture",
	"WithMetricProviders":           "formats and measures every message; counters are in the mailbox",
	"WithDefaultPrometheusProvider": "takes over the process's HTTP handler",
	"NewOneForOneStrategy":          "supervise decides",
	"DefaultSupervisorStrategy":     "supervise decides",
	"RestartingSupervisorStrategy":  "supervise decides",
}

// forbiddenImports names packages of the library that must not come in.
var forbiddenImports = []string{"protoactor-go/remote", "protoactor-go/cluster", "protoactor-go/persistence", "protoactor-go/router", "protoactor-go/scheduler", "protoactor-go/metrics"}

func TestTheBrokenPartsOfTheLibraryStayOut(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	seen := false
	for _, path := range files {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		library := false
		for _, spec := range f.Imports {
			library = library || strings.Contains(spec.Path.Value, "protoactor-go/actor")
			for _, bad := range forbiddenImports {
				if strings.Contains(spec.Path.Value, bad) {
					t.Errorf("%s imports %s: mailboxes, clock, replies and links are ours", path, spec.Path.Value)
				}
			}
		}
		seen = seen || library
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || !library {
				return true
			}
			if why, bad := forbidden[sel.Sel.Name]; bad {
				t.Errorf("%s: %s of the actor library: %s", fset.Position(sel.Pos()), sel.Sel.Name, why)
			}
			return true
		})
	}
	if !seen {
		t.Error("no file imports the library: the test does not test it")
	}
}

func TestTheLibraryLogsThroughOurs(t *testing.T) {
	var out bytes.Buffer
	sys := runtime.NewSystem(runtime.Options{Log: zerolog.New(&out).Level(zerolog.DebugLevel)})
	shutdown(t, sys)
	if line := out.String(); !strings.Contains(line, `"lib":"protoactor"`) || !strings.Contains(line, `"level":"debug"`) {
		t.Errorf("logged %q", line)
	}
	out.Reset()
	sys = runtime.NewSystem(runtime.Options{Log: zerolog.New(&out).Level(zerolog.InfoLevel)})
	shutdown(t, sys)
	if out.Len() > 0 {
		t.Errorf("the library's information is not ours: %q", out.String())
	}
}

func TestABugIsLogged(t *testing.T) {
	var out bytes.Buffer
	sys := runtime.NewSystem(runtime.Options{Log: zerolog.New(&out).Level(zerolog.InfoLevel), OnBug: func(*runtime.Blame) {}})
	ref := spawnReady(t, sys, nil, runtime.Spec{Name: "a", Kind: "core.a", Behaviour: &script{onMessage: explosive(&journal{})}})
	if err := ref.Post(&bomb{}); err != nil {
		t.Fatal(err)
	}
	<-ref.Done()
	shutdown(t, sys)
	for _, want := range []string{`"level":"fatal"`, `"actor":"a"`, `"kind":"core.a"`, `"decision":"exit"`, "boom", "explosive"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is missing in %s", want, out.String())
		}
	}
}

func TestStatsSumUpAKind(t *testing.T) {
	sys := newSystem(t)
	root := spawnReady(t, sys, nil, runtime.Spec{Name: "root", Kind: "core.root", Behaviour: &script{}})
	r := runtime.NewRunner(sys)
	for i := range 3 {
		ref := spawnReady(t, sys, root, runtime.Spec{Name: name("p", i), Kind: "core.p", Behaviour: &script{}})
		for range 10 {
			if err := r.Send(ref, &note{size: 7}); err != nil {
				t.Fatal(err)
			}
		}
		r.Run()
		if i == 0 {
			ref.Stop()
			<-ref.Done()
		}
	}
	waitIdle(t, sys, root)
	stats := sys.Stats()
	if len(stats) != 2 || stats[0].Kind != "core.p" || stats[1].Kind != "core.root" {
		t.Fatalf("stats %+v", stats)
	}
	p := stats[0]
	if p.Live != 2 || p.Spawned != 3 || p.Messages != 30 || p.Turns < 3 || p.Turns > 6 || p.DepthHigh != 10 || p.BytesHigh != 70 || p.Depth != 0 {
		t.Errorf("stats of core.p: %+v", p)
	}
	actors := sys.Actors()
	if len(actors) != 3 || actors[0].Name != "root" || actors[1].Name != "root/p1" || actors[2].Messages != 10 {
		t.Errorf("actors %+v", actors)
	}
}
