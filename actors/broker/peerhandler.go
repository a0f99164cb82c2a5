package broker

import (
	"bytes"
	"errors"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// peerHandler gives what links tell to whom it is for: the controller actor what is about the cluster, the replicas what is about records.
type peerHandler struct{ shared *shared }

// replicaLinks is who hears what links tell about records. Its methods are those of linkHandler.
type replicaLinks interface {
	opened(t *runtime.Turn, l *linkInfo)
	closed(t *runtime.Turn, l *linkInfo, reason error)
	heard(t *runtime.Turn, l *linkInfo, m peer.Message)
	answered(t *runtime.Turn, l *linkInfo, a *peer.Answer, hold *chunk)
}

// Messages for the controller actor.
type (
	// linkUp tells that a control link can be used.
	linkUp struct{ link *linkInfo }
	// linkLost tells that a run of a broker is over: its connections have ended and nobody listens at its address.
	linkLost struct{ who peer.Identity }
	// letterIn is a letter of another voter.
	letterIn struct {
		broker   ident.BrokerID
		from, to ident.NodeID
		data     []byte
	}
	// announced is what another broker tells about itself while one of the two has no cluster.
	announced struct{ cluster.Announced }
)

// Bytes implements runtime.Message.
func (*linkUp) Bytes() int     { return 0 }
func (*linkLost) Bytes() int   { return 0 }
func (m *letterIn) Bytes() int { return len(m.data) }
func (*announced) Bytes() int  { return 0 }

// tell sends to the controller actor, which is gone only when the broker stops.
func (h *peerHandler) tell(t *runtime.Turn, m runtime.Message) { _ = t.Send(h.shared.controller, m) }

// admit implements linkHandler: everybody who gets so far may speak.
func (h *peerHandler) admit(*peer.Identity) error { return nil }

func (h *peerHandler) opened(t *runtime.Turn, l *linkInfo) {
	if l.purpose == peer.Control && l.dialled {
		h.tell(t, &linkUp{link: l})
	}
	if h.shared.replicas != nil {
		h.shared.replicas.opened(t, l)
	}
}

func (h *peerHandler) closed(t *runtime.Turn, l *linkInfo, reason error) {
	if h.shared.replicas != nil {
		h.shared.replicas.closed(t, l, reason)
	}
}

func (h *peerHandler) down(t *runtime.Turn, who peer.Identity) { h.tell(t, &linkLost{who: who}) }

func (h *peerHandler) letter(t *runtime.Turn, l *linkInfo, from, to ident.NodeID, data []byte) {
	h.tell(t, &letterIn{broker: l.peer.Broker, from: from, to: to, data: data})
}

func (h *peerHandler) heard(t *runtime.Turn, l *linkInfo, m peer.Message) {
	switch m := m.(type) {
	case *peer.Request:
		h.request(t, l, m)
	case *peer.Announcement:
		a, err := cluster.DecodeAnnouncement(bytes.Clone(m.Body))
		if err != nil || a.Broker != l.peer.Broker || a.Node != l.peer.Node {
			h.shared.log.Warn().Int32("peer", int32(l.peer.Broker)).Err(err).Msg("what another broker announces makes no sense")
			return
		}
		h.tell(t, &announced{cluster.Announced{Announcement: a, Run: l.peer.Incarnation}})
	default:
		if h.shared.replicas != nil {
			h.shared.replicas.heard(t, l, m)
		}
	}
}

// answered implements linkHandler.
func (h *peerHandler) answered(t *runtime.Turn, l *linkInfo, a *peer.Answer, hold *chunk) {
	if h.shared.replicas != nil {
		h.shared.replicas.answered(t, l, a, hold)
	}
}

// request takes a command of another broker for the controller. It is stamped here, on arrival: a slow controller fences nobody. The body was put together
// from its pieces, and is nobody else's.
func (h *peerHandler) request(t *runtime.Turn, l *linkInfo, m *peer.Request) {
	command, err := cluster.DecodeCommand(m.Body)
	if errors.Is(err, cluster.ErrMalformed) { // a client has asked for more than a command may have: the controller's own clients hear the same
		h.refuse(t, l, m.ID, wire.InvalidRequest, err.Error())
		return
	}
	if err != nil {
		h.refuse(t, l, m.ID, wire.UnsupportedVersion, err.Error())
		return
	}
	if of := brokerOf(command); of != ident.NoBroker && of != l.peer.Broker {
		h.refuse(t, l, m.ID, wire.ClusterAuthorizationFailed, "a command of broker "+of.String()+" came from broker "+l.peer.Broker.String())
		return
	}
	now, _ := t.Now()
	h.tell(t, &remoteCommand{link: l, id: m.ID, arrived: now, waitMs: m.DeadlineMs, bytes: len(m.Body), command: command, ask: cluster.AskOf(command)})
}

func (h *peerHandler) refuse(t *runtime.Turn, l *linkInfo, id uint64, code wire.ErrorCode, text string) {
	_ = t.Send(l.ref, &linkMessage{&peer.Response{ID: id, Result: code, Text: text}}) // one that has stopped has nobody to answer
}

// brokerOf is the broker in whose name a command speaks; ident.NoBroker: it could be anybody's.
func brokerOf(c cluster.Command) ident.BrokerID {
	switch c := c.(type) { //nolint:gochecksumtype // the others are of clients
	case *cluster.RegisterBroker:
		return c.Broker
	case *cluster.Heartbeat:
		return c.Broker
	case *cluster.Verified:
		return c.Broker
	case *cluster.ChangeISR:
		return c.Broker
	case *cluster.AllocateProducerIDs:
		return c.Broker
	case *cluster.Pull:
		return c.Broker
	}
	return ident.NoBroker
}
