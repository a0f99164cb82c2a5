package store

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/troupe-broker/troupe/wire/ident"
)

// Generations hands out generations; one for a process, shared by its logs. Safe
// for concurrent use. The zero value is ready.
type Generations struct{ last atomic.Uint64 }

// Next is a generation that was never given out before.
func (g *Generations) Next() ident.Generation { return ident.Generation(g.last.Add(1)) }

// health tells the logs of a directory whether the directory still can be
// trusted. It changes once, from sound to offline.
type health struct {
	offline atomic.Pointer[Error]
	once    sync.Once
	path    string
	// down is run once, before the error can be seen by anybody.
	down func(cause error) error

	// awake counts the logs whose active segment is open, awakeMax is how many may
	// stay so when they have nothing to sync; 0: all.
	awake    atomic.Int64
	awakeMax int64
}

// crowded tells whether a log that needs no descriptor now should give it back.
func (h *health) crowded() bool { return h.awakeMax > 0 && h.awake.Load() > h.awakeMax }

// check is nil while the directory is sound.
func (h *health) check() error {
	if e := h.offline.Load(); e != nil {
		return e
	}
	return nil
}

// fail takes the directory out of service and returns the error to hand on.
func (h *health) fail(cause error) error {
	h.once.Do(func() {
		if h.down != nil {
			if err := h.down(cause); err != nil {
				cause = fmt.Errorf("%w (and the error mark could not be written: %w)", cause, err)
			}
		}
		h.offline.Store(&Error{
			Code:    CodeOffline,
			Message: fmt.Sprintf("data directory %s is offline: %v; check the disk, then restart the broker", h.path, cause),
			Err:     errors.Join(ErrDirectoryOffline, cause),
		})
	})
	return h.check()
}

// close ends the use of the directory by its logs.
func (h *health) close() {
	h.offline.CompareAndSwap(nil, &Error{Code: CodeOffline, Message: "data directory " + h.path + " was closed", Err: ErrClosed})
}

// sift turns an error of the disk into what the caller shall see: a full disk and
// a lack of descriptors are answers, anything else takes the directory offline. Nil
// stays nil.
func (h *health) sift(err error, doing string) error {
	switch {
	case err == nil:
		return nil
	case IsNoSpace(err):
		return &Error{
			Code:    CodeNoSpace,
			Message: fmt.Sprintf("%s: the disk that holds %s is full: %v; free space or extend it: a broker that runs goes on by itself, one that was starting has to be started again", doing, h.path, err),
			Err:     errors.Join(ErrNoSpace, err),
		}
	case IsExhausted(err):
		return &Error{
			Code:    CodeDescriptors,
			Message: fmt.Sprintf("%s: too many open files: %v; raise the limit (ulimit -n, LimitNOFILE of systemd), the broker goes on by itself", doing, err),
			Err:     errors.Join(ErrExhausted, err),
		}
	default:
		return h.fail(fmt.Errorf("%s: %w", doing, err))
	}
}

// siftOne does the same for what was done to the files of one log: when they are
// obstructed, that log has a problem and the directory has none.
func (h *health) siftOne(err error, doing string) error {
	if !isObstructed(err) || IsRetriable(err) {
		return h.sift(err, doing)
	}
	return &Error{
		Code:    CodeObstructed,
		Message: fmt.Sprintf("%s: %v; the disk is sound: put the file back, or give the broker's user the right to it, then restart the broker", doing, err),
		Err:     errors.Join(ErrObstructed, err),
	}
}

// sift turns an error of the log's files into what the caller shall see, as
// health.sift does. After an obstruction the log is not usable any more.
func (l *Log) sift(err error, doing string) error {
	err = l.health.siftOne(err, doing)
	if e, ok := errors.AsType[*Error](err); ok && e.Code == CodeObstructed {
		l.obstructed.CompareAndSwap(nil, e)
	}
	return err
}

// siftAside does the same for work on the log's files off its owner's turn. When the log
// was closed or deleted meanwhile, that is the reason of whatever went wrong, and over is
// what such work says then.
func (l *Log) siftAside(err, over error, doing string) error {
	if err == nil {
		return nil
	}
	l.shared.Lock()
	ended := l.shared.gone || l.shared.closed
	l.shared.Unlock()
	if ended || errors.Is(err, over) {
		return errors.Join(over, err)
	}
	return l.health.siftOne(err, doing)
}
