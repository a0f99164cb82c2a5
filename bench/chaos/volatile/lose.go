package volatile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Lose is a loss of power: it makes the data directory what a machine finds after it. The process has ended. random draws how much of what was not
// synced is there.
func Lose(data, platterDir string, random *rand.Rand) error {
	p := platterIn(platterDir)
	text, err := os.ReadFile(p.boots())
	if err != nil {
		return err
	}
	boots, err := strconv.Atoi(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", p.boots(), err)
	}
	l := &loss{platter: p, random: random, cache: map[string]string{}}
	if err := filepath.WalkDir(data, l.remember); err != nil {
		return err
	}
	found := data + ".found"
	if err := os.RemoveAll(found); err != nil {
		return err
	}
	root, err := identify(unix.AT_FDCWD, data, 0)
	if err != nil {
		return err
	}
	if err := l.restoreDir(found, root); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(data), os.Rename(found, data)); err != nil {
		return err
	}
	return p.adopt(data, boots+1)
}

// loss is one such moment.
type loss struct {
	platter platter
	random  *rand.Rand
	cache   map[string]string // where a file or directory is in the page cache, by id
}

func (l *loss) remember(path string, _ fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	id, err := identify(unix.AT_FDCWD, path, 0)
	l.cache[id] = path
	return err
}

// restoreDir makes the directory with its old names or with its new ones.
func (l *loss) restoreDir(to, id string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	var names []name
	switch text, err := os.ReadFile(l.platter.names(id)); {
	case err == nil:
		if err := json.Unmarshal(text, &names); err != nil {
			return fmt.Errorf("names of %s: %w", id, err)
		}
	case !errors.Is(err, fs.ErrNotExist): // one that was never synced has none
		return err
	}
	if now, there := l.cache[id]; there && l.random.IntN(2) == 0 {
		d, err := os.Open(now)
		if err != nil {
			return err
		}
		names, err = list(d)
		if err := errors.Join(err, d.Close()); err != nil {
			return err
		}
	}
	for _, n := range names {
		path := filepath.Join(to, n.Name)
		restore := l.restoreFile
		if n.Dir {
			restore = l.restoreDir
		}
		if err := restore(path, n.ID); err != nil {
			return err
		}
	}
	return nil
}

// restoreFile makes the file with what was synced, and with any of the sectors that were not.
func (l *loss) restoreFile(to, id string) error {
	durable, err := read(l.platter.file(id))
	if err != nil {
		return err
	}
	now, there := l.cache[id]
	if !there {
		return os.WriteFile(to, durable, 0o644)
	}
	cached, err := read(now)
	if err != nil {
		return err
	}
	return os.WriteFile(to, l.mix(durable, cached), 0o644)
}

// mix puts together what is found. Of three files one has nothing new, one everything, one any sectors.
func (l *loss) mix(durable, cached []byte) []byte {
	luck := l.random.IntN(3)
	switch luck {
	case 0:
		return durable
	case 1:
		return cached
	}
	size := len(durable)
	if l.random.IntN(2) == 0 {
		size = len(cached)
	}
	mixed := make([]byte, size)
	copy(mixed, durable)
	for at := 0; at < min(size, len(cached)); at += sectorBytes {
		if l.random.IntN(2) == 0 {
			copy(mixed[at:min(at+sectorBytes, size)], cached[at:])
		}
	}
	return mixed
}

// read reads a file; one that is not there is empty.
func read(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}
