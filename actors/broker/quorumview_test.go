package broker_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Kafka's kafka-metadata-quorum shows these as they are: where each voter and each observer is, when it was heard, and in which directory it lives.
func TestTheQuorumIsDescribedByWhatIsKnownOfIt(t *testing.T) {
	all := trio(t)
	fourth := clustered(t, 4, t.TempDir(), "bootstrap.expect=-1", "join="+all[0].PeerAddress())
	fourth.serves()
	if err := fourth.create("orders", 1, 3); err != nil {
		t.Fatal(err)
	}
	known := func(r *kmsg.DescribeQuorumResponseTopicPartitionReplicaState) bool {
		return r.LogEndOffset > 0 && r.LastFetchTimestamp > 0 && r.LastCaughtUpTimestamp > 0 && r.ReplicaDirectoryID != [16]byte{}
	}
	for _, b := range append(all, fourth) {
		awaitFact(t, "everything to be known of the quorum", func() bool {
			q := b.quorum()
			directories := map[[16]byte]bool{}
			for i := range q.CurrentVoters {
				v := &q.CurrentVoters[i]
				directories[v.ReplicaDirectoryID] = known(v) && (v.ReplicaID != q.LeaderID || v.LogEndOffset >= q.HighWatermark)
			}
			for i := range q.Observers {
				directories[q.Observers[i].ReplicaDirectoryID] = known(&q.Observers[i])
			}
			for _, ok := range directories {
				if !ok {
					return false
				}
			}
			return len(directories) == 4 && q.HighWatermark > 0
		})
	}
}
