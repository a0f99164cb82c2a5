package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const formatSyntax = "%v value, %k key, %h headers, %t topic, %p partition, %o offset, %T timestamp (ms), %D timestamp (date), %s and %S sizes of value and key, %% a percent sign; \\n \\t \\r \\0 \\\\"

// recordFormat prints records as --format says: parts of text, and verbs that stand for parts of the record.
type recordFormat []formatPart

type formatPart struct {
	text string
	verb byte // 0: text
}

// parseFormat compiles a format.
func parseFormat(format string) (recordFormat, error) {
	var parts recordFormat
	var text strings.Builder
	for i := 0; i < len(format); i++ {
		c := format[i]
		if c != '%' && c != '\\' {
			text.WriteByte(c)
			continue
		}
		if i++; i == len(format) {
			return nil, usage(formatSyntax, "the format %q ends with %q", format, string(c))
		}
		if c == '\\' {
			escaped := strings.IndexByte(`nrt0\`, format[i])
			if escaped < 0 {
				return nil, usage(formatSyntax, "the format %q has an unknown escape \\%c", format, format[i])
			}
			text.WriteByte("\n\r\t\x00\\"[escaped])
			continue
		}
		switch verb := format[i]; verb {
		case '%':
			text.WriteByte('%')
		case 'v', 'k', 'h', 't', 'p', 'o', 'T', 'D', 's', 'S':
			if text.Len() > 0 {
				parts = append(parts, formatPart{text: text.String()})
				text.Reset()
			}
			parts = append(parts, formatPart{verb: verb})
		default:
			return nil, usage(formatSyntax, "the format %q has an unknown verb %%%c", format, verb)
		}
	}
	if text.Len() > 0 {
		parts = append(parts, formatPart{text: text.String()})
	}
	return parts, nil
}

// append prints a record behind b.
func (f recordFormat) append(b []byte, r *kgo.Record) []byte {
	for _, part := range f {
		switch part.verb {
		case 0:
			b = append(b, part.text...)
		case 'v':
			b = append(b, r.Value...)
		case 'k':
			b = append(b, r.Key...)
		case 'h':
			for i, h := range r.Headers {
				if i > 0 {
					b = append(b, ',')
				}
				b = append(append(append(b, h.Key...), '='), h.Value...)
			}
		case 't':
			b = append(b, r.Topic...)
		case 'p':
			b = strconv.AppendInt(b, int64(r.Partition), 10)
		case 'o':
			b = strconv.AppendInt(b, r.Offset, 10)
		case 'T':
			b = strconv.AppendInt(b, r.Timestamp.UnixMilli(), 10)
		case 'D':
			b = r.Timestamp.UTC().AppendFormat(b, time.RFC3339Nano)
		case 's':
			b = strconv.AppendInt(b, int64(len(r.Value)), 10)
		case 'S':
			b = strconv.AppendInt(b, int64(len(r.Key)), 10)
		}
	}
	return b
}
