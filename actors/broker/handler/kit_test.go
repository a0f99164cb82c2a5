package handler_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/checkup"
	"github.com/troupe-broker/troupe/wire/ident"
)

// kit is a handler with an image and ports that the test plays. Requests and responses go through their bytes, so a field that a version does not carry
// does not reach the handler, nor the test.
type kit struct {
	t      *testing.T
	image  *cluster.Image
	static config.Set
	ports  ports
	client handler.Client
	now    handler.Now
}

func newKit(t *testing.T, records ...cluster.Record) *kit {
	t.Helper()
	k := &kit{t: t, image: cluster.NewImage(), client: handler.Client{Listener: "PLAINTEXT"}, now: handler.Now{Mono: 1000, Wall: 5000}}
	k.ports.t = t
	k.ports.image = func() *cluster.Image { return k.image }
	k.ports.offsetsTopic = func() wire.ErrorCode { return wire.NoError }
	k.apply(records...)
	return k
}

// apply replays records, one batch.
func (k *kit) apply(records ...cluster.Record) {
	k.t.Helper()
	image, _, err := k.image.Apply(k.image.Index()+1, 1, records)
	if err != nil {
		k.t.Fatal(err)
	}
	k.image = image
}

// outcome records what becomes of a call.
type outcome struct {
	response kmsg.Response
	closed   error
}

func (o *outcome) Respond(_ *handler.Call, r kmsg.Response) { o.response = r }
func (o *outcome) Close(_ *handler.Call, reason error)      { o.closed = reason }

// ask runs a request in a version and returns the response as its client reads it.
func (k *kit) ask(version int16, req kmsg.Request) kmsg.Response {
	k.t.Helper()
	req.SetVersion(version)
	decoded, err := wire.DecodeBody(wire.Key(req.Key()), version, req.AppendTo(nil))
	if err != nil {
		k.t.Fatalf("%T v%d: %v", req, version, err)
	}
	var out outcome
	call := &handler.Call{
		Key: req.Key(), Version: version, Request: decoded, Client: &k.client,
		Env: &handler.Env{Broker: 1, Cluster: "cluster-id", Image: k.image, Static: k.static, Now: k.now, Ports: &k.ports},
	}
	call.Begin(&out)
	f := handler.For(req.Key())
	if f == nil {
		k.t.Fatalf("%T has no handler", req)
	}
	f(call)
	for len(k.ports.pending) > 0 { // answers come on later turns
		answer := k.ports.pending[0]
		k.ports.pending = k.ports.pending[1:]
		answer()
	}
	if out.closed != nil {
		k.t.Fatalf("%T v%d closed the connection: %v", req, version, out.closed)
	}
	if out.response == nil {
		k.t.Fatalf("%T v%d was not answered", req, version)
	}
	resp := req.ResponseKind()
	resp.SetVersion(version)
	if err := resp.ReadFrom(out.response.AppendTo(nil)); err != nil {
		k.t.Fatalf("%T v%d: its answer does not parse: %v", req, version, err)
	}
	return resp
}

// versions runs a test in every version of an API from first on; 0 for all.
func versions(t *testing.T, key wire.Key, first int16, test func(t *testing.T, version int16)) {
	t.Helper()
	api, ok := wire.Lookup(key)
	if !ok {
		t.Fatalf("%v is not served", key)
	}
	for v := max(first, api.Min); v <= api.Max; v++ {
		t.Run(fmt.Sprintf("v%d", v), func(t *testing.T) { test(t, v) })
	}
}

// ports are the actors, played by the functions that a test sets. What is not set must not be asked.
type ports struct {
	t       *testing.T
	pending []func()

	controller    func(cluster.Command) cluster.Reply
	offsets       func(handler.Place, handler.ListOffset) handler.ListedOffset
	epochs        func(handler.Place, handler.EpochEnd) handler.EndOfEpoch
	deletes       func(handler.Place, handler.DeleteRecords) handler.DeletedRecords
	producers     func(handler.Place) handler.DescribedProducers
	producerID    func() (ident.ProducerID, wire.ErrorCode)
	directories   func() []handler.Directory
	checkup       func(checkup.Order, []ident.TopicPartition) map[ident.TopicPartition]checkup.Report
	coordinator   func(group string, c coord.Command) coord.Answer
	coordinators  func(c coord.Command) []coord.Answer
	offsetsTopic  func() wire.ErrorCode
	image         func() *cluster.Image
	watermarks    func(handler.Place) (start, high ident.Offset)
	asked         []coord.Command // of coordinators, as they came
	told          []*coord.FetchOffsetsReply
	random        byte
	commands      []cluster.Command // as they came
	producersOnce int               // producer questions open at the same time, at most
	producersOpen int
}

func (p *ports) Controller(command cluster.Command, ask *cluster.Ask, answer func(cluster.Reply)) {
	if ask != askOf(command) {
		p.t.Errorf("%T was sent with the Ask of another command", command)
	}
	p.commands = append(p.commands, command)
	if p.controller == nil {
		p.t.Fatalf("the controller was asked %T", command)
	}
	p.later(func() { answer(p.controller(command)) })
}

// askOf finds the Ask that is embedded in a command.
func askOf(command cluster.Command) *cluster.Ask {
	return reflect.ValueOf(command).Elem().FieldByName("Ask").Addr().Interface().(*cluster.Ask)
}

func (p *ports) ListOffset(place handler.Place, q handler.ListOffset, answer func(handler.ListedOffset)) {
	p.later(func() { answer(p.offsets(place, q)) })
}

func (p *ports) EpochEnd(place handler.Place, q handler.EpochEnd, answer func(handler.EndOfEpoch)) {
	p.later(func() { answer(p.epochs(place, q)) })
}

func (p *ports) DeleteRecords(place handler.Place, q handler.DeleteRecords, answer func(handler.DeletedRecords)) {
	p.later(func() { answer(p.deletes(place, q)) })
}

func (p *ports) DescribeProducers(place handler.Place, answer func(handler.DescribedProducers)) {
	p.producersOpen++
	p.producersOnce = max(p.producersOnce, p.producersOpen)
	p.later(func() {
		p.producersOpen--
		answer(p.producers(place))
	})
}

func (p *ports) ProducerID(answer func(ident.ProducerID, wire.ErrorCode)) {
	p.later(func() { answer(p.producerID()) })
}

func (p *ports) Checkup(order checkup.Order, places []ident.TopicPartition, answer func(map[ident.TopicPartition]checkup.Report)) {
	p.later(func() { answer(p.checkup(order, places)) })
}

func (p *ports) Directories(answer func([]handler.Directory)) {
	p.later(func() { answer(p.directories()) })
}

func (p *ports) Coordinator(group string, c coord.Command, answer func(coord.Answer)) {
	p.asked = append(p.asked, c)
	if p.coordinator == nil {
		p.t.Fatalf("the coordinator of %q was asked %T", group, c)
	}
	p.later(func() { answer(p.coordinator(group, c)) })
}

func (p *ports) Coordinators(c coord.Command, answer func([]coord.Answer)) {
	p.asked = append(p.asked, c)
	p.later(func() { answer(p.coordinators(c)) })
}

func (p *ports) OffsetsTopic(answer func(*cluster.Image, wire.ErrorCode)) {
	p.later(func() { answer(p.image(), p.offsetsTopic()) })
}

func (p *ports) HighWatermark(place handler.Place) (start, high ident.Offset) {
	if p.watermarks == nil {
		return ident.NoOffset, ident.NoOffset
	}
	return p.watermarks(place)
}

func (p *ports) FetchedOffsets(_ *coord.FetchOffsets, told *coord.FetchOffsetsReply) {
	p.told = append(p.told, told)
}

func (p *ports) Random(b []byte) {
	for i := range b {
		p.random++
		b[i] = p.random
	}
}

// later keeps an answer for a later turn.
func (p *ports) later(answer func()) { p.pending = append(p.pending, answer) }

// same compares two values and prints both when they differ. An empty list equals a missing one: not every field of the protocol can be null, and what
// is read back of an empty one is no matter of the handler.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !equal(reflect.ValueOf(got), reflect.ValueOf(want)) {
		t.Errorf("%s\n got %+v\nwant %+v", what, got, want)
	}
}

func equal(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() || a.Type() != b.Type() {
		return a.IsValid() == b.IsValid() && !a.IsValid()
	}
	if kind := a.Kind(); kind == reflect.Slice || kind == reflect.Array {
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !equal(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	}
	if a.Kind() == reflect.Struct {
		for i := range a.NumField() {
			// What is not exported are tags that kmsg does not know.
			if a.Type().Field(i).IsExported() && !equal(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	}
	if a.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil() {
		return equal(a.Elem(), b.Elem())
	}
	return a.Interface() == b.Interface()
}

// code compares an error code.
func code(t *testing.T, what string, got int16, want wire.ErrorCode) {
	t.Helper()
	if wire.ErrorCode(got) != want {
		t.Errorf("%s: %v, want %v", what, wire.ErrorCode(got), want)
	}
}

func deref(s *string) string {
	if s == nil {
		return "<null>"
	}
	return *s
}

// The small cluster of most tests: broker 1 answers; broker 2 has a rack and another listener too; broker 3 is fenced.
var directory1 = ident.DirectoryID{15: 200}

func smallCluster() []cluster.Record {
	return []cluster.Record{
		&cluster.ClusterRecord{ClusterID: "cluster-id"},
		registration(1, false, "PLAINTEXT"),
		&cluster.RegisterBrokerRecord{Broker: cluster.Broker{
			ID: 2, Epoch: 1, Rack: "r2", Directories: []ident.DirectoryID{directory1},
			Endpoints: []cluster.Endpoint{{Name: "PLAINTEXT", Host: "b2", Port: 9092}, {Name: "EXTERNAL", Host: "out2", Port: 19092}},
		}},
		registration(3, true, "PLAINTEXT"),
	}
}

func registration(id ident.BrokerID, fenced bool, listener string) *cluster.RegisterBrokerRecord {
	return &cluster.RegisterBrokerRecord{Broker: cluster.Broker{
		ID: id, Epoch: 1, Fenced: fenced, Directories: []ident.DirectoryID{directory1},
		Endpoints: []cluster.Endpoint{{Name: listener, Host: fmt.Sprintf("b%d", id), Port: 9092}},
	}}
}

// topic makes the records of a topic; each partition is given as its replicas, the first leads.
func topic(name string, id byte, partitions ...[]ident.BrokerID) []cluster.Record {
	out := []cluster.Record{&cluster.TopicRecord{Name: name, ID: ident.TopicID{0: id}}}
	for i, replicas := range partitions {
		p := cluster.Partition{Replicas: replicas, ISR: replicas[:1], Leader: replicas[0], LeaderEpoch: 7}
		for range replicas {
			p.Directories = append(p.Directories, ident.DirectoryID{})
		}
		out = append(out, &cluster.PartitionRecord{Topic: ident.TopicID{0: id}, Number: int32(i), Partition: p})
	}
	return out
}

func replicas(b ...ident.BrokerID) []ident.BrokerID { return b }
