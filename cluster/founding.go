package cluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-broker/troupe/wire/ident"
)

// Founding is how a broker without a cluster comes to one: it founds a cluster with others, or joins one that is there. Nobody formats a directory.
//
// Brokers announce themselves to each other. The lowest id among exactly N brokers that belong to no cluster and announce the same N makes a promise: a
// new cluster id, and those N as its voters. It syncs it, as its raft log (Genesis), and announces it; the others, each named by it, do the same. Raft
// starts when all N have: so no voter can vote in two clusters. A directory promises once. After a restart it repeats what it promised, and nothing else;
// only an operator releases it (troupe cluster forget-bootstrap), and only while Raft has not started.
//
// The machine reads no clock: it decides when it hears something. What it says in FoundingOut.Waits is for the log, each time it changes.
type Founding struct {
	options FoundingOptions
	peers   []Announcement // of others, by (broker, node)
	promise *Promise       // made, or kept from an earlier run
	synced  bool           // and on stable storage
	begun   bool
	done    bool // founded or joined
	waits   string
}

// FoundingOptions is everything a Founding is told at birth.
type FoundingOptions struct {
	Self Announcement // Broker, Node, Directory and Expect
	// ClusterID is a random name for a cluster that this broker may come to found.
	ClusterID ident.ClusterID
	Features  []FeatureLevel // finalised from the first record on, if this broker founds
	// Join tells that the broker was told of others to join, Numbered that its id was given to it.
	Join, Numbered bool
	// Durable is the raft log of the directory; one that was never written: nothing is promised.
	Durable Durable
}

// Announcement is what a broker tells all others until it belongs to a cluster, and after that so that those without one find it.
type Announcement struct {
	Broker    ident.BrokerID
	Node      ident.NodeID
	Directory ident.DirectoryID
	Expect    int             // how many voters found the cluster (--bootstrap-expect); 0: this broker founds none
	Cluster   ident.ClusterID // that it belongs to; empty: none
	Promise   *Promise        // what it has promised, synced; nil: nothing
}

// voter is the announcer in the voter set of a promise.
func (a *Announcement) voter() Voter { return Voter{a.Node, a.Broker, a.Directory} }

// FoundingCommand is one input of a Founding. The set is closed.
//
//sumtype:decl
type FoundingCommand interface{ foundingCommand() }

// Begin lets the machine decide, exactly once. What is known of others should be stepped before: who is in sight counts.
type Begin struct{}

// Announced is what another broker tells.
type Announced struct{ Announcement }

// Gone says that a broker is out of sight: what it announced does not count any more.
type Gone struct {
	Broker ident.BrokerID
	Node   ident.NodeID
}

// Promised says that FoundingOut.Promise is on stable storage.
type Promised struct{}

func (*Begin) foundingCommand()     {}
func (*Announced) foundingCommand() {}
func (*Gone) foundingCommand()      {}
func (*Promised) foundingCommand()  {}

// FoundingOut is what one step asks of the shell, in field order. Nil and empty fields ask nothing.
type FoundingOut struct {
	Promise  *Promise        // 1. save its Genesis as the raft log and sync it, then step Promised
	Announce *Announcement   // 2. tell everybody, until there is another
	Found    *Promise        // 3. all have promised: start Raft on the raft log that is there
	Join     ident.ClusterID // 4. follow this cluster as an observer
	Waits    string          // 5. what is being waited for, and what to do about it
}

// NewFounding builds the machine. It fails for an N that founds nothing, or one that contradicts what else the broker was told.
func NewFounding(o FoundingOptions) (*Founding, error) {
	n := o.Self.Expect
	switch {
	case n != 0 && n != 1 && n != 3 && n != 5:
		return nil, fmt.Errorf("--bootstrap-expect=%d: a cluster is founded by 1, 3 or 5 brokers; the others join it", n)
	case n == 0 && !o.Join:
		return nil, fmt.Errorf("--bootstrap-expect=0 without --join: this broker would wait for ever")
	case n == 1 && o.Join:
		return nil, fmt.Errorf("--bootstrap-expect=1 with --join: a broker that joins others founds no cluster alone; leave one of them out")
	case n > 1 && !o.Numbered:
		return nil, fmt.Errorf("--bootstrap-expect=%d needs --broker-id: each founder has its own", n)
	}
	f := &Founding{options: o}
	if o.Durable.Snapshot != nil {
		p, _, err := PromiseOf(o.Durable)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(p.Voters, o.Self.voter()) {
			return nil, fmt.Errorf("TRP-4003: the promise in the raft log names %v, and none of them is this directory of broker %d", p.Voters, o.Self.Broker)
		}
		f.promise, f.synced = &p, true
	}
	return f, nil
}

// PromiseOf reads the promise back from a raft log, and tells whether it may still be forgotten: whether Raft has not started on it.
func PromiseOf(d Durable) (p Promise, fresh bool, err error) {
	l := &raftLog{}
	m, err := l.load(d)
	if err != nil {
		return Promise{}, false, err
	}
	p = Promise{ClusterID: m.clusterID, Voters: m.voters, Features: m.features}
	return p, m.index == 1 && l.last() == 1 && l.hard.GetTerm() == 1 && l.hard.GetVote() == 0, nil
}

// Role is what a raft log makes of the broker that has it.
type Role uint8

const (
	RoleNone     Role = iota // nothing was ever written: Founding
	RoleFounder              // a promise, and Raft has not started on it: Founding
	RoleVoter                // Controller
	RoleObserver             // Observer
)

// RoleOf tells which machine goes on with a raft log. It fails when that is damaged or of a newer version.
func RoleOf(d Durable, node ident.NodeID) (Role, error) {
	if d.Snapshot == nil && d.HardState == nil && len(d.Entries) == 0 {
		return RoleNone, nil
	}
	p, fresh, err := PromiseOf(d)
	switch {
	case err != nil:
		return RoleNone, err
	case !slices.ContainsFunc(p.Voters, func(v Voter) bool { return v.Node == node }):
		return RoleObserver, nil
	case fresh:
		return RoleFounder, nil
	}
	return RoleVoter, nil
}

// Step carries out one command and appends what must be done to out.
func (f *Founding) Step(cmd FoundingCommand, out *FoundingOut) {
	switch cmd := cmd.(type) {
	case *Begin:
		f.begun = true
		f.announce(out)
	case *Announced:
		f.hear(cmd.Announcement)
	case *Gone:
		f.peers = slices.DeleteFunc(f.peers, func(a Announcement) bool { return a.Broker == cmd.Broker && a.Node == cmd.Node })
	case *Promised:
		if f.promise != nil && !f.synced {
			f.synced = true
			f.announce(out)
		}
	default:
		panic(fmt.Sprintf("cluster: no rule for a %T", cmd))
	}
	if f.begun && !f.done {
		f.decide(out)
	}
}

// Announcement is what this broker tells of itself now.
func (f *Founding) Announcement() Announcement {
	a := f.options.Self
	if f.synced {
		a.Promise = f.promise
	}
	return a
}

func (f *Founding) announce(out *FoundingOut) {
	a := f.Announcement()
	out.Announce = &a
}

// peersMax bounds what strangers can make this broker remember.
const peersMax = 256

// hear keeps the newest word of each broker.
func (f *Founding) hear(a Announcement) {
	if a.Node == f.options.Self.Node {
		return // our own, come back
	}
	i, found := slices.BinarySearchFunc(f.peers, a, func(x, y Announcement) int {
		if x.Broker != y.Broker {
			return int(x.Broker) - int(y.Broker)
		}
		return compareUint(uint64(x.Node), uint64(y.Node))
	})
	switch {
	case found:
		f.peers[i] = a
	case len(f.peers) < peersMax:
		f.peers = slices.Insert(f.peers, i, a)
	}
}

// decide does what can be done now.
func (f *Founding) decide(out *FoundingOut) {
	var why string
	switch {
	case f.promise != nil && !f.synced:
		why = "waiting for the disk to keep the promise"
	case f.promise != nil:
		why = f.keep(out)
	default:
		why = f.look(out)
	}
	if why != "" && why != f.waits {
		out.Waits = why
	}
	f.waits = why
}

// clusters lists the clusters in sight.
func (f *Founding) clusters() []ident.ClusterID {
	var out []ident.ClusterID
	for i := range f.peers {
		if c := f.peers[i].Cluster; c != "" && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// keep is what a broker does that has promised: it waits for the others of its promise, and for nothing else.
func (f *Founding) keep(out *FoundingOut) string {
	p := f.promise
	var missing []string
	for _, v := range p.Voters {
		if v.Broker == f.options.Self.Broker {
			continue
		}
		if trouble, promised := f.promisedBy(v); !promised {
			missing = append(missing, trouble)
		}
	}
	clusters := f.clusters()
	if len(missing) == 0 || slices.Contains(clusters, p.ClusterID) { // a member has seen that all have promised
		f.done, out.Found = true, p
		return ""
	}
	why := fmt.Sprintf("cluster %s is promised; waiting for %s", p.ClusterID, strings.Join(missing, ", "))
	if len(clusters) > 0 {
		why += fmt.Sprintf("; cluster %s is in sight, and this directory is promised to another: if it should join that one, stop this broker and run troupe cluster forget-bootstrap", clusters[0])
	}
	return why
}

// promisedBy tells whether a voter of our promise has promised it, else what is wrong with it.
func (f *Founding) promisedBy(v Voter) (string, bool) {
	trouble := fmt.Sprintf("broker %d, which is not in sight", v.Broker)
	for i := range f.peers {
		switch a := &f.peers[i]; {
		case a.Broker != v.Broker:
		case a.voter() != v:
			trouble = fmt.Sprintf("broker %d with its directory of that time; it has another one now: if that is for good, run troupe cluster forget-bootstrap on every broker that promised", v.Broker)
		case a.Promise == nil:
			trouble = fmt.Sprintf("broker %d to promise it, too", v.Broker)
		case !a.Promise.equal(f.promise):
			trouble = fmt.Sprintf("broker %d, which is promised to cluster %s: run troupe cluster forget-bootstrap on one side", v.Broker, a.Promise.ClusterID)
		default:
			return "", true
		}
	}
	return trouble, false
}

// equal compares promises by value; features are the proposer's.
func (p *Promise) equal(o *Promise) bool {
	return p.ClusterID == o.ClusterID && slices.Equal(p.Voters, o.Voters)
}

// look is what a broker does that has promised nothing.
func (f *Founding) look(out *FoundingOut) string {
	self := &f.options.Self
	clusters := f.clusters()
	switch {
	case len(clusters) > 1:
		return fmt.Sprintf("clusters %v are in sight; waiting until it is one: give --join addresses of one cluster", clusters)
	case len(clusters) == 1:
		f.done, out.Join = true, clusters[0]
		return ""
	case self.Expect == 0:
		return "no cluster is in sight and --bootstrap-expect is not given: this broker founds none, it waits for one to join"
	}
	if p := f.proposed(); p != nil {
		f.make(p, out)
		return "waiting for the disk to keep the promise"
	}
	founders := []Announcement{*self}
	for i := range f.peers {
		a := &f.peers[i]
		switch {
		case a.Promise != nil:
			return fmt.Sprintf("broker %d has promised cluster %s to others; waiting to join that", a.Broker, a.Promise.ClusterID)
		case a.Expect == 0:
		case a.Expect != self.Expect:
			return fmt.Sprintf("broker %d expects %d founders, this one %d: start all with the same --bootstrap-expect", a.Broker, a.Expect, self.Expect)
		case slices.ContainsFunc(founders, func(o Announcement) bool { return o.Broker == a.Broker }):
			return fmt.Sprintf("two brokers are number %d: give each its own --broker-id", a.Broker)
		default:
			founders = append(founders, *a)
		}
	}
	switch n := len(founders); {
	case n < self.Expect:
		return fmt.Sprintf("%d of %d founders are in sight; waiting for the others", n, self.Expect)
	case n > self.Expect:
		return fmt.Sprintf("%d brokers want to be among %d founders: start the others without --bootstrap-expect; they join", n, self.Expect)
	}
	slices.SortFunc(founders, func(a, b Announcement) int { return int(a.Broker) - int(b.Broker) })
	if first := founders[0].Broker; first != self.Broker {
		return fmt.Sprintf("all %d founders are in sight; waiting for broker %d, the lowest, to propose the cluster", self.Expect, first)
	}
	p := &Promise{ClusterID: f.options.ClusterID, Features: f.options.Features}
	for i := range founders {
		p.Voters = append(p.Voters, founders[i].voter())
	}
	f.make(p, out)
	return "waiting for the disk to keep the promise"
}

// proposed returns the promise of another that names this broker, this directory and all; of several that of the lowest broker.
func (f *Founding) proposed() *Promise {
	for i := range f.peers {
		if p := f.peers[i].Promise; p != nil && len(p.Voters) == f.options.Self.Expect && slices.Contains(p.Voters, f.options.Self.voter()) && slices.Contains(p.Voters, f.peers[i].voter()) {
			if _, err := Genesis(*p); err == nil {
				return p
			}
		}
	}
	return nil
}

// make promises, once and for all.
func (f *Founding) make(p *Promise, out *FoundingOut) {
	own := Promise{ClusterID: p.ClusterID, Voters: slices.Clone(p.Voters), Features: slices.Clone(p.Features)}
	slices.SortFunc(own.Voters, func(a, b Voter) int { return compareUint(uint64(a.Node), uint64(b.Node)) }) // as an image has them
	f.promise, out.Promise = &own, &own
}

// announcementVersion is the version of what EncodeAnnouncement writes: [version, broker, node, directory, expect, cluster, promise|nil], a promise being
// [cluster, [voter…], [[feature, level]…]]. It grows at its end.
const announcementVersion = 1

// EncodeAnnouncement writes an announcement, at most some 400 bytes.
func EncodeAnnouncement(a Announcement) []byte {
	w := newWriter()
	w.array(7)
	w.uint(announcementVersion)
	w.int(int64(a.Broker))
	w.uint(uint64(a.Node))
	w.bytes(a.Directory[:])
	w.int(int64(a.Expect))
	w.string(string(a.Cluster))
	if a.Promise == nil {
		w.nil()
		return w.buf.Bytes()
	}
	w.array(3)
	w.string(string(a.Promise.ClusterID))
	w.voters(a.Promise.Voters)
	each(w, a.Promise.Features, func(f *FeatureLevel) {
		w.array(2)
		w.string(f.Name)
		w.int(int64(f.Level))
	})
	return w.buf.Bytes()
}

// DecodeAnnouncement reads an announcement of anybody. Errors wrap ErrMalformed.
func DecodeAnnouncement(b []byte) (Announcement, error) {
	r := newReader(b)
	f, a, version := r.fields(), Announcement{}, uint64(0)
	f.uint(&version)
	f.broker(&a.Broker)
	f.uint((*uint64)(&a.Node))
	f.id((*[16]byte)(&a.Directory))
	if f.next() {
		a.Expect = int(r.ranged(0, peersMax))
	}
	f.string((*string)(&a.Cluster))
	if f.next() && !r.null() {
		a.Promise = r.promise()
	}
	f.close()
	if r.err == nil && (r.left() > 0 || version == 0 || a.Node == 0 || a.Broker < 0) {
		r.fail(fmt.Errorf("broker %d, node %v, version %d, %d bytes behind", a.Broker, a.Node, version, r.left()))
	}
	if r.err != nil {
		return Announcement{}, r.err
	}
	return a, nil
}

func (r *reader) promise() *Promise {
	f, p := r.fields(), &Promise{}
	f.string((*string)(&p.ClusterID))
	if f.next() {
		p.Voters = r.voters()
	}
	if f.next() {
		p.Features = list(r, detailsMax, func(f *fields, l *FeatureLevel) {
			f.string(&l.Name)
			number(f, &l.Level, 0, 1<<15-1)
		})
	}
	f.close()
	return p
}
