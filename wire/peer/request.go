package peer

import "github.com/troupe-broker/troupe/wire"

// Request is a command for the controller.
type Request struct {
	ID         uint64 // unique among the requests of a connection that are open
	DeadlineMs int32  // how long the answer is of use to who asks
	Body       []byte // the cluster package's
}

// Code implements Message.
func (*Request) Code() Code { return CodeRequest }

// AppendTo implements Message.
func (m *Request) AppendTo(dst []byte) []byte {
	at := len(dst)
	dst = appendArray(begin(dst, CodeRequest, 2), 2)
	dst = appendUint(dst, m.ID)
	dst = appendInt(dst, int64(m.DeadlineMs))
	return end(appendBin(dst, m.Body), at, 0)
}

// Decode implements Message.
func (m *Request) Decode(b Body) error {
	r := b.r
	outer := r.enter()
	m.ID, m.DeadlineMs = r.uint64(), r.int32()
	r.leave(outer)
	m.Body = r.bin()
	r.leave(0)
	return r.err(b.code)
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
	r.leave(0)
	return r.err(b.code)
}
