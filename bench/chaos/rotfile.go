package main

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/troupe-broker/troupe/wire/record"
)

// spot is a batch of which a bit was turned on one disk.
type spot struct {
	place
	offset int64  // its base offset
	sum    uint32 // IEEE, of all its bytes as they were
	at     string // for people: where the bit was
	known  bool   // its broker has refused it or had it sound since: it has found out
}

// homeOf matches the directory of a partition's log that is in use.
var homeOf = regexp.MustCompile(`^(.+)-([0-9]+)$`)

// partitionHomes are the places whose logs a data directory has.
func partitionHomes(data string) ([]place, error) {
	entries, err := os.ReadDir(data)
	if err != nil {
		return nil, err
	}
	var all []place
	for _, e := range entries {
		m := homeOf.FindStringSubmatch(e.Name())
		if m == nil || !e.IsDir() {
			continue
		}
		n, err := strconv.ParseInt(m[2], 10, 32)
		if err != nil {
			continue
		}
		all = append(all, place{m[1], int32(n)})
	}
	return all, nil
}

// turnBits turns a bit in every file of every log in a data directory, and in its checkpoints. Of batches only those are hit that lie below what is whole everywhere. When
// the broker runs (live), the small files that it reads at its start alone are left in peace: it would write them anew, and nobody would ever read what was turned. The counts are
// by kind of file.
func turnBits(data string, below map[place]int64, random *rand.Rand, live bool) (spots []*spot, counts map[string]int, err error) {
	counts = map[string]int{}
	homes, err := partitionHomes(data)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range homes {
		files, err := filepath.Glob(filepath.Join(data, p.String(), "*"))
		if err != nil {
			return nil, nil, err
		}
		for _, f := range files {
			kind := kindOf(filepath.Base(f))
			if kind == "" || live && !slices.Contains([]string{"log", "index", "timeindex"}, kind) {
				continue
			}
			var s *spot
			if kind == "log" {
				s, err = turnBatch(f, p, below[p], random)
			} else {
				err = count(counts, kind, turnAny(f, random))
			}
			if s != nil {
				spots = append(spots, s)
				counts[kind]++
			}
			if err != nil && !errors.Is(err, os.ErrNotExist) { // retention and compaction go on
				return spots, counts, err
			}
		}
	}
	if live {
		return spots, counts, nil
	}
	for _, either := range checkpoints {
		name := either[random.IntN(len(either))]
		if err := count(counts, "checkpoint", turnAny(filepath.Join(data, name), random)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return spots, counts, err
		}
	}
	return spots, counts, nil
}

func count(counts map[string]int, kind string, err error) error {
	if err == nil {
		counts[kind]++
	}
	return err
}

// checkpoints are the files of a data directory that speak of its logs. Of what is kept twice one copy is hit: a broker that has lost both does not start, and says what to do.
var checkpoints = [][]string{
	{"recovery-point-offset-checkpoint"},
	{"recovery-point-offset-checkpoint.sealed"},
	{"log-start-offset-checkpoint", "log-start-offset-checkpoint.sealed"},
	{"cleaner-offset-checkpoint"},
	{"control-block"},
}

// kindOf names what a file of a log is; "": no file that is in use.
func kindOf(name string) string {
	switch ext := strings.TrimPrefix(filepath.Ext(name), "."); ext {
	case "log", "index", "timeindex", "snapshot":
		return ext
	case "metadata":
		return "identity"
	case "":
		return "checkpoint" // of leader epochs, and what was found damaged
	}
	return ""
}

// turnAny turns a bit anywhere in a file. An empty one does not exist.
func turnAny(path string, random *rand.Rand) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return os.ErrNotExist
	}
	return turn(path, random.Int64N(info.Size()), random)
}

// turn turns a bit of a byte, and has the page cache forget the file as far as nobody has mapped it: what rots on a disk is not in memory.
func turn(path string, at int64, random *rand.Rand) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // a byte is written at once, or not
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		return err
	}
	b[0] ^= 1 << random.IntN(8)
	if _, err := f.WriteAt(b[:], at); err != nil {
		return err
	}
	return errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
}

// turnBatch turns a bit of a batch of one segment that lies below an offset; nil: there is none.
func turnBatch(path string, p place, below int64, random *rand.Rand) (*spot, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var ends []int // of batches
	for rest := b; ; {
		v, behind, err := record.Split(rest)
		if err != nil || int64(v.NextOffset()) > below || v.VerifyCRC() != nil {
			break
		}
		rest = behind
		ends = append(ends, len(b)-len(rest))
	}
	if len(ends) == 0 {
		return nil, nil
	}
	at := random.IntN(ends[len(ends)-1])
	n, _ := slices.BinarySearch(ends, at+1)
	from := 0
	if n > 0 {
		from = ends[n-1]
	}
	batch := record.View(b[from:ends[n]])
	s := &spot{place: p, offset: int64(batch.BaseOffset()), sum: crc32.ChecksumIEEE(batch), at: fmt.Sprintf("byte %d of %d of the batch at %d in %s", at-from, len(batch), batch.BaseOffset(), filepath.Base(path))}
	return s, turn(path, int64(at), random)
}

// whole tells whether a disk has the batch of a spot again as it was. Compaction may have written it anew, or dropped it: there the segment has to be sound.
func (s *spot) whole(data string) (bool, error) {
	files, err := filepath.Glob(filepath.Join(data, s.String(), "*.log"))
	if err != nil {
		return false, err
	}
	slices.Sort(files)
	in := ""
	for _, f := range files {
		if base, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(f), ".log"), 10, 64); err == nil && base <= s.offset {
			in = f
		}
	}
	if in == "" {
		return false, nil
	}
	b, err := os.ReadFile(in)
	if errors.Is(err, os.ErrNotExist) { // it is being put in its place
		return false, nil
	}
	compacted := strings.HasPrefix(s.topic, "__")
	for err == nil {
		var v record.View
		if v, b, err = record.Split(b); err != nil || v.VerifyCRC() != nil {
			break
		}
		switch base := int64(v.BaseOffset()); {
		case base == s.offset:
			return compacted || crc32.ChecksumIEEE(v) == s.sum, nil
		case base > s.offset:
			return compacted, nil
		}
	}
	return compacted && err != nil && isEnd(b), nil
}

// isEnd tells whether nothing follows but space that is reserved.
func isEnd(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c != 0 })
}
