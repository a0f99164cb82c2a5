package wire

import (
	"reflect"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// StringMax is how many bytes a string of a request may have. Flexible messages
// could hold longer ones, but Kafka reads none in either form (its generated
// decoders: "string field ... had invalid length"), and closes the connection.
const StringMax = 1<<15 - 1

// stringsFit tells whether no string of a decoded request is too long. Few
// requests have to be looked through: a body that is not longer than the longest
// string has none.
func stringsFit(req kmsg.Request, bodySize int) bool {
	return bodySize <= StringMax || fits(reflect.ValueOf(req))
}

// fits looks at every string below a value. Byte fields are not strings.
func fits(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		return v.Len() <= StringMax
	case reflect.Pointer:
		return v.IsNil() || fits(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && !fits(v.Field(i)) {
				return false
			}
		}
	case reflect.Slice:
		if v.Len() == 0 || !hasStrings(v.Type().Elem()) {
			return true
		}
		for i := range v.Len() {
			if !fits(v.Index(i)) {
				return false
			}
		}
	default: // numbers, bools, ids
	}
	return true
}

// hasStrings tells whether values of a type can have a string, so that long
// arrays of numbers are passed over.
func hasStrings(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String:
		return true
	case reflect.Pointer, reflect.Slice:
		return hasStrings(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if f.IsExported() && hasStrings(f.Type) {
				return true
			}
		}
	default:
	}
	return false
}
