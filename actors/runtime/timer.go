package runtime

import (
	"time"

	"github.com/troupe-broker/troupe/wire/ident"
)

// Timer sends a message to the actor that made it, some time after it was armed. It
// is used inside turns of that actor only. What Stop or Reset has called off does
// not arrive any more, not even when it was queued already. Timers of an actor end
// with it, and with its instance when it is restarted. A Timer does not count
// against the bounds of the mailbox.
type Timer struct {
	mb       *mailbox
	msg      Message
	alarm    Alarm
	deadline ident.Instant // 0: not armed
	queued   bool          // the message is in the mailbox and wanted
	stale    int           // messages in the mailbox that were called off
	once     bool          // forgotten when it was delivered

	prev, next *Timer // in the set of its actor
}

// Bytes is 0: a timer is the actor's own.
func (t *Timer) Bytes() int { return 0 }

// Reset arms the timer to fire d from now, whatever it was doing.
func (t *Timer) Reset(d time.Duration) {
	now, _ := t.mb.sys.clock.Now()
	t.mb.mu.Lock()
	t.callOff()
	t.deadline = max(now+ident.Instant(d), 1)
	closed := t.mb.closed
	t.mb.mu.Unlock()
	if !closed {
		t.alarm.Set(d)
	}
}

// Stop calls the message off.
func (t *Timer) Stop() {
	t.mb.mu.Lock()
	t.callOff()
	t.mb.mu.Unlock()
	t.alarm.Cancel()
	if t.once {
		t.mb.timers.remove(t)
	}
}

// callOff forgets the arming and a queued message. mb.mu is held.
func (t *Timer) callOff() {
	t.deadline = 0
	if t.queued {
		t.queued = false
		t.stale++
	}
}

// ring decides, when the alarm went off, whether the message is to be queued. An
// alarm may be early: its fire can overtake a Reset, and clocks round. mb.mu is held.
func (t *Timer) ring() bool {
	if t.deadline == 0 {
		return false
	}
	if now, _ := t.mb.sys.clock.Now(); now < t.deadline {
		t.alarm.Set(time.Duration(t.deadline - now))
		return false
	}
	t.deadline = 0
	t.queued = true
	return true
}

// deliver gives the message of a queued timer, or nil when it was called off. mb.mu
// is held by the owner of the claim.
func (t *Timer) deliver() Message {
	if t.stale > 0 {
		t.stale--
		return nil
	}
	t.queued = false
	if t.once {
		t.mb.timers.remove(t)
	}
	return t.msg
}

// timerSet is the list of an actor's timers, owned by whoever holds its claim.
type timerSet struct {
	head *Timer
}

func (s *timerSet) add(t *Timer) {
	t.next = s.head
	if s.head != nil {
		s.head.prev = t
	}
	s.head = t
}

func (s *timerSet) remove(t *Timer) {
	switch {
	case t.prev != nil:
		t.prev.next = t.next
	case s.head == t:
		s.head = t.next
	default:
		return // removed before
	}
	if t.next != nil {
		t.next.prev = t.prev
	}
	t.prev, t.next = nil, nil
}

// clear calls all timers off and forgets them.
func (s *timerSet) clear() {
	for s.head != nil {
		t := s.head
		s.remove(t)
		t.once = false
		t.Stop()
	}
}
