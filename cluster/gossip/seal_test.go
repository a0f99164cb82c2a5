package gossip

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/troupe-broker/troupe/wire/ident"
)

func key(n byte) []byte { return bytes.Repeat([]byte{n}, 32) }

func TestSealedGossipHidesWhatItSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		var packets, leaks int
		net.peek = func(b []byte, _ bool) {
			packets++
			if bytes.Contains(b, []byte("rack-1")) || bytes.Contains(b, []byte("b1-0101000000000000")) {
				leaks++
			}
		}
		crowd(t, net, 3, func(o *Options) { o.Keys = [][]byte{key(1)} })
		pass(time.Minute)
		net.mu.Lock()
		defer net.mu.Unlock()
		if packets == 0 || leaks > 0 {
			t.Errorf("%d of %d can be read on the way", leaks, packets)
		}
	})
}

func TestMismatchedSealsAndLabelsSaySo(t *testing.T) {
	seals := map[string]func(*Options){
		"no key":      func(*Options) {},
		"key 1":       func(o *Options) { o.Keys = [][]byte{key(1)} },
		"key 2":       func(o *Options) { o.Keys = [][]byte{key(2)} },
		"label other": func(o *Options) { o.Label = "other" },
	}
	for _, pair := range [][2]string{{"no key", "key 1"}, {"key 1", "no key"}, {"key 1", "key 2"}, {"no key", "label other"}, {"label other", "no key"}} {
		t.Run(pair[0]+" hears "+pair[1], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := newNetwork(t)
				o := net.options(member(1, "a"))
				seals[pair[0]](&o)
				seed := net.start(o)
				o = net.options(member(2, "a"), "10.0.0.1:9094")
				seals[pair[1]](&o)
				joins := net.start(o)
				pass(2 * time.Minute)
				if len(seed.states())+len(joins.states()) != 0 {
					t.Errorf("they see each other: %v %v", seed.states(), joins.states())
				}
				texts := seed.said(codeSeal)
				if len(texts) != 1 || !strings.Contains(texts[0], "10.0.0.2") {
					t.Errorf("who is called says %q, of %v", texts, seed.noted())
				}
				// Who calls gets an answer that says what is wrong, unless the label keeps the other from answering.
				if texts = append(joins.said(codeSeal), joins.said(CodeUnreachable)...); len(texts) != 1 || !strings.Contains(texts[0], "10.0.0.1") {
					t.Errorf("who calls says %q, of %v", texts, joins.noted())
				}
			})
		})
	}
}

func TestUnusableKeysAreRefusedWithWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		var many [][]byte
		for i := range keysMax + 1 {
			many = append(many, key(byte(i)))
		}
		for want, keys := range map[string][][]byte{"key 1 has 5 bytes": {[]byte("short")}, "key 2 is there twice": {key(1), key(1)}, "9 keys": many} {
			o := net.options(member(1, "a"))
			o.Keys = keys
			if _, err := net.tryStart(o); !errors.Is(err, ErrKeys) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
	})
}

func TestWhatCannotWorkIsRefusedAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		for name, c := range map[string]struct {
			change func(*Options)
			want   error
			words  string
		}{
			"long":          {func(o *Options) { o.Self.Rack = strings.Repeat("r", 500) }, ErrTooLong, "rack 500"},
			"no label":      {func(o *Options) { o.Label = "" }, ErrAddress, "label"},
			"long label":    {func(o *Options) { o.Label = strings.Repeat("l", labelMax+1) }, ErrAddress, "label"},
			"everywhere":    {func(o *Options) { o.Advertise = "0.0.0.0:9094" }, ErrAddress, "no single place"},
			"everywhere v6": {func(o *Options) { o.Advertise = "[::]:9094" }, ErrAddress, "no single place"},
			"no port":       {func(o *Options) { o.Advertise = "10.0.0.1" }, ErrAddress, "host:port"},
			"bare v6":       {func(o *Options) { o.Advertise = "fd00::1" }, ErrAddress, "host:port"},
			"zone":          {func(o *Options) { o.Advertise = "[fe80::1%eth0]:9094" }, ErrAddress, "zone"},
			"nobody's name": {func(o *Options) { o.Advertise = "nowhere.example:9094" }, nil, "nowhere.example"},
			"seed":          {func(o *Options) { o.Seeds = []string{"10.0.0.1:http"} }, ErrAddress, "10.0.0.1:http"},
			"seed port 0":   {func(o *Options) { o.Seeds = []string{"10.0.0.1:0"} }, ErrAddress, "10.0.0.1:0"},
		} {
			o := net.options(member(1, "a"))
			c.change(&o)
			_, err := net.tryStart(o)
			if err == nil || (c.want != nil && !errors.Is(err, c.want)) || !strings.Contains(err.Error(), c.words) {
				t.Errorf("%s: %v", name, err)
			}
		}
		b := net.start(net.options(member(1, "a")))
		long := b.self
		long.Rack = strings.Repeat("r", 500)
		if err := b.g.Announce(long); !errors.Is(err, ErrTooLong) {
			t.Errorf("announced: %v", err)
		}
		if got := b.g.Self(); got.Rack != b.self.Rack {
			t.Errorf("a refused announcement has changed the rack to %.20q", got.Rack)
		}
		if err := b.g.Announce(member(2, "a")); !errors.Is(err, ErrIdentity) {
			t.Errorf("another broker's: %v", err)
		}
	})
}

func TestNamesThatAreAdvertisedAreLookedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		var brokers []*broker
		for id := ident.BrokerID(1); id <= 2; id++ {
			host := fmt.Sprintf("b%d.example", id)
			net.name(host, "10.200.0.1", fmt.Sprintf("::ffff:10.0.0.%d", id), fmt.Sprintf("10.0.0.%d", id)) // the least one is advertised
			o := net.options(member(id, "a"), "b1.example:9094")
			o.Advertise = host + ":9094"
			brokers = append(brokers, net.startAt(o, o.Self.Peer))
		}
		within(t, RejoinInterval, "they see each other", func() bool { return allSee(brokers...) })
		for i, b := range brokers {
			if o := brokers[1-i]; b.states()[o.self.Name()].Member.Address != o.address {
				t.Errorf("%s is told to be at %s", o.self.Name(), b.states()[o.self.Name()].Member.Address)
			}
		}
	})
}
