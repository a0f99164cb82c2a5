package wire_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
)

// hostileBytes is the size that hostile bodies are grown to: large enough that
// what a request costs beside its bytes does not count.
const hostileBytes = 8 << 10

// smallMemory is what API.Memory allows any request beside its bytes.
var smallMemory = func() int64 {
	api, _ := wire.Lookup(wire.KeyApiVersions)
	return api.Memory(0)
}()

// amplification is how many bytes decoding the body allocates for each of its
// bytes, whether it succeeds or not, beyond what any request may cost.
func amplification(t *testing.T, key wire.Key, version int16, body []byte) float64 {
	t.Helper()
	req := kmsg.RequestForKey(int16(key))
	req.SetVersion(version)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := req.ReadFrom(body)
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(err)
	return float64(int64(after.TotalAlloc-before.TotalAlloc)-smallMemory) / float64(max(len(body), 1))
}

// shape says how grow fills a message.
type shape struct {
	only     int  // fill only the n-th slice met, and others on the way with one element; -1: all
	tags     int  // unknown tagged fields in each struct of the filled slices
	elements int  // of each filled slice
	strings  bool // every nullable string is there, and empty
	met      int
}

// grow fills v, a message of kmsg, in the given shape and tells whether the shape
// found its slice.
func (s *shape) grow(v reflect.Value) bool {
	found := false
	for _, field := range v.Fields() {
		switch field.Kind() {
		case reflect.Struct:
			if tags, ok := reflect.TypeAssert[*kmsg.Tags](field.Addr()); ok {
				for n := range s.tags {
					tags.Set(uint32(50+n), nil)
				}
				continue
			}
			found = s.grow(field) || found
		case reflect.Pointer:
			if s.strings && field.Type().Elem().Kind() == reflect.String {
				field.Set(reflect.New(field.Type().Elem()))
			}
		case reflect.Slice:
			n := s.elements
			if s.only >= 0 && s.met != s.only {
				n = 1
			}
			mine := s.only < 0 || s.met == s.only
			s.met++
			if field.Type().Elem().Kind() == reflect.Uint8 {
				continue
			}
			found = found || mine
			field.Set(reflect.MakeSlice(field.Type(), n, n))
			element := field.Type().Elem()
			if element.Kind() != reflect.Struct {
				continue
			}
			met := s.met
			for j := range n {
				s.met = met
				if d, ok := reflect.TypeAssert[interface{ Default() }](field.Index(j).Addr()); ok {
					d.Default()
				}
				found = s.grow(field.Index(j)) || found
			}
		default: // numbers and strings are as short as they are
		}
	}
	return found
}

// hostileBodies yields bodies that cost most, in one version of one API.
func hostileBodies(key wire.Key, version int16, visit func(what string, body []byte)) {
	fresh := func() (kmsg.Request, reflect.Value) {
		req := kmsg.RequestForKey(int16(key))
		req.SetVersion(version)
		return req, reflect.ValueOf(req).Elem()
	}
	for only := -1; ; only++ {
		found := only < 0
		for _, tags := range []int{0, 1, 9} {
			for _, strings := range []bool{false, true} {
				elements, body := 16, []byte(nil)
				for size := -1; size < len(body) && len(body) < hostileBytes; {
					if size >= 0 { // what is missing, by what the elements took so far
						elements *= max(2, hostileBytes/len(body))
					}
					size = len(body)
					req, v := fresh()
					s := shape{only: only, tags: tags, elements: elements, strings: strings}
					found = s.grow(v) || found
					body = req.AppendTo(nil)
				}
				what := fmt.Sprintf("slice %d, %d elements, %d tags, strings %v", only, elements, tags, strings)
				visit(what, body)
				visit(what+", cut", body[:len(body)*9/10])
			}
		}
		if !found {
			break
		}
	}
	// One struct with all the tags, of the shortest keys; a map costs most just
	// after it has grown.
	if req, _ := fresh(); req.IsFlexible() {
		head := req.AppendTo(nil)
		head = head[:len(head)-1] // the count of the message's own tags
		for _, tags := range []int{225, 449, 897, 1200, 1793, 3000, 3585, 5000} {
			body := binary.AppendUvarint(slices.Clone(head), uint64(tags))
			for n := range tags {
				body = binary.AppendUvarint(body, uint64(100+n))
				body = append(body, 0)
			}
			visit(fmt.Sprintf("one struct with %d tags", tags), body)
		}
	}
	// Lengths that lie: noise in which every short run may be an array's length.
	rng := rand.New(rand.NewPCG(uint64(key), uint64(version)))
	for range 12 {
		body := make([]byte, hostileBytes)
		for i := range body {
			switch rng.IntN(3) {
			case 0:
				body[i] = byte(rng.Uint32())
			case 1:
				body[i] = byte(rng.IntN(4))
			}
		}
		if rng.IntN(2) == 0 { // an array of as many elements as the rest could hold
			binary.BigEndian.PutUint32(body[rng.IntN(8):], uint32(hostileBytes/(1+rng.IntN(32))))
		}
		visit("noise", body)
	}
}

// The table's amplification is a promise about kmsg that no type can keep: it is
// measured here, and must be neither broken nor much too cautious.
func TestDecodingCostsNoMoreThanTheTableSays(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, api := range wire.APIs() {
		if api.Key == wire.KeyProduce || api.Key == wire.KeyFetch {
			continue // decoded without allocating; their rows count what answering costs
		}
		t.Run(api.Name, func(t *testing.T) {
			worst, where := 0.0, ""
			// The first and last version of either encoding: between them, fields are
			// only added.
			versions := []int16{api.Min, api.Max}
			if api.Flexible > api.Min {
				versions = append(versions, api.Flexible-1, api.Flexible)
			}
			slices.Sort(versions)
			for _, version := range slices.Compact(versions) {
				hostileBodies(api.Key, version, func(what string, body []byte) {
					a := amplification(t, api.Key, version, body)
					for try := 0; a > worst && try < 3; try++ { // what others allocate meanwhile counts, too, and only adds
						a = min(a, amplification(t, api.Key, version, body))
					}
					if a > worst {
						worst, where = a, fmt.Sprintf("version %d, %s, %d bytes", version, what, len(body))
					}
				})
			}
			t.Logf("%.1f bytes for each byte (%s)", worst, where)
			if worst > float64(api.Amplification) {
				t.Errorf("decoding allocates %.1f bytes for each byte (%s), the table says %d", worst, where, api.Amplification)
			}
			if 2*worst < float64(api.Amplification) {
				t.Errorf("decoding allocates at most %.1f bytes for each byte (%s); the table's %d takes credit for nothing", worst, where, api.Amplification)
			}
		})
	}
}
