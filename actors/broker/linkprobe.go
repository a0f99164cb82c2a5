package broker

import (
	"fmt"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// linkPace is how long things may take on a link.
type linkPace struct {
	greeting time.Duration // connecting included
	farewell time.Duration // for a peer that is refused to read why
	tick     time.Duration // between looks
	echo     time.Duration // of silence, either way, until who has dialled asks for an echo
	stuck    time.Duration // for the peer of a data connection to take no byte of an answer, and say nothing
	silence  time.Duration // for a peer to say nothing at all
}

// usualPace is that of a local network.
var usualPace = linkPace{
	greeting: 5 * time.Second, farewell: time.Second, tick: 500 * time.Millisecond, echo: time.Second, stuck: time.Second, silence: 3 * time.Second,
}

// linkProbe is what a link knows of the life of its peer.
type linkProbe struct {
	ticked ident.Instant // when the last look was
	heard  ident.Instant // when something came
	said   ident.Instant // when something was written
	moved  ident.Instant // when the peer's kernel took something, or had nothing to take
	taken  int64         // bytes that it has taken
	came   int64         // bytes that had come, at the last look that saw enough of them
	pings  uint64
}

// aliveBytes is how many bytes of a frame must come between two looks to be a sign of life: a peer that drips them is none.
const aliveBytes = 1 << 10

func (p *linkProbe) begin(now ident.Instant) { p.ticked, p.heard, p.said, p.moved = now, now, now, now }

// look ends a link whose peer is stuck or silent, and asks for an echo when nothing is said.
func (l *linkActor) look(t *runtime.Turn) {
	now, _ := t.Now()
	p, pace := &l.probe, &l.links.pace
	if now-p.ticked > ident.Instant(2*pace.tick) {
		p.begin(now) // it was this process that stood still; what has come meanwhile waits to be read
	}
	p.ticked = now
	if came := l.wire.received.Load(); came-p.came >= aliveBytes || l.wire.held.Load() {
		p.came, p.heard = came, now
	}
	unsent, unacked := !l.out.empty(), l.transport.unacked()
	if taken := l.transport.written - int64(unacked); taken > p.taken || !unsent && unacked == 0 {
		p.taken, p.moved = taken, now
	}
	switch {
	case time.Duration(now-p.heard) >= pace.silence:
		l.drop(t, &limitError{codeLinkSilent, fmt.Sprintf("the other broker has said nothing for %v", time.Duration(now-p.heard))})
		return
	case l.info.purpose == peer.Data && time.Duration(min(now-p.moved, now-p.heard)) >= pace.stuck:
		l.drop(t, &limitError{codeLinkSilent, fmt.Sprintf("the other broker has taken no byte of an answer for %v, and said nothing", time.Duration(now-p.moved))})
		return
	case l.info.dialled && time.Duration(max(now-p.said, now-p.heard)) >= pace.echo:
		p.pings++
		l.append(&peer.Ping{Number: p.pings})
	}
	l.timer.Reset(pace.tick)
}

// linkMeter counts what a transport takes.
type linkMeter struct {
	Transport
	written int64
}

// Write implements Transport.
func (m *linkMeter) Write(vec [][]byte, more bool) (int, error) {
	n, err := m.Transport.Write(vec, more)
	m.written += int64(n)
	return n, err
}

// SendFile implements Transport.
func (m *linkMeter) SendFile(fd uintptr, off int64, n int) (int, error) {
	n, err := m.Transport.SendFile(fd, off, n)
	m.written += int64(n)
	return n, err
}

// unacked is how many written bytes the peer's kernel has not taken, as far as the transport knows.
func (m *linkMeter) unacked() int {
	if u, ok := m.Transport.(interface{ unacked() int }); ok {
		return u.unacked()
	}
	return 0
}
