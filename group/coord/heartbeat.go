package coord

import (
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// heartbeatCodes bounds the table of answers: every code of the protocol is below it, and the one negative code is put in front.
const heartbeatCodes = 256

// heartbeats has an answer for each code, made once. Heartbeats are most of what a coordinator hears, and their answers are all alike.
var heartbeats = func() (all [heartbeatCodes]HeartbeatReply) {
	for i := range all {
		all[i].Code = wire.ErrorCode(i) + wire.UnknownServerError
	}
	return all
}()

// ReplyHeartbeat answers a Heartbeat without allocating: the answer is shared and must not be changed.
func (o *Out) ReplyHeartbeat(to ident.RequestID, code wire.ErrorCode) {
	i := int(code - wire.UnknownServerError)
	if i < 0 || i >= heartbeatCodes {
		o.Reply(to, &HeartbeatReply{Code: code})
		return
	}
	o.Reply(to, &heartbeats[i])
}
