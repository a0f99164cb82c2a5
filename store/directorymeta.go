package store

import (
	"errors"
	"fmt"
	"path/filepath"
)

// readMeta reads the identity, or makes one for a directory that has nothing yet.
func (n *opening) readMeta() error {
	d := n.d
	path := filepath.Join(d.o.Path, metaFile)
	b, err := readFile(d.o.FS, path)
	if isNotExist(err) {
		// The checkpoints are written before the identity, so that they alone are
		// a directory that was being made.
		for _, e := range n.names {
			if _, isLog := parsePartitionDirName(e.Name); e.Dir && (isLog || e.Name == raftDir) {
				return coded(CodeMeta, err, "%s is lost, but %s holds data of a broker; restore the file from a backup, or move the data away to begin anew", metaFile, d.o.Path)
			}
		}
		n.out.Created = true
		return n.newMeta()
	}
	if err != nil {
		return err
	}
	m, err := decodeMeta(b)
	if errors.Is(err, ErrNewerFormat) {
		return fmt.Errorf("%s: %w", metaFile, err)
	}
	if err != nil {
		return coded(CodeMeta, err, "%s is damaged: %v; restore the file from a backup, or move the data directory away to begin anew", path, err)
	}
	if m.Broker != d.o.Broker {
		return coded(CodeForeign, nil, "%s belongs to broker %d, this is broker %d; correct node.id or the data directory", d.o.Path, m.Broker, d.o.Broker)
	}
	if m.Cluster != "" && d.o.Cluster != "" && m.Cluster != d.o.Cluster {
		return coded(CodeForeign, nil, "%s belongs to cluster %s, this broker to %s; correct the configuration or the data directory", d.o.Path, m.Cluster, d.o.Cluster)
	}
	adopt := m.Node == 0
	if adopt {
		if m.Node, err = newNodeID(d.o.Rand); err != nil {
			return err
		}
	}
	if m.Cluster == "" && d.o.Cluster != "" {
		m.Cluster, adopt = d.o.Cluster, true
	}
	d.meta = m
	if adopt {
		return d.replace(metaFile, encodeMeta(m))
	}
	return nil
}

func (n *opening) newMeta() error {
	d := n.d
	m := Meta{Cluster: d.o.Cluster, Broker: d.o.Broker}
	var err error
	if m.Directory, err = newDirectoryID(d.o.Rand); err != nil {
		return err
	}
	if m.Node, err = newNodeID(d.o.Rand); err != nil {
		return err
	}
	// The checkpoints first: a directory with an identity and without them has
	// lost them.
	if err := d.writeLines(startsFile, nil, false); err != nil {
		return err
	}
	if err := d.writeLines(marksFile, nil, true); err != nil {
		return err
	}
	d.meta = m
	return d.replace(metaFile, encodeMeta(m))
}
