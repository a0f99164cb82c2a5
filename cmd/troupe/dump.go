package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/troupe-broker/troupe/cmd/troupe/dump"
)

func newDump(s *session) *cobra.Command {
	var o dump.Options
	cmd := &cobra.Command{
		Use:   "dump FILE|DIRECTORY...",
		Short: "Print files of a data directory, offline and read-only",
		Long: "Print files of a data directory. A broker is not needed, and nothing is written. A directory stands for the files\n" +
			"right in it that can be read. Damage is reported with its place, and makes the exit code 1.\n\n" +
			"Of a partition: segments (*.log), indexes (*.index, *.timeindex), producer snapshots (*.snapshot), leader-epoch-checkpoint,\n" +
			"partition.metadata. Of the directory: meta.properties, *-checkpoint, *-checkpoint.sealed, control-block, .lock,\n" +
			".kafka_cleanshutdown, io-error; in raft/ the metadata log (*.raftlog).",
		Example: "  troupe dump troupe-data/orders-0/00000000000000000000.log --records\n" +
			"  troupe dump troupe-data/orders-0 --check -o json\n" +
			"  troupe dump troupe-data/raft",
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, paths []string) error {
			files, err := dumpFiles(paths)
			if err != nil {
				return err
			}
			var bad []*failure
			for i, file := range files {
				if err := s.dumpFile(file, o, i > 0, len(files) > 1); err != nil {
					bad = append(bad, dumpFailure(err))
				}
			}
			if len(bad) == 0 {
				return nil
			}
			for _, f := range bad[1:] {
				bad[0].Details = append(bad[0].Details, f.Error())
			}
			return bad[0]
		},
	}
	cmd.Flags().BoolVar(&o.Records, "records", false, "print the records of each batch")
	cmd.Flags().BoolVar(&o.Check, "check", false, "verify checksums, and indexes against their segment")
	return cmd
}

// dumpFiles replaces directories by the files in them that can be read, in the order of their names.
func dumpFiles(paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fail(codeLocalFile, "", "%w", err)
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, fail(codeLocalFile, "", "%w", err)
		}
		before := len(files)
		for _, e := range entries {
			if kind, _ := dump.KindOf(e.Name()); kind != dump.Unknown && e.Type().IsRegular() {
				files = append(files, filepath.Join(path, e.Name()))
			}
		}
		if len(files) == before {
			return nil, fail(codeNotFound, "name a partition's directory, such as troupe-data/orders-0", "%s holds no file that can be dumped", path)
		}
	}
	return files, nil
}

// dumped is one item with the file that it is from, as -o json prints it.
type dumped struct {
	File string `json:"file"`
	Kind string `json:"kind"`
	Item any    `json:"item"`
}

func (s *session) dumpFile(path string, o dump.Options, spaced, titled bool) error {
	kind, _ := dump.KindOf(path)
	if s.format != formatText {
		return dump.File(path, o, func(item any) error {
			return s.showLine(dumped{File: path, Kind: string(kind), Item: item})
		})
	}
	if titled {
		if spaced {
			_, _ = io.WriteString(s.out, "\n")
		}
		if _, err := fmt.Fprintf(s.out, "%s (%s)\n", path, kind); err != nil {
			return wrapStdout(err)
		}
	}
	t := &dumpTable{w: newColumns(s.out), inline: kind == dump.Segment && o.Records}
	err := dump.File(path, o, t.add)
	if flushErr := t.w.Flush(); err == nil && flushErr != nil {
		err = wrapStdout(flushErr)
	}
	return err
}

// dumpTable prints items as columns named by their JSON keys. The columns are laid out a few hundred rows at a time,
// since a segment may have millions. Batches with their records below them are lines of name=value instead.
type dumpTable struct {
	w      *tabwriter.Writer
	inline bool
	head   string
	rows   int
}

func (t *dumpTable) add(item any) error {
	names, cells, records := fieldsOf(item)
	if t.inline {
		pairs := make([]string, len(names))
		for i := range names {
			pairs[i] = names[i] + "=" + cells[i]
		}
		row(t.w, strings.Join(pairs, " "))
		for _, r := range records {
			row(t.w, "", "offset="+fmt.Sprint(r.Offset), "timestamp="+fmt.Sprint(r.Timestamp),
				"key="+quoted(r.Key, r.KeyBase64), "value="+quoted(r.Value, r.ValueBase64), headers(r.Headers))
		}
		return wrapStdout(t.w.Flush())
	}
	const rowsTogether = 512
	head := strings.ToUpper(strings.ReplaceAll(strings.Join(names, "\t"), "_", " "))
	if t.rows > 0 && (head != t.head || t.rows%rowsTogether == 0) {
		if err := t.w.Flush(); err != nil {
			return wrapStdout(err)
		}
	}
	if head != t.head {
		row(t.w, head)
		t.head = head
	}
	t.rows++
	row(t.w, strings.Join(cells, "\t"))
	return nil
}

// fieldsOf lists the JSON names of an item with their values as text, and apart from them the records of a batch.
func fieldsOf(item any) (names, cells []string, records []dump.Record) {
	v := reflect.ValueOf(item)
	for i := range v.NumField() {
		cell := ""
		switch field := v.Field(i).Interface().(type) {
		case []dump.Record:
			records = field
			continue
		case *bool:
			if field == nil {
				continue
			}
			cell = fmt.Sprint(*field)
		default:
			cell = fmt.Sprint(field)
		}
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		names, cells = append(names, name), append(cells, cell)
	}
	return names, cells, records
}

// quoted prints text in quotes, other bytes as hexadecimal digits.
func quoted(text *string, b []byte) string {
	switch {
	case text != nil:
		return fmt.Sprintf("%q", *text)
	case b != nil:
		return fmt.Sprintf("0x%x", b)
	}
	return "null"
}

func headers(hs []dump.Header) string {
	words := make([]string, len(hs))
	for i, h := range hs {
		words[i] = fmt.Sprintf("%s=%s", h.Key, quoted(h.Value, h.ValueBase64))
	}
	return strings.Join(words, " ")
}

func dumpFailure(err error) *failure {
	var damage *dump.DamageError
	var unknown *dump.UnknownError
	switch {
	case errors.As(err, &damage):
		return fail(codeDamage, "a broker that finds this in its own files says in docs/errors.md what it does about it", "%w", err)
	case errors.As(err, &unknown):
		return fail(codeNotDumped, "`troupe dump --help` lists the files", "%w", err)
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	return fail(codeLocalFile, "", "%w", err)
}
