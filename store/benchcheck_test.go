package store_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/troupe-broker/troupe/store"
)

// BenchmarkCheckWarm is what it costs to sum up a piece of a log that is in the page cache, beside sending the same bytes to a socket with sendfile: what a first
// read would cost more, if it did not trust the page cache. ADR 0026 has the figures.
func BenchmarkCheckWarm(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
		_, l, jobs := benchLog(b, store.AppendWritten, 0)
		v := batch(b, 0, 0, 1000, 1, min(size, 64<<10)-100)
		for l.Size() < 32<<20 {
			v.SetBaseOffset(l.End())
			if err := l.Append(v, 0); err != nil {
				b.Fatal(err)
			}
		}
		if err := l.Roll(0); err != nil {
			b.Fatal(err)
		}
		r, err := l.Read(0, l.End(), size, true)
		if err != nil {
			b.Fatal(err)
		}
		buf := make([]byte, 256<<10)
		b.Run(fmt.Sprintf("by=check/size=%d", size), func(b *testing.B) {
			b.SetBytes(int64(r.Len()))
			before := cpuTime(b)
			for range b.N {
				if n, _, err := r.Check(buf); err != nil || n != int64(r.Len()) {
					b.Fatal(n, err)
				}
			}
			reportCPU(b, before, r.Len())
		})
		b.Run(fmt.Sprintf("by=sendfile/size=%d", size), func(b *testing.B) { benchSend(b, &r) })
		r.Release()
		jobs.Wait()
		if err := l.Close(false); err != nil {
			b.Fatal(err)
		}
	}
}

// benchSend sends a region to a connection of the loopback that throws it away.
func benchSend(b *testing.B, r *store.Region) {
	b.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if c, err := ln.Accept(); err == nil {
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		b.Fatal(err)
	}
	f, off := r.File()
	fd, ok := f.Fd()
	if !ok {
		b.Fatal("the file has no descriptor")
	}
	b.SetBytes(int64(r.Len()))
	before := cpuTime(b)
	for range b.N {
		at, end := off, off+int64(r.Len())
		for at < end {
			err := raw.Write(func(to uintptr) bool {
				_, err := unix.Sendfile(int(to), int(fd), &at, int(end-at))
				return !errors.Is(err, unix.EAGAIN)
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	reportCPU(b, before, r.Len())
	if err := c.Close(); err != nil {
		b.Fatal(err)
	}
	<-done
	_ = ln.Close()
}
