package floor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Sync measures D8 in dir: times appends of size bytes, each followed by fdatasync.
func Sync(dir string, size, times int) (fig Figure, err error) {
	path := filepath.Join(dir, "d8.log")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fig, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(path)) }()
	if err := unix.Fallocate(int(f.Fd()), 0, 0, int64(size*times)); err != nil {
		return fig, err
	}
	piece := make([]byte, size)
	fig = Figure{ID: "D8", Name: fmt.Sprintf("append %d B + fdatasync", size)}
	start := time.Now()
	for i := range times {
		if _, err := f.WriteAt(piece, int64(i*size)); err != nil {
			return fig, err
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return fig, err
		}
		fig.Calls++
		fig.Bytes += int64(size)
	}
	fig.Elapsed = time.Since(start)
	return fig, nil
}

// Disk measures D9 in dir: total bytes written and read in 1 MiB pieces past the page
// cache. A file system without O_DIRECT gives an error that says so.
func Disk(dir string, total int64) (figs []Figure, err error) {
	const piece = 1 << 20
	path := filepath.Join(dir, "d9.dat")
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_TRUNC|unix.O_DIRECT, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open %s with O_DIRECT: %w", path, err)
	}
	defer func() { err = errors.Join(err, unix.Close(fd), os.Remove(path)) }()
	buf := aligned(piece)
	write := Figure{ID: "D9", Name: "direct write 1 MiB"}
	start := time.Now()
	for write.Bytes < total {
		if _, err := unix.Pwrite(fd, buf, write.Bytes); err != nil {
			return nil, err
		}
		write.Bytes += piece
		write.Calls++
	}
	write.Elapsed = time.Since(start)
	read := Figure{ID: "D9", Name: "direct read 1 MiB"}
	start = time.Now()
	for read.Bytes < total {
		if _, err := unix.Pread(fd, buf, read.Bytes); err != nil {
			return nil, err
		}
		read.Bytes += piece
		read.Calls++
	}
	read.Elapsed = time.Since(start)
	return []Figure{write, read}, nil
}

// aligned returns size bytes whose address O_DIRECT accepts.
func aligned(size int) []byte {
	const page = 4096
	b := make([]byte, size+page)
	shift := page - int(uintptr(unsafe.Pointer(&b[0]))%page)
	return b[shift : shift+size]
}

// Walk measures D10 over a log file of record batches: walking the headers, and
// checking every CRC, both through a mapping in the page cache.
func Walk(logFile string) (figs []Figure, err error) {
	f, err := os.Open(logFile)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	m, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unix.Munmap(m)) }()
	for _, check := range []bool{false, true} {
		fig := Figure{ID: "D10", Name: "walk batch headers"}
		if check {
			fig.Name = "check batch CRCs"
		}
		start := time.Now()
		for b := m; len(b) >= batchHeader; {
			n := 12 + int(binary.BigEndian.Uint32(b[8:]))
			if n < batchHeader || n > len(b) {
				break
			}
			if check && crc32.Checksum(b[21:n], castagnoli) != binary.BigEndian.Uint32(b[17:]) {
				return nil, fmt.Errorf("%s: bad CRC at byte %d", logFile, len(m)-len(b))
			}
			fig.Bytes += int64(n)
			fig.Calls++
			b = b[n:]
		}
		fig.Elapsed = max(time.Since(start), 1)
		figs = append(figs, fig)
	}
	return figs, nil
}
