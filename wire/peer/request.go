package peer

import "github.com/troupe-broker/troupe/wire"

// Request is a command for the controller, or a piece of one that is larger than
// PieceMax. Pieces of a request follow each other; other frames may come between them,
// pieces of another request may not.
type Request struct {
	ID         uint64 // unique among the requests of a connection that are open
	DeadlineMs int32  // how long the answer is of use to who asks
	Offset     uint64 // of Body in the command
	Total      uint64 // bytes of the command; 0: those of Body
	Body       []byte // the cluster package's
}

// Code implements Message.
func (*Request) Code() Code { return CodeRequest }

// AppendTo implements Message.
func (m *Request) AppendTo(dst []byte) []byte {
	at := len(dst)
	dst = appendArray(begin(dst, CodeRequest, 2), 4)
	dst = appendUint(dst, m.ID)
	dst = appendInt(dst, int64(m.DeadlineMs))
	dst = appendUint(dst, m.Offset)
	dst = appendUint(dst, m.Total)
	return end(appendBin(dst, m.Body), at, 0)
}

// Decode implements Message.
func (m *Request) Decode(b Body) error {
	r := b.r
	outer := r.enter()
	m.ID, m.DeadlineMs, m.Offset, m.Total = r.uint64(), r.int32(), r.uint64(), r.uint64()
	r.leave(outer)
	m.Body = r.bin()
	return b.done(&r)
}

// Response is the answer to a Request.
type Response struct {
	ID     uint64
	Result wire.ErrorCode
	Text   string // for people, when Result is an error
	Body   []byte // the cluster package's
}

// Code implements Message.
func (*Response) Code() Code { return CodeResponse }

// AppendTo implements Message. A text that is too long is cut.
func (m *Response) AppendTo(dst []byte) []byte {
	at := len(dst)
	dst = appendArray(begin(dst, CodeResponse, 2), 3)
	dst = appendUint(dst, m.ID)
	dst = appendInt(dst, int64(m.Result))
	dst = appendString(dst, cut(m.Text))
	return end(appendBin(dst, m.Body), at, 0)
}

// Decode implements Message.
func (m *Response) Decode(b Body) error {
	r := b.r
	outer := r.enter()
	m.ID, m.Result, m.Text = r.uint64(), wire.ErrorCode(r.int16()), r.text()
	r.leave(outer)
	m.Body = r.bin()
	return b.done(&r)
}
