package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-broker/troupe/cluster/config"
)

// Setting is one key as it was given.
type Setting struct {
	Name    string
	Text    string
	Where   string // file:line:column, the variable, or the flag
	Excerpt string // the source around it, for a file

	Rank int // order in which a reader meets it: file by line, environment, flags
}

// The ranks of the layers. A file has fewer lines than this.
const (
	rankEnviron = 1 << 30
	rankFlags   = 2 << 30
)

// layer is the settings of one source; it is a koanf.Provider.
type layer map[string]any

// ReadBytes is not how a layer is read.
func (l layer) ReadBytes() ([]byte, error) { return nil, fmt.Errorf("settings: a layer has no bytes") }

// Read gives the settings by name.
func (l layer) Read() (map[string]any, error) { return l, nil }

// add puts a setting into the layer, once.
func (l layer) add(s Setting) *Problem {
	if first, twice := l[s.Name]; twice {
		return problem(s, config.Duplicate, fmt.Sprintf("is given twice, first at %s", first.(Setting).Where))
	}
	l[s.Name] = s
	return nil
}

// EnvPrefix begins the name of every variable of the environment that is ours.
const EnvPrefix = "TROUPE_"

// notSettings are variables with our prefix that are read elsewhere: by the command line, and by tests.
var notSettings = []string{"TROUPE_BOOTSTRAP", "TROUPE_CONFIG"}

const testPrefix = "TROUPE_TEST_"

// EnvName is the variable that sets a key.
func EnvName(key string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// fromEnviron reads variables, NAME=VALUE as os.Environ gives them.
func fromEnviron(environ []string, table *config.Table) (layer, ProblemsError) {
	l := layer{}
	var problems ProblemsError
	keys := map[string]string{}
	for k := range table.All() {
		keys[EnvName(k.Name)] = k.Name
	}
	for i, variable := range environ {
		name, text, ok := strings.Cut(variable, "=")
		if !ok || !strings.HasPrefix(name, EnvPrefix) || strings.HasPrefix(name, testPrefix) || slices.Contains(notSettings, name) {
			continue
		}
		key, known := keys[name]
		if !known {
			near := table.Nearest(strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, EnvPrefix), "_", ".")))
			if near != "" {
				near = EnvName(near)
			}
			problems = append(problems, unknown(Setting{Name: name, Text: text, Where: "environment", Rank: rankEnviron + i}, near))
			continue
		}
		if p := l.add(Setting{Name: key, Text: text, Where: "environment variable " + name, Rank: rankEnviron + i}); p != nil {
			problems = append(problems, p)
		}
	}
	return l, problems
}

// Flag is a key given on the command line: by -X, or by a flag that is an alias.
type Flag struct {
	Name string // of the key
	Text string
	As   string // the flag as typed: "-X", "--listen"
}

// ParseX reads the argument of -X.
func ParseX(argument string) (Flag, error) {
	name, text, ok := strings.Cut(argument, "=")
	if !ok || strings.TrimSpace(name) == "" {
		return Flag{}, fmt.Errorf("-X %s is not KEY=VALUE", argument)
	}
	return Flag{Name: strings.TrimSpace(name), Text: text, As: "-X"}, nil
}

func fromFlags(flags []Flag) (layer, ProblemsError) {
	l := layer{}
	var problems ProblemsError
	for i, f := range flags {
		if p := l.add(Setting{Name: f.Name, Text: f.Text, Where: "flag " + f.As, Rank: rankFlags + i}); p != nil {
			problems = append(problems, p)
		}
	}
	return l, problems
}
