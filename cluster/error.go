package cluster

import (
	"fmt"

	"github.com/troupe-broker/troupe/wire"
)

// Error is a refusal as a Kafka client sees it: a protocol error code and a sentence that says what was wrong, where, and what to do.
type Error struct {
	Code    wire.ErrorCode
	Message string
}

// Error returns the message with its code.
func (e *Error) Error() string { return fmt.Sprintf("%s (%v)", e.Message, e.Code) }

// refuse builds an Error.
func refuse(code wire.ErrorCode, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
