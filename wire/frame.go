package wire

// Scanner cuts frames out of the bytes of a connection. It holds no bytes itself.
type Scanner struct {
	Limit         int32 // greatest frame, in bytes after the length field
	Authenticated bool  // for the error's words
}

// Frame is what is known of the frame at the front of a buffer.
type Frame struct {
	Size     int    // on the wire with its length field; 0: fewer than 4 bytes there
	Complete bool   // Body is all there
	Body     []byte // header and body of the message, as far as it is there
	Key      Key    // valid when HasKey
	Version  int16  // valid when HasKey
	HasKey   bool   // key and version have arrived
}

// Scan looks at the frame at the front of b. An error ends the connection.
func (s *Scanner) Scan(b []byte) (Frame, error) { panic("not written yet") }

// ProtocolError is input that breaks the protocol; the connection is closed.
type ProtocolError struct {
	Code   string // TRP-3xxx
	Reason string
}

// Error prints code and reason.
func (e *ProtocolError) Error() string { return e.Code + ": " + e.Reason }
