package broker_test

import (
	"testing"

	"github.com/rs/zerolog"
)

// TestFoundersBesideAClusterJoinIt: three brokers that could found a cluster of their own look around first, and there is one.
func TestFoundersBesideAClusterJoinIt(t *testing.T) {
	member := clustered(t, 9, t.TempDir(), "bootstrap.expect=1")
	member.serves()
	log := &lines{}
	join := "join=" + member.PeerAddress()
	var all []*running
	for id := 1; id <= 3; id++ {
		b := clusteredWith(t, zerolog.New(log), id, t.TempDir(), join)
		join += "," + b.PeerAddress()
		all = append(all, b)
	}
	for _, b := range all {
		b.serves()
		if b.ClusterID() != member.ClusterID() {
			t.Errorf("cluster %s beside %s", b.ClusterID(), member.ClusterID())
		}
	}
	if want := "broker 9 at " + member.PeerAddress() + " is a member of cluster " + string(member.ClusterID()); !log.has(want) || !log.has("in spite of --bootstrap-expect=3") {
		t.Errorf("nobody says %q", want)
	}
	if q := all[0].quorum(); len(q.CurrentVoters) != 1 || q.LeaderID != 9 {
		t.Errorf("the quorum is %+v", q)
	}
}

// TestAWrongIDIsToldAndDisturbsNobody: a broker is started with the id of a member of the cluster that it should join.
func TestAWrongIDIsToldAndDisturbsNobody(t *testing.T) {
	log := &lines{}
	all := make([]*running, 0, 3)
	join := ""
	for id := 1; id <= 3; id++ {
		b := clusteredWith(t, zerolog.New(log), id, t.TempDir(), "join="+join)
		join = b.PeerAddress()
		all = append(all, b)
	}
	for _, b := range all {
		b.serves()
	}
	said := &lines{}
	wrong := clusteredWith(t, zerolog.New(said), 2, t.TempDir(), "join="+join)
	awaitFact(t, "the id to be refused", func() bool {
		return said.has("two brokers are number 2, this one at " + wrong.PeerAddress() + " and broker 2 at " + all[1].PeerAddress())
	})
	for i, b := range all {
		if err := b.create(string(rune('a'+i)), 3, 3); err != nil {
			t.Errorf("broker %d makes no topic beside it: %v", i+1, err)
		}
	}
	if log.has("waiting for an election") {
		t.Error("a voter has lost its controller")
	}
}

// TestTwoFoundersWithOneIDAreTold: before there is a cluster, all three say whom they have found, where, and what to do; then one of the two is stopped, and the
// other two and a third with an id of its own found the cluster.
func TestTwoFoundersWithOneIDAreTold(t *testing.T) {
	logs := []*lines{{}, {}, {}}
	var all []*running
	join := "127.0.0.1:1"
	for i, id := range []int{1, 2, 2} {
		b := clusteredWith(t, zerolog.New(logs[i]), id, t.TempDir(), "join="+join)
		all, join = append(all, b), b.PeerAddress()
	}
	one, two := all[1].PeerAddress(), all[2].PeerAddress()
	awaitFact(t, "everybody to tell it", func() bool {
		return logs[1].has("this one at "+one+" and broker 2 at "+two+": give each its own --broker-id") &&
			logs[2].has("this one at "+two+" and broker 2 at "+one+": give each its own --broker-id") &&
			(logs[0].has("number 2, broker 2 at "+one+" and broker 2 at "+two) || logs[0].has("number 2, broker 2 at "+two+" and broker 2 at "+one))
	})
	all[2].crash()
	all[2] = clustered(t, 3, t.TempDir(), "join="+join, "join="+one)
	for _, b := range all {
		b.serves()
	}
}

// TestALostDiskIsALostVote: the broker comes back with an empty directory, serves again, and everybody can see that the quorum has a voter less.
func TestALostDiskIsALostVote(t *testing.T) {
	log := &lines{}
	all := trio(t)
	q := all[0].quorum()
	if len(q.Observers) != 0 {
		t.Errorf("observers %+v", q.Observers)
	}
	lost := q.LeaderID % 3 // not the controller
	all[lost].crash()
	back := clusteredWith(t, zerolog.New(log), int(lost)+1, t.TempDir(), "join="+all[q.LeaderID-1].PeerAddress())
	back.serves()
	if back.ClusterID() != all[q.LeaderID-1].ClusterID() {
		t.Fatal("it is in another cluster")
	}
	awaitFact(t, "the lost vote to be told", func() bool { return log.has("this broker has lost its vote") })
	q = back.quorum()
	if len(q.CurrentVoters) != 3 || len(q.Observers) != 1 || q.Observers[0].ReplicaID != lost+1 {
		t.Errorf("the quorum is %+v", q)
	}
	for _, v := range q.CurrentVoters {
		if v.ReplicaID == lost+1 && v.ReplicaDirectoryID == q.Observers[0].ReplicaDirectoryID {
			t.Errorf("the voter has the new directory: %+v", v)
		}
	}
}
