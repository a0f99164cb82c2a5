package floor

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Figure is one measured floor.
type Figure struct {
	// ID and Name say which floor it is, as in the package comment.
	ID, Name string
	// Bytes were handled in Elapsed by one thread.
	Bytes   int64
	Elapsed time.Duration
	// Calls is the number of operations in it.
	Calls int64
}

// Copy measures D1: copying total bytes, hot (one 64 KiB buffer to another) and across
// two buffers that no cache holds.
func Copy(total int64) []Figure {
	run := func(name string, size int) Figure {
		src, dst := make([]byte, size), make([]byte, size)
		for i := range src {
			src[i] = byte(i)
		}
		copy(dst, src)
		f := Figure{ID: "D1", Name: name}
		start := time.Now()
		for f.Bytes < total {
			f.Bytes += int64(copy(dst, src))
			f.Calls++
		}
		f.Elapsed = time.Since(start)
		return f
	}
	return []Figure{run("memcpy hot 64 KiB", 64<<10), run("memcpy 256 MiB", 256<<20)}
}

// Checksum measures D3 at each size.
func Checksum(total int64, sizes ...int) []Figure {
	var out []Figure
	for _, size := range sizes {
		b := make([]byte, size)
		sum := uint32(0)
		f := Figure{ID: "D3", Name: fmt.Sprintf("crc32c %d B", size)}
		start := time.Now()
		for f.Bytes < total {
			sum = crc32.Update(sum, castagnoli, b) // each depends on the one before: none can be skipped
			f.Bytes += int64(size)
			f.Calls++
		}
		f.Elapsed = time.Since(start)
		out = append(out, f)
	}
	return out
}

// Append measures D2 in dir: total bytes appended in pieces of size, to a populated
// mapping that is used again and again, to a freshly allocated mapping, to a
// preallocated file by pwrite, and to a growing one.
func Append(dir string, total int64, size int) ([]Figure, error) {
	piece := make([]byte, size)
	for i := range piece {
		piece[i] = byte(i * 7)
	}
	var out []Figure
	for _, way := range []struct {
		name      string
		mapped    bool
		populated bool
		allocated bool
	}{
		{"populated mapping", true, true, true},
		{"fresh mapping", true, false, true},
		{"pwrite, preallocated", false, false, true},
		{"pwrite, growing", false, false, false},
	} {
		f, err := appendOnce(dir, piece, total, way.mapped, way.populated, way.allocated)
		if err != nil {
			return nil, fmt.Errorf("D2 %s: %w", way.name, err)
		}
		f.ID, f.Name = "D2", fmt.Sprintf("append %d B, %s", size, way.name)
		out = append(out, f)
	}
	return out, nil
}

func appendOnce(dir string, piece []byte, total int64, mapped, populated, allocated bool) (fig Figure, err error) {
	path := filepath.Join(dir, "d2.log")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fig, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(path)) }()
	fileBytes := total
	if populated {
		fileBytes = min(total, 64<<20)
	}
	if allocated {
		if err := unix.Fallocate(int(f.Fd()), 0, 0, fileBytes); err != nil {
			return fig, err
		}
	}
	var m []byte
	if mapped {
		if m, err = unix.Mmap(int(f.Fd()), 0, int(fileBytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
			return fig, err
		}
		defer func() { err = errors.Join(err, unix.Munmap(m)) }()
		if populated {
			for i := 0; i < len(m); i += os.Getpagesize() {
				m[i] = 1
			}
		}
	}
	at := int64(0)
	start := time.Now()
	for fig.Bytes+int64(len(piece)) <= total {
		if at+int64(len(piece)) > fileBytes {
			at = 0
		}
		if mapped {
			copy(m[at:], piece)
		} else if _, err := f.WriteAt(piece, at); err != nil {
			return fig, err
		}
		at += int64(len(piece))
		fig.Bytes += int64(len(piece))
		fig.Calls++
	}
	fig.Elapsed = time.Since(start)
	return fig, nil
}
