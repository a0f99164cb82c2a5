package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

func TestEachProducerGetsAnIdOfItsOwn(t *testing.T) {
	versions(t, wire.KeyInitProducerID, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := newKit(t)
		next := ident.ProducerID(4000)
		k.ports.producerID = func() (ident.ProducerID, wire.ErrorCode) {
			next++
			return next, wire.NoError
		}
		for i := range int64(2) {
			req := kmsg.NewPtrInitProducerIDRequest()
			req.ProducerID, req.ProducerEpoch = 7, 3 // an earlier life, of no interest
			resp := k.ask(version, req).(*kmsg.InitProducerIDResponse)
			if resp.ErrorCode != 0 || resp.ProducerID != 4001+i || resp.ProducerEpoch != 0 {
				t.Errorf("%+v", resp)
			}
		}
	})
}

func TestInitProducerIDRefusals(t *testing.T) {
	versions(t, wire.KeyInitProducerID, 0, func(t *testing.T, version int16) {
		t.Helper()
		refused := func(what string, k *kit, req *kmsg.InitProducerIDRequest, want wire.ErrorCode) {
			t.Helper()
			resp := k.ask(version, req).(*kmsg.InitProducerIDResponse)
			code(t, what, resp.ErrorCode, want)
			if resp.ProducerID != -1 || resp.ProducerEpoch != -1 {
				t.Errorf("%s: %+v", what, resp)
			}
		}
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID = new("tx")
		refused("transactional id", newKit(t), req, wire.TransactionalIDAuthorizationFailed)
		req.TransactionalID = new("")
		refused("empty transactional id", newKit(t), req, wire.InvalidRequest)
		if version >= 3 {
			for _, half := range [][2]int64{{5, -1}, {-1, 5}} {
				req := kmsg.NewPtrInitProducerIDRequest()
				req.ProducerID, req.ProducerEpoch = half[0], int16(half[1])
				refused("half of an identity", newKit(t), req, wire.InvalidRequest)
			}
		}
		k := newKit(t)
		k.ports.producerID = func() (ident.ProducerID, wire.ErrorCode) { return 0, wire.CoordinatorLoadInProgress }
		refused("no block of ids", k, kmsg.NewPtrInitProducerIDRequest(), wire.CoordinatorLoadInProgress)
	})
}
