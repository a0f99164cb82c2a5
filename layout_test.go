// Package troupe_test holds the rules of the house as tests. It has no product code beside it: each test reads the
// tree and fails with the name of the file, the rule, and what to do in its place. The reasons are in
// ARCHITECTURE.md and docs/adr/; the linters in .golangci.yml say the same things earlier, in the editor. Where the
// two differ, this file is the law.
package troupe_test

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/troupe-broker/troupe/wire"
)

const module = "github.com/troupe-broker/troupe"

// arrows says which of our top-level folders a folder may import beside itself. A folder that is missing here may
// not exist: the list is the floor plan.
var arrows = map[string][]string{
	"wire":      {},
	"store":     {"wire"},
	"partition": {"wire"},
	"group":     {"wire"},
	"cluster":   {"wire"},
	"actors":    {"wire", "store", "partition", "group", "cluster"},
	"bench":     {"wire", "store", "partition", "group", "cluster", "actors"},
	"cmd":       {"wire", "store", "partition", "group", "cluster", "actors"},
}

// machines are the pure packages. cluster/gossip is the one edge package below them: it wraps a network library.
var machines = []string{"partition", "group", "cluster"}

var edgePackages = []string{"cluster/gossip"}

// machineBans maps what a machine may not import to where the same thing comes from instead. A ban covers the
// packages below it: "net" covers "net/http".
var machineBans = map[string]string{
	"time":                      "the Now that the shell passes to Step and Tick",
	"os":                        "a command that carries the bytes, or a duty in Out",
	"io/fs":                     "a command that carries the bytes, or a duty in Out",
	"net":                       "a Letter in Out; the shell has the sockets",
	"syscall":                   "the shell",
	"golang.org/x/sys":          "the shell",
	"math/rand":                 "entropy carried by the command",
	"crypto/rand":               "entropy carried by the command",
	"sync":                      "nothing: one turn at a time runs a machine",
	"runtime":                   "nothing: a machine does not know its scheduler",
	"context":                   "a command that cancels",
	"log":                       "a Note in Out",
	"github.com/rs/zerolog":     "a Note in Out",
	"github.com/asynkron":       "a RequestID; a machine never sees an actor",
	"github.com/twmb/franz-go/": "the wire package's own types, translated by the handler",
}

// clockReaders are the functions of package time that read or wait for the real clock.
var clockReaders = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer"}

// runtimeTraps are methods of the actor library that break a rule of ours: they block, use the real clock, or race.
var runtimeTraps = map[string]string{
	"RequestFuture":     "send, keep the request id, handle the reply as a message",
	"ReenterAfter":      "a message to yourself",
	"SetReceiveTimeout": "Turn.After",
}

// linesMax is the ratchet on the length of one Go file. It is not a licence to fill: about 500 is where a file
// usually has become two.
const linesMax = 700

// goFile is one parsed Go file of the tree, path relative to the root, with slashes.
type goFile struct {
	path      string
	dir       string
	src       []byte
	ast       *ast.File
	fset      *token.FileSet
	test      bool
	generated bool
}

func (f *goFile) at(p token.Pos) string {
	pos := f.fset.Position(p)
	return fmt.Sprintf("%s:%d", f.path, pos.Line)
}

// folder is the first element of the file's directory, "" for the root.
func (f *goFile) folder() string {
	first, _, _ := strings.Cut(f.dir, "/")
	if f.dir == "." {
		return ""
	}
	return first
}

// imports yields every import path with the position of its line and the name it has in this file.
func (f *goFile) imports(visit func(importPath, name string, pos token.Pos)) {
	for _, spec := range f.ast.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			panic("the parser let a bad import path through: " + spec.Path.Value)
		}
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		visit(p, name, spec.Pos())
	}
}

// tree parses the whole module once for all tests.
var tree = sync.OnceValues(func() ([]*goFile, error) {
	var files []*goFile
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p != "." && (strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") || d.Name() == "testdata" || d.Name() == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, p, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		slash := filepath.ToSlash(p)
		files = append(files, &goFile{
			path: slash, dir: path.Dir(slash), src: src, ast: parsed, fset: fset,
			test:      strings.HasSuffix(p, "_test.go"),
			generated: ast.IsGenerated(parsed),
		})
		return nil
	})
	return files, err
})

func goFiles(t *testing.T) []*goFile {
	t.Helper()
	files, err := tree()
	if err != nil {
		t.Fatalf("reading the tree: %v", err)
	}
	if len(files) < 2 {
		t.Fatal("the tree has no Go files: is the test run from the module's root?")
	}
	return files
}

// below says whether p is prefix or lies under it; a prefix that ends with a slash matches only what is under it.
func below(p, prefix string) bool {
	return p == prefix || strings.HasPrefix(p, strings.TrimSuffix(prefix, "/")+"/")
}

func belowAny(p string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return below(p, prefix) })
}

func isMachine(dir string) bool { return belowAny(dir, machines) && !belowAny(dir, edgePackages) }

func TestTopLevelHoldsOnlyTheHouse(t *testing.T) {
	allowed := []string{
		"go.mod", "go.sum", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "LICENSE", "Makefile",
		"layout_test.go", ".golangci.yml", ".gitignore", ".ci", "docs",
	}
	for folder := range arrows {
		allowed = append(allowed, folder)
	}
	for _, file := range trackedFiles(t) {
		first, _, _ := strings.Cut(file, "/")
		if !slices.Contains(allowed, first) {
			t.Errorf("%s: the top level is fixed (ARCHITECTURE.md, \"The floors\"). Put code into one of the eight folders and papers into docs/.", file)
		}
	}
}

func TestArrowsPointDown(t *testing.T) {
	for _, f := range goFiles(t) {
		from := f.folder()
		if from == "" {
			continue
		}
		allowed, known := arrows[from]
		if !known {
			t.Errorf("%s: %q is not a folder of the house", f.path, from)
			continue
		}
		f.imports(func(p, _ string, pos token.Pos) {
			if !below(p, module) {
				return
			}
			to, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(p, module), "/"), "/")
			if to == from || slices.Contains(allowed, to) {
				return
			}
			t.Errorf("%s: %s imports %s. %s may import %s. Turn the dependency round: pass data down, return facts up, and let actors/ join the two.",
				f.at(pos), f.dir, p, from, orNothing(allowed))
		})
	}
}

func orNothing(names []string) string {
	if len(names) == 0 {
		return "nothing of ours"
	}
	return strings.Join(names, ", ")
}

func TestHandlersAreTranslators(t *testing.T) {
	const handlers, broker = "actors/broker/handler", module + "/actors/broker"
	for _, f := range goFiles(t) {
		if !below(f.dir, handlers) || f.test {
			continue
		}
		f.imports(func(p, _ string, pos token.Pos) {
			if p == broker || below(p, module+"/actors/runtime") {
				t.Errorf("%s: a handler turns a request into commands and replies into a response; it does not import %s. Put what it needs into handler.Env.", f.at(pos), p)
			}
		})
	}
}

func TestMachinesArePure(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.test || !isMachine(f.dir) {
			continue
		}
		f.imports(func(p, _ string, pos token.Pos) {
			for ban, instead := range machineBans {
				if below(p, ban) {
					t.Errorf("%s: machine %s imports %q. A machine reads no clock, file, socket or random number. Use %s.", f.at(pos), f.dir, p, instead)
				}
			}
		})
	}
}

func TestOnlyTheRuntimeKnowsTheActorLibrary(t *testing.T) {
	for _, f := range goFiles(t) {
		if below(f.dir, "actors/runtime") {
			ast.Inspect(f.ast, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok {
					if instead, trap := runtimeTraps[sel.Sel.Name]; trap {
						t.Errorf("%s: %s blocks, races or reads the real clock. Use %s.", f.at(sel.Pos()), sel.Sel.Name, instead)
					}
				}
				return true
			})
			continue
		}
		f.imports(func(p, _ string, pos token.Pos) {
			if below(p, "github.com/asynkron/protoactor-go") {
				t.Errorf("%s: only actors/runtime imports the actor library. Use runtime.Ref, runtime.Turn and runtime.Spec.", f.at(pos))
			}
		})
	}
}

func TestGoroutinesHaveAHome(t *testing.T) {
	homes := []string{"actors", "store", "cmd", "bench"}
	for _, f := range goFiles(t) {
		if f.test || belowAny(f.dir, homes) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if stmt, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s: a go statement outside %s. Return a duty and let the shell start it and wait for it.", f.at(stmt.Pos()), strings.Join(homes, ", "))
			}
			return true
		})
	}
}

func TestTheClockIsReadInOnePlace(t *testing.T) {
	const clock = "actors/runtime/clock.go"
	for _, f := range goFiles(t) {
		if f.test || f.path == clock || belowAny(f.dir, []string{"cmd", "bench"}) {
			continue
		}
		timeName := ""
		f.imports(func(p, name string, _ token.Pos) {
			if p == "time" {
				timeName = name
			}
		})
		if timeName == "" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == timeName && slices.Contains(clockReaders, sel.Sel.Name) {
				t.Errorf("%s: time.%s reads the real clock, which the simulation cannot move. Use runtime.Clock (only %s reads the real one), or take the time as an argument.", f.at(sel.Pos()), sel.Sel.Name, clock)
			}
			return true
		})
	}
}

func TestLogsAreZerolog(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		f.imports(func(p, _ string, pos token.Pos) {
			// The actor library takes a slog.Logger; its owner may hand one over.
			if p == "log" || (p == "log/slog" && !below(f.dir, "actors/runtime")) {
				t.Errorf("%s: %q. Logs are written with zerolog and fixed keys, by the shells.", f.at(pos), p)
			}
		})
	}
}

func TestEveryPackageHasOneComment(t *testing.T) {
	type pkg struct{ commented, all []string }
	pkgs := map[string]*pkg{}
	for _, f := range goFiles(t) {
		name := f.ast.Name.Name
		if f.test && strings.HasSuffix(name, "_test") && f.dir != "." {
			continue // an external test package speaks of the package that it tests
		}
		p := pkgs[f.dir]
		if p == nil {
			p = &pkg{}
			pkgs[f.dir] = p
		}
		p.all = append(p.all, f.path)
		if f.ast.Doc == nil {
			continue
		}
		p.commented = append(p.commented, f.path)
		text := f.ast.Doc.Text()
		want := []string{"Package " + name + " "}
		if name == "main" {
			command := path.Base(f.dir)
			want = []string{"Command " + command + " ", strings.ToUpper(command[:1]) + command[1:] + " "}
		}
		if !slices.ContainsFunc(want, func(start string) bool { return strings.HasPrefix(text, start) }) {
			t.Errorf("%s: the package comment starts with %q, so that the documentation reads as a sentence", f.path, want[0])
		}
	}
	for dir, p := range pkgs {
		switch len(p.commented) {
		case 1:
		case 0:
			t.Errorf("%s: no package comment. Write one in doc.go: what the package provides, its invariants, a glossary of its messages.", dir)
		default:
			t.Errorf("%s: %d package comments (%s). Keep the one in doc.go; separate the others from the package clause by an empty line.", dir, len(p.commented), strings.Join(p.commented, ", "))
		}
	}
}

func TestFilesStayShort(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.generated {
			continue
		}
		if lines := bytes.Count(f.src, []byte("\n")); lines > linesMax {
			t.Errorf("%s: %d lines, the ratchet is %d. Which two nouns does the file hold? Give each its own.", f.path, lines, linesMax)
		}
	}
}

// trackedFiles lists what is under version control, or, in an unpacked archive, every file that is not ignored by
// name.
func trackedFiles(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("git", "ls-files", "-z", "--cached").Output()
	if err == nil {
		var files []string
		for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
			if _, err := os.Lstat(name); err == nil { // a file deleted, but not yet committed
				files = append(files, name)
			}
		}
		return files
	}
	var files []string
	err = filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" || d.Name() == "bin" {
				return filepath.SkipDir
			}
			return nil
		}
		files = append(files, filepath.ToSlash(p))
		return nil
	})
	if err != nil {
		t.Fatalf("listing files: %v", err)
	}
	return files
}

var (
	machinePath  = regexp.MustCompile(`(?:^|[^A-Za-z0-9_.])/(?:root|work|farm|Users|home/[a-z]+)/`)
	registryHost = regexp.MustCompile(`proxy\.golang\.org|registry\.npmjs|pypi\.org|repo1?\.maven|deb\.debian\.org`)
)

func TestTextsNameNoMachineAndNoRegistry(t *testing.T) {
	for _, name := range trackedFiles(t) {
		if name == "go.sum" || name == "layout_test.go" {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if bytes.IndexByte(src, 0) >= 0 {
			continue // not a text
		}
		scan := bufio.NewScanner(bytes.NewReader(src))
		scan.Buffer(nil, 16<<20)
		for line := 1; scan.Scan(); line++ {
			if m := machinePath.Find(scan.Bytes()); m != nil {
				t.Errorf("%s:%d: %q is a path of one machine. Use a path relative to the repository, or a temporary directory.", name, line, m)
			}
			if m := registryHost.Find(scan.Bytes()); m != nil {
				t.Errorf("%s:%d: %q is the address of a package registry. Name the package; the client knows where to fetch it.", name, line, m)
			}
		}
		if err := scan.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// snake turns CreateTopics into create_topics.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func TestEveryAPIHasAFileAndEveryFileAnAPI(t *testing.T) {
	const dir = "actors/broker/handler/"
	rows := map[string]string{}
	for _, api := range wire.APIs() {
		rows[fmt.Sprintf("%s%02d_%s.go", dir, api.Key, snake(api.Name))] = api.Name
	}
	if len(rows) == 0 {
		t.Fatal("wire's API table is empty")
	}
	files := map[string]bool{}
	numbered := regexp.MustCompile(`^` + dir + `\d+_[a-z_]+\.go$`)
	for _, f := range goFiles(t) {
		if f.test || !numbered.MatchString(f.path) {
			continue
		}
		files[f.path] = true
		if rows[f.path] == "" {
			t.Errorf("%s: wire's API table has no row for it. Add the row, or name the file after the row: NN_name.go.", f.path)
		}
	}
	for file, api := range rows {
		if !files[file] {
			t.Errorf("wire's API table serves %s, and there is no %s. One file an API, named by its number.", api, file)
		}
	}
}

func TestEveryActorHasARow(t *testing.T) {
	const paper = "actors/doc.go"
	text, err := os.ReadFile(paper)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	row := regexp.MustCompile(`(?m)^//\s*\|?\s*([A-Za-z]+)\s*\|`)
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		rows[strings.ToLower(m[1])] = true
	}
	actors := 0
	for _, f := range goFiles(t) {
		if f.test || !below(f.dir, "actors/broker") {
			continue
		}
		for _, decl := range f.ast.Decls {
			method, ok := decl.(*ast.FuncDecl)
			if !ok || method.Recv == nil || method.Name.Name != "Turn" {
				continue
			}
			receiver := method.Recv.List[0].Type
			if star, ok := receiver.(*ast.StarExpr); ok {
				receiver = star.X
			}
			name := receiver.(*ast.Ident).Name
			actors++
			if !rows[strings.TrimSuffix(strings.ToLower(name), "actor")] {
				t.Errorf("%s: %s takes turns, so it is an actor, and the table in %s has no row %q. Say there: one per what, what it hosts, who it hears, who it tells, what a bug and an I/O error do.",
					f.at(method.Pos()), name, paper, strings.TrimSuffix(name, "Actor"))
			}
		}
	}
	if actors == 0 {
		t.Error("no actor was found: the pattern that looks for them is wrong")
	}
}

var errorCode = regexp.MustCompile(`TRP-\d{4}`)

func TestEveryErrorCodeIsExplained(t *testing.T) {
	const catalogue = "docs/errors.md"
	text, err := os.ReadFile(catalogue)
	if err != nil {
		t.Fatal(err)
	}
	explained := map[string]int{}
	var order []string
	for i, line := range strings.Split(string(text), "\n") {
		if rest, ok := strings.CutPrefix(line, "### "); ok {
			code := errorCode.FindString(rest)
			if code == "" {
				continue
			}
			if first, twice := explained[code]; twice {
				t.Errorf("%s:%d: %s is explained twice, first in line %d", catalogue, i+1, code, first)
			}
			explained[code] = i + 1
			order = append(order, code)
		}
	}
	if !slices.IsSorted(order) {
		t.Errorf("%s: the codes are not in order, so a reader cannot find one by leafing", catalogue)
	}
	used := map[string]string{}
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		for _, code := range errorCode.FindAllString(string(f.src), -1) {
			if _, seen := used[code]; !seen {
				used[code] = f.path
			}
		}
	}
	for code, where := range used {
		if explained[code] == 0 {
			t.Errorf("%s uses %s, which %s does not explain. Add a paragraph \"### %s\": what happened, likely cause, what to do.", where, code, catalogue, code)
		}
	}
	for code, line := range explained {
		if used[code] == "" {
			t.Errorf("%s:%d: %s is explained, but nothing in the tree reports it. Remove the paragraph; a code is never given to another error.", catalogue, line, code)
		}
	}
}

func TestEveryDependencyIsAccountedFor(t *testing.T) {
	const ledger = "docs/dependencies.md"
	text, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, f := range goFiles(t) {
		f.imports(func(p, _ string, _ token.Pos) { used[p] = true })
	}
	requirement := regexp.MustCompile(`(?m)^\s*(?:require\s+)?([a-z0-9.-]+\.[a-z]+/\S+)\s+(v\S+)`)
	found := 0
	for _, m := range requirement.FindAllStringSubmatch(string(mod), -1) {
		name, version := m[1], m[2]
		imported := false
		for p := range used {
			imported = imported || below(p, name)
		}
		if !imported {
			continue // a dependency of a dependency
		}
		found++
		if !strings.Contains(string(text), "`"+name+"` "+version) {
			t.Errorf("go.mod requires %s %s, which %s does not list. Add a row: `%s` %s, licence, what for, what was refused.", name, version, ledger, name, version)
		}
	}
	if found == 0 {
		t.Error("no requirement of go.mod is imported: the pattern that reads go.mod is wrong")
	}
}

func TestArchitectureNamesWhatExists(t *testing.T) {
	const paper, linesLimit = "ARCHITECTURE.md", 200
	text, err := os.ReadFile(paper)
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(text, []byte("\n")); lines >= linesLimit {
		t.Errorf("%s: %d lines. It is read in ten minutes or not at all: keep it under %d, long stories go into docs/.", paper, lines, linesLimit)
	}
	named := regexp.MustCompile("`((?:actors|partition|group|cluster|wire|store|cmd|bench|docs)/[A-Za-z0-9_./-]*)`")
	seen := 0
	for i, line := range strings.Split(string(text), "\n") {
		for _, m := range named.FindAllStringSubmatch(line, -1) {
			seen++
			if _, err := os.Stat(filepath.FromSlash(m[1])); err != nil {
				t.Errorf("%s:%d: %s does not exist. The map names what is there.", paper, i+1, m[1])
			}
		}
	}
	if seen == 0 {
		t.Errorf("%s names no file: the pattern that reads it is wrong", paper)
	}
}

func TestInterleavingsNameWhatPlaysThem(t *testing.T) {
	const paper = "docs/interleavings.md"
	text, err := os.ReadFile(paper)
	if err != nil {
		t.Fatal(err)
	}
	folders := map[string]string{
		"p": "partition/testdata", "c": "cluster/testdata/conversations", "f": "cluster/testdata/foundings", "s": "actors/sim/testdata/stories",
	}
	tests := make(map[string]bool)
	for _, f := range goFiles(t) {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.test {
				tests[fn.Name.Name] = true
			}
		}
	}
	named := regexp.MustCompile("`(?:([pcfs])/([a-z_-]+\\.txt)|(Test[A-Za-z0-9]+))`")
	seen := 0
	for i, line := range strings.Split(string(text), "\n") {
		for _, m := range named.FindAllStringSubmatch(line, -1) {
			seen++
			if m[3] != "" {
				if !tests[m[3]] {
					t.Errorf("%s:%d: there is no %s", paper, i+1, m[3])
				}
			} else if _, err := os.Stat(filepath.Join(folders[m[1]], m[2])); err != nil {
				t.Errorf("%s:%d: %s/%s does not exist", paper, i+1, folders[m[1]], m[2])
			}
		}
	}
	if seen == 0 {
		t.Errorf("%s names no test: the pattern that reads it is wrong", paper)
	}
}

func TestLinksInPapersLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	seen := 0
	for _, name := range trackedFiles(t) {
		if path.Ext(name) != ".md" {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				seen++
				if _, err := os.Stat(filepath.FromSlash(path.Join(path.Dir(name), m[1]))); err != nil {
					t.Errorf("%s:%d: the link to %s leads nowhere", name, i+1, m[1])
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no paper has a link: the pattern that reads them is wrong")
	}
}
