package volatile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

const (
	chunkBytes  = 256 << 10
	pageBytes   = 4 << 10
	sectorBytes = 512
)

var chunks = sync.Pool{New: func() any { b := make([]byte, chunkBytes); return &b }}

// copyOver makes the file at path what from is, and writes only the pages that differ. What is written into from meanwhile may come with it, or not.
func copyOver(path string, from io.ReaderAt) (err error) {
	to, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	size, err := sizeOf(from)
	if err != nil {
		return err
	}
	if err := to.Truncate(size); err != nil {
		return err
	}
	a, b := chunks.Get().(*[]byte), chunks.Get().(*[]byte)
	defer func() { chunks.Put(a); chunks.Put(b) }()
	for at := int64(0); at < size; at += chunkBytes {
		want, err := readAt(from, (*a)[:min(chunkBytes, size-at)], at)
		if err != nil {
			return err
		}
		have, err := readAt(to, (*b)[:len(want)], at)
		if err != nil {
			return err
		}
		if bytes.Equal(want, have) {
			continue
		}
		for p := 0; p < len(want); p += pageBytes {
			end := min(p+pageBytes, len(want))
			if bytes.Equal(want[p:end], have[p:end]) {
				continue
			}
			if _, err := to.WriteAt(want[p:end], at+int64(p)); err != nil {
				return err
			}
		}
	}
	return nil
}

func sizeOf(f io.ReaderAt) (int64, error) {
	switch f := f.(type) {
	case interface{ Size() (int64, error) }:
		return f.Size()
	case *os.File:
		info, err := f.Stat()
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	}
	return 0, fmt.Errorf("%T has no size", f)
}

// readAt fills p; what a file lost meanwhile reads as zeros.
func readAt(f io.ReaderAt, p []byte, at int64) ([]byte, error) {
	n, err := f.ReadAt(p, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	clear(p[n:])
	return p, nil
}
