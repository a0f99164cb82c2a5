package load_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/bench/floor"
	"github.com/troupe-broker/troupe/bench/load"
)

func startFloor(t *testing.T, role floor.Role, logFile string) string {
	t.Helper()
	s, err := floor.Start(role, "127.0.0.1:0", t.TempDir(), logFile)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.Addr()
}

func TestReplayIsAnsweredByTheFloors(t *testing.T) {
	for _, role := range []floor.Role{floor.Null, floor.D4} {
		t.Run(string(role), func(t *testing.T) {
			r := load.Replay{
				Addr: startFloor(t, role, ""), Topic: "t", Acks: 1, InFlight: 8, BytesTotal: 4 << 20,
				Payload: load.Payload{RecordBytes: 1000, RequestBytes: 64 << 10},
			}
			got, err := r.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if want := got.Requests * 64; got.Records != want || got.Bytes > 4<<20 || got.Bytes < 3<<20 {
				t.Errorf("got %+v, want %d records and close to 4 MiB", got, want)
			}
		})
	}
}

func TestDrainReadsAWholeLogAndStartsOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	p := load.Payload{RecordBytes: 1000, RequestBytes: 16 << 10}
	end, err := p.WriteLog(path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	d := load.Drain{Addr: startFloor(t, floor.D5, path), Topic: "t", BytesMax: 64 << 10, BytesTotal: 3 << 20, End: end}
	got, err := d.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.Bytes < 3<<20 || got.Requests < 48 {
		t.Errorf("got %+v, want 3 MiB in requests of at most 64 KiB", got)
	}
}

func TestDrainNoticesADamagedBatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	p := load.Payload{RecordBytes: 1000, RequestBytes: 16 << 10}
	end, err := p.WriteLog(path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 4
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	d := load.Drain{Addr: startFloor(t, floor.D5, path), Topic: "t", BytesMax: 64 << 10, BytesTotal: 3 << 20, End: end}
	if _, err := d.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "CRC") {
		t.Errorf("one flipped bit: got error %v, want one that names the CRC", err)
	}
}
