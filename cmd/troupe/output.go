package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/goccy/go-yaml"
)

// The forms of -o.
const (
	formatText = "text"
	formatJSON = "json"
	formatYAML = "yaml"
)

// show writes a result: v as JSON or YAML, or the columns that text fills. The JSON keys of v are a contract.
func (s *session) show(v any, text func(w io.Writer)) error {
	switch s.format {
	case formatJSON:
		b, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return fmt.Errorf("encode the result: %w", err)
		}
		_, err = s.out.Write(append(b, '\n'))
		return wrapStdout(err)
	case formatYAML:
		b, err := toYAML(v)
		if err != nil {
			return err
		}
		_, err = s.out.Write(b)
		return wrapStdout(err)
	}
	w := newColumns(s.out)
	text(w)
	return wrapStdout(w.Flush())
}

// newColumns makes a writer of the columns that all tables have.
func newColumns(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 4, 2, ' ', 0) }

// showLine writes one of many results: a line of JSON, or a YAML document.
func (s *session) showLine(v any) error {
	var b []byte
	var err error
	if s.format == formatYAML {
		b, err = toYAML(v)
		b = append([]byte("---\n"), b...)
	} else {
		b, err = json.Marshal(v)
		b = append(b, '\n')
	}
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	_, err = s.out.Write(b)
	return wrapStdout(err)
}

// toYAML goes by JSON, so that both forms have the same keys in the same order.
func toYAML(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	b, err = yaml.JSONToYAML(b)
	if err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	return b, nil
}

func wrapStdout(err error) error {
	if err != nil {
		return fail(codeLocalFile, "", "write the result: %w", err)
	}
	return nil
}

// row writes cells separated by tabs, for a tabwriter, whose Flush reports the error.
func row(w io.Writer, cells ...any) {
	for i, c := range cells {
		if i > 0 {
			_, _ = io.WriteString(w, "\t")
		}
		_, _ = fmt.Fprint(w, c)
	}
	_, _ = io.WriteString(w, "\n")
}
