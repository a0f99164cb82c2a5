package config

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Value is a parsed value. Which field counts depends on the key's type; Text is the canonical text for all.
type Value struct {
	Text  string
	Bool  bool
	Int   int64 // Int, Short, Long
	Float float64
	Words []string // List: trimmed, in order
}

// Parse reads text as a value of the key's type and checks it. The error is an *Error with code TRP-1001 (type) or TRP-1002 (check), and for a
// refused key that is not neutral TRP-1003.
func (k *Key) Parse(text string) (Value, error) {
	v, problem := parse(k.Type, text)
	if problem != "" {
		return Value{}, &Error{Code: BadType, Key: k.Name, Value: k.shown(text), Problem: problem}
	}
	if k.Check != nil {
		if problem := k.Check(v); problem != "" {
			return Value{}, &Error{Code: BadValue, Key: k.Name, Value: k.shown(text), Problem: problem}
		}
	}
	if k.Class == Refused && !k.neutral(v) {
		return Value{}, &Error{Code: RefusedKey, Key: k.Name, Value: k.shown(text), Problem: k.Reason}
	}
	return v, nil
}

// shown hides what must not be repeated in an error.
func (k *Key) shown(text string) string {
	if k.Hidden {
		return "[hidden]"
	}
	return text
}

// neutral tells whether a value of a refused key asks for nothing that does not exist.
func (k *Key) neutral(v Value) bool {
	if v.Text == "" {
		return true
	}
	return !k.Null && v.Text == k.Default || slices.Contains(k.Neutral, v.Text)
}

func parse(t Type, text string) (Value, string) {
	trimmed := strings.TrimSpace(text)
	switch t {
	case Bool:
		switch strings.ToLower(trimmed) {
		case "true":
			return Value{Text: "true", Bool: true}, ""
		case "false":
			return Value{Text: "false"}, ""
		}
		return Value{}, "it must be true or false"
	case Int:
		return parseInt(trimmed, math.MinInt32, math.MaxInt32)
	case Short:
		return parseInt(trimmed, math.MinInt16, math.MaxInt16)
	case Long:
		return parseInt(trimmed, math.MinInt64, math.MaxInt64)
	case Double:
		f, err := strconv.ParseFloat(trimmed, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return Value{}, "it must be a number"
		}
		return Value{Text: trimmed, Float: f}, ""
	case List:
		v := Value{}
		for word := range strings.SplitSeq(trimmed, ",") {
			if word = strings.TrimSpace(word); word != "" {
				v.Words = append(v.Words, word)
			}
		}
		v.Text = strings.Join(v.Words, ",")
		return v, ""
	case String, ClassRef:
		return Value{Text: trimmed}, ""
	case Password:
		return Value{Text: text}, ""
	}
	panic("config: key without a type")
}

func parseInt(text string, low, high int64) (Value, string) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < low || n > high {
		return Value{}, "it must be a whole number from " + strconv.FormatInt(low, 10) + " to " + strconv.FormatInt(high, 10)
	}
	return Value{Text: strconv.FormatInt(n, 10), Int: n}, ""
}
