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
// Two sources tell of others. What a broker announces on a link to it (Announced) is what counts for founding and joining. What gossip shows of it (Seen) may
// be there earlier, or alone, where no link can be opened: it only holds a founding up. So no cluster is founded while a member of one is in sight by either,
// nor while gossip shows another founder than those that were heard.
//
// The machine reads no clock: it decides when it hears something. What it says in FoundingOut.Waits is for the log, each time it changes.
type Founding struct {
	options FoundingOptions
	sights  []sight     // of others, by (broker, node)
	words   []Announced // of runs that gossip shows no more, oldest first; one of each broker's directory; they count for nothing
	promise *Promise    // made, or kept from an earlier run
	synced  bool        // and on stable storage
	begun   bool
	address string // of this broker
	done    bool   // founded or joined
	waits   string
	wrong   bool // while it waits: somebody has to do something
}

// FoundingOptions is everything a Founding is told at birth.
type FoundingOptions struct {
	Self Announcement // Broker, Node, Directory and Expect
	// ClusterID is a random name for a cluster that this broker may come to found.
	ClusterID ident.ClusterID
	Features  []FeatureLevel // finalised from the first record on, if this broker founds
	Serves    []FeatureRange // what it can serve, if another does
	// Join tells that the broker was told of others to join, Numbered that its id was given to it.
	Join, Numbered bool
	// Durable is the raft log of the directory; one that was never written: nothing is promised.
	Durable Durable
}

// FoundingCommand is one input of a Founding. The set is closed.
//
//sumtype:decl
type FoundingCommand interface{ foundingCommand() }

// Begin lets the machine decide, exactly once. What is known of others should be stepped before: who is in sight counts.
type Begin struct {
	Address string // of this broker's peer port, for people
}

// Announced is what another broker tells on a link.
type Announced struct {
	Announcement
	Run Incarnation // of the process that told it
}

// Seen is what gossip shows of a run of a broker, from now on.
type Seen struct {
	Broker  ident.BrokerID
	Node    ident.NodeID
	Run     Incarnation
	Address string // of its peer port, for people
	Expect  int
	Cluster ident.ClusterID // that it belongs to; empty: none
}

// Gone says that gossip does not show a run of a broker any more: neither what it announced nor what was seen of it counts, until gossip shows the same run
// again or it announces itself again. Gossip may take a run for dead whose link stays open.
type Gone struct {
	Broker ident.BrokerID
	Node   ident.NodeID
	Run    Incarnation
}

// Promised says that FoundingOut.Promise is on stable storage.
type Promised struct{}

func (*Begin) foundingCommand()     {}
func (*Announced) foundingCommand() {}
func (*Seen) foundingCommand()      {}
func (*Gone) foundingCommand()      {}
func (*Promised) foundingCommand()  {}

// FoundingOut is what one step asks of the shell, in field order. Nil and empty fields ask nothing.
type FoundingOut struct {
	Promise  *Promise        // 1. save its Genesis as the raft log and sync it, then step Promised
	Announce *Announcement   // 2. tell everybody, until there is another
	Found    *Promise        // 3. all have promised: start Raft on the raft log that is there
	Join     ident.ClusterID // 4. follow this cluster as an observer
	Waits    string          // 5. what is being waited for, or why not any more, and what to do about it
	Wrong    bool            // and that this does not pass by waiting: somebody has to do that
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

// Step carries out one command and appends what must be done to out.
func (f *Founding) Step(cmd FoundingCommand, out *FoundingOut) {
	switch cmd := cmd.(type) {
	case *Begin:
		f.begun, f.address = true, cmd.Address
		f.announce(out)
	case *Announced:
		f.hear(cmd)
	case *Seen:
		f.see(cmd)
	case *Gone:
		f.lose(cmd)
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

// decide does what can be done now.
func (f *Founding) decide(out *FoundingOut) {
	var why string
	f.wrong = false
	switch {
	case f.promise != nil && !f.synced:
		why = "waiting for the disk to keep the promise"
	case f.promise != nil:
		why = f.keep(out)
	default:
		why = f.look(out)
	}
	if why != "" && why != f.waits {
		out.Waits, out.Wrong = why, f.wrong
	}
	f.waits = why
}

// amiss marks a reason to wait that somebody has to end.
func (f *Founding) amiss(format string, args ...any) string {
	f.wrong = true
	return fmt.Sprintf(format, args...)
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
	members := f.members()
	started := slices.ContainsFunc(members, func(s *sight) bool { return s.heard() && s.Cluster == p.ClusterID }) // a member has seen that all have promised
	if len(missing) == 0 || started {
		f.done, out.Found = true, p
		return ""
	}
	why := fmt.Sprintf("cluster %s is promised; waiting for %s", p.ClusterID, strings.Join(missing, " and for "))
	if i := slices.IndexFunc(members, func(s *sight) bool { return s.cluster() != p.ClusterID }); i >= 0 {
		why += f.amiss("; %s is a member of cluster %s, and this directory is promised to another: if it should join that one, stop this broker and run troupe cluster forget-bootstrap",
			members[i], members[i].cluster())
	}
	return why
}

// promisedBy tells whether a voter of our promise has promised it, else what is wrong with it.
func (f *Founding) promisedBy(v Voter) (string, bool) {
	trouble := fmt.Sprintf("broker %d, which is not in sight", v.Broker)
	for i := range f.sights {
		switch s := &f.sights[i]; {
		case s.Broker != v.Broker:
		case !s.heard():
			trouble = fmt.Sprintf("a connection to %s", s)
		case s.voter() != v:
			trouble = f.amiss("broker %d with its directory of that time; it has another one now: if that is for good, run troupe cluster forget-bootstrap on every broker that promised", v.Broker)
		case s.Promise == nil:
			trouble = fmt.Sprintf("%s to promise it, too", s)
		case !s.Promise.equal(f.promise):
			trouble = f.amiss("%s, which is promised to cluster %s: run troupe cluster forget-bootstrap on one side", s, s.Promise.ClusterID)
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
	if s := f.double(); s != nil && s.Node == self.Node {
		return fmt.Sprintf("gossip shows %s with this broker's id and directory: an earlier run, which it will soon forget, or a copy; waiting until it is gone", s)
	} else if s != nil {
		return f.amiss("two brokers are number %d, this one%s and %s: give each its own --broker-id", self.Broker, at(f.address), s)
	}
	if members := f.members(); len(members) > 0 {
		return f.join(members, out)
	}
	if self.Expect == 0 {
		return "no cluster is in sight and --bootstrap-expect is not given: this broker founds none, it waits for one to join"
	}
	if p := f.proposed(); p != nil {
		for _, l := range p.Features {
			if !serves(f.options.Serves, l.Name, l.Level) {
				return f.amiss("cluster %s is proposed with %s level %d, which this build does not serve: start founders of one build", p.ClusterID, l.Name, l.Level)
			}
		}
		f.make(p, out)
		return "waiting for the disk to keep the promise"
	}
	others, trouble := f.founders()
	if trouble != "" {
		return trouble
	}
	first, unheard := self.Broker, []string(nil)
	for _, s := range others {
		if first = min(first, s.Broker); !s.heard() {
			unheard = append(unheard, s.String())
		}
	}
	switch n := len(others) + 1; {
	case n < self.Expect:
		return fmt.Sprintf("%d of %d founders are in sight%s; waiting for the others", n, self.Expect, listed(others))
	case n > self.Expect:
		return f.amiss("%d brokers want to be among %d founders%s: start the others without --bootstrap-expect; they join", n, self.Expect, listed(others))
	case len(unheard) > 0:
		return fmt.Sprintf("all %d founders are in sight; waiting for a connection to %s", self.Expect, strings.Join(unheard, " and to "))
	case first != self.Broker:
		return fmt.Sprintf("all %d founders are in sight; waiting for broker %d, the lowest, to propose the cluster", self.Expect, first)
	}
	p := &Promise{ClusterID: f.options.ClusterID, Features: f.options.Features, Voters: []Voter{self.voter()}}
	for _, s := range others {
		p.Voters = append(p.Voters, s.voter())
	}
	f.make(p, out)
	return "waiting for the disk to keep the promise"
}

// double returns another process that is this broker; nil: there is none.
func (f *Founding) double() *sight {
	i := slices.IndexFunc(f.sights, func(s sight) bool { return s.Broker == f.options.Self.Broker })
	if i < 0 {
		return nil
	}
	return &f.sights[i]
}

// join enters the one cluster that is in sight, once a member of it has been heard.
func (f *Founding) join(members []*sight, out *FoundingOut) string {
	var heard *sight
	for _, s := range members {
		if other := members[0]; s.cluster() != other.cluster() {
			return f.amiss("members of two clusters are in sight, %s of %s and %s of %s; waiting until it is one: give --join addresses of one cluster",
				other, other.cluster(), s, s.cluster())
		}
		if heard == nil && s.heard() && s.Cluster != "" {
			heard = s
		}
	}
	if heard == nil {
		return fmt.Sprintf("%s is a member of cluster %s; waiting for a connection to it, to join", members[0], members[0].cluster())
	}
	f.done, out.Join = true, heard.Cluster
	why := fmt.Sprintf("%s is a member of cluster %s: joining it", heard, heard.Cluster)
	if n := f.options.Self.Expect; n > 0 {
		why += fmt.Sprintf(" in spite of --bootstrap-expect=%d, which founds no second one", n)
	}
	return why
}

// founders are the others that want to found a cluster with this broker, or what is wrong with them.
func (f *Founding) founders() (others []*sight, trouble string) {
	self := &f.options.Self
	for i := range f.sights {
		s := &f.sights[i]
		switch n := s.expect(); {
		case s.heard() && s.Promise != nil:
			return nil, fmt.Sprintf("%s has promised cluster %s to others; waiting to join that", s, s.Promise.ClusterID)
		case n == 0:
		case n != self.Expect:
			return nil, f.amiss("%s expects %d founders, this one %d: start all with the same --bootstrap-expect", s, n, self.Expect)
		case len(others) > 0 && others[len(others)-1].Broker == s.Broker: // they are sorted
			return nil, f.amiss("two brokers are number %d, %s and %s: give each its own --broker-id", s.Broker, others[len(others)-1], s)
		default:
			others = append(others, s)
		}
	}
	return others, ""
}

// listed names who is in sight.
func listed(others []*sight) string {
	if len(others) == 0 {
		return ""
	}
	names := make([]string, len(others))
	for i, s := range others {
		names[i] = s.String()
	}
	return " (this one, " + strings.Join(names, ", ") + ")"
}

// proposed returns the promise of another that names this broker, this directory and all; of several that of the lowest broker.
func (f *Founding) proposed() *Promise {
	for i := range f.sights {
		s := &f.sights[i]
		if p := s.Promise; s.heard() && p != nil && len(p.Voters) == f.options.Self.Expect && slices.Contains(p.Voters, f.options.Self.voter()) && slices.Contains(p.Voters, s.voter()) {
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
