package group

import (
	"bytes"
	"maps"
	"slices"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/offsets"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Shard is the coordinator of all groups that hash to one partition of __consumer_offsets. It belongs to one actor, which gives it the entries of its
// partition at a load (Apply, then Loaded once), and commands and time from then on (Step, Tick).
type Shard struct {
	cfg    coord.Config
	topics coord.Topics
	groups map[string]*group
	weight int64 // of the groups, see weigh
	sweep  sweep
	timers *coord.Timers
	jumps  *offsets.Jumps
}

// New makes a shard without groups. topics must not be nil.
func New(config coord.Config, topics coord.Topics) *Shard {
	return &Shard{cfg: config, topics: topics, groups: make(map[string]*group), timers: coord.NewTimers(), jumps: offsets.NewJumps()}
}

// Apply takes over an entry of the log. The log may have been compacted in any way that is allowed: a tombstone of what is unknown changes nothing, and
// what is missing is taken as it would be at its beginning.
func (s *Shard) Apply(e records.Entry) {
	if e.Tombstone() && s.groups[e.GroupID()] == nil {
		return
	}
	g := s.ensure(e.GroupID())
	g.apply(e)
	s.forget(g)
}

// Loaded ends a load: all entries have been applied. Members get a whole session from now.
func (s *Shard) Loaded(now coord.Now, out *coord.Out) {
	out.Timers = s.timers
	for _, name := range s.names() {
		s.load(now, s.groups[name], out)
	}
	s.expireLater(now, out)
}

// Step takes a command, and puts the answer, now or in a later step, into out under id. Facts are not answered. The answers of a step wait for all its
// entries: some come after the answer was decided, as when the leaving of one member turns its group into another type.
func (s *Shard) Step(now coord.Now, id ident.RequestID, c coord.Command, out *coord.Out) {
	out.Timers = s.timers
	first := len(out.Replies)
	s.step(now, id, c, out)
	for i := first; i < len(out.Replies); i++ {
		out.Replies[i].After = out.Proposed()
	}
}

func (s *Shard) step(now coord.Now, id ident.RequestID, c coord.Command, out *coord.Out) {
	switch c := c.(type) {
	case *coord.Commit:
		out.Reply(id, s.commit(now, c, out))
	case *coord.FetchOffsets:
		out.Reply(id, s.fetchOffsets(now, c, out))
	case *coord.DeleteOffsets:
		out.Reply(id, s.deleteOffsets(c, out))
	case *coord.TopicsChanged:
		s.topicsChanged(now, c, out)
	case *coord.TopicsDeleted:
		s.topicsDeleted(c, out)
	case *coord.Configure:
		s.cfg = c.Config
	case *coord.Join:
		s.join(now, id, c, out)
	case *coord.Sync:
		s.sync(now, id, c, out)
	case *coord.Heartbeat:
		s.heartbeat(now, id, c, out)
	case *coord.Leave:
		s.leave(now, id, c, out)
	case *coord.ConsumerHeartbeat:
		s.consumerHeartbeat(now, id, c, out)
	case *coord.Describe:
		out.Reply(id, s.describe(c))
	case *coord.ConsumerDescribe:
		out.Reply(id, s.consumerDescribe(c))
	case *coord.List:
		out.Reply(id, s.list(c))
	case *coord.Delete:
		out.Reply(id, &coord.CodeReply{Code: s.delete(c, out)})
	case *coord.Inspect:
		out.Reply(id, s.inspect(now, c))
	case *coord.Jumped:
		s.jumps.Jumped(c)
	}
}

// Next tells when the first timer is due; false: there is none.
func (s *Shard) Next() (ident.Instant, bool) { return s.timers.Next() }

// Entries returns the hard state as the entries that make it, in the order of their keys' bytes: a shard that applies them equals this one.
func (s *Shard) Entries() []records.Entry {
	var all []records.Entry
	for _, name := range s.names() {
		s.groups[name].entries(func(e records.Entry) { all = append(all, e) })
	}
	keys := make(map[records.Entry][]byte, len(all))
	for _, e := range all {
		keys[e] = e.AppendKey(nil)
	}
	slices.SortFunc(all, func(a, b records.Entry) int { return bytes.Compare(keys[a], keys[b]) })
	return all
}

func (s *Shard) names() []string { return slices.Sorted(maps.Keys(s.groups)) }
