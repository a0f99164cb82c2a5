package cluster

import (
	"fmt"
	"slices"
	"strings"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// votersMax bounds the quorum: each voter more makes every commit wait for more disks.
const votersMax = 9

// catchUpMax is how many entries an observer may lack that is to become a voter: it goes on pulling meanwhile.
const catchUpMax = 1000

// candidateMs is how long ago a broker that is to become a voter may have been heard: until it answers as one, it may be missing to a majority.
const candidateMs = 2000

// addVoter gives an observer a vote (KIP-853). One voter more or less at a time: then every majority before the change meets every majority after it,
// and Raft needs no phase between the two. The order of the checks is Kafka's (AddVoterHandler.java).
func (c *Controller) addVoter(now Now, cmd *AddVoter) decision {
	if err := c.changeable(cmd.Cluster); err != nil {
		return refused(err)
	}
	voters := c.next.voters
	if i := slices.IndexFunc(voters, func(v Voter) bool { return v.Broker == cmd.Broker }); i >= 0 {
		return refused(refuse(wire.DuplicateVoter, "broker %d is a voter with directory %v already; if that directory is lost, remove that voter first", cmd.Broker, voters[i].Directory))
	}
	if len(voters) >= votersMax {
		return refused(refuse(wire.PolicyViolation, "there are %d voters already, and no more than %d make sense", len(voters), votersMax))
	}
	b, ok := c.next.Broker(cmd.Broker)
	if !ok {
		return refused(refuse(wire.RequestTimedOut, "broker %d is not registered: start it with --join first, so that it follows as an observer", cmd.Broker))
	}
	if !slices.Contains(b.Directories, cmd.Directory) {
		return refused(refuse(wire.InvalidVoterKey, "broker %d has no directory %v, but %v", cmd.Broker, cmd.Directory, b.Directories))
	}
	s := c.sessions[cmd.Broker]
	switch {
	case !s.alive || now.Mono-s.heard > candidateMs*millisecond:
		return refused(refuse(wire.RequestTimedOut, "broker %d was not heard of during the last %d ms; try again", cmd.Broker, candidateMs))
	case s.node == 0 || s.applied < c.votersAt:
		// What it says of itself must be younger than the last change of the voters: it may have had a vote before, and not know yet that it was taken away.
		return refused(refuse(wire.RequestTimedOut, "broker %d has not said yet that it follows as an observer; try again", cmd.Broker))
	case s.applied+catchUpMax < c.image.index:
		return refused(refuse(wire.RequestTimedOut, "broker %d lags behind: it has the metadata up to index %d of %d; try again", cmd.Broker, s.applied, c.image.index))
	}
	v := Voter{Node: s.node, Broker: cmd.Broker, Directory: cmd.Directory}
	return changeVoters(append(slices.Clone(voters), v), pb.ConfChangeAddNode, v.Node, &AddVoterReply{})
}

// removeVoter takes a vote away. A controller that is to lose its own hands over first: the command is then its successor's, whoever sent it tries again.
func (c *Controller) removeVoter(now Now, cmd *RemoveVoter) decision {
	if err := c.changeable(cmd.Cluster); err != nil {
		return refused(err)
	}
	voters := c.next.voters
	i := slices.IndexFunc(voters, func(v Voter) bool { return v.Broker == cmd.Broker && v.Directory == cmd.Directory })
	switch {
	case i < 0:
		return refused(refuse(wire.VoterNotFound, "no voter is broker %d with directory %v", cmd.Broker, cmd.Directory))
	case len(voters) == 1:
		return refused(refuse(wire.InvalidRequest, "broker %d is the only voter: add another one first", cmd.Broker))
	}
	rest := slices.Delete(slices.Clone(voters), i, i+1)
	answering := 0
	for _, v := range rest {
		if v.Node == c.options.Node || c.answers(now, v.Node) {
			answering++
		}
	}
	if answering <= len(rest)/2 {
		return refused(refuse(wire.RequestTimedOut, "of the %d voters that would be left only %d answer: with them nothing could be decided any more", len(rest), answering))
	}
	if voters[i].Node != c.options.Node {
		return changeVoters(rest, pb.ConfChangeRemoveNode, voters[i].Node, &RemoveVoterReply{})
	}
	c.resign(now)
	if !c.HandingOver() {
		return refused(refuse(wire.RequestTimedOut, "broker %d is the controller, and no other voter can take over; try again", cmd.Broker))
	}
	return refused(refuse(wire.NotController, "the controller on broker %d hands over before it loses its vote; try again", cmd.Broker))
}

// votersSince is the first level of PeerVersion at which every broker can replay a change of the voters.
const votersSince = 2

// changeable tells why the voters cannot be changed now.
func (c *Controller) changeable(cluster ident.ClusterID) *Error {
	if level := c.next.FeatureLevel(PeerVersion); level < votersSince {
		return refuse(wire.UnsupportedVersion, "the cluster uses %s level %d, and voters can be changed from level %d on; when all brokers are up to date, raise it", PeerVersion, level, votersSince)
	}
	if cluster != "" && cluster != c.next.clusterID {
		return refuse(wire.InconsistentClusterID, "this is cluster %q, not %q", c.next.clusterID, cluster)
	}
	if c.changing > c.image.index || c.unsafe.index > 0 {
		return refuse(wire.RequestTimedOut, "another change of the voters is under way; try again")
	}
	return nil
}

// changeVoters is the entry that changes the voters, for Raft and for the image in one.
func changeVoters(voters []Voter, kind pb.ConfChangeType, node ident.NodeID, reply ReplyBody) decision {
	slices.SortFunc(voters, func(a, b Voter) int { return compareUint(uint64(a.Node), uint64(b.Node)) })
	return decision{
		records: []Record{&VotersRecord{Voters: voters}},
		change:  &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{Type: kind.Enum(), NodeId: new(uint64(node))}}},
		body:    reply,
	}
}

// decodeChange reads an entry that changes the voters: what Raft is told, and the records that travel with it.
func decodeChange(data []byte) (*pb.ConfChangeV2, []Record, error) {
	change := &pb.ConfChangeV2{}
	if err := proto.Unmarshal(data, change); err != nil {
		return nil, nil, fmt.Errorf("%w: a change of the voters that cannot be read", ErrMalformed) // the library varies its texts from run to run
	}
	if len(change.GetChanges()) != 1 {
		return nil, nil, fmt.Errorf("%w: %d changes of the voters at once", ErrNewerVersion, len(change.GetChanges()))
	}
	records, err := DecodeBatch(change.GetContext())
	return change, records, err
}

// votersChanged tells Raft of a committed change, when the image has it.
//
// That it is committed goes to the disk before anybody can rely on it. A voter that forgot it would ask for the votes of the former set after a restart, and
// one of those may be gone for good: whoever loses its vote waits for this (recall.go), and so do the answers to whoever asked for the change.
func (c *Controller) votersChanged(e *pb.Entry, out *Out) error {
	change, _, err := decodeChange(e.GetData())
	if err != nil {
		return err
	}
	c.rn.ApplyConfChange(change)
	c.log.conf = confOf(c.image.voters)
	for node := range c.voters {
		if !isVoter(c.image, node) {
			delete(c.voters, node)
		}
	}
	for _, b := range c.image.voters { // whoever votes has to say anew that it observes before it can be added again
		if s, ok := c.sessions[b.Broker]; ok {
			s.node = 0
			c.sessions[b.Broker] = s
		}
	}
	st := c.rn.BasicStatus()
	c.saved++
	hard := &pb.HardState{Term: new(st.GetTerm()), Vote: new(st.GetVote()), Commit: new(max(st.GetCommit(), e.GetIndex()))}
	out.Persist = append(out.Persist, Save{ID: c.saved, HardState: encodeHardState(hard.GetTerm(), hard.GetVote(), hard.GetCommit()), Sync: true})
	c.saves = append(c.saves, savedState{id: c.saved, hard: hard})
	if c.unsafe.save = c.saved; c.unsafe.index == 0 {
		c.unsafe.index = e.GetIndex()
	}
	c.votersAt = e.GetIndex()
	out.Note = append(out.Note, Note{Kind: NoteVoters, Node: c.options.Node, Index: e.GetIndex(), Count: len(c.image.voters), Text: c.votersText()})
	return nil
}

// unsafeChange is the first change of the voters that is applied, and of which the disk does not know yet that it is committed.
type unsafeChange struct {
	index uint64 // 0: there is none
	save  uint64 // once this is on disk, it knows of all
}

// tellable is the newest index that others may hear of as committed.
func (c *Controller) tellable() uint64 {
	if c.unsafe.index > 0 {
		return c.unsafe.index - 1
	}
	return c.image.index
}

func (c *Controller) votersText() string {
	var text []string
	for _, v := range c.image.voters {
		text = append(text, fmt.Sprintf("broker %d with directory %v", v.Broker, v.Directory))
	}
	return strings.Join(text, ", ")
}
