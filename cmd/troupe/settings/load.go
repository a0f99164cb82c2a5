package settings

import (
	"errors"
	"slices"
	"strings"

	"github.com/troupe-broker/troupe/cluster/config"
)

// Sources is where a configuration comes from.
type Sources struct {
	File    string   // name of the YAML file; empty: there is none
	Environ []string // NAME=VALUE, as os.Environ
	Flags   []config.Given
}

// Loaded is a checked configuration.
type Loaded struct {
	Static   config.Set
	Warnings []config.Warning // keys that are accepted without effect

	where map[string]string
}

// Where tells where a key was given, "" when it was not.
func (l *Loaded) Where(name string) string { return l.where[name] }

// Problem is one thing wrong with the configuration.
type Problem struct {
	*config.Error
	Excerpt string // the source around it, for a file
}

// Unwrap gives the error of the tables.
func (p *Problem) Unwrap() error { return p.Error }

// ProblemsError is all that is wrong; a start reports it together, so that a file is not repaired one start at a time.
type ProblemsError []*Problem

// Error prints one line for each.
func (ps ProblemsError) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error.Error()
	}
	return strings.Join(lines, "\n")
}

// VariablesOfOthers are variables with our prefix that set no key: they are read by the command line.
var VariablesOfOthers = []string{"TROUPE_BOOTSTRAP", "TROUPE_CONFIG"}

// testPrefix begins the names of variables that tests read.
const testPrefix = "TROUPE_TEST_"

// Load reads the layers, merges and checks them. The error is a *FileError or a ProblemsError.
func Load(from Sources) (*Loaded, error) {
	file := &document{excerpts: map[string]string{}}
	if from.File != "" {
		var err error
		if file, err = readFile(from.File); err != nil {
			return nil, err
		}
	}
	environ := slices.DeleteFunc(slices.Clone(from.Environ), func(v string) bool { return strings.HasPrefix(v, testPrefix) })
	layers := [][]config.Given{file.given, config.FromEnv(environ, VariablesOfOthers...), from.Flags}
	static, warnings, err := config.Static(layers...)
	if err != nil {
		return nil, problems(err, file.excerpts)
	}
	loaded := &Loaded{Static: static, Warnings: warnings, where: map[string]string{}}
	for _, layer := range layers {
		for _, g := range layer {
			loaded.where[g.Name] = g.Where
		}
	}
	return loaded, nil
}

// problems takes the joined errors of the tables apart, and shows those of a file in its source.
func problems(err error, excerpts map[string]string) ProblemsError {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // the one at the top is what is taken apart
		all = joined.Unwrap()
	}
	var ps ProblemsError
	for _, one := range all {
		e, ok := errors.AsType[*config.Error](one)
		if !ok {
			panic("settings: the tables returned an error that is no *config.Error: " + one.Error())
		}
		ps = append(ps, &Problem{Error: e, Excerpt: excerpts[e.Where]})
	}
	return ps
}
