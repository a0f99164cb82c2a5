package broker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// errand is a controllerActor that has one command to send, and hears what came of it.
type errand struct {
	*controllerActor
	command *proposal
	came    chan linkResponse
}

func (e *errand) Turn(t *runtime.Turn, batch []runtime.Message) {
	for _, m := range batch {
		if r, ok := m.(*returned); ok {
			e.came <- r.response
			continue
		}
		e.send(t, e.command, 2)
	}
}

func (*errand) Started(*runtime.Turn)  {}
func (*errand) Stopping(*runtime.Turn) {}

// TestALargeRegistrationTravels sends the registration of a broker with a few hundred thousand replicas to the controller: what no frame of a control link holds
// gets there whole, and is answered.
func TestALargeRegistrationTravels(t *testing.T) {
	noLeaks(t)
	a, b := newSide(t, sideOptions{self: identityOf(1, 10)}), newSide(t, sideOptions{self: identityOf(2, 20)})
	meet(a, b)
	cmd := &cluster.RegisterBroker{Broker: 1, Incarnation: cluster.Incarnation{1}, ClusterID: "cluster", Endpoints: []cluster.Endpoint{{Name: "PLAINTEXT", Host: "h", Port: 9092}}}
	held := cluster.Held{Directory: ident.DirectoryID{1}}
	for i := range 100_000 {
		topic := cluster.HeldTopic{Topic: ident.TopicID{1}, Whole: []int32{0, 1}, Unverified: []int32{2}}
		binary.BigEndian.PutUint32(topic.Topic[1:], uint32(i))
		held.Topics = append(held.Topics, topic)
	}
	cmd.Held = append(cmd.Held, held)
	want, err := cluster.EncodeCommand(cmd)
	if err != nil || len(want) <= peer.ControlMax {
		t.Fatalf("%d bytes, %v", len(want), err)
	}
	e := &errand{controllerActor: &controllerActor{shared: a.shared}, came: make(chan linkResponse, 1)}
	e.shared.links = a.links
	e.journeys.away = make(map[*proposal]struct{})
	mono, _ := a.shared.system.Clock().Now()
	e.command = &proposal{command: cmd, ask: &cmd.Ask, until: mono + 60_000*millisecond}
	ref, err := a.shared.system.Spawn(nil, cast("controller", "controller", e))
	if err != nil {
		t.Fatal(err)
	}
	if err := ref.Post(signalTick); err != nil {
		t.Fatal(err)
	}
	x := b.await("Request", nil)
	var r peer.Request
	decode(t, x.frame, &r)
	if !bytes.Equal(r.Body, want) {
		t.Fatalf("%d of %d bytes came, or others", len(r.Body), len(want))
	}
	if back, err := cluster.DecodeCommand(r.Body); err != nil || len(back.(*cluster.RegisterBroker).Held[0].Topics) != 100_000 {
		t.Fatal(err)
	}
	answer := append(make([]byte, 8), cluster.EncodeReply(cluster.Reply{Body: &cluster.RegisterBrokerReply{Epoch: 77}})...)
	if err := x.link.ref.Post(&linkMessage{&peer.Response{ID: r.ID, Body: answer}}); err != nil {
		t.Fatal(err)
	}
	got := <-e.came
	reply, _, err := decodeResponse(got.body)
	if err := errors.Join(err, got.err); err != nil || fmt.Sprintf("%+v", reply.Body) != fmt.Sprintf("%+v", &cluster.RegisterBrokerReply{Epoch: 77}) {
		t.Fatalf("%+v, %v", reply, err)
	}
}

// retry is a controllerActor whose command was sent, and nobody knows what came of it.
type retry struct {
	*controllerActor
	command *proposal
	done    chan struct{}
}

func (r *retry) Turn(t *runtime.Turn, _ []runtime.Message) {
	r.again(t, r.command)
	close(r.done)
}

func (*retry) Started(*runtime.Turn)  {}
func (*retry) Stopping(*runtime.Turn) {}

// TestEachAttemptToMakeATopicHasAnIDOfItsOwn: the attempt before may have made it, and somebody may have deleted it since.
func TestEachAttemptToMakeATopicHasAnIDOfItsOwn(t *testing.T) {
	noLeaks(t)
	a := newSide(t, sideOptions{self: identityOf(1, 10)})
	cmd := &cluster.CreateTopics{Topics: []cluster.NewTopic{{Name: "t", ID: ident.TopicID{1}}}}
	mono, _ := a.shared.system.Clock().Now()
	r := &retry{controllerActor: &controllerActor{shared: a.shared}, command: &proposal{command: cmd, ask: &cmd.Ask, until: mono + 60_000*millisecond}, done: make(chan struct{})}
	ref, err := a.shared.system.Spawn(nil, cast("controller", "controller", r))
	if err != nil {
		t.Fatal(err)
	}
	if err := ref.Post(signalTick); err != nil {
		t.Fatal(err)
	}
	<-r.done
	if cmd.Topics[0].ID == (ident.TopicID{1}) || len(r.journeys.parked) != 1 {
		t.Errorf("the second attempt uses %v; %d commands wait", cmd.Topics[0].ID, len(r.journeys.parked))
	}
}
