package broker

import (
	"errors"
	"fmt"
	"io"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
)

// ForgetPromise releases the data directory of a broker that does not run from its promise to found a cluster, and returns the promise. That is safe
// only while Raft has not started on it, and is refused afterwards, with words. Nil: the directory has promised nothing.
func ForgetPromise(fs store.FS, random io.Reader, static config.Set) (_ *cluster.Promise, err error) {
	v, err := config.BrokerOf(config.Stack{Static: static})
	if err != nil {
		return nil, err
	}
	dir, opened, err := store.OpenDirectory(store.DirectoryOptions{
		FS: fs, Path: v.DataDir, Broker: ident.BrokerID(v.BrokerID), Rand: random, Generations: &store.Generations{}, OpenLogsMax: logsMin,
	})
	if err != nil {
		return nil, err
	}
	// No log is opened: a directory that was clean stays so.
	defer func() { err = errors.Join(err, dir.Close(opened.Mode == store.RecoverClean, opened.CleanEpoch)) }()
	log, state, err := dir.OpenRaftLog()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if state.Snapshot.Index == 0 && len(state.Entries) == 0 {
		return nil, nil
	}
	p, fresh, err := cluster.PromiseOf(durable(&state))
	if err != nil {
		return nil, err
	}
	if !fresh || dir.Meta().Cluster != "" {
		return nil, fmt.Errorf("%s: %s belongs to cluster %s, which is founded; there is nothing left to forget. A broker that should leave it gets an empty directory", codeFounded, dir.Path(), p.ClusterID)
	}
	return &p, log.Compact(nil, store.RaftSnapshot{}, nil)
}
