package settings

import (
	"cmp"
	"slices"

	"github.com/knadh/koanf/v2"

	"github.com/troupe-broker/troupe/cluster/config"
)

// Sources is where a configuration comes from.
type Sources struct {
	File    string   // name of the YAML file; empty: there is none
	Environ []string // NAME=VALUE, as os.Environ
	Flags   []Flag
}

// Loaded is a checked configuration.
type Loaded struct {
	Static  config.Set // by name, texts in canonical form
	Without []Setting  // accepted without effect: known, and of no consequence
	settled map[string]Setting
}

// Where tells where a key was given, "" when it was not.
func (l *Loaded) Where(name string) string { return l.settled[name].Where }

// noDelimiter does not occur in names: koanf then keeps Kafka's dotted names whole, max.connections beside
// max.connections.per.ip.
const noDelimiter = "\x00"

// Load reads the layers and checks what wins against the broker's table. The error is a *FileError, or ProblemsError.
func Load(from Sources) (*Loaded, error) {
	table := config.Broker()
	var layers []layer
	var problems ProblemsError
	if from.File != "" {
		l, ps, err := fromFile(from.File)
		if err != nil {
			return nil, err
		}
		layers, problems = append(layers, l), append(problems, ps...)
	}
	l, ps := fromEnviron(from.Environ, table)
	layers, problems = append(layers, l), append(problems, ps...)
	l, ps = fromFlags(from.Flags)
	layers, problems = append(layers, l), append(problems, ps...)

	merged := koanf.New(noDelimiter)
	for _, l := range layers {
		if err := merged.Load(l, nil); err != nil {
			return nil, err
		}
	}
	loaded := &Loaded{settled: map[string]Setting{}}
	var entries []config.Entry
	names := merged.Keys()
	slices.Sort(names)
	for _, name := range names {
		s := merged.Get(name).(Setting)
		key, known := table.Lookup(name)
		if !known {
			problems = append(problems, unknown(s, suggest(name, table)))
			continue
		}
		value, err := key.Parse(s.Text)
		if err != nil {
			problems = append(problems, located(s, err))
			continue
		}
		loaded.settled[name] = s
		entries = append(entries, config.Entry{Name: name, Value: value.Text})
		if key.Class == config.Accepted {
			loaded.Without = append(loaded.Without, s)
		}
	}
	if len(problems) > 0 {
		slices.SortStableFunc(problems, func(a, b *Problem) int { return cmp.Compare(a.Rank, b.Rank) })
		return nil, problems
	}
	loaded.Static = config.SetOf(entries...)
	return loaded, nil
}

// located adds the place to an error of the tables.
func located(s Setting, err error) *Problem {
	e, ok := err.(*config.Error) //nolint:errorlint // Parse returns this type and wraps nothing
	if !ok {
		panic("settings: Key.Parse returned an error that is no *config.Error: " + err.Error())
	}
	placed := *e
	placed.Where = s.Where
	return &Problem{Error: &placed, Excerpt: s.Excerpt, Rank: s.Rank}
}

// suggest names the key that was most likely meant. The name of a topic's setting means the broker's default for it.
func suggest(name string, table *config.Table) string {
	if topic, ok := config.Topic().Lookup(name); ok && len(topic.Synonyms) > 0 {
		return topic.Synonyms[0].Name
	}
	return table.Nearest(name)
}
