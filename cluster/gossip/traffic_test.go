package gossip

import (
	"encoding/binary"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// tally counts the messages of the library that cross a network, by their first byte.
type tally struct {
	t       *testing.T
	packets map[byte]int
	streams map[byte]int
	longest int
}

func (c *tally) see(b []byte, stream bool) {
	if stream {
		if len(b) > 0 && b[0] != msgLabel {
			c.streams[b[0]]++
		}
		return
	}
	c.longest = max(c.longest, len(b))
	rest, err := openLabel(b, "test")
	if err != nil {
		c.t.Errorf("the library sends a packet without our label: %q", b)
		return
	}
	if rest[0] == msgChecked {
		c.packets[msgChecked]++
		rest = rest[1+crcBytes:]
	}
	c.packets[rest[0]]++
	if rest[0] != msgCompound {
		return
	}
	parts, lengths := int(rest[1]), rest[2:]
	bytes := lengths[2*parts:]
	for i := range parts {
		n := int(binary.BigEndian.Uint16(lengths[2*i:]))
		c.packets[bytes[0]]++
		bytes = bytes[n:]
	}
}

// The gates let pass what the library sends and nothing else, by numbers that only its source has. A new version that sends something else fails here.
func TestGatesKnowAllThatTheLibrarySends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		count := &tally{t: t, packets: map[byte]int{}, streams: map[byte]int{}}
		net.peek = count.see
		brokers := crowd(t, net, 5)
		net.isolate(brokers[3])
		pass(time.Minute)
		net.heal()
		pass(time.Minute)
		for _, b := range brokers {
			for _, n := range b.noted() {
				if n.Code != CodeUnreachable {
					t.Errorf("%s: %v", b.self.Name(), n)
				}
			}
		}
		brokers[4].leave()
		pass(time.Second)
		net.mu.Lock()
		defer net.mu.Unlock()
		for name, kind := range map[string]byte{
			"ping": msgPing, "indirect ping": msgIndirectPing, "ack": msgAck, "suspect": msgSuspect, "alive": msgAlive, "dead": msgDead, "compound": msgCompound,
			"nack": msgNack,
		} {
			if count.packets[kind] == 0 {
				t.Errorf("no packet with the number %d, for %s, has been sent: %v", kind, name, count.packets)
			}
			delete(count.packets, kind)
		}
		delete(count.packets, msgChecked)
		if len(count.packets) != 0 {
			t.Errorf("packets that nobody expects: %v", count.packets)
		}
		if count.streams[msgPushPull] == 0 {
			t.Errorf("no exchange: %v", count.streams)
		}
		if count.longest > packetBytesMax {
			t.Errorf("a packet of %d bytes", count.longest)
		}
	})
}

// With UDP blocked the library reaches the others by TCP, and says so in words that we translate.
func TestBlockedUDPIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork(t)
		brokers := crowd(t, network, 2)
		network.mu.Lock()
		network.deaf = true
		network.mu.Unlock()
		pass(30 * time.Second)
		if !allSee(brokers...) {
			t.Error("they have lost each other, though TCP works")
		}
		for _, b := range brokers {
			if texts := b.said(codeOneWay); len(texts) != 1 {
				t.Errorf("%s says %q", b.self.Name(), texts)
			}
		}
	})
}

// An exchange of a full roster must fit into what a stream may carry.
func TestFullRosterFitsIntoAStream(t *testing.T) {
	const perMember = metaBytesMax + 200 // name, address, and the names of the fields
	if got := membersMax * perMember; got > streamBytesMax {
		t.Errorf("%d members take %d bytes, a stream carries %d", membersMax, got, streamBytesMax)
	}
}

var _ net.PacketConn = (*socket)(nil)
