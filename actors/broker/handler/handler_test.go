package handler_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/wire"
)

// TestEveryServedAPIHasAHandler: Produce, Fetch and Heartbeat have operations of their own, all other rows of wire's table are in this package's, and no key more.
func TestEveryServedAPIHasAHandler(t *testing.T) {
	keys := handler.Keys()
	var want []int16
	for _, api := range wire.APIs() {
		if api.Key != wire.KeyProduce && api.Key != wire.KeyFetch && api.Key != wire.KeyHeartbeat {
			want = append(want, int16(api.Key))
		}
	}
	if !slices.Equal(keys, want) {
		t.Errorf("handlers for %v, served are %v", keys, want)
	}
}

func TestAnsweringTwiceIsABug(t *testing.T) {
	for name, again := range map[string]func(*handler.Call){
		"respond": func(c *handler.Call) { c.Respond(kmsg.NewPtrMetadataResponse()) },
		"close":   func(c *handler.Call) { c.Close(errors.New("why")) },
	} {
		var out outcome
		call := &handler.Call{Version: 3}
		call.Begin(&out)
		call.Respond(kmsg.NewPtrMetadataResponse())
		if out.response.GetVersion() != 3 {
			t.Errorf("version %d, want that of the request", out.response.GetVersion())
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s after an answer did not panic", name)
				}
			}()
			again(call)
		}()
	}
}
