package broker

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
)

// inspectGroup asks a coordinator for one group. answer has room for it.
type inspectGroup struct {
	group  string
	answer chan<- coord.Answer
}

// Bytes implements runtime.Message.
func (i *inspectGroup) Bytes() int { return len(i.group) }

// Reject implements runtime.Rejecter.
func (i *inspectGroup) Reject(error) { i.answer <- nil }

// asks implements inquiry.
func (i *inspectGroup) asks() coord.Command { return &coord.Inspect{Group: i.group} }

// stepped implements inquiry.
func (*inspectGroup) stepped() {}

// answered implements inquiry.
func (i *inspectGroup) answered(_ *runtime.Turn, a coord.Answer) { i.answer <- a }

// coordinatesNot tells whether a coordinator answers that its groups are another broker's: the replica beside it follows. Nothing of them is missing here.
func coordinatesNot(a coord.Answer) bool {
	refused, ok := a.(*coord.ErrorReply)
	return ok && refused.Code == wire.NotCoordinator
}

// toldGroup is a group as the monitor tells it, for `troupe group describe`: what the protocol has no words for. The keys are a contract.
type toldGroup struct {
	Group   string       `json:"group"`
	State   string       `json:"state"`
	Type    string       `json:"type"`
	Members int          `json:"members"`
	Offsets []toldOffset `json:"offsets"`
}

type toldOffset struct {
	Topic     string     `json:"topic"`
	Partition int32      `json:"partition"`
	Offset    int64      `json:"offset"` // -1: no commit
	At        *time.Time `json:"committed_at,omitempty"`
	Metadata  string     `json:"metadata,omitempty"`
	Jump      *toldJump  `json:"jump,omitempty"`
}

// toldJump is what the group left unread by its auto.offset.reset: the offsets from From to before To.
type toldJump struct {
	From    int64     `json:"from"`
	To      int64     `json:"to"`
	Records int64     `json:"records"`
	At      time.Time `json:"at"`
	Reason  string    `json:"reason"`
}

// GroupHandler tells of one group that this broker coordinates, by ?group=NAME: its committed offsets, and what it jumped over. 404: it is not here, and if
// another broker coordinates groups of this name, that is said. 503: its groups are being loaded, or the broker is too busy.
func (b *Broker) GroupHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		names := r.URL.Query()["group"]
		if len(names) != 1 {
			http.Error(w, "which group? /groups?group=NAME", http.StatusBadRequest)
			return
		}
		g, refused := b.shared.inspectGroup(names[0])
		switch refused {
		case wire.NoError:
		case wire.NotCoordinator:
			http.Error(w, b.shared.elsewhere(names[0]), http.StatusNotFound)
			return
		case wire.GroupIDNotFound:
			http.Error(w, "there is no such group", http.StatusNotFound)
			return
		default:
			http.Error(w, "the groups are being loaded, or the broker is too busy: try again", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(tellGroup(g)); err != nil {
			return // whoever asked has gone
		}
	})
}

// inspectGroup asks the coordinator of a group here, and waits for at most the time of a scrape.
func (s *shared) inspectGroup(name string) (*coord.InspectedGroup, wire.ErrorCode) {
	e := s.topics.Load().byName[cluster.OffsetsTopic]
	if e == nil {
		return nil, wire.GroupIDNotFound // nobody has used a group yet
	}
	rep := e.replicas[records.PartitionOf(name, int32(len(e.replicas)))]
	if rep == nil || rep.coordinator == nil {
		return nil, wire.NotCoordinator
	}
	answer := make(chan coord.Answer, 1)
	_ = rep.coordinator.Post(&inspectGroup{group: name, answer: answer}) // Reject answers
	expired := make(chan struct{})
	alarm := s.system.Clock().NewAlarm(func() { close(expired) })
	alarm.Set(scrapeMax)
	defer alarm.Cancel()
	select {
	case a := <-answer:
		if coordinatesNot(a) {
			return nil, wire.NotCoordinator
		}
		reply, ok := a.(*coord.InspectReply)
		if !ok {
			return nil, wire.CoordinatorNotAvailable
		}
		for i := range reply.Groups {
			if reply.Groups[i].Group == name {
				return &reply.Groups[i], wire.NoError
			}
		}
		return nil, wire.GroupIDNotFound
	case <-expired:
		return nil, wire.CoordinatorNotAvailable
	}
}

// elsewhere says which broker to ask for a group that this one does not coordinate.
func (s *shared) elsewhere(name string) string {
	t, ok := s.image.Load().Topic(cluster.OffsetsTopic)
	if !ok || len(t.Partitions) == 0 {
		return "another broker coordinates groups of this name"
	}
	leader := t.Partitions[records.PartitionOf(name, int32(len(t.Partitions)))].Leader
	if leader < 0 || leader == s.identity.Broker { // between two leaders
		return "this broker does not coordinate groups of this name, and nobody else does yet: try again"
	}
	return fmt.Sprintf("broker %d coordinates groups of this name: ask its monitor (metrics.listen)", leader)
}

func tellGroup(g *coord.InspectedGroup) toldGroup {
	told := toldGroup{Group: g.Group, State: g.State, Type: g.Type, Members: g.Members, Offsets: []toldOffset{}}
	for i := range g.Offsets {
		o := &g.Offsets[i]
		t := toldOffset{Topic: o.Topic, Partition: o.Partition, Offset: int64(o.Offset), Metadata: o.Metadata}
		if o.Offset >= 0 {
			at := time.UnixMilli(int64(o.At)).UTC()
			t.At = &at
		}
		if j := o.Jump; j != nil {
			t.Jump = &toldJump{From: int64(j.From), To: int64(j.To), Records: int64(j.To - j.From), At: time.UnixMilli(int64(j.At)).UTC(), Reason: j.Reason.String()}
		}
		told.Offsets = append(told.Offsets, t)
	}
	return told
}
