package mutants

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// root is the top of the tree, from here.
const root = "../.."

// suite is a list of mutants and the random tests that hunt them.
type suite struct {
	name  string            // "" is that of its folder
	list  string            // its file
	dir   string            // whose hunter comes last
	tests map[string]string // by folder: what is played seed by seed
	least int               // so many mutants at least
}

var suites = []suite{
	{list: "actors/sim/testdata/mutants.txt", dir: "actors/sim", tests: map[string]string{"actors/sim": "TestHunt"}, least: 12},
	{name: "several", list: "actors/sim/testdata/mutants-several.txt", dir: "actors/sim", tests: map[string]string{"actors/sim": "TestHuntSeveral"}, least: 60},
	{
		list: "group/testdata/mutants/list.txt", dir: "group",
		tests: map[string]string{"group": "TestRandomShards", "group/classic": "TestRandomGroups", "group/consumer": "TestModel"},
		least: 20,
	},
}

// called is what -suite calls it.
func (s *suite) called() string { return cmp.Or(s.name, s.dir) }

// hunters are the folders whose random tests hunt a mutant: first of the folder where it is, then of the suite.
func (s *suite) hunters(m *mutant) []string {
	dirs := []string{path.Dir(m.changes[0].file), s.dir}
	return slices.DeleteFunc(slices.Compact(dirs), func(dir string) bool { return s.tests[dir] == "" })
}

// mutant is a bug that is put into the tree.
type mutant struct {
	name, why string
	bug       int
	dir, test string // its own hunter; "": the suite's
	changes   []change
}

// change replaces text of one file.
type change struct{ file, before, after string }

func (s *suite) read() ([]*mutant, error) {
	b, err := os.ReadFile(filepath.Join(root, s.list))
	if err != nil {
		return nil, err
	}
	var list []*mutant
	for i, line := range strings.Split(string(b), "\n") {
		word, rest, _ := strings.Cut(line, " ")
		var m *mutant
		if len(list) > 0 {
			m = list[len(list)-1]
		}
		switch {
		case line == "" || line[0] == '#':
		case word == "mutant":
			list = append(list, &mutant{name: rest})
		case m == nil:
			return nil, fmt.Errorf("%s:%d: no mutant before %q", s.list, i+1, line)
		case word == "why":
			m.why = rest
		case word == "bug":
			if m.bug, err = strconv.Atoi(rest); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", s.list, i+1, err)
			}
		case word == "test":
			m.dir, m.test, _ = strings.Cut(rest, " ")
		case word == "file":
			m.changes = append(m.changes, change{file: rest})
		case len(m.changes) > 0 && strings.ContainsRune("-+|", rune(line[0])):
			c := &m.changes[len(m.changes)-1]
			if line[0] != '+' {
				c.before += line[1:] + "\n"
			}
			if line[0] != '-' {
				c.after += line[1:] + "\n"
			}
		default:
			return nil, fmt.Errorf("%s:%d: nobody knows %q", s.list, i+1, line)
		}
	}
	return list, nil
}

// apply returns the changed text. The last line of before may be the beginning of one.
func (c change) apply(text string) (string, error) {
	before, after := strings.TrimSuffix(c.before, "\n"), strings.TrimSuffix(c.after, "\n")
	if n := strings.Count(text, before); n != 1 || before == "" {
		return "", fmt.Errorf("%s has this %d times, and should once:\n%s", c.file, n, before)
	}
	return strings.Replace(text, before, after, 1), nil
}

// overlay writes the changed files into a folder, and returns the file that -overlay takes.
func (m *mutant) overlay(dir string) (string, error) {
	top, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	all := struct{ Replace map[string]string }{map[string]string{}}
	for i, c := range m.changes {
		name := filepath.Join(top, c.file)
		from := name
		if earlier, ok := all.Replace[name]; ok {
			from = earlier
		}
		b, err := os.ReadFile(from)
		if err != nil {
			return "", err
		}
		text, err := c.apply(string(b))
		if err != nil {
			return "", err
		}
		changed := filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			return "", err
		}
		all.Replace[name] = changed
	}
	b, err := json.Marshal(all)
	name := filepath.Join(dir, "overlay.json")
	return name, errors.Join(err, os.WriteFile(name, b, 0o600))
}

// TestMutantsStillApply keeps the lists true: what a mutant changes is there, once.
func TestMutantsStillApply(t *testing.T) {
	for i := range suites {
		s := &suites[i]
		list, err := s.read()
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, m := range list {
			if names[m.name] || m.why == "" || len(m.changes) == 0 {
				t.Errorf("%s: a second one of that name, or without words, or without a change", m.name)
				continue
			}
			names[m.name] = true
			if _, err := m.overlay(t.TempDir()); err != nil {
				t.Errorf("%s: %v", m.name, err)
			}
		}
		if len(names) < s.least {
			t.Errorf("%s has %d mutants", s.list, len(names))
		}
	}
}
