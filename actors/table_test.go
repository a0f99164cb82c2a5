package actors_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/actors"
	_ "github.com/troupe-broker/troupe/actors/observer/topichits"
)

// rows reads the table of the cast in the package comment.
func rows(t *testing.T) map[string][]string {
	t.Helper()
	src, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for line := range strings.Lines(string(src)) {
		cells := strings.Split(strings.TrimSpace(strings.TrimPrefix(line, "//")), "|")
		if len(cells) != 7 || strings.HasPrefix(cells[1], "-") {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if cells[1] != "actor" {
			found[strings.ToLower(cells[1])] = cells[2:6]
		}
	}
	return found
}

func TestTheTableIsWhatIsRegistered(t *testing.T) {
	table := rows(t)
	for _, i := range actors.Registered() {
		if i.Kind != actors.Core {
			continue
		}
		want := []string{i.Scope, i.Doc, i.Policy.OnBug.String(), i.OnIOError}
		if got, ok := table[i.Name]; !ok || !slices.Equal(got, want) {
			t.Errorf("%s: the table of doc.go says %q, registered is %q", i.ID(), got, want)
		}
		delete(table, i.Name)
	}
	for name := range table {
		t.Errorf("%s has a row, but is not registered in cast.go", name)
	}
}

// behaviours lists the types of a package that have a method of this name.
func behaviours(t *testing.T, dir, method string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != method {
				continue
			}
			receiver := f.Recv.List[0].Type
			if star, ok := receiver.(*ast.StarExpr); ok {
				receiver = star.X
			}
			names = append(names, receiver.(*ast.Ident).Name)
		}
	}
	return names
}

// notCast are behaviours that are no member of the cast.
var notCast = map[string]string{"hosted": "any extension actor"}

func TestEveryTypeThatTakesTurnsIsInTheCast(t *testing.T) {
	table := rows(t)
	for _, dir := range []string{".", "broker"} {
		for _, name := range behaviours(t, dir, "Turn") {
			row := strings.ToLower(strings.TrimSuffix(name, "Actor"))
			if _, ok := table[row]; !ok && notCast[name] == "" {
				t.Errorf("%s/%s takes turns and is in neither the table of doc.go nor cast.go", dir, name)
			}
			delete(table, row)
		}
	}
	for name := range table {
		t.Errorf("%s has a row, but no type of actors or actors/broker takes its turns", name)
	}
}

func TestEveryShippedActorIsRegistered(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join("observer", "*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("%d actors, %v", len(dirs), err)
	}
	for _, dir := range dirs {
		id := "observer." + filepath.Base(dir)
		if _, ok := actors.Lookup(id); !ok || len(behaviours(t, dir, "Receive")) != 1 {
			t.Errorf("%s: one folder has one actor, registered as %s; import it in this test", dir, id)
		}
	}
}

// linesMax is what an actor may take to be useful.
const linesMax = 40

func TestTheExampleIsShort(t *testing.T) {
	src, err := os.ReadFile(filepath.Join("observer", "topichits", "topichits.go"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(src), "\n"); n > linesMax {
		t.Errorf("the example has %d lines; people are told %d", n, linesMax)
	}
}

// The guide shows the example as it is, and names the facts that there are.
func TestTheGuideShowsTheExample(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "docs", "extending.md"))
	if err != nil {
		t.Fatal(err)
	}
	var shipped strings.Builder
	for _, name := range []string{"topichits.go", "topichits_test.go"} {
		src, err := os.ReadFile(filepath.Join("observer", "topichits", name))
		if err != nil {
			t.Fatal(err)
		}
		shipped.Write(src)
	}
	line, err := os.ReadFile(filepath.Join("..", "cmd", "troupe", "extensions.go"))
	if err != nil {
		t.Fatal(err)
	}
	shipped.Write(line)
	_, rest, found := strings.Cut(string(guide), "```go\n")
	blocks := 0
	for ; found; _, rest, found = strings.Cut(rest, "```go\n") {
		var block string
		block, rest, _ = strings.Cut(rest, "```\n")
		blocks++
		for l := range strings.Lines(block) {
			if l = strings.TrimSpace(l); !strings.Contains(shipped.String(), l) {
				t.Errorf("the guide has %q, which the example has not", l)
			}
		}
	}
	if blocks != 5 {
		t.Errorf("the guide shows %d pieces of code, want 5", blocks)
	}
	for _, fact := range behaviours(t, ".", "fact") {
		if !strings.Contains(string(guide), "`"+fact+"`") {
			t.Errorf("the guide does not name the fact %s", fact)
		}
	}
}
