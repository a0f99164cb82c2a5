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

	// Actors are the extension actors to run (actors.enabled), ActorSettings theirs by key without the leading "actors.".
	// Each actor knows its own keys, so they are checked when it starts.
	Actors        []string
	ActorSettings map[string]string

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
	loaded := &Loaded{ActorSettings: map[string]string{}, where: map[string]string{}}
	var found ProblemsError
	for i, layer := range layers {
		seen := map[string]string{}
		layers[i] = slices.DeleteFunc(slices.Clone(layer), func(g config.Given) bool {
			loaded.where[g.Name] = g.Where
			key, ok := strings.CutPrefix(g.Name, actorsPrefix)
			if !ok {
				return false
			}
			if before, twice := seen[key]; twice {
				e := &config.Error{Code: config.Duplicate, Where: g.Where, Key: g.Name, Problem: "is given here and at " + before}
				found = append(found, &Problem{Error: e, Excerpt: file.excerpts[g.Where]})
			}
			seen[key] = g.Where
			loaded.ActorSettings[key] = g.Value
			return true
		})
	}
	var err error
	if loaded.Static, loaded.Warnings, err = config.Static(layers...); err != nil {
		found = append(found, problems(err, file.excerpts)...)
	}
	if len(found) > 0 {
		return nil, found
	}
	for id := range strings.SplitSeq(loaded.ActorSettings[actorsEnabled], ",") {
		if id = strings.TrimSpace(id); id != "" {
			loaded.Actors = append(loaded.Actors, id)
		}
	}
	delete(loaded.ActorSettings, actorsEnabled)
	return loaded, nil
}

// What begins the keys of extension actors, and the key below it that says which run.
const (
	actorsPrefix  = "actors."
	actorsEnabled = "enabled"
)

// problems takes the joined errors of the tables apart, and shows those of a file in its source.
func problems(err error, excerpts map[string]string) ProblemsError {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
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
