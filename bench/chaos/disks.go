package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// smallDisk is the size of the disk that can be filled: a minute's records, and what a broker reserves.
const smallDisk = 768 << 20

// shrink gives each broker a disk of its own that is soon full.
func (c *Cluster) shrink() error {
	for _, b := range c.Brokers {
		if err := os.MkdirAll(b.Data, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("chaos", b.Data, "tmpfs", 0, fmt.Sprintf("size=%d", smallDisk)); err != nil {
			return fmt.Errorf("mount a small disk at %s: %w", b.Data, err)
		}
		b.small = true
	}
	return nil
}

// release gives the small disks back. keep leaves a copy of what they had.
func (c *Cluster) release(keep bool) error {
	var errs []error
	for _, b := range c.Brokers {
		if !b.small {
			continue
		}
		b.small = false
		if keep {
			errs = append(errs, os.CopyFS(b.Data+".kept", os.DirFS(b.Data)))
		}
		errs = append(errs, unix.Unmount(b.Data, 0))
	}
	return errors.Join(errs...)
}

// diskFull fills the disk of a broker with somebody else's file, to the last byte or almost.
func diskFull(ctx context.Context, n *nemesis, h *hit) (string, error) {
	victim, what := n.role(h)
	b := n.cluster.Brokers[victim]
	left := []int64{0, 0, 64 << 10, 1 << 20}[h.other/8%4]
	filler := filepath.Join(b.Data, "somebody-else")
	err := fill(filler, left)
	return fmt.Sprintf("%s: %d bytes are left for %s", what, left, ms(h.hold)), errors.Join(err, n.pass(ctx, h.hold), os.Remove(filler))
}

// fill takes what a file system has, but for left bytes.
func fill(path string, left int64) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var st unix.Statfs_t
	const tries, step = 20, 16 << 20 // the broker takes and gives back meanwhile; a long call would be interrupted, and begin anew
	size := int64(0)
	for failed := 0; failed < tries; {
		if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
			return err
		}
		free := int64(st.Bavail)*st.Bsize - left
		if free < st.Bsize {
			return nil
		}
		next := min(free, step)
		if err := unix.Fallocate(int(f.Fd()), 0, size, next); err == nil {
			size += next
			continue
		} else if !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EINTR) {
			return err
		}
		failed++
	}
	return nil
}

// emptyDisk replaces the disk of a broker by an empty one, once in a run: it was a voter, and a second one that is lost would be a majority.
func emptyDisk(ctx context.Context, n *nemesis, h *hit) (string, error) {
	if n.emptied {
		return "nobody: one disk of three was replaced before", nil
	}
	if whole, err := n.awaitWhole(ctx); err != nil || !whole {
		return "nobody: not all replicas came in sync, and there would be no other copy", err
	}
	n.emptied = true
	victim, what := n.role(h)
	err := n.kill(victim)
	b := n.cluster.Brokers[victim]
	entries, failed := os.ReadDir(b.Data)
	err = errors.Join(err, failed)
	for _, e := range entries { // the directory may be a mount
		err = errors.Join(err, os.RemoveAll(filepath.Join(b.Data, e.Name())))
	}
	if b.platter != "" {
		err = errors.Join(err, os.RemoveAll(b.platter))
	}
	if err = errors.Join(err, n.pass(ctx, h.hold), n.launch(victim)); err != nil {
		return "", err
	}
	return what + ": an empty disk, for " + ms(h.hold) + " away; " + n.giveVote(ctx, victim), nil
}

// giveVote does what docs/bare-metal.md tells to do about a voter whose disk was replaced, and says what came of it: without quorum it cannot be done.
func (n *nemesis) giveVote(ctx context.Context, i int) string {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	number := strconv.Itoa(i + 1)
	if err := n.cluster.Brokers[i].Await(ctx); err != nil {
		return "it does not serve, and has no vote"
	}
	for _, change := range []string{"remove", "add"} {
		if _, err := n.operate(ctx, "cluster", "voters", change, number, "--timeout", patience.String()); err != nil {
			return change + " its vote: " + err.Error()
		}
	}
	return "it has a vote again"
}
