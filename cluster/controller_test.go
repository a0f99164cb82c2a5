package cluster

import (
	"reflect"
	"testing"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// lone is a one-voter controller with a disk that answers at once.
type lone struct {
	t       *testing.T
	c       *Controller
	now     Now
	disk    *disk
	out     Out
	replies map[ident.RequestID]Reply
	next    ident.RequestID
}

var loneVoter = Voter{Node: 7, Broker: 1, Directory: ident.DirectoryID{1: 9}}

func loneGenesis(t *testing.T) Durable {
	t.Helper()
	d, err := Genesis(Promise{ClusterID: "c1", Voters: []Voter{loneVoter}, Features: []FeatureLevel{{Name: PeerVersion, Level: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func startLone(t *testing.T, d *disk, o Options) *lone {
	t.Helper()
	o.Node, o.Broker, o.Durable = loneVoter.Node, loneVoter.Broker, d.durable()
	if o.Features == nil {
		o.Features = []FeatureRange{{Name: PeerVersion, Min: 1, Max: 1}}
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	l := &lone{t: t, c: c, disk: d, replies: map[ident.RequestID]Reply{}, now: Now{Mono: 1_000_000_000, Wall: 1_700_000_000_000}}
	l.step(&Start{})
	return l
}

// step runs one command and all saves that follow from it.
func (l *lone) step(cmd Command) {
	l.t.Helper()
	l.c.Step(l.now, cmd, &l.out)
	l.settle()
}

func (l *lone) settle() {
	l.t.Helper()
	for {
		for _, r := range l.out.Reply {
			if _, twice := l.replies[r.Request]; twice {
				l.t.Fatalf("request %d is answered twice", r.Request)
			}
			l.replies[r.Request] = r
		}
		if err := l.c.Check(); err != nil {
			l.t.Fatal(err)
		}
		saves := append([]Save(nil), l.out.Persist...)
		l.out.Reset()
		if len(saves) == 0 {
			return
		}
		for _, s := range saves {
			l.disk.save(s)
		}
		l.c.Step(l.now, &Persisted{Save: saves[len(saves)-1].ID}, &l.out)
	}
}

// ask runs a command that expects an answer and returns the answer.
func (l *lone) ask(cmd Command, a *Ask) Reply {
	l.t.Helper()
	l.next++
	a.Request = l.next
	l.step(cmd)
	r, ok := l.replies[a.Request]
	if !ok {
		l.t.Fatalf("no answer to %T", cmd)
	}
	return r
}

// register registers and unfences the lone broker.
func (l *lone) register(incarnation byte) ident.BrokerEpoch {
	l.t.Helper()
	reg := &RegisterBroker{
		Broker: 1, Incarnation: Incarnation{0: incarnation}, ClusterID: "c1", Directories: []ident.DirectoryID{loneVoter.Directory},
		Endpoints: []Endpoint{{Name: "PLAINTEXT", Host: "localhost", Port: 9092}}, Features: []FeatureRange{{Name: PeerVersion, Min: 1, Max: 1}},
	}
	r := l.ask(reg, &reg.Ask)
	if r.Err != nil {
		l.t.Fatal(r.Err)
	}
	epoch := r.Body.(*RegisterBrokerReply).Epoch
	hb := &Heartbeat{Broker: 1, Epoch: epoch, Applied: l.c.Image().Index(), Arrived: l.now.Mono}
	if r := l.ask(hb, &hb.Ask); r.Err != nil || r.Body.(*HeartbeatReply).Fenced {
		l.t.Fatalf("heartbeat: %+v", r)
	}
	return epoch
}

func TestOneVoterStartsFromNothingAndCreatesATopic(t *testing.T) {
	d := diskOf(loneGenesis(t))
	l := startLone(t, d, Options{})
	if !l.c.Leading() {
		t.Fatal("a lone voter does not lead after its start")
	}
	l.register(1)
	create := &CreateTopics{Topics: []NewTopic{{Name: "orders", ID: ident.TopicID{1}, Partitions: 3, ReplicationFactor: 1}}}
	r := l.ask(create, &create.Ask)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if got := r.Body.(*CreateTopicsReply).Topics[0]; got.Err != nil || got.Partitions != 3 || got.ReplicationFactor != 1 || got.ID != (ident.TopicID{1}) {
		t.Fatalf("created %+v", got)
	}
	topic, ok := l.c.Image().Topic("orders")
	if !ok || len(topic.Partitions) != 3 {
		t.Fatal("the topic is not in the image when the reply is out")
	}
	if p := topic.Partitions[0]; p.Leader != 1 || p.LeaderEpoch != 0 || !p.Strict || !p.InSync(1) {
		t.Fatalf("partition %+v", p)
	}
	made := r.Body.(*CreateTopicsReply).Topics[0]
	index := l.c.Image().Index()
	r = l.ask(create, &create.Ask) // whoever forwarded it has lost the answer
	if got := r.Body.(*CreateTopicsReply).Topics[0]; !reflect.DeepEqual(got, made) || l.c.Image().Index() != index {
		t.Fatalf("the same command again: %+v at index %d", got, l.c.Image().Index())
	}
	create.Again()
	r = l.ask(create, &create.Ask)
	if got := r.Body.(*CreateTopicsReply).Topics[0]; !reflect.DeepEqual(got, made) || l.c.Image().Index() != index {
		t.Fatalf("another attempt: %+v at index %d", got, l.c.Image().Index())
	}
	other := &CreateTopics{Topics: []NewTopic{{Name: "orders", ID: ident.TopicID{2}, Partitions: 3, ReplicationFactor: 1}}}
	r = l.ask(other, &other.Ask)
	if got := r.Body.(*CreateTopicsReply).Topics[0]; got.Err == nil || got.Err.Code != wire.TopicAlreadyExists {
		t.Fatalf("created again: %+v", got)
	}

	// A restart replays the log, and the new run of the broker leads under a higher leader epoch: 1 was the one without a leader.
	before := l.c.Image()
	l = startLone(t, d, Options{})
	if !l.c.Leading() {
		t.Fatal("a lone voter does not lead after its restart")
	}
	topic, ok = l.c.Image().Topic("orders")
	if !ok || topic.Partitions[0].LeaderEpoch != 0 {
		t.Fatal("the topic is gone or changed after a restart")
	}
	if l.c.Image().Index() != before.Index()+1 {
		t.Fatalf("index %d after %d and one empty entry", l.c.Image().Index(), before.Index())
	}
	l.register(2)
	topic, _ = l.c.Image().Topic("orders")
	if p := topic.Partitions[0]; p.Leader != 1 || p.LeaderEpoch != 2 {
		t.Fatalf("after the restart: %+v", p)
	}
}

// TestACommandThatIsSentAgainUsesNoIDTwice has the answer to a CreateTopics be lost, and somebody delete the topic before it is sent once more: what is made then is
// another topic.
func TestACommandThatIsSentAgainUsesNoIDTwice(t *testing.T) {
	l := startLone(t, diskOf(loneGenesis(t)), Options{})
	l.register(1)
	create := &CreateTopics{Topics: []NewTopic{{Name: "orders", ID: ident.TopicID{1, 15: 255}, Partitions: 1, ReplicationFactor: 1}}}
	sent := create.Topics
	made := l.ask(create, &create.Ask).Body.(*CreateTopicsReply).Topics[0]
	remove := &DeleteTopics{Topics: []TopicRef{{Name: "orders"}}}
	if got := l.ask(remove, &remove.Ask).Body.(*DeleteTopicsReply).Topics[0]; made.Err != nil || got.Err != nil {
		t.Fatal(made.Err, got.Err)
	}
	create.Again()
	again := l.ask(create, &create.Ask).Body.(*CreateTopicsReply).Topics[0]
	if again.Err != nil || again.ID == made.ID {
		t.Errorf("the id of a deleted topic is used again: %+v", again)
	}
	if topic, ok := l.c.Image().Topic("orders"); !ok || topic.ID != again.ID || sent[0].ID != made.ID {
		t.Errorf("the image has %+v, and the first attempt was changed to %v", topic, sent[0].ID)
	}
}
