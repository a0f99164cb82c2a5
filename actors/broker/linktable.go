package broker

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// linkInfo is one connection between brokers as everybody here sees it. It does not change once the link is open, but for voided.
type linkInfo struct {
	ref      *runtime.Ref
	peer     peer.Identity
	purpose  peer.Purpose
	dialled  bool // by this side
	version  uint8
	founding bool // one side has no cluster: only what founds one may pass

	voided atomic.Bool // another run, or another connection, has taken its place: what still comes is not heard
}

// linkTable is who this broker is and which links are open. It locks itself for some instructions: the links ask it on their turns, and senders find in it
// where to send.
type linkTable struct {
	mu    sync.Mutex
	self  peer.Identity
	peers map[ident.BrokerID]*linkPeer
}

// linkPeer is what is known of one other broker.
type linkPeer struct {
	newest peer.Identity // with the greatest epoch that was seen
	links  []*linkInfo   // open; of one run, at most one of each purpose and direction
}

func newLinkTable(self peer.Identity) *linkTable {
	return &linkTable{self: self, peers: make(map[ident.BrokerID]*linkPeer)}
}

// identity is who this broker is now.
func (t *linkTable) identity() peer.Identity {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.self
}

// become changes who this broker is. Links that were opened as somebody else are void and are returned.
func (t *linkTable) become(self peer.Identity) (void []*linkInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.self == self {
		return nil
	}
	t.self = self
	for _, b := range slices.Sorted(maps.Keys(t.peers)) { // in an order, so that a simulation is the same each time
		p := t.peers[b]
		void = append(void, p.links...)
		p.links = nil
	}
	voidAll(void)
	return void
}

func voidAll(links []*linkInfo) {
	for _, l := range links {
		l.voided.Store(true)
	}
}

// enter makes a link one of those that are open, and returns those which it makes void: of older runs of its broker, and the one in its place. It refuses a
// link of a run that is over.
func (t *linkTable) enter(l *linkInfo) (void []*linkInfo, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peers[l.peer.Broker]
	if p == nil {
		p = &linkPeer{newest: peer.Identity{Epoch: ident.NoBrokerEpoch}}
		t.peers[l.peer.Broker] = p
	}
	if err := p.contradicts(&l.peer); err != nil {
		return nil, err
	}
	if l.peer.Epoch != ident.NoBrokerEpoch {
		p.newest = l.peer
	}
	p.links = slices.DeleteFunc(p.links, func(old *linkInfo) bool {
		gone := old.voidedBy(l)
		if gone {
			void = append(void, old)
		}
		return gone
	})
	voidAll(void)
	p.links = append(p.links, l)
	return void, nil
}

// contradicts says why who claims to be a broker cannot be it.
func (p *linkPeer) contradicts(who *peer.Identity) error {
	newest := &p.newest
	switch {
	case newest.Epoch == ident.NoBrokerEpoch:
		return nil
	case who.Epoch == ident.NoBrokerEpoch && who.Incarnation != newest.Incarnation:
		return nil // another run, that has not registered yet
	case who.Epoch < newest.Epoch && who.Incarnation == newest.Incarnation:
		return &limitError{codeLinkAgain, fmt.Sprintf("broker %d has registered while this connection was made; connect again", who.Broker)}
	case who.Epoch < newest.Epoch:
		return &limitError{codeLinkRun, fmt.Sprintf("broker %d has registered with epoch %d since; this connection states epoch %d, of a run that is over", who.Broker, newest.Epoch, who.Epoch)}
	case who.Epoch == newest.Epoch && (who.Incarnation != newest.Incarnation || who.Directory != newest.Directory):
		return &limitError{codeLinkRun, fmt.Sprintf("two processes state epoch %d of broker %d; was a data directory copied?", who.Epoch, who.Broker)}
	}
	return nil
}

// voidedBy tells whether l has made the link void.
func (old *linkInfo) voidedBy(l *linkInfo) bool {
	if l.peer.Epoch > old.peer.Epoch {
		return true
	}
	// Whoever has not registered takes nobody's place but its own: another may run with the same id, and each would end the connection of the other for ever.
	return l.peer.Incarnation == old.peer.Incarnation && l.purpose == old.purpose && l.dialled == old.dialled
}

// leave forgets a link that has ended.
func (t *linkTable) leave(l *linkInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.peers[l.peer.Broker]; p != nil {
		p.links = slices.DeleteFunc(p.links, func(o *linkInfo) bool { return o == l })
	}
}

// forget drops what is known of a broker that has no link.
func (t *linkTable) forget(b ident.BrokerID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.peers[b]; p != nil && len(p.links) == 0 {
		delete(t.peers, b)
	}
}

// open is how many links a broker has.
func (t *linkTable) open(b ident.BrokerID) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.peers[b]; p != nil {
		return len(p.links)
	}
	return 0
}

// find returns the link to a broker that this side has dialled, or was dialled; nil when there is none.
func (t *linkTable) find(b ident.BrokerID, purpose peer.Purpose, dialled bool) *linkInfo {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peers[b]
	if p == nil {
		return nil
	}
	var best *linkInfo
	for _, l := range p.links {
		if l.purpose == purpose && l.dialled == dialled && (best == nil || l.peer.Epoch >= best.peer.Epoch) {
			best = l
		}
	}
	return best
}

// last is the newest run of a broker that was seen.
func (t *linkTable) last(b ident.BrokerID) (peer.Identity, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.peers[b]
	if p == nil || p.newest.Epoch == ident.NoBrokerEpoch {
		return peer.Identity{}, false
	}
	return p.newest, true
}
