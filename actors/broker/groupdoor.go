package broker

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/group/coord"
)

// inspectGroup asks a coordinator for one group. answer has room for all that are asked.
type inspectGroup struct {
	group  string
	answer chan<- *coord.InspectReply
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
func (i *inspectGroup) answered(_ *runtime.Turn, a coord.Answer) {
	reply, _ := a.(*coord.InspectReply)
	i.answer <- reply
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

// GroupHandler tells of one group that this broker coordinates, by ?group=NAME: its committed offsets, and what it jumped over. 404: it is not here.
func (b *Broker) GroupHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		names := r.URL.Query()["group"]
		if len(names) != 1 {
			http.Error(w, "which group? /groups?group=NAME", http.StatusBadRequest)
			return
		}
		g, missed := b.shared.inspectGroup(names[0])
		switch {
		case g == nil && missed > 0:
			http.Error(w, "the groups are being loaded, or the broker is too busy: try again", http.StatusServiceUnavailable)
			return
		case g == nil:
			http.Error(w, "there is no such group here", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(tellGroup(g)); err != nil {
			return // whoever asked has gone
		}
	})
}

// inspectGroup finds a group, for at most the time of a scrape; missed are the coordinators that did not answer.
func (s *shared) inspectGroup(name string) (g *coord.InspectedGroup, missed int) {
	refs := s.topics.Load().coordinators()
	answers := make(chan *coord.InspectReply, len(refs))
	for _, ref := range refs {
		_ = ref.Post(&inspectGroup{group: name, answer: answers}) // Reject answers
	}
	expired := make(chan struct{})
	alarm := s.system.Clock().NewAlarm(func() { close(expired) })
	alarm.Set(scrapeMax)
	defer alarm.Cancel()
	for asked := len(refs); asked > 0; asked-- {
		select {
		case a := <-answers:
			if a == nil {
				missed++
				continue
			}
			for i := range a.Groups {
				if a.Groups[i].Group == name {
					return &a.Groups[i], 0
				}
			}
		case <-expired:
			return nil, missed + asked
		}
	}
	return nil, missed
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
