package broker_test

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/broker"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
)

// promised makes the directory of broker 1 one that has promised a cluster to brokers 2 and 3.
func promised(t *testing.T, dir string) {
	t.Helper()
	d, opened, err := store.OpenDirectory(store.DirectoryOptions{FS: store.OS(), Path: dir, Broker: 1, Rand: rand.Reader, Generations: &store.Generations{}, OpenLogsMax: 16})
	if err != nil {
		t.Fatal(err)
	}
	log, _, err := d.OpenRaftLog()
	if err != nil {
		t.Fatal(err)
	}
	meta := d.Meta()
	p := cluster.Promise{ClusterID: "promised", Voters: []cluster.Voter{{Node: meta.Node, Broker: 1, Directory: meta.Directory}}}
	for id := ident.BrokerID(2); id <= 3; id++ {
		p.Voters = append(p.Voters, cluster.Voter{Node: meta.Node + ident.NodeID(id), Broker: id, Directory: ident.DirectoryID{15: byte(id)}})
	}
	g, err := cluster.Genesis(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Compact(g.HardState, store.RaftSnapshot{Index: g.Snapshot.Index, Term: g.Snapshot.Term, Data: g.Snapshot.Data}, nil); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(opened.Mode == store.RecoverClean, opened.CleanEpoch); err != nil {
		t.Fatal(err)
	}
}

func forgetPromise(dir string) (*cluster.Promise, error) {
	return broker.ForgetPromise(store.OS(), rand.Reader, config.SetOf(config.Entry{Name: "log.dir", Value: dir}, config.Entry{Name: "node.id", Value: "1"}))
}

func TestAPromiseCanBeForgottenUntilItIsKept(t *testing.T) {
	dir := t.TempDir()
	promised(t, dir)
	p, err := forgetPromise(dir)
	if err != nil || p == nil || p.ClusterID != "promised" || len(p.Voters) != 3 {
		t.Fatalf("forgot %+v, %v", p, err)
	}
	if p, err := forgetPromise(dir); err != nil || p != nil {
		t.Errorf("forgot %+v again, %v", p, err)
	}
	r := startIn(t, dir) // alone: it founds another one
	if r.ClusterID() == "promised" || r.ClusterID() == "" {
		t.Errorf("the cluster is %q", r.ClusterID())
	}
	r.stop()
	if p, err := forgetPromise(dir); err == nil || !strings.Contains(err.Error(), "TRP-4105") {
		t.Errorf("forgot %+v of a cluster that works, %v", p, err)
	}
	startIn(t, dir).stop()
}

func TestAPromiseIsNotKeptAlone(t *testing.T) {
	dir := t.TempDir()
	promised(t, dir)
	static := config.SetOf(config.Entry{Name: "log.dir", Value: dir}, config.Entry{Name: "node.id", Value: "1"}, config.Entry{Name: "listeners", Value: "PLAINTEXT://127.0.0.1:0"})
	sys := runtime.NewSystem(runtime.Options{Log: zerolog.Nop()})
	_, err := broker.Start(broker.Options{Static: static}, broker.World{FS: store.OS(), System: sys, Rand: rand.Reader, Log: zerolog.Nop(), Listen: broker.ListenTCP, ListenPeers: broker.ListenPeers})
	if err == nil || !strings.Contains(err.Error(), "TRP-4104") {
		t.Errorf("a founder of three was started without a peer port: %v", err)
	}
	if err := sys.Shutdown(within(t, 10*time.Second)); err != nil {
		t.Error(err)
	}
}
