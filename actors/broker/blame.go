package broker

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
)

// A bug in a replica, or in a coordinator of groups, ends the process, since its state cannot be trusted. If the bug is in the data, the next run meets it
// again. So each exit blamed on one leaves a line in the data directory, and after three within ten minutes it starts offline while the others serve.

const (
	blameFile   = "blame"
	blameMax    = 3
	blameWithin = ident.Millis(10 * 60 * 1000)
	// blameLines bounds the file.
	blameLines = 64
)

// RecordBlame notes in the data directory that the process ends because of a bug in a replica. Bugs of other actors are not noted. Call it from the
// OnBug of the system, before the process exits.
func RecordBlame(world store.FS, dataDir string, b *runtime.Blame, now ident.Millis) error {
	if b.Kind != kindPartition && b.Kind != kindCoordinator || b.Decision != runtime.Exit {
		return nil
	}
	lines, err := readBlame(world, dataDir)
	if err != nil {
		return err
	}
	name := b.Actor[strings.LastIndexByte(b.Actor, '/')+1:]
	lines = append(lines, blameLine{at: now, replica: name})
	if len(lines) > blameLines {
		lines = lines[len(lines)-blameLines:]
	}
	var text bytes.Buffer
	for _, l := range lines {
		fmt.Fprintf(&text, "%d %s\n", l.at, l.replica)
	}
	return replaceFile(world, filepath.Join(dataDir, blameFile), text.Bytes())
}

// blameLine is one exit.
type blameLine struct {
	at      ident.Millis
	replica string // name of the actor
}

// readBlame reads the file. It is advice: what cannot be understood is skipped.
func readBlame(world store.FS, dataDir string) ([]blameLine, error) {
	f, err := world.OpenFile(filepath.Join(dataDir, blameFile), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	text := make([]byte, min(size, 64<<10))
	n, err := f.ReadAt(text, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, f.Close())
	}
	var lines []blameLine
	for line := range strings.Lines(string(text[:n])) {
		at, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		ms, err := strconv.ParseInt(at, 10, 64)
		if ok && err == nil {
			lines = append(lines, blameLine{ident.Millis(ms), name})
		}
	}
	return lines, f.Close()
}

// replaceFile writes a file and gives it its name when its bytes are on disk.
func replaceFile(world store.FS, name string, content []byte) error {
	f, err := world.OpenFile(name+".tmp", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return world.Rename(name+".tmp", name)
}

// blamed returns the replicas that are to stay offline.
func (b *Broker) blamed() (map[ident.TopicPartition]bool, error) {
	dir := b.shared.directories[0].store.Path()
	lines, err := readBlame(b.world.FS, dir)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", filepath.Join(dir, blameFile), err)
	}
	_, now := b.world.System.Now()
	exits := make(map[ident.TopicPartition]int)
	blamed := make(map[ident.TopicPartition]bool)
	for _, l := range lines {
		tp, ok := replicaOf(l.replica)
		if !ok || now-l.at > blameWithin {
			continue
		}
		if exits[tp]++; exits[tp] >= blameMax {
			blamed[tp] = true
		}
	}
	return blamed, nil
}

// replicaOf reads the name of a replica's actor: topic-partition, perhaps with the topic's id behind a colon.
func replicaOf(name string) (ident.TopicPartition, bool) {
	name, _, _ = strings.Cut(name, ":")
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return ident.TopicPartition{}, false
	}
	n, err := strconv.ParseInt(name[i+1:], 10, 32)
	if err != nil {
		return ident.TopicPartition{}, false
	}
	return ident.TopicPartition{Topic: name[:i], Partition: int32(n)}, true
}
