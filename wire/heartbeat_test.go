package wire_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
)

// sameHeartbeat compares our decoder with kmsg's on one body.
func sameHeartbeat(t *testing.T, version int16, body []byte) {
	t.Helper()
	var ours wire.HeartbeatRequest
	err := ours.Decode(version, body)
	theirs := kmsg.NewPtrHeartbeatRequest()
	theirs.SetVersion(version)
	if refused := theirs.ReadFrom(body); (refused == nil) != (err == nil) {
		t.Fatalf("v%d %x: ours says %v, kmsg %v", version, body, err, refused)
	}
	if err != nil {
		var p *wire.ProtocolError
		if !errors.As(err, &p) || p.Code != wire.CodeBody {
			t.Fatalf("v%d: %v", version, err)
		}
		return
	}
	if string(ours.Group) != theirs.Group || string(ours.Member) != theirs.MemberID || ours.Generation != theirs.Generation {
		t.Fatalf("v%d: %+v, kmsg %+v", version, ours, theirs)
	}
	if (ours.Instance == nil) != (theirs.InstanceID == nil) || theirs.InstanceID != nil && string(ours.Instance) != *theirs.InstanceID {
		t.Fatalf("v%d: instance %q, kmsg %v", version, ours.Instance, theirs.InstanceID)
	}
}

func TestHeartbeatsAreReadAndAnsweredAsKmsgDoes(t *testing.T) {
	api, _ := wire.Lookup(wire.KeyHeartbeat)
	for version := api.Min; version <= api.Max; version++ {
		for _, instance := range []*string{nil, new(""), new("static-7")} {
			req := kmsg.NewPtrHeartbeatRequest()
			req.SetVersion(version)
			req.Group, req.MemberID, req.Generation, req.InstanceID = "readers", "m-1", 17, instance
			body := req.AppendTo(nil)
			for n := range len(body) + 1 {
				sameHeartbeat(t, version, body[:n])
			}
		}
		for _, code := range []wire.ErrorCode{wire.NoError, wire.RebalanceInProgress, wire.UnknownServerError} {
			resp := kmsg.NewPtrHeartbeatResponse()
			resp.SetVersion(version)
			resp.ErrorCode = int16(code)
			if got, want := wire.AppendHeartbeatResponse(nil, version, code), resp.AppendTo(nil); !bytes.Equal(got, want) {
				t.Errorf("v%d %v: %x, want %x", version, code, got, want)
			}
		}
	}
}

func FuzzHeartbeat(f *testing.F) {
	f.Add(int16(4), []byte{3, 'g', 'g', 0, 0, 0, 1, 2, 'm', 0, 1, 50, 1, 9})
	f.Add(int16(0), []byte{0, 1, 'g', 0, 0, 0, 1, 0, 1, 'm'})
	f.Fuzz(func(t *testing.T, version int16, body []byte) {
		if api, _ := wire.Lookup(wire.KeyHeartbeat); api.Serves(version) {
			sameHeartbeat(t, version, body)
		}
	})
}
