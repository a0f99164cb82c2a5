package gossip

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/hashicorp/memberlist"
)

const (
	membersMax   = 256 // incarnations in the roster; a cluster has about 50
	strangersMax = 64
)

var errForeign = errors.New("a member of another cluster")

// roster is who is shown, and what of it the owner has not been told. memberlist calls it back with its own lock held: nothing here calls the library,
// and nothing waits.
type roster struct {
	wake func()

	mu        sync.Mutex
	own       Member
	meta      []byte // own, encoded
	members   map[string]*entry
	queue     []string // names that are news, oldest first
	strangers map[string]struct{}
	notes     notebook
	woken     bool
	closed    bool
}

// entry is one incarnation of another broker.
type entry struct {
	member Member
	up     bool // alive by the newest news
	shown  bool // the owner was told that it is alive
	queued bool
}

func newRoster(own Member, meta []byte, wake func()) *roster {
	return &roster{own: own, meta: meta, wake: wake, members: map[string]*entry{}, strangers: map[string]struct{}{}}
}

// self returns what this broker tells, and its encoded form.
func (r *roster) self() (Member, []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.own, r.meta
}

// announce replaces what this broker tells. Members that have become foreign by it are gone.
func (r *roster) announce(own Member, meta []byte) {
	r.mu.Lock()
	r.own, r.meta = own, meta
	for name, e := range r.members {
		if e.up && own.foreign(&e.member) {
			e.up = false
			r.enqueue(name, e)
			r.noteForeign(name, &e.member)
		}
	}
	r.unlock()
}

// admit says why news that the named member is alive must not be believed, nil if it may. It is asked for each such news, the own ones included.
func (r *roster) admit(name string, meta []byte, at netip.AddrPort) error {
	r.mu.Lock()
	defer r.unlock()
	if name == r.own.Name() {
		return nil // memberlist refutes what is wrong about ourselves
	}
	m, err := decodeMember(meta)
	if err == nil && m.Name() != name {
		err = fmt.Errorf("%w: it is called %.64q and tells of %s", errMember, name, m.Name())
	}
	if err == nil && (!at.IsValid() || at.Port() == 0 || at.Addr().IsUnspecified() || at.Addr().IsMulticast()) {
		err = fmt.Errorf("%w: nobody has the address %s", errMember, at)
	}
	if err != nil {
		r.notes.write(codeRefused, at.Addr().String(), fmt.Sprintf("gossip of a broker at %s is refused: %v", at, err))
		return err
	}
	if r.own.foreign(&m) {
		r.noteForeign(name, &m)
		return fmt.Errorf("%s: %w", name, errForeign)
	}
	if _, known := r.members[name]; known {
		return nil
	}
	if len(r.members) >= membersMax {
		r.notes.write(codeRefused, "members", fmt.Sprintf("gossip shows %d brokers already; %s at %s and others are not let in", membersMax, name, at))
		return fmt.Errorf("more than %d members", membersMax)
	}
	if _, waits := r.strangers[name]; !waits && len(r.strangers) >= strangersMax {
		return fmt.Errorf("more than %d strangers", strangersMax)
	}
	r.strangers[name] = struct{}{}
	return nil
}

func (r *roster) noteForeign(name string, m *Member) {
	r.notes.write(codeForeign, name, fmt.Sprintf("broker %d at %s is a member of cluster %s, this one of %s: it is refused. Do both have the same --join?", m.Broker, m.Peer, m.Cluster, r.own.Cluster))
}

// alive takes in that the named member is there, or tells something else than before. admit has let it in.
func (r *roster) alive(name string, meta []byte, at netip.AddrPort) {
	r.mu.Lock()
	defer r.unlock()
	delete(r.strangers, name)
	m, err := decodeMember(meta)
	if r.closed || name == r.own.Name() || err != nil || r.own.foreign(&m) {
		return
	}
	m.Address = at
	e := r.members[name]
	if e == nil {
		e = &entry{}
		r.members[name] = e
	}
	if e.up && e.member.equal(&m) {
		return
	}
	e.member, e.up = m, true
	r.enqueue(name, e)
}

// gone takes in that the named member is dead, or has left.
func (r *roster) gone(name string) {
	r.mu.Lock()
	defer r.unlock()
	e := r.members[name]
	if r.closed || e == nil || !e.up {
		return
	}
	e.up = false
	r.enqueue(name, e)
}

func (r *roster) enqueue(name string, e *entry) {
	if !e.queued {
		e.queued = true
		r.queue = append(r.queue, name)
	}
}

// note writes a note from outside the roster's own methods.
func (r *roster) note(code, offender, text string) {
	r.mu.Lock()
	defer r.unlock()
	r.notes.write(code, offender, text)
}

// forgive lets the failures of a seed or broker be written of again.
func (r *roster) forgive(from string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes.forget(CodeUnreachable, from)
}

// unlock ends a critical section, and wakes the owner if there is news that it has not been woken for. That is part of the section, so that nobody is
// woken after close.
func (r *roster) unlock() {
	if !r.woken && !r.closed && (len(r.queue) > 0 || len(r.notes.waiting) > 0) {
		r.woken = true
		r.wake()
	}
	r.mu.Unlock()
}

// take empties the queue. An incarnation that is gone is forgotten once it has been told.
func (r *roster) take() News {
	r.mu.Lock()
	defer r.mu.Unlock()
	news := News{Notes: r.notes.take()}
	for _, name := range r.queue {
		e := r.members[name]
		fact := Fact{Member: e.member}
		switch {
		case e.up && e.shown:
			fact.State = Updated
		case e.up:
			fact.State = Joined
		case e.member.Leaving:
			fact.State = Left
		default:
			fact.State = Dead
		}
		e.queued, e.shown = false, e.up
		if !e.up {
			delete(r.members, name)
		}
		news.Facts = append(news.Facts, fact)
	}
	r.queue = nil
	r.woken = false
	return news
}

// shows says whether the broker, or whoever is at the address, is shown as alive.
func (r *roster) shows(is func(*Member) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.members {
		if e.up && is(&e.member) {
			return true
		}
	}
	return false
}

// admitStrangers gives all strangers another chance.
func (r *roster) admitStrangers() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.strangers)
}

// close ends all news. What was not taken yet still can be.
func (r *roster) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// The delegates of memberlist. All but NotifyMerge are called with its lock held.
type delegate struct{ roster *roster }

var (
	_ memberlist.Delegate         = delegate{}
	_ memberlist.EventDelegate    = delegate{}
	_ memberlist.AliveDelegate    = delegate{}
	_ memberlist.MergeDelegate    = delegate{}
	_ memberlist.ConflictDelegate = delegate{}
)

// NodeMeta returns what this broker tells.
func (d delegate) NodeMeta(int) []byte {
	_, meta := d.roster.self()
	return meta
}

// NotifyMsg drops a message: brokers send each other none by gossip.
func (d delegate) NotifyMsg([]byte) {}

// GetBroadcasts has nothing to add to the library's own.
func (d delegate) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState has nothing to add to the list of members.
func (d delegate) LocalState(bool) []byte { return nil }

// MergeRemoteState drops the state that others add.
func (d delegate) MergeRemoteState([]byte, bool) {}

// NotifyAlive vetoes news of a member.
func (d delegate) NotifyAlive(node *memberlist.Node) error {
	return d.roster.admit(node.Name, node.Meta, addressOf(node))
}

// NotifyMerge vetoes a whole exchange in which a member of another cluster takes part, so that two clusters do not run together through a broker that has
// none yet.
func (d delegate) NotifyMerge(nodes []*memberlist.Node) error {
	own, _ := d.roster.self()
	for _, node := range nodes {
		m, err := decodeMember(node.Meta)
		if err != nil || !own.foreign(&m) || (node.State != memberlist.StateAlive && node.State != memberlist.StateSuspect) {
			continue
		}
		return d.roster.admit(node.Name, node.Meta, addressOf(node))
	}
	return nil
}

// NotifyJoin hears that a member is alive and was not before.
func (d delegate) NotifyJoin(node *memberlist.Node) {
	d.roster.alive(node.Name, node.Meta, addressOf(node))
}

// NotifyUpdate hears that a member tells something else.
func (d delegate) NotifyUpdate(node *memberlist.Node) {
	d.roster.alive(node.Name, node.Meta, addressOf(node))
}

// NotifyLeave hears that a member is dead or has left, and cannot know which.
func (d delegate) NotifyLeave(node *memberlist.Node) { d.roster.gone(node.Name) }

// NotifyConflict hears that somebody else goes by the name of a member.
func (d delegate) NotifyConflict(_, other *memberlist.Node) {
	d.roster.note(codeRefused, other.Name, fmt.Sprintf("gossip of %.64q at %s is refused: the name belongs to another address", other.Name, addressOf(other)))
}

func addressOf(node *memberlist.Node) netip.AddrPort {
	address, _ := netip.AddrFromSlice(node.Addr)
	return netip.AddrPortFrom(address.Unmap(), node.Port)
}
