package broker_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// directoryOf is the data directory of a broker, as the quorum's description has it.
func (r *running) directoryOf(id int32, q *kmsg.DescribeQuorumResponseTopicPartition) [16]byte {
	r.t.Helper()
	for _, s := range append(slices.Clone(q.Observers), q.CurrentVoters...) {
		if s.ReplicaID == id {
			return s.ReplicaDirectoryID
		}
	}
	r.t.Fatalf("nobody knows broker %d: %+v", id, q)
	return [16]byte{}
}

// addVoter asks this broker to give another one a vote, again while the answer is that it does not follow closely yet.
func (r *running) addVoter(id int32) {
	r.t.Helper()
	req := kmsg.NewPtrAddRaftVoterRequest()
	req.VoterID, req.VoterDirectoryID = id, r.directoryOf(id, r.quorum())
	var resp *kmsg.AddRaftVoterResponse
	awaitFact(r.t, fmt.Sprintf("broker %d to become a voter", id), func() bool {
		resp = ask[*kmsg.AddRaftVoterResponse](r, req)
		return !errors.Is(kerr.ErrorForCode(resp.ErrorCode), kerr.RequestTimedOut)
	})
	if resp.ErrorCode != 0 {
		r.t.Fatalf("adding voter %d: %v %s", id, kerr.ErrorForCode(resp.ErrorCode), *resp.ErrorMessage)
	}
}

func (r *running) removeVoter(id int32, directory [16]byte) error {
	r.t.Helper()
	req := kmsg.NewPtrRemoveRaftVoterRequest()
	req.VoterID, req.VoterDirectoryID = id, directory
	return kerr.ErrorForCode(ask[*kmsg.RemoveRaftVoterResponse](r, req).ErrorCode)
}

// voters are the brokers that the quorum's description names.
func (r *running) voters() []int32 {
	r.t.Helper()
	var out []int32
	for _, v := range r.quorum().CurrentVoters {
		out = append(out, v.ReplicaID)
	}
	slices.Sort(out)
	return out
}

// TestOneBrokerGrowsToThreeVoters is the page of docs/bare-metal.md: a broker that began alone is one of three, and may be missed then.
func TestOneBrokerGrowsToThreeVoters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := clustered(t, 1, dir, "bootstrap.expect=1")
	first.serves()
	if err := first.create("before", 1, 1); err != nil {
		t.Fatal(err)
	}
	all := []*running{first}
	for id := int32(2); id <= 3; id++ {
		b := clustered(t, int(id), t.TempDir(), "bootstrap.expect=-1", "join="+first.PeerAddress())
		b.serves()
		b.addVoter(id) // by way of the new one itself
		all = append(all, b)
	}
	for _, b := range all {
		if v := b.voters(); !slices.Equal(v, []int32{1, 2, 3}) {
			t.Fatalf("voters %v", v)
		}
	}
	if err := all[1].create("orders", 3, 3); err != nil {
		t.Fatal(err)
	}
	cl := all[2].client(kgo.ConsumeTopics("orders"))
	if err := cl.ProduceSync(within(t, 30*time.Second), &kgo.Record{Topic: "orders", Value: []byte("x")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	// The one that began goes, and comes back from what it kept, where it is one of three.
	first.stop()
	if err := all[1].create("without-the-first", 1, 2); err != nil {
		t.Fatal(err)
	}
	again := clustered(t, 1, dir, "bootstrap.expect=-1", "join="+all[1].PeerAddress()+","+all[2].PeerAddress())
	again.serves()
	if m := again.metadata("without-the-first", "before"); m.Topics[0].ErrorCode != 0 || m.Topics[1].ErrorCode != 0 {
		t.Errorf("it came back and tells of %+v", m)
	}
	all[1].stop()
	if err := again.create("without-the-second", 1, 2); err != nil {
		t.Fatal(err)
	}
}

// TestADeadVoterIsReplaced replaces the machine of a voter by one with an empty disk: first under the same broker id, then under another.
func TestADeadVoterIsReplaced(t *testing.T) {
	t.Parallel()
	all := trio(t)
	if err := all[0].create("orders", 3, 3); err != nil {
		t.Fatal(err)
	}
	q := all[0].quorum()
	dead := all[q.LeaderID%3] // not the controller
	id := q.LeaderID%3 + 1
	lost := all[0].directoryOf(id, q)
	left := slices.DeleteFunc(slices.Clone(all), func(b *running) bool { return b == dead })
	dead.crash()

	fresh := clustered(t, int(id), t.TempDir(), "join="+left[0].PeerAddress())
	fresh.serves()
	req := kmsg.NewPtrAddRaftVoterRequest()
	req.VoterID, req.VoterDirectoryID = id, fresh.directoryOf(id, fresh.quorum())
	if err := kerr.ErrorForCode(ask[*kmsg.AddRaftVoterResponse](fresh, req).ErrorCode); !errors.Is(err, kerr.DuplicateVoter) {
		t.Fatalf("beside its former self: %v", err)
	}
	if err := fresh.removeVoter(id, [16]byte{1}); !errors.Is(err, kerr.VoterNotFound) {
		t.Fatalf("another directory: %v", err)
	}
	if err := fresh.removeVoter(id, lost); err != nil {
		t.Fatal(err)
	}
	fresh.addVoter(id)
	if v := fresh.voters(); !slices.Equal(v, []int32{1, 2, 3}) {
		t.Fatalf("voters %v", v)
	}

	// The controller itself is dead now.
	q = fresh.quorum()
	gone := q.LeaderID
	lost = fresh.directoryOf(gone, q)
	for _, b := range append(left, fresh) {
		if b.quorum().LeaderID == gone && b.Addresses()[0].String() == all[gone-1].addr {
			b.crash()
			left = slices.DeleteFunc(left, func(o *running) bool { return o == b })
			break
		}
	}
	fourth := clustered(t, 4, t.TempDir(), "bootstrap.expect=-1", "join="+left[0].PeerAddress())
	fourth.serves()
	if err := fourth.removeVoter(gone, lost); err != nil {
		t.Fatal(err)
	}
	fourth.addVoter(4)
	if v := fourth.voters(); !slices.Contains(v, 4) || slices.Contains(v, gone) || len(v) != 3 {
		t.Fatalf("voters %v", v)
	}
	if err := fourth.create("later", 1, 3); err != nil {
		t.Fatal(err)
	}
}

// TestALivingVoterBecomesAnObserver removes every voter that began, the controller among them, while all of them serve.
func TestALivingVoterBecomesAnObserver(t *testing.T) {
	t.Parallel()
	all := trio(t)
	fourth := clustered(t, 4, t.TempDir(), "bootstrap.expect=-1", "join="+all[0].PeerAddress())
	fourth.serves()
	fourth.addVoter(4)
	for id := int32(1); id <= 3; id++ {
		if err := all[id-1].removeVoter(id, fourth.directoryOf(id, fourth.quorum())); err != nil {
			t.Fatalf("voter %d: %v", id, err)
		}
		if v := all[id-1].voters(); slices.Contains(v, id) {
			t.Fatalf("voters %v", v)
		}
	}
	awaitFact(t, "all three to follow as observers", func() bool {
		q := fourth.quorum()
		following := 0
		for _, o := range q.Observers {
			if o.LogEndOffset >= q.HighWatermark-1 && o.LogEndOffset > 0 {
				following++
			}
		}
		return q.LeaderID == 4 && len(q.CurrentVoters) == 1 && following == 3
	})
	for i, b := range all {
		if err := b.create(fmt.Sprint("by-observer-", i), 1, 3); err != nil {
			t.Fatal(err)
		}
	}
	if err := all[0].removeVoter(4, fourth.directoryOf(4, fourth.quorum())); !errors.Is(err, kerr.InvalidRequest) {
		t.Fatalf("the last voter: %v", err)
	}
}
