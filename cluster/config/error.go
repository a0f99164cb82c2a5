package config

import "fmt"

// Code is the stable number of a configuration error, explained in docs/errors.md.
type Code uint16

const (
	BadType    Code = 1001 // TRP-1001: the text is not of the key's type
	BadValue   Code = 1002 // TRP-1002: the value is outside what the key allows
	RefusedKey Code = 1003 // TRP-1003: the key stands for something this build does not do
	UnknownKey Code = 1004 // TRP-1004: no such key
	NotDynamic Code = 1005 // TRP-1005: the key cannot change while the broker runs
	Duplicate  Code = 1006 // TRP-1006: the key is given twice
	Conflict   Code = 1007 // TRP-1007: two keys contradict each other
)

// String prints the code as users see it.
func (c Code) String() string { return fmt.Sprintf("TRP-%04d", uint16(c)) }

// Error is a configuration error: what, where, and what to do.
type Error struct {
	Code    Code
	Where   string // file:line:column, environment variable or flag; empty when the caller knows
	Key     string
	Value   string
	Problem string
	Nearest string // UnknownKey: a known name that is close; empty: none is
}

// Error prints one sentence with the code.
func (e *Error) Error() string {
	where := ""
	if e.Where != "" {
		where = e.Where + ": "
	}
	switch {
	case e.Key == "":
		return fmt.Sprintf("%s%v: %q %s", where, e.Code, e.Value, e.Problem)
	case e.Code == UnknownKey && e.Nearest != "":
		return fmt.Sprintf("%s%v: unknown config %s; did you mean %s?", where, e.Code, e.Key, e.Nearest)
	case e.Code == UnknownKey:
		return fmt.Sprintf("%s%v: unknown config %s; docs/configs.md lists all", where, e.Code, e.Key)
	case e.Code == NotDynamic || e.Code == Duplicate:
		return fmt.Sprintf("%s%v: config %s %s", where, e.Code, e.Key, e.Problem)
	}
	return fmt.Sprintf("%s%v: config %s has the value %q: %s", where, e.Code, e.Key, e.Value, e.Problem)
}
