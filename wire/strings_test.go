package wire_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
)

// eachString puts one element into every array below a value and visits every string that it then has.
func eachString(v reflect.Value, path string, visit func(path string, s reflect.Value)) {
	switch v.Kind() {
	case reflect.String:
		visit(path, v)
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		eachString(v.Elem(), path, visit)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				eachString(v.Field(i), path+"."+f.Name, visit)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			eachString(v.Index(0), path, visit)
		}
	default:
	}
}

func TestNoStringOfARequestIsLongerThanKafkaReads(t *testing.T) {
	fits, long := strings.Repeat("x", wire.StringMax), strings.Repeat("x", wire.StringMax+1)
	tried := 0
	for _, api := range wire.APIs() {
		for version := api.Min; version <= api.Max; version++ {
			if !api.IsFlexible(version) {
				continue // two bytes of length cannot say more
			}
			req := kmsg.RequestForKey(int16(api.Key))
			req.SetVersion(version)
			eachString(reflect.ValueOf(req), api.Name, func(path string, s reflect.Value) {
				before := s.String()
				defer s.SetString(before)
				s.SetString(fits)
				body := req.AppendTo(nil)
				if len(body) <= wire.StringMax {
					return // the version has no such field
				}
				tried++
				if _, err := wire.DecodeBody(api.Key, version, body); err != nil {
					t.Errorf("%s v%d, a string of the greatest length: %v", path, version, err)
				}
				s.SetString(long)
				var refused *wire.ProtocolError
				if _, err := wire.DecodeBody(api.Key, version, req.AppendTo(nil)); !errors.As(err, &refused) || refused.Code != wire.CodeBody {
					t.Errorf("%s v%d, a string that is too long: %v", path, version, err)
				}
			})
		}
	}
	if tried < 100 {
		t.Errorf("only %d strings were found", tried)
	}
}

func TestNoStringOfAHeartbeatIsLongerThanKafkaReads(t *testing.T) {
	long := strings.Repeat("x", wire.StringMax+1)
	for _, set := range []func(*kmsg.HeartbeatRequest){
		func(r *kmsg.HeartbeatRequest) { r.Group = long },
		func(r *kmsg.HeartbeatRequest) { r.MemberID = long },
		func(r *kmsg.HeartbeatRequest) { r.InstanceID = &long },
	} {
		req := kmsg.NewPtrHeartbeatRequest()
		req.SetVersion(4)
		set(req)
		var h wire.HeartbeatRequest
		var refused *wire.ProtocolError
		if err := h.Decode(4, req.AppendTo(nil)); !errors.As(err, &refused) {
			t.Errorf("%v", err)
		}
	}
}
