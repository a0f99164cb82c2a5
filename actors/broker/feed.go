package broker

import (
	"fmt"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// feed is the input side of a connection, whatever the bytes come from: the intake, the gate, and the address of the session. It is used by one goroutine
// at a time.
type feed struct {
	in      *intake
	gate    *gate
	session *runtime.Ref
	now     func() ident.Instant
}

func newFeed(s *shared, owner claimant) *feed {
	now := func() ident.Instant {
		mono, _ := s.system.Now()
		return mono
	}
	scanner := wire.Scanner{Limit: s.settings.Load().RequestBytesMax}
	return &feed{in: newIntake(s.credit, s.buffers, scanner, owner), gate: newGate(), now: now}
}

// took passes on what n received bytes completed.
func (f *feed) took(n int, to runtime.Sender) error {
	err := f.in.advance(n, f.now)
	f.pass(to)
	return err
}

// granted goes on after credit was granted; false: it was not, after all.
func (f *feed) granted(to runtime.Sender) (bool, error) {
	if !f.in.granted() {
		return false, nil
	}
	f.pass(to)
	return true, f.in.broken
}

// pass gives the session the requests that are complete.
func (f *feed) pass(to runtime.Sender) {
	if r := f.in.take(); r != nil {
		_ = to.Send(f.session, r) // a session that has stopped rejects them, which gives the credit back
	}
}

// spawnSession starts the actor of a connection.
func spawnSession(s *shared, parent *runtime.Ref, id uint64, name uint64, session *session) (*runtime.Ref, error) {
	session.shared, session.id = s, id
	session.out.store = s.buffers
	session.ports.session = session
	ref, err := s.system.Spawn(parent, cast("session", fmt.Sprintf("session-%d", name), session))
	if err != nil {
		return nil, err
	}
	s.facts.opened(&session.client)
	return ref, nil
}
