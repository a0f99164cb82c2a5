package group

import "fmt"

// Check verifies every invariant of a shard that has been loaded whole, and returns an error that names the first broken one. It is meant for tests and
// simulations: its cost grows with the state.
func (s *Shard) Check() error {
	for _, name := range s.names() {
		g := s.groups[name]
		switch {
		case g.consumer != nil && g.classic != nil:
			return fmt.Errorf("group %q has two types", name)
		case g.consumer == nil && g.classic == nil && g.offsets.Len() == 0:
			return fmt.Errorf("group %q has nothing", name)
		case g.consumer != nil:
			if err := g.consumer.Check(); err != nil {
				return err
			}
		}
	}
	return nil
}
