package config

import (
	"cmp"
	"slices"
)

// Entry is one key with its value as text.
type Entry struct{ Name, Value string }

// Set is an immutable list of entries sorted by name, each name once. The nil Set is empty.
type Set []Entry

// SetOf sorts entries into a Set; the last of several entries with one name wins.
func SetOf(entries ...Entry) Set {
	s := slices.Clone(entries)
	slices.SortStableFunc(s, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	out := s[:0]
	for i, e := range s {
		if i+1 < len(s) && s[i+1].Name == e.Name {
			continue
		}
		out = append(out, e)
	}
	return Set(out)
}

// Get returns the value of a name.
func (s Set) Get(name string) (string, bool) {
	i, found := s.find(name)
	if !found {
		return "", false
	}
	return s[i].Value, true
}

// With returns the set with a name set to a value.
func (s Set) With(name, value string) Set {
	i, found := s.find(name)
	if found {
		out := slices.Clone(s)
		out[i].Value = value
		return out
	}
	out := make(Set, 0, len(s)+1)
	out = append(out, s[:i]...)
	out = append(out, Entry{Name: name, Value: value})
	return append(out, s[i:]...)
}

// Without returns the set without a name.
func (s Set) Without(name string) Set {
	i, found := s.find(name)
	if !found {
		return s
	}
	out := make(Set, 0, len(s)-1)
	out = append(out, s[:i]...)
	return append(out, s[i+1:]...)
}

func (s Set) find(name string) (int, bool) {
	return slices.BinarySearchFunc(s, name, func(e Entry, name string) int { return cmp.Compare(e.Name, name) })
}
