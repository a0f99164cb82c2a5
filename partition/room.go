package partition

import "github.com/troupe-broker/troupe/wire/ident"

// room is whether the log can grow, as appends have shown. A replica whose disk is full
// is sound: it keeps what it has, and serves it. But a follower that cannot append holds
// up acks=all, and a leader that cannot refuses everything, while others have room. So
// the controller is told, and who leads and who is in the ISR is its affair.
//
// A follower is full with the first refusal. A leader is full when it has had no room for
// FullNanos: retention may make some, and a leadership moves not without need. From then
// on the machine looks from time to time whether there is room again, by reserving some:
// where nothing is to be written nobody else would find out. After a relapse it looks
// later, so that a disk that is full now and then does not fill the metadata log.
type room struct {
	refused ident.Instant // the first refusal since a batch was written; never: none
	bytes   int32         // of the largest batch that was refused since then
	full    bool          // the controller was told so
	pause   int64         // until the next look, in nanoseconds
	freed   ident.Instant // when it was told last that there is room again
}

// outOfRoom takes in that there was no room for a batch. A lone replica has nobody whom
// it would matter to.
func (m *Machine) outOfRoom(now Now, bytes int32, out *Out) {
	r := &m.room
	r.bytes = max(r.bytes, bytes)
	if r.full || len(m.replicas.all) < 2 || m.config.FullNanos <= 0 {
		return
	}
	if r.refused == never {
		r.refused = now.Mono
	}
	switch {
	case m.role == Following:
		m.becomeFull(now, out)
	case m.role == Leading && m.roomAlarm == never:
		m.armRoom(now, r.refused+ident.Instant(m.config.FullNanos), out)
	}
}

// foundRoom takes in that a batch was written. A replica that is full stays so until it
// is looked for room.
func (m *Machine) foundRoom() {
	if r := &m.room; !r.full && r.refused != never {
		r.refused, r.bytes = never, 0
		m.roomAlarm = never
	}
}

// lookForRoom has the shell find out whether a batch can be written.
func (m *Machine) lookForRoom(now Now, out *Out) {
	m.roomAlarm = never
	r := &m.room
	if !r.full && r.refused == never || m.role == Stopped {
		return
	}
	if m.cut.open {
		m.armRoom(now, now.Mono+ident.Instant(max(r.pause, m.config.FullNanos, 1)), out)
		return
	}
	out.Persist = append(out.Persist, Write{Kind: WriteRoom, Offset: m.end, LeaderEpoch: m.leaderEpoch, Bytes: max(r.bytes, 1)})
}

// looked takes in what was found.
func (m *Machine) looked(now Now, c *Looked, out *Out) {
	r := &m.room
	switch {
	case m.role == Stopped:
	case !c.Room && r.full:
		m.armRoom(now, now.Mono+ident.Instant(r.pause), out)
	case !c.Room:
		m.becomeFull(now, out)
	case r.full:
		r.full, r.freed = false, now.Mono
		r.refused, r.bytes = never, 0
		out.Condition = append(out.Condition, Condition{})
		out.note(Note{Kind: NoteRoom, Offset: m.end, LeaderEpoch: m.leaderEpoch})
	default:
		r.refused, r.bytes = never, 0
	}
}

// becomeFull tells the controller that the log cannot grow.
func (m *Machine) becomeFull(now Now, out *Out) {
	r := &m.room
	r.full = true
	relapse := r.pause > 0 && now.Mono-r.freed < ident.Instant(m.config.LagNanos)
	if r.pause = 2 * r.pause; !relapse {
		r.pause = m.config.FullNanos
	}
	r.pause = max(min(r.pause, m.config.LagNanos), m.config.FullNanos)
	out.Condition = append(out.Condition, Condition{Full: true})
	out.note(Note{Kind: NoteFull, Offset: m.end, LeaderEpoch: m.leaderEpoch})
	m.armRoom(now, now.Mono+ident.Instant(r.pause), out)
}

// armRoom arms the next look.
func (m *Machine) armRoom(now Now, at ident.Instant, out *Out) {
	m.roomAlarm = max(at, now.Mono)
	out.Arm = append(out.Arm, Alarm{Key: AlarmRoom, At: m.roomAlarm})
}
