package store

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// fileBytesMax bounds the small files that are read whole: checkpoints, identity,
// snapshots. A million partitions take about 100 MB of checkpoint.
const fileBytesMax = 256 << 20

// readFile reads a small file whole.
func readFile(fs FS, name string) ([]byte, error) {
	f, err := fs.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	b, err := readAll(f)
	return b, errors.Join(err, f.Close())
}

func readAll(f File) ([]byte, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > fileBytesMax {
		return nil, fmt.Errorf("%s has %d bytes, %d are expected at most: %w", f.Name(), size, fileBytesMax, ErrFormat)
	}
	b := make([]byte, size)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b[:n], nil
}

// replaceFile makes content the durable content of a file, all or nothing: a
// temporary file is written and synced, renamed over the old one, and the
// directory is synced.
func replaceFile(fs FS, name string, content []byte) error {
	if err := putFile(fs, name, content, true); err != nil {
		return err
	}
	return syncDir(fs, filepath.Dir(name))
}

// putFile replaces a file as a whole, by rename. With synced its bytes are durable
// before it has its name; the name is not.
func putFile(fs FS, name string, content []byte, synced bool) error {
	temporary := name + suffixTemporary
	if err := writeFile(fs, temporary, content, synced); err != nil {
		// Give the space back; the old file is untouched.
		if rm := fs.Remove(temporary); rm != nil && !isNotExist(rm) {
			err = errors.Join(err, rm)
		}
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := fs.Rename(temporary, name); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// writeFile writes a file and, if it is to be durable, syncs it; its name is not
// synced.
func writeFile(fs FS, name string, content []byte, synced bool) error {
	f, err := fs.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	if err == nil && synced {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncDir makes the names in a directory durable.
func syncDir(fs FS, name string) error {
	d, err := fs.OpenDir(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// syncAbove makes the name of a directory durable, and the names of those above it: any of them may have been made a moment ago, by MkdirAll in a process that
// died before it synced them. One above the parent that cannot be synced, since it may not be opened or is no disk, is older than we are.
func syncAbove(fs FS, name string) error {
	up := filepath.Dir(name)
	err := syncDir(fs, up)
	if errors.Is(err, os.ErrPermission) {
		err = nil
	}
	synced := err == nil
	for above := filepath.Dir(up); synced && above != up; up, above = above, filepath.Dir(above) {
		synced = syncDir(fs, above) == nil
	}
	return err
}

// checkpointLines splits Kafka's checkpoint text, "0", a count and as many lines,
// and returns the lines after the count. (CheckpointFile.java)
func checkpointLines(text []byte) ([]string, error) {
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) < 2 {
		return nil, fmt.Errorf("a checkpoint has a version and a count: %w", ErrFormat)
	}
	version, err := strconv.Atoi(lines[0])
	switch {
	case err != nil || version < 0:
		return nil, fmt.Errorf("version %.20q: %w", lines[0], ErrFormat)
	case version > 0:
		return nil, fmt.Errorf("version %d, this broker reads 0: %w", version, ErrNewerFormat)
	}
	count, err := strconv.Atoi(lines[1])
	if err != nil || count != len(lines)-2 {
		return nil, fmt.Errorf("count %.20q with %d lines: %w", lines[1], len(lines)-2, ErrFormat)
	}
	return lines[2:], nil
}

// sealPrefix begins the last line of a sealed text.
const sealPrefix = "crc32c "

// seal appends a line with the checksum of text, which must end with a newline.
func seal(text []byte) []byte {
	return fmt.Appendf(text, "%s%08x\n", sealPrefix, crc32.Checksum(text, castagnoli))
}

// unseal checks and removes the last line.
func unseal(sealed []byte) ([]byte, error) {
	i := bytes.LastIndex(sealed, []byte(sealPrefix))
	if i < 0 || (i > 0 && sealed[i-1] != '\n') {
		return nil, fmt.Errorf("no checksum line: %w", ErrFormat)
	}
	text := sealed[:i]
	if !bytes.Equal(sealed[i:], seal(bytes.Clone(text))[i:]) {
		return nil, fmt.Errorf("the checksum does not match: %w", ErrFormat)
	}
	return text, nil
}
