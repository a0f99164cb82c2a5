package actors

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Settings are the configuration of one actor: text by key.
type Settings map[string]string

// ConfigError is a configuration that an actor cannot take.
type ConfigError struct {
	// Code is the number in docs/errors.md.
	Code string
	// Key is the whole name of the key, or of the list of actors.
	Key string
	// Reason says what is wrong and what would be right.
	Reason string
}

// Error prints code, key and reason.
func (e *ConfigError) Error() string { return e.Code + ": " + e.Key + ": " + e.Reason }

const (
	codeUnknownActor = "TRP-5001"
	codeBadSetting   = "TRP-5002"
	codeNotProvided  = "TRP-5003"
)

// decode fills the struct dst points to.
func (s Settings) decode(id string, dst any) error {
	v := reflect.ValueOf(dst)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("actors: %s: Config needs a pointer to a struct, not %T", id, dst))
	}
	v = v.Elem()
	fields := map[string]reflect.Value{}
	for i := range v.NumField() {
		if key, ok := v.Type().Field(i).Tag.Lookup("config"); ok {
			fields[key] = v.Field(i)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s)) {
		whole := "actors." + id + "." + key
		field, ok := fields[key]
		if !ok {
			return &ConfigError{codeBadSetting, whole, "no such setting; " + id + " has " + listOf(fields)}
		}
		if err := set(field, s[key]); err != nil {
			return &ConfigError{codeBadSetting, whole, fmt.Sprintf("%q is not %v", s[key], err)}
		}
	}
	return nil
}

// listOf names what there is.
func listOf[V any](things map[string]V) string {
	if len(things) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(things)), ", ")
}

// set parses text into a field. The error completes the sentence "it is not".
func set(field reflect.Value, text string) error {
	if field.Type() == reflect.TypeFor[time.Duration]() {
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("a duration such as 1500ms or 2m: %w", err)
		}
		field.SetInt(int64(d))
		return nil
	}
	switch field.Kind() {
	case reflect.String:
		field.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("true or false: %w", err)
		}
		field.SetBool(b)
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("a whole number: %w", err)
		}
		field.SetInt(n)
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("a number: %w", err)
		}
		field.SetFloat(f)
	default:
		panic("actors: a setting cannot be a " + field.Type().String())
	}
	return nil
}
