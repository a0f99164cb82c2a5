package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// differences lists what is not as written: the first few, since one broken rule breaks it in every record. Writer and
// reader say what they lack; nothing else is forgiven. A written timestamp of 0 is not compared.
func differences(writer, reader hello, want, got []record) error {
	var errs []error
	if len(got) < len(want) {
		return fmt.Errorf("%d records, want %d", len(got), len(want))
	}
	for i := range want {
		if err := difference(writer, reader, want[i], got[i]); err != nil {
			errs = append(errs, fmt.Errorf("record %d: %w", i, err))
		}
		if len(errs) == 5 {
			errs = append(errs, errors.New("and perhaps more"))
			break
		}
	}
	if len(got) > len(want) {
		errs = append(errs, fmt.Errorf("%d records, want %d", len(got), len(want)))
	}
	return errors.Join(errs...)
}

func difference(writer, reader hello, want, got record) error {
	var errs []error
	if got.Offset != want.Offset {
		errs = append(errs, fmt.Errorf("offset %d, want %d", got.Offset, want.Offset))
	}
	if want.Timestamp != 0 && got.Timestamp != want.Timestamp {
		errs = append(errs, fmt.Errorf("timestamp %d, want %d", got.Timestamp, want.Timestamp))
	}
	if !sameBytes(want.Key, got.Key, reader.lacks(lacksReadNullKey)) {
		errs = append(errs, fmt.Errorf("key %s, want %s", show(got.Key), show(want.Key)))
	}
	if !sameBytes(want.Value, got.Value, reader.lacks(lacksReadNullValue)) {
		errs = append(errs, fmt.Errorf("value %s, want %s", show(got.Value), show(want.Value)))
	}
	errs = append(errs, headerDifference(writer, reader, want, got))
	return errors.Join(errs...)
}

func headerDifference(writer, reader hello, want, got record) error {
	wanted := slices.Clone(want.Headers)
	if reader.lacks(lacksReadHeaderBytes) {
		// The writer's order is not the one stored when the writer has none.
		if text := kcatHeaders(wanted); !writer.lacks(lacksHeaderOrder) && got.HeaderText != text {
			return fmt.Errorf("headers printed %q, want %q", got.HeaderText, text)
		}
		return nil
	}
	found := slices.Clone(got.Headers)
	if writer.lacks(lacksHeaderOrder) || reader.lacks(lacksHeaderOrder) {
		// The order of several values under one name is kept even there.
		byName := func(a, b header) int { return strings.Compare(a.Name, b.Name) }
		slices.SortStableFunc(wanted, byName)
		slices.SortStableFunc(found, byName)
	}
	same := slices.EqualFunc(wanted, found, func(a, b header) bool {
		return a.Name == b.Name && sameBytes(a.Value, b.Value, reader.lacks(lacksReadNullHeader))
	})
	if !same {
		return fmt.Errorf("headers %s, want %s", showHeaders(found), showHeaders(wanted))
	}
	return nil
}

// sameBytes compares with null and empty kept apart, unless the reader cannot.
func sameBytes(want, got []byte, nullIsEmpty bool) bool {
	return bytes.Equal(want, got) && (nullIsEmpty || (want == nil) == (got == nil))
}

// show prints bytes shortly and tells null from empty.
func show(b []byte) string {
	switch {
	case b == nil:
		return "null"
	case len(b) > 40:
		return fmt.Sprintf("%.40q… (%d bytes)", b, len(b))
	default:
		return fmt.Sprintf("%q", b)
	}
}

func showHeaders(headers []header) string {
	parts := make([]string, len(headers))
	for i, h := range headers {
		parts[i] = h.Name + "=" + show(h.Value)
	}
	return "[" + strings.Join(parts, " ") + "]"
}
