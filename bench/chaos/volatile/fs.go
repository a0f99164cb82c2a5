package volatile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/troupe-broker/troupe/store"
)

// platter is where durable bytes and names are kept. It takes one thing at a time: of two syncs of a file, the later one must not be undone by what the
// earlier one has read.
type platter struct {
	dir string
	mu  *sync.Mutex
}

func platterIn(dir string) platter { return platter{dir, &sync.Mutex{}} }

func (p platter) file(id string) string  { return filepath.Join(p.dir, "files", id) }
func (p platter) names(id string) string { return filepath.Join(p.dir, "names", id) }
func (p platter) boots() string          { return filepath.Join(p.dir, "boots") }

// name is one entry of a directory.
type name struct {
	Name string `json:"n"`
	ID   string `json:"i"`
	Dir  bool   `json:"d,omitempty"`
}

// identify tells files apart for as long as the file system lives: an inode is used again, the time of a birth is not.
func identify(at int, path string, flags int) (string, error) {
	var st unix.Statx_t
	if err := unix.Statx(at, path, flags|unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &st); err != nil {
		return "", &fs.PathError{Op: "statx", Path: path, Err: err}
	}
	if st.Mask&unix.STATX_BTIME == 0 {
		return "", fmt.Errorf("%s: %w", path, errNoBirth)
	}
	return fmt.Sprintf("%d-%d.%09d", st.Ino, st.Btime.Sec, st.Btime.Nsec), nil
}

var errNoBirth = errors.New("the file system does not tell when a file was born")

// volatileFS is the file system of a process; what it does not say it leaves to the machine's.
type volatileFS struct {
	store.FS
	platter platter
}

// New gives the file system of a broker whose data directory is data, with a platter in a directory of its own. What is in data at the first time is
// durable.
func New(data, platterDir string) (store.FS, error) {
	v := &volatileFS{store.OS(), platterIn(platterDir)}
	if _, err := os.Stat(v.platter.boots()); err == nil {
		return v, nil
	}
	if err := os.MkdirAll(data, 0o755); err != nil {
		return nil, err
	}
	return v, v.platter.adopt(data, 0)
}

// adopt makes all that is in the data directory durable, and nothing else.
func (p platter) adopt(data string, boots int) error {
	if err := os.RemoveAll(p.dir); err != nil {
		return err
	}
	for _, dir := range []string{p.file(""), p.names("")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := p.syncAll(data); err != nil {
		return err
	}
	return os.WriteFile(p.boots(), []byte(strconv.Itoa(boots)), 0o644)
}

// syncAll makes a directory durable and all below it.
func (p platter) syncAll(path string) error {
	return filepath.WalkDir(path, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // it was removed meanwhile
		case err != nil:
			return err
		case e.IsDir():
			d, err := os.Open(path)
			if err != nil {
				return err
			}
			return errors.Join(p.syncNames(d), d.Close())
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		id, err := identify(int(f.Fd()), "", unix.AT_EMPTY_PATH)
		if err == nil {
			err = p.sync(id, f)
		}
		return errors.Join(err, f.Close())
	})
}

// sync brings to the platter what a file has now.
func (p platter) sync(id string, from io.ReaderAt) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return copyOver(p.file(id), from)
}

// list reads the names in a directory.
func list(d *os.File) ([]name, error) {
	if _, err := d.Seek(0, 0); err != nil {
		return nil, err
	}
	entries, err := d.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	names := make([]name, 0, len(entries))
	for _, e := range entries {
		id, err := identify(int(d.Fd()), e.Name(), 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		names = append(names, name{e.Name(), id, e.IsDir()})
	}
	return names, nil
}

// syncNames writes down what names a directory has. A process that is killed meanwhile leaves the old ones or the new ones.
func (p platter) syncNames(d *os.File) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	names, err := list(d)
	if err != nil {
		return err
	}
	id, err := identify(int(d.Fd()), "", unix.AT_EMPTY_PATH)
	if err != nil {
		return err
	}
	text, err := json.Marshal(names)
	if err != nil {
		return err
	}
	fresh, err := os.CreateTemp(p.dir, "names-")
	if err != nil {
		return err
	}
	_, err = fresh.Write(text)
	if err := errors.Join(err, fresh.Close()); err != nil {
		return err
	}
	return os.Rename(fresh.Name(), p.names(id))
}

func (v *volatileFS) OpenFile(name string, flag int, perm fs.FileMode) (store.File, error) {
	if flag&os.O_WRONLY != 0 { // a sync reads what was written
		flag = flag&^os.O_WRONLY | os.O_RDWR
	}
	f, err := v.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	fd, ok := f.Fd()
	if !ok {
		return nil, errors.Join(fmt.Errorf("%s has no descriptor", name), f.Close())
	}
	id, err := identify(int(fd), "", unix.AT_EMPTY_PATH)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &file{File: f, platter: v.platter, id: id}, nil
}

func (v *volatileFS) OpenDir(path string) (store.Dir, error) {
	d, err := v.FS.OpenDir(path)
	if err != nil {
		return nil, err
	}
	own, err := os.Open(path)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return &dir{Dir: d, own: own, platter: v.platter, path: path}, nil
}

func (v *volatileFS) Usage(path string) (store.Usage, error) {
	u, err := v.FS.Usage(path)
	u.Own = false
	return u, err
}

// BootID is another one after each loss.
func (v *volatileFS) BootID() (string, error) {
	id, err := v.FS.BootID()
	if err != nil {
		return "", err
	}
	boots, err := os.ReadFile(v.platter.boots())
	if err != nil {
		return "", err
	}
	return id[:strings.LastIndexByte(id, '-')+1] + string(boots), nil
}

// file is a file whose bytes become durable by a sync.
type file struct {
	store.File
	platter platter
	id      string
}

// Sync brings to the platter what the file has now.
func (f *file) Sync() error { return f.platter.sync(f.id, f.File) }

func (f *file) Map(off, n int64) (store.Mapping, error) {
	m, err := f.File.Map(off, n)
	if err != nil {
		return nil, err
	}
	return &mapping{m, f}, nil
}

type mapping struct {
	store.Mapping
	file *file
}

// Sync brings the whole file to the platter, which is more than was asked for, and may happen on any disk.
func (m *mapping) Sync() error { return m.file.Sync() }

// dir is a directory whose names become durable by a sync.
type dir struct {
	store.Dir
	own     *os.File
	platter platter
	path    string
}

func (d *dir) Sync() error { return d.platter.syncNames(d.own) }

func (d *dir) SyncFS() error { return d.platter.syncAll(d.path) }

func (d *dir) Close() error { return errors.Join(d.Dir.Close(), d.own.Close()) }
