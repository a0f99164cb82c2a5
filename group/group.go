package group

import (
	"github.com/troupe-broker/troupe/group/offsets"
)

// group is what a shard has of one group.
type group struct {
	name    string
	offsets *offsets.Group
}

// ensure finds a group or makes it.
func (s *Shard) ensure(name string) *group {
	g := s.groups[name]
	if g == nil {
		g = &group{name: name, offsets: offsets.New(name)}
		s.groups[name] = g
	}
	return g
}

// forget drops a group that has nothing any more: the log does not know it either.
func (s *Shard) forget(g *group) {
	if g.offsets.Len() == 0 {
		delete(s.groups, g.name)
	}
}

// The words of ListGroups and DescribeGroups.
const (
	stateEmpty = "Empty"
	stateDead  = "Dead"

	typeClassic  = "Classic"
	typeConsumer = "Consumer"
)
