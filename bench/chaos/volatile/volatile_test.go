package volatile

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/troupe-broker/troupe/store"
)

const seeds = 24

// machine is a data directory on such a disk.
type machine struct {
	t             *testing.T
	data, platter string
	store.FS
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, data: filepath.Join(t.TempDir(), "data"), platter: filepath.Join(t.TempDir(), "platter")}
	m.start()
	return m
}

func (m *machine) start() {
	m.t.Helper()
	var err error
	if m.FS, err = New(m.data, m.platter); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) lose(seed uint64) {
	m.t.Helper()
	m.must(Lose(m.data, m.platter, rand.New(rand.NewPCG(seed, 1))))
	m.start()
}

func (m *machine) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) at(name string) string { return filepath.Join(m.data, name) }

func (m *machine) write(name string, b []byte, sync bool) {
	m.t.Helper()
	f, err := m.OpenFile(m.at(name), os.O_WRONLY|os.O_CREATE, 0o644)
	m.must(err)
	_, err = f.WriteAt(b, 0)
	m.must(err)
	if sync {
		m.must(f.Sync())
	}
	m.must(f.Close())
}

func (m *machine) syncDir(name string) {
	m.t.Helper()
	d, err := m.OpenDir(m.at(name))
	m.must(err)
	m.must(d.Sync())
	m.must(d.Close())
}

// read gives what is there; nil: nothing is.
func (m *machine) read(name string) []byte {
	m.t.Helper()
	b, err := os.ReadFile(m.at(name))
	if os.IsNotExist(err) {
		return nil
	}
	m.must(err)
	return append([]byte{}, b...)
}

// outcomes runs a story with every seed and counts how it ended.
func outcomes(t *testing.T, story func(m *machine), end func(m *machine) string) map[string]int {
	t.Helper()
	count := map[string]int{}
	for seed := range uint64(seeds) {
		m := newMachine(t)
		story(m)
		m.lose(seed)
		count[end(m)]++
	}
	return count
}

// want is that each of the outcomes came about, and no other.
func want(t *testing.T, got map[string]int, all ...string) {
	t.Helper()
	if len(got) != len(all) {
		t.Errorf("the outcomes are %v, want each of %q", got, all)
	}
	for _, o := range all {
		if got[o] == 0 {
			t.Errorf("%q never came about: %v", o, got)
		}
	}
}

func TestWhatWasSyncedIsThere(t *testing.T) {
	want(t, outcomes(t, func(m *machine) {
		m.write("log", []byte("one"), true)
		m.syncDir("")
	}, func(m *machine) string { return string(m.read("log")) }), "one")
}

func TestAFileWithoutItsNameMayBeGone(t *testing.T) {
	want(t, outcomes(t, func(m *machine) { m.write("log", []byte("one"), true) }, func(m *machine) string {
		return fmt.Sprintf("%t %s", m.read("log") != nil, m.read("log"))
	}), "false ", "true one")
}

func TestANameWithoutItsBytesMayBeEmpty(t *testing.T) {
	want(t, outcomes(t, func(m *machine) {
		m.write("log", []byte("one"), false)
		m.syncDir("")
	}, func(m *machine) string { return string(bytes.Trim(m.read("log"), "\x00")) }), "", "one")
}

func TestAnySectorsOfAWriteMayBeThere(t *testing.T) {
	old, fresh := bytes.Repeat([]byte("o"), 2*sectorBytes), bytes.Repeat([]byte("f"), 2*sectorBytes)
	got := outcomes(t, func(m *machine) {
		m.write("log", old, true)
		m.syncDir("")
		m.write("log", fresh, false)
	}, func(m *machine) string {
		b := m.read("log")
		for i := range 2 {
			if half := b[i*sectorBytes : (i+1)*sectorBytes]; !bytes.Equal(half, old[:sectorBytes]) && !bytes.Equal(half, fresh[:sectorBytes]) {
				t.Errorf("a sector is torn: %q", half)
			}
		}
		return string([]byte{b[0], b[sectorBytes]})
	})
	want(t, got, "oo", "of", "fo", "ff")
}

func TestMappedBytesAreLostLikeWrittenOnes(t *testing.T) {
	story := func(sync bool) func(m *machine) {
		return func(m *machine) {
			f, err := m.OpenFile(m.at("log"), os.O_RDWR|os.O_CREATE, 0o644)
			m.must(err)
			m.must(f.Allocate(0, 1<<20))
			m.must(f.Sync())
			m.syncDir("")
			tail, err := f.Map(0, 1<<20)
			m.must(err)
			tail.Bytes()[700_000] = 'x'
			if sync {
				m.must(f.Sync())
			}
			m.must(tail.Close())
			m.must(f.Close())
		}
	}
	end := func(m *machine) string {
		b := m.read("log")
		if len(b) != 1<<20 {
			t.Errorf("the file has %d bytes", len(b))
		}
		return string(bytes.Trim(b, "\x00"))
	}
	want(t, outcomes(t, story(false), end), "", "x")
	want(t, outcomes(t, story(true), end), "x")
}

func TestARenameIsOldOrNew(t *testing.T) {
	want(t, outcomes(t, func(m *machine) {
		m.write("old", []byte("one"), true)
		m.syncDir("")
		m.must(m.Rename(m.at("old"), m.at("new")))
	}, func(m *machine) string { return string(m.read("old")) + "|" + string(m.read("new")) }), "one|", "|one")
}

func TestWhatWasRemovedMayComeBack(t *testing.T) {
	want(t, outcomes(t, func(m *machine) {
		m.must(m.MkdirAll(m.at("t-0"), 0o755))
		m.write("t-0/log", []byte("one"), true)
		m.syncDir("t-0")
		m.syncDir("")
		m.must(m.Remove(m.at("t-0/log")))
		m.must(m.Remove(m.at("t-0")))
	}, func(m *machine) string { return string(m.read("t-0/log")) }), "one", "")
}

func TestAnInodeThatIsUsedAgainIsAnotherFile(t *testing.T) {
	want(t, outcomes(t, func(m *machine) {
		m.write("a", []byte("old bytes"), true)
		m.syncDir("")
		m.must(m.Remove(m.at("a")))
		m.write("b", []byte("b"), true)
		m.syncDir("")
	}, func(m *machine) string { return string(m.read("a")) + string(m.read("b")) }), "b")
}

func TestADirectoryThatWasRenamedIsTheSame(t *testing.T) {
	want(t, outcomes(t, func(m *machine) {
		m.must(m.MkdirAll(m.at("t-0"), 0o755))
		m.write("t-0/log", []byte("one"), true)
		m.syncDir("t-0")
		m.syncDir("")
		m.must(m.Rename(m.at("t-0"), m.at("t-0.gone")))
		m.syncDir("")
	}, func(m *machine) string { return string(m.read("t-0/log")) + "|" + string(m.read("t-0.gone/log")) }), "|one")
}

func TestOnlyALossTakesAnything(t *testing.T) {
	m := newMachine(t)
	first, err := m.BootID()
	m.must(err)
	m.write("log", []byte("one"), false)
	m.start()
	if got := m.read("log"); string(got) != "one" {
		t.Errorf("after a restart the file has %q", got)
	}
	if again, err := m.BootID(); err != nil || again != first {
		t.Errorf("the boot was %s, and is %s (%v)", first, again, err)
	}
	m.lose(1)
	if after, err := m.BootID(); err != nil || after == first {
		t.Errorf("after a loss the boot is still %s (%v)", after, err)
	}
	// What was found is durable.
	found := m.read("log")
	for seed := range uint64(10) {
		m.lose(seed)
		if got := m.read("log"); !bytes.Equal(got, found) {
			t.Errorf("found %q, and then %q", found, got)
		}
	}
	if err := filepath.WalkDir(m.data, func(_ string, _ fs.DirEntry, err error) error { return err }); err != nil {
		t.Error(err)
	}
}

func TestSyncFSIsForAll(t *testing.T) {
	want(t, outcomes(t, func(m *machine) {
		m.must(m.MkdirAll(m.at("t-0"), 0o755))
		m.write("t-0/log", []byte("one"), false)
		d, err := m.OpenDir(m.data)
		m.must(err)
		m.must(d.SyncFS())
		m.must(d.Close())
		if u, err := m.Usage(m.data); err != nil || u.Own {
			m.t.Errorf("usage %+v, %v", u, err)
		}
	}, func(m *machine) string { return string(m.read("t-0/log")) }), "one")
}
