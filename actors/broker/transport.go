package broker

import "errors"

// Transport is the far side of a session: a socket, or a simulated one. Its methods are called from turns of the session and from nowhere else; none of
// them waits.
type Transport interface {
	// Write makes one attempt to write vec, one slice after the other, and returns how many bytes were taken: fewer than all, perhaps none, means that
	// no more can be written now, which is not an error. more tells that another write follows at once, so that a packet need not leave yet. The slices
	// are not kept.
	Write(vec [][]byte, more bool) (int, error)

	// SendFile makes one attempt to send n bytes of an open file from offset off on, without copying them. Fewer bytes than n mean that no more can be
	// written now; if the file ends before n bytes are sent, the error is errShortFile.
	SendFile(fd uintptr, off int64, n int) (int, error)

	// ZeroCopy says whether SendFile works.
	ZeroCopy() bool

	// WhenWritable has the session told, by a writable message, when more can be written, or by a hangup, when nothing could be for stalledWriteMax. It
	// is called once after each short write; nothing is written before the answer.
	WhenWritable()

	// Close ends the connection. The session is told of the end of its input by a hangup, if it was not yet.
	Close()
}

// errShortFile says that a file was shorter than the region that was promised: the connection cannot be saved, since the length has gone out already.
var errShortFile = errors.New("a log segment ends before the region that was to be sent")

// errVoid says that a truncation took records out of the log which had been promised: their bytes change, and what has not been sent is dropped with its
// connection.
var errVoid = errors.New("records that were to be sent have been truncated meanwhile")
