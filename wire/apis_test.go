package wire_test

import (
	"errors"
	"math"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
)

func TestTheTableAgreesWithKmsg(t *testing.T) {
	last := wire.Key(-1)
	for _, api := range wire.APIs() {
		if api.Key <= last {
			t.Errorf("%s: the rows are in the order of their keys", api.Name)
		}
		last = api.Key
		req := kmsg.RequestForKey(int16(api.Key))
		if req == nil {
			t.Errorf("%s: kmsg has no key %d", api.Name, api.Key)
			continue
		}
		// Kafka writes Id where kmsg writes ID, and kmsg has a shorter name for one API.
		kafkas := map[string]string{"InitProducerID": "InitProducerId", "AlterPartitionAssignments": "AlterPartitionReassignments"}
		if name := kmsg.NameForKey(int16(api.Key)); name != api.Name && kafkas[name] != api.Name {
			t.Errorf("%s: kmsg calls key %d %s", api.Name, api.Key, name)
		}
		if api.Max > req.MaxVersion() {
			t.Errorf("%s: version %d is served, kmsg encodes up to %d", api.Name, api.Max, req.MaxVersion())
		}
		if api.Min > api.Max || api.AdvertisedMin > api.Min || api.AdvertisedMin != api.Min && api.Key != wire.KeyProduce {
			t.Errorf("%s: versions %d to %d, advertised from %d", api.Name, api.Min, api.Max, api.AdvertisedMin)
		}
		for version := api.Min; version <= api.Max; version++ {
			req.SetVersion(version)
			if req.IsFlexible() != api.IsFlexible(version) {
				t.Errorf("%s: version %d is flexible: kmsg says %v, the table %v", api.Name, version, req.IsFlexible(), api.IsFlexible(version))
			}
			if !api.Serves(version) {
				t.Errorf("%s: version %d is between Min and Max and not served", api.Name, version)
			}
		}
		if api.Serves(api.Min-1) || api.Serves(api.Max+1) || api.Serves(-1) || api.Serves(math.MaxInt16) {
			t.Errorf("%s: versions outside of the range are served", api.Name)
		}
		if (api.BodyMax > 0) == (api.Key == wire.KeyProduce) {
			t.Errorf("%s: every API but Produce has a frame limit of its own", api.Name)
		}
		if credit := api.Memory(int(api.BodyMax)); credit > 128<<20 {
			t.Errorf("%s: the largest frame reserves %d bytes", api.Name, credit)
		}
		if found, ok := wire.Lookup(api.Key); !ok || found.Key != api.Key || api.Key.String() != api.Name {
			t.Errorf("%s: Lookup gives %+v", api.Name, found)
		}
	}
}

func TestWhatIsNotServedIsNotFound(t *testing.T) {
	for _, key := range []wire.Key{-1, 4, 7, 17, 24, 36, 76, 94, 127, 128, math.MaxInt16, math.MinInt16} {
		if api, ok := wire.Lookup(key); ok || api != nil {
			t.Errorf("key %d is served: %+v", key, api)
		}
	}
	if got := wire.Key(24).String(); got != "key 24" {
		t.Errorf("key 24 prints as %q", got)
	}
}

func TestBodiesAreDecodedByTheTable(t *testing.T) {
	for _, api := range wire.APIs() {
		for version := api.Min; version <= api.Max; version++ {
			req := kmsg.RequestForKey(int16(api.Key))
			req.SetVersion(version)
			body := req.AppendTo(nil)
			got, err := wire.DecodeBody(api.Key, version, body)
			if err != nil || got.Key() != int16(api.Key) || got.GetVersion() != version {
				t.Errorf("%s version %d: %v, %v", api.Name, version, got, err)
			}
			if len(body) == 0 {
				continue
			}
			var refused *wire.ProtocolError
			if _, err := wire.DecodeBody(api.Key, version, body[:len(body)-1]); !errors.As(err, &refused) || refused.Code != wire.CodeBody {
				t.Errorf("%s version %d, a byte short: %v", api.Name, version, err)
			}
		}
		var unsupported *wire.UnsupportedError
		if _, err := wire.DecodeBody(api.Key, api.Max+1, nil); !errors.As(err, &unsupported) || unsupported.API == nil {
			t.Errorf("%s version %d: %v", api.Name, api.Max+1, err)
		}
	}
	var unsupported *wire.UnsupportedError
	if _, err := wire.DecodeBody(24, 0, nil); !errors.As(err, &unsupported) || unsupported.API != nil {
		t.Errorf("AddPartitionsToTxn: %v", err)
	}
}

func FuzzDecodeBody(f *testing.F) {
	for _, api := range wire.APIs() {
		for version := api.Min; version <= api.Max; version++ {
			req := kmsg.RequestForKey(int16(api.Key))
			req.SetVersion(version)
			f.Add(int16(api.Key), version, req.AppendTo(nil))
		}
	}
	f.Fuzz(func(t *testing.T, key, version int16, body []byte) {
		req, err := wire.DecodeBody(wire.Key(key), version, body)
		if err != nil {
			var refused *wire.ProtocolError
			var unsupported *wire.UnsupportedError
			if !errors.As(err, &refused) && !errors.As(err, &unsupported) || err.Error() == "" {
				t.Fatalf("%#v", err)
			}
			return
		}
		// What was read can be written, and read again as the same.
		again := req.AppendTo(nil)
		twice, err := wire.DecodeBody(wire.Key(key), version, again)
		if err != nil {
			t.Fatalf("what we wrote does not parse: %v", err)
		}
		if third := twice.AppendTo(nil); string(third) != string(again) {
			t.Fatalf("written as %x, then as %x", again, third)
		}
	})
}
