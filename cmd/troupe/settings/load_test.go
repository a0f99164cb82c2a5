package settings

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/troupe-broker/troupe/cluster/config"
)

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "troupe.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestLaterLayersWin(t *testing.T) {
	file := write(t, "log.retention.ms: 1000\nlog.segment.bytes: 1048576\nnum.partitions: 3\n")
	loaded, err := Load(Sources{
		File:    file,
		Environ: []string{"TROUPE_LOG_RETENTION_MS=2000", "TROUPE_LOG_SEGMENT_BYTES=2097152", "PATH=/bin", "TROUPE_BOOTSTRAP=x:1", "TROUPE_TEST_LOOPS=3"},
		Flags:   []config.Given{{Name: "log.retention.ms", Value: "3000", Where: "flag -X"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, value, where string }{
		{"log.retention.ms", "3000", "flag -X"},
		{"log.segment.bytes", "2097152", "environment variable TROUPE_LOG_SEGMENT_BYTES"},
		{"num.partitions", "3", file + ":3:1"},
	} {
		if v, _ := loaded.Static.Get(c.name); v != c.value {
			t.Errorf("%s is %q, want %q", c.name, v, c.value)
		}
		if where := loaded.Where(c.name); where != c.where {
			t.Errorf("%s comes from %q, want %q", c.name, where, c.where)
		}
	}
	if _, ok := loaded.Static.Get("log.dirs"); ok {
		t.Error("a key that nobody gave is in the static configuration")
	}
}

func TestFileTakesFlatAndNestedNames(t *testing.T) {
	loaded, err := Load(Sources{File: write(t, `
# a comment
log:
  retention:
    ms: 1000
  segment.bytes: 1048576
max.connections: 5
max.connections.per.ip: 2
early.start.listeners: [A, "B"]
broker.rack: "007"
`)})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"log.retention.ms": "1000", "log.segment.bytes": "1048576", "max.connections": "5",
		"max.connections.per.ip": "2", "early.start.listeners": "A,B", "broker.rack": "007",
	} {
		if v, _ := loaded.Static.Get(name); v != want {
			t.Errorf("%s is %q, want %q", name, v, want)
		}
	}
}

func TestEmptyFilesSayNothing(t *testing.T) {
	for _, text := range []string{"", "\n\n", "# only a comment\n", "\uFEFF# of Windows: \uFFFD, ö\r\n", "---\n", "---\n# x\n---\n"} {
		loaded, err := Load(Sources{File: write(t, text)})
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if len(loaded.Static) != 0 {
			t.Errorf("%q: %v", text, loaded.Static)
		}
	}
}

func TestUnknownKeyIsShownInItsPlaceWithTheNearestName(t *testing.T) {
	file := write(t, "num.partitions: 3\nlog.retension.ms: 1000\nbroker.rack: a\n")
	_, err := Load(Sources{File: file})
	var problems ProblemsError
	if !errors.As(err, &problems) || len(problems) != 1 {
		t.Fatalf("want one problem, got %v", err)
	}
	p := problems[0]
	if p.Code != config.UnknownKey || p.Where != file+":2:1" || p.Nearest != "log.retention.ms" {
		t.Errorf("got %v at %q, nearest %q", p.Code, p.Where, p.Nearest)
	}
	for _, part := range []string{"1 | num.partitions: 3", ">  2 | log.retension.ms: 1000", "^", "3 | broker.rack"} {
		if !strings.Contains(p.Excerpt, part) {
			t.Errorf("the excerpt lacks %q:\n%s", part, p.Excerpt)
		}
	}
}

func TestEveryProblemIsReportedAtOnce(t *testing.T) {
	_, err := Load(Sources{
		File:    write(t, "nonsense: 1\nnum.partitions: many\n"),
		Environ: []string{"TROUPE_LOG_RETENTION_MSS=1"},
		Flags: []config.Given{
			{Name: "num.partitions", Value: "0", Where: "flag -X"},
			{Name: "log.dirs", Value: "a", Where: "flag --data-dir"},
			{Name: "log.dirs", Value: "b", Where: "flag -X"},
		},
	})
	var problems ProblemsError
	if !errors.As(err, &problems) {
		t.Fatalf("want problems, got %v", err)
	}
	var got []config.Code
	for _, p := range problems {
		got = append(got, p.Code)
	}
	// In the order a reader meets them: two in the file, the variable, two flags.
	want := []config.Code{config.UnknownKey, config.BadType, config.UnknownKey, config.BadValue, config.Duplicate}
	if len(got) != len(want) {
		t.Fatalf("codes %v, want %v:\n%v", got, want, err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("problem %d is %v, want %v:\n%v", i, got[i], want[i], err)
		}
	}
	if near := problems[2].Nearest; near != "log.retention.ms" {
		t.Errorf("nearest variable is %q", near)
	}
}

func TestFilesThatAreNoConfiguration(t *testing.T) {
	for _, c := range []struct{ name, text, where, reason string }{
		{"syntax", "num.partitions: [1\n", ":1:", "sequence end token"},
		{"twice", "num.partitions: 1\nnum.partitions: 2\n", ":2:1", "already defined"},
		{"list", "- a\n- b\n", ":1:1", "keys and values"},
		{"no value", "num.partitions:\n", ":1:1", "has no value"},
		{"list of maps", "early.start.listeners:\n  - a: b\n", ":2:", "list of words"},
		{"second document", "num.partitions: 1\n---\nbroker.rack: a\n", ":3:", "second document"},
		{"anchor", "num.partitions: &x 1\n", ":1:", "takes a word"},
		{"properties", "# Kafka's\nlog.retention.ms=1000\nnum.partitions = 3\n", ":2:1", "write `log.retention.ms: 1000`"},
		{"one property", "num.partitions = 3\n", ":1:1", "write `num.partitions: 3`"},
		{"a binary", "\x7fELF\x00\x01", ":1", "the byte 0x7f"},
		{"a terminal's code", "num.partitions: 3\nbroker.rack: \x1b[31m\n", ":2", "the byte 0x1b"},
		{"another encoding", "broker.rack: K\xf6ln\n", ":1", "the byte 0xf6"},
		{"indented too much", "log.retention.ms: 1000\n  num.partitions: 3\n", ":2:3", "indented"},
		{"indented below a quoted value", "broker.rack: \"a\"\n  num.partitions: 3\n", ":2:3", "indented"},
		{"indented too little", "log:\n    retention:\n      ms: 1000\n  dirs: /x\n", ":4:3", "indented"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := write(t, c.text)
			_, err := Load(Sources{File: file})
			var fe *FileError
			if !errors.As(err, &fe) {
				t.Fatalf("want a FileError, got %v", err)
			}
			if !strings.HasPrefix(fe.Where, file+c.where) || !strings.Contains(fe.Reason, c.reason) {
				t.Errorf("got %v; want place %q and a reason with %q", fe, c.where, c.reason)
			}
			if !utf8.ValidString(fe.Excerpt) || strings.ContainsAny(fe.Excerpt, "\x00\x1b\x7f") || strings.Count(fe.Excerpt, "=") > 1 {
				t.Errorf("the excerpt is\n%s", fe.Excerpt)
			}
		})
	}
}

func TestNestedAndFlatNameOfOneKeyAreADuplicate(t *testing.T) {
	_, err := Load(Sources{File: write(t, "log.retention.ms: 1\nlog:\n  retention.ms: 2\n")})
	var problems ProblemsError
	if !errors.As(err, &problems) || problems[0].Code != config.Duplicate {
		t.Errorf("want a duplicate, got %v", err)
	}
}

func TestDeepAndLargeFilesAreRefused(t *testing.T) {
	var deep strings.Builder
	for i := range 40 {
		deep.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	deep.WriteString(strings.Repeat(" ", 40) + "b: 1\n")
	for name, text := range map[string]string{"deep": deep.String(), "large": strings.Repeat("# padding\n", fileBytesMax/10+1)} {
		_, err := Load(Sources{File: write(t, text)})
		if _, ok := errors.AsType[*FileError](err); !ok {
			t.Errorf("%s: want a FileError, got %v", name, err)
		}
	}
	_, err := Load(Sources{File: filepath.Join(t.TempDir(), "none.yaml")})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestActorsAndTheirSettingsAreTakenApart(t *testing.T) {
	file := write(t, "actors.enabled: [observer.topichits, observer.other]\nactors:\n  observer.topichits.panic.after: 3\nnum.partitions: 2\n")
	loaded, err := Load(Sources{File: file, Environ: []string{"TROUPE_ACTORS_OBSERVER_TOPICHITS_PANIC_AFTER=4"}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(loaded.Actors, []string{"observer.topichits", "observer.other"}) {
		t.Errorf("actors are %v", loaded.Actors)
	}
	if len(loaded.ActorSettings) != 1 || loaded.ActorSettings["observer.topichits.panic.after"] != "4" {
		t.Errorf("settings are %v", loaded.ActorSettings)
	}
	if where := loaded.Where("actors.enabled"); where != file+":1:1" {
		t.Errorf("actors.enabled was given at %q", where)
	}
	_, err = Load(Sources{File: write(t, "actors.enabled: a.b\nactors:\n  enabled: c.d\nnope: 1\n")})
	problems, ok := errors.AsType[ProblemsError](err)
	if !ok || len(problems) != 2 || problems[0].Code != config.Duplicate || problems[1].Code != config.UnknownKey {
		t.Errorf("got %v", err)
	}
}

func TestVariablesOfTheCommandLineSetNoKey(t *testing.T) {
	for k := range config.Broker().All() {
		name := config.EnvName(k.Name)
		if slices.Contains(VariablesOfOthers, name) || strings.HasPrefix(name, testPrefix) {
			t.Errorf("%s of %s means something else", name, k.Name)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a: 1\n", "a:\n  b: [1, 2]\n", "---\n", "a: &x 1\nb: *x\n", "? a\n: b\n", "a: |\n  x\n", "<<: {a: 1}\n", "\t", "a: !!int 3\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		d, err := parse("f", src)
		if err != nil {
			return
		}
		for _, g := range d.given {
			if d.excerpts[g.Where] == "" {
				t.Errorf("%q at %q has no source", g.Name, g.Where)
			}
		}
	})
}
