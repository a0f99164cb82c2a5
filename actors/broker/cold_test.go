package broker_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// forget has the kernel drop a file from the page cache, and says whether it did. A page that is dirty or still mapped is
// kept, so the file is synced, and the broker gets time to let go of a segment that it has just closed.
func forget(t *testing.T, name string) bool {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for range 500 {
		if err := errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)); err != nil {
			return false
		}
		if _, err = unix.Preadv2(int(f.Fd()), [][]byte{make([]byte, 1)}, 1<<18, unix.RWF_NOWAIT); errors.Is(err, unix.EAGAIN) {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

func TestColdRecordsAreReadByThePoolAndArriveUnharmed(t *testing.T) {
	r := start(t)
	r.createTopic("cold", 1, "segment.bytes", "1048576")
	c := r.raw()
	c.fill("cold", 0, 80, 100_000) // a log keeps a few closed segments open, and mapped; the first is not among them
	jobs := func() uint64 {
		n := uint64(0)
		for _, a := range r.sys.Actors() {
			if filepath.Base(a.Name)[:3] == "io-" {
				n += a.Messages
			}
		}
		return n
	}
	// Looking for the batch may make the kernel read ahead so fast that nothing is cold when it is sent: then once more.
	for range 10 {
		if !forget(t, filepath.Join(r.dir, "cold-0", "00000000000000000000.log")) {
			t.Skip("this file system keeps what it was told to forget")
		}
		before := jobs()
		readTen(t, c, "cold")
		if jobs() > before {
			return
		}
	}
	t.Error("cold records were read on somebody's turn")
}

// readTen reads the records that fill wrote at offsets 0 to 9, and compares them.
func readTen(t *testing.T, c *raw, topic string) {
	t.Helper()
	var offset int64
	for offset < 10 {
		p := c.fetched(fetch(11, topic, 0, offset))
		if p.ErrorCode != 0 || len(p.RecordBatches) < 100_000 {
			t.Fatalf("at %d: error %d, %d bytes", offset, p.ErrorCode, len(p.RecordBatches))
		}
		for rest := p.RecordBatches; len(rest) > 0; offset++ {
			n := 12 + int(uint32(rest[8])<<24|uint32(rest[9])<<16|uint32(rest[10])<<8|uint32(rest[11]))
			want := bytes.Repeat([]byte{byte('a' + offset%26)}, 100_000)
			if !bytes.Contains(rest[:n], want) {
				t.Fatalf("record %d differs", offset)
			}
			rest = rest[n:]
		}
	}
}
