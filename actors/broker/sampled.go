package broker

import (
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// sampleEvery is how often one kind of line that clients can cause is written. What is left out is counted and told with the next line.
const sampleEvery = ident.Instant(1e9)

// sampledLog writes log lines that somebody outside can cause at will: one a second of each kind, or fewer of those that go on for as long as nobody acts.
type sampledLog struct {
	log   zerolog.Logger
	clock runtime.Clock

	mu   sync.Mutex
	last map[string]sample // by code: a closed set
}

type sample struct {
	at      ident.Instant
	skipped int
	pause   time.Duration // of what is told seldom, until the next line
	seen    ident.Instant // when that was last, told or not
}

func newSampledLog(log zerolog.Logger, clock runtime.Clock) *sampledLog {
	return &sampledLog{log: log, clock: clock, last: make(map[string]sample)}
}

// due says whether a line of this kind may be written, and how many were left out before it.
func (s *sampledLog) due(code string) (skipped int, ok bool) {
	now, _ := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	l, seen := s.last[code]
	if seen && now-l.at < sampleEvery {
		l.skipped++
		s.last[code] = l
		return 0, false
	}
	s.last[code] = sample{at: now}
	return l.skipped, true
}

// seldom is due for what repeats by itself until somebody acts, such as a broker that dials again and again: as with a complaint, the pause between two lines
// grows while it goes on. It has ended when it was not seen for complainFirst.
func (s *sampledLog) seldom(code string) (skipped int, ok bool) {
	now, _ := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	l, seen := s.last[code]
	switch {
	case !seen || time.Duration(now-l.seen) >= complainFirst:
		l.pause = complainFirst
	case time.Duration(now-l.at) < l.pause:
		l.skipped++
		l.seen = now
		s.last[code] = l
		return 0, false
	default:
		l.pause = min(2*l.pause, complainLast)
	}
	s.last[code] = sample{at: now, seen: now, pause: l.pause}
	return l.skipped, true
}

// closed tells why a connection was closed by this side.
func (s *sampledLog) closed(c *handler.Client, reason error) {
	code := codeOf(reason)
	if skipped, ok := s.due(code); ok {
		level := zerolog.WarnLevel
		if code == codeIdle {
			level = zerolog.DebugLevel // it is what idle clients expect
		}
		s.log.WithLevel(level).Str("client", c.ID).Stringer("address", c.Address).Str("software", c.SoftwareName).Int("skipped", skipped).Err(reason).Msg("connection closed")
	}
}

// codeOf finds the code in an error that is told to operators, "" for one of the network.
func codeOf(err error) string {
	var protocol *wire.ProtocolError
	var unsupported *wire.UnsupportedError
	var limit *limitError
	var silent *silentRefusalError
	switch {
	case errors.As(err, &protocol):
		return protocol.Code
	case errors.As(err, &unsupported):
		return wire.CodeNotServed
	case errors.As(err, &limit):
		return limit.code
	case errors.As(err, &silent):
		return codeSilentRefusal
	}
	return ""
}

// limitError says that a limit of the broker ended a connection.
type limitError struct {
	code   string
	reason string
}

// Error prints code and reason.
func (e *limitError) Error() string { return e.code + ": " + e.reason }

// warn tells of a replica that reached a limit.
func (s *sampledLog) warn(code string, r *replica, what string) {
	if skipped, ok := s.due(code); ok {
		s.log.Warn().Str("topic", r.tp.Topic).Int32("partition", r.tp.Partition).Int("skipped", skipped).Msg(code + ": " + what)
	}
}

// refused tells that a disk is full, or that descriptors have run out.
func (s *sampledLog) refused(r *replica, err error) {
	if store.IsExhausted(err) {
		if skipped, ok := s.due(codeDescriptors); ok {
			s.log.Error().Str("topic", r.tp.Topic).Int32("partition", r.tp.Partition).Int("skipped", skipped).Err(err).
				Msg(codeDescriptors + ": too many open files: what needs one is refused with a retriable error")
		}
		return
	}
	if skipped, ok := s.due(codeDiskFull); ok {
		s.log.Error().Str("topic", r.tp.Topic).Int32("partition", r.tp.Partition).Int("skipped", skipped).Err(err).
			Msg(codeDiskFull + ": the disk is full: writes are refused with a retriable error, reads go on; delete topics or records, or add space")
	}
}
