package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// InitProducerId (22), versions 0 to 5.
//
// As in Kafka: a producer without a transactional id gets a new producer id with epoch 0, whatever id it had before; a producer id without an epoch, or
// the other way round, is INVALID_REQUEST. Different: a transactional id is refused with TRANSACTIONAL_ID_AUTHORIZATION_FAILED, which clients do not
// try again, since this broker has no transactions yet.

func initProducerID(c *Call) {
	req := c.Request.(*kmsg.InitProducerIDRequest)
	refuse := func(code wire.ErrorCode) {
		resp := kmsg.NewPtrInitProducerIDResponse()
		resp.ErrorCode, resp.ProducerID, resp.ProducerEpoch = int16(code), int64(ident.NoProducerID), int16(ident.NoProducerEpoch)
		c.Respond(resp)
	}
	switch {
	case req.TransactionalID != nil && *req.TransactionalID == "":
		refuse(wire.InvalidRequest)
		return
	case req.TransactionalID != nil:
		refuse(wire.TransactionalIDAuthorizationFailed)
		return
	case c.Version >= 3 && (req.ProducerID == int64(ident.NoProducerID)) != (req.ProducerEpoch == int16(ident.NoProducerEpoch)):
		refuse(wire.InvalidRequest)
		return
	}
	c.Env.Ports.ProducerID(func(id ident.ProducerID, code wire.ErrorCode) {
		if code != wire.NoError {
			refuse(code)
			return
		}
		resp := kmsg.NewPtrInitProducerIDResponse()
		resp.ProducerID, resp.ProducerEpoch = int64(id), 0
		c.Respond(resp)
	})
}
