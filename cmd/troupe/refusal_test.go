package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Data directories that a broker must not touch: it says what is wrong, where, and what to do, and leaves every file as it was.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sealed adds the checksum line of the broker's own text files.
func sealed(text string) []byte {
	return fmt.Appendf([]byte(text), "crc32c %08x\n", crc32.Checksum([]byte(text), castagnoli))
}

// newerHead writes another version into a binary file whose head of size bytes ends with a checksum.
func newerHead(size int) func(name string) error {
	return func(name string) error {
		const versionAt = 8
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		sum := size - 4
		if crc32.Checksum(b[:sum], castagnoli) != binary.LittleEndian.Uint32(b[sum:]) {
			return fmt.Errorf("%s has another head than this test knows", name)
		}
		binary.LittleEndian.PutUint32(b[versionAt:], 9)
		binary.LittleEndian.PutUint32(b[sum:], crc32.Checksum(b[:sum], castagnoli))
		return os.WriteFile(name, b, 0o600)
	}
}

func write(content string) func(name string) error {
	return func(name string) error { return os.WriteFile(name, []byte(content), 0o600) }
}

func writeOver(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// contents are the checksums of all files below dir, by name, but for those that say which process and boot was here last.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var list strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == ".lock" || e.Name() == "control-block" {
			return err
		}
		b, err := os.ReadFile(path)
		_, _ = fmt.Fprintf(&list, "%s %x\n", path, sha256.Sum256(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list.String()
}

func TestADirectoryThatIsNotForThisBrokerIsLeftAlone(t *testing.T) {
	model := filepath.Join(t.TempDir(), "data")
	p := start(t, model)
	p.cli(t, "", "topic", "create", "orders")
	p.cli(t, "a:1\n", "produce", "orders")
	p.stop(t)
	for _, c := range []struct {
		name string
		file string
		harm func(file string) error
		args []string
		want []string
	}{
		{"newer identity", "meta.properties", write("version=2\nnode.id=1\n"), nil, []string{"TRP-2004", "meta.properties", "version=2", "start the version that wrote it"}},
		{"newer control block", "control-block", newerHead(80), nil, []string{"TRP-2004", "control-block", "version 9", "start the version that wrote it"}},
		{"newer metadata log", "raft/0.raftlog", newerHead(28), nil, []string{"TRP-2004", "0.raftlog", "version 9", "start the version that wrote it"}},
		{"newer marks", "recovery-point-offset-checkpoint.sealed", write(string(sealed("1\n0\n"))), nil, []string{"TRP-2004", "recovery-point-offset-checkpoint.sealed", "version 1", "start the version that wrote it"}},
		{"newer starts", "log-start-offset-checkpoint.sealed", write(string(sealed("1\n0\n"))), nil, []string{"TRP-2004", "log-start-offset-checkpoint.sealed", "version 1", "start the version that wrote it"}},
		{"damaged identity", "meta.properties", write("noise"), nil, []string{"TRP-2002", "meta.properties", "backup"}},
		{"lost identity", "meta.properties", os.Remove, nil, []string{"TRP-2002", "meta.properties", "backup"}},
		{"another broker's identity", "meta.properties", func(string) error { return nil }, []string{"-X", "node.id=7"}, []string{"TRP-2003", "broker 1", "broker 7", "node.id"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			if err := os.CopyFS(dir, os.DirFS(model)); err != nil {
				t.Fatal(err)
			}
			if err := c.harm(filepath.Join(dir, c.file)); err != nil {
				t.Fatal(err)
			}
			before := contents(t, dir)
			p, out := launch(t, append([]string{"--listen", "127.0.0.1:0", "--data-dir", dir, "-X", "metrics.listen="}, c.args...)...)
			if line, err := out.ReadString('\n'); err == nil {
				t.Fatalf("it said %q", line)
			}
			if code := p.wait(t); code != exitFailed {
				t.Errorf("exit %d, want %d", code, exitFailed)
			}
			for _, want := range append(c.want, dir) {
				if log := p.log(t); !strings.Contains(log, want) {
					t.Errorf("it does not say %q:\n%s", want, log)
				}
			}
			if after := contents(t, dir); after != before {
				t.Errorf("files were changed; before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

// One partition of a newer format is offline, alone.
func TestAPartitionOfANewerFormatHarmsNoOther(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := start(t, dir)
	p.cli(t, "", "topic", "create", "orders", "--partitions", "2")
	p.stop(t)
	file := filepath.Join(dir, "orders-0", "partition.metadata")
	writeOver(t, file, []byte("version: 7\ntopic_id: abc\n"))
	p = start(t, dir)
	p.cli(t, "a\n", "produce", "orders", "--partition", "1")
	for _, want := range []string{"TRP-2102", "TRP-2004", "partition.metadata in " + filepath.Join(dir, "orders-0"), "start the version that wrote it"} {
		if log := p.log(t); !strings.Contains(log, want) {
			t.Errorf("it does not say %q:\n%s", want, log)
		}
	}
	p.stop(t)
	if b, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(b), "version: 7") {
		t.Errorf("the file of a newer version holds %q, %v", b, err)
	}
}
