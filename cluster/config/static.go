package config

import (
	"errors"
	"slices"
	"strings"
)

// Given is one value as somebody wrote it.
type Given struct {
	Name  string
	Value string
	Where string // "troupe.yaml:12:3", "environment variable TROUPE_LOG_DIR", "flag -X"
}

// Warning says that a key was given and has no effect.
type Warning struct {
	Where  string
	Name   string
	Reason string
}

// String prints the warning as one sentence.
func (w Warning) String() string {
	return w.Where + ": config " + w.Name + " has no effect: " + w.Reason
}

// Static checks what file, environment and flags give and merges them: a later layer is stronger. Values are in their canonical text. All problems
// are reported at once, joined; each is an *Error with its place.
func Static(layers ...[]Given) (Set, []Warning, error) {
	var (
		merged   []Entry
		warnings []Warning
		problems []error
	)
	for _, layer := range layers {
		seen := make(map[string]string, len(layer)) // read by key only
		for _, g := range layer {
			if before, twice := seen[g.Name]; twice {
				problems = append(problems, &Error{Code: Duplicate, Where: g.Where, Key: g.Name, Problem: "is given here and at " + before})
				continue
			}
			seen[g.Name] = g.Where
			k, ok := find(g.Name)
			if !ok {
				problems = append(problems, &Error{Code: UnknownKey, Where: g.Where, Key: g.Name, Nearest: brokerTable.Nearest(g.Name)})
				continue
			}
			v, err := k.Parse(g.Value)
			if err != nil {
				if e, ok := errors.AsType[*Error](err); ok {
					e.Where, e.Key = g.Where, g.Name
				}
				problems = append(problems, err)
				continue
			}
			if k.Class == Accepted {
				warnings = append(warnings, Warning{Where: g.Where, Name: g.Name, Reason: k.Reason})
			}
			merged = append(merged, Entry{Name: g.Name, Value: v.Text})
		}
	}
	if len(problems) > 0 {
		return nil, warnings, errors.Join(problems...)
	}
	return SetOf(merged...), warnings, nil
}

// find looks a static key up: a broker key, the same with a listener's prefix, or a key of a plugin.
func find(name string) (*Key, bool) {
	if k, ok := brokerTable.Lookup(name); ok {
		return k, true
	}
	if rest, ok := strings.CutPrefix(name, "listener.name."); ok {
		if _, bare, ok := strings.Cut(rest, "."); ok {
			return prefixed(bare)
		}
	}
	for _, prefix := range pluginPrefixes {
		if strings.HasPrefix(name, prefix.text) {
			return prefix.key, true
		}
	}
	return nil, false
}

// prefixed finds the key that a listener's own value overrides. Whatever is honoured is so for all listeners alike; its override has no effect. Names
// may have a SASL mechanism between prefix and key.
func prefixed(bare string) (*Key, bool) {
	k, ok := brokerTable.Lookup(bare)
	if !ok {
		if _, rest, cut := strings.Cut(bare, "."); cut && strings.HasPrefix(rest, "sasl.") {
			k, ok = brokerTable.Lookup(rest)
		}
	}
	if !ok {
		return nil, false
	}
	override := *k
	if override.Class == Honoured {
		override.Class, override.Reason = Accepted, "all listeners share one value; set "+k.Name
	}
	return &override, true
}

// pluginPrefixes are what names of Kafka plugins' own keys begin with.
var pluginPrefixes = []struct {
	text string
	key  *Key
}{
	{"rsm.config.", &Key{Type: String, Class: Accepted, Reason: noTier, table: brokerTable}},
	{"rlmm.config.", &Key{Type: String, Class: Accepted, Reason: noTier, table: brokerTable}},
}

// EnvPrefix is what the environment variables of Troupe begin with.
const EnvPrefix = "TROUPE_"

// EnvName is the environment variable of a broker key: TROUPE_LOG_RETENTION_MS for log.retention.ms.
func EnvName(key string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// FromEnv picks the keys out of an environment of NAME=value lines. Variables with the prefix that are no key's twin are given under the name a key
// would have, so that Static refuses them with the nearest known one; skip names those that mean something else.
func FromEnv(environ []string, skip ...string) []Given {
	var out []Given
	for _, line := range environ {
		name, value, ok := strings.Cut(line, "=")
		if !ok || !strings.HasPrefix(name, EnvPrefix) || slices.Contains(skip, name) {
			continue
		}
		key := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, EnvPrefix), "_", "."))
		out = append(out, Given{Name: key, Value: value, Where: "environment variable " + name})
	}
	return out
}

// FromFlag reads the key=value of a -X flag.
func FromFlag(text string) (Given, error) {
	name, value, ok := strings.Cut(text, "=")
	name = strings.TrimSpace(name)
	if !ok || name == "" {
		return Given{}, &Error{Code: BadType, Where: "flag -X", Value: text, Problem: "is not KEY=VALUE"}
	}
	return Given{Name: name, Value: value, Where: "flag -X"}, nil
}
