package gossip

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The first bytes of memberlist's messages. The numbers are part of its protocol; a test holds them against what the library sends.
const (
	msgPing         = 0
	msgIndirectPing = 1
	msgAck          = 2
	msgSuspect      = 3
	msgAlive        = 4
	msgDead         = 5
	msgPushPull     = 6
	msgCompound     = 7
	msgEncrypted    = 10
	msgNack         = 11
	msgChecked      = 12 // followed by a CRC-32 and a message
	msgError        = 13
	msgLabel        = 244 // followed by the length of the label, one byte, and the label
)

const (
	packetBytesMax = 2048 // we send 1400 at most
	crcBytes       = 4
)

var (
	errLabel  = errors.New("another label")
	errPacket = errors.New("not a packet of ours")
)

// openLabel cuts the label off a packet, and fails with errLabel if it is not ours.
func openLabel(packet []byte, label string) ([]byte, error) {
	if len(packet) < 2 || packet[0] != msgLabel || int(packet[1]) != len(label) || len(packet) < 2+len(label) || string(packet[2:2+len(label)]) != label {
		return nil, errLabel
	}
	return packet[2+len(label):], nil
}

// inspectPacket looks at a packet that is not sealed, behind its label: only messages that we send ourselves pass, so nothing that is compressed, that
// nests deeper than ours, or that is a user's message. indirect is asked for each ping that is to be passed on, because the library keeps a timer and
// a goroutine for it.
func inspectPacket(b []byte, indirect func() bool) error {
	if len(b) > 1+crcBytes && b[0] == msgChecked {
		b = b[1+crcBytes:]
	}
	if len(b) == 0 || b[0] != msgCompound {
		return inspectMessage(b, indirect)
	}
	if len(b) < 2 {
		return fmt.Errorf("%w: a compound of %d bytes", errPacket, len(b))
	}
	parts, lengths := int(b[1]), b[2:]
	if len(lengths) < 2*parts {
		return fmt.Errorf("%w: a compound of %d parts in %d bytes", errPacket, parts, len(b))
	}
	rest := lengths[2*parts:]
	for i := range parts {
		n := int(binary.BigEndian.Uint16(lengths[2*i:]))
		if n > len(rest) {
			return fmt.Errorf("%w: a part of %d bytes, and %d are left", errPacket, n, len(rest))
		}
		if err := inspectMessage(rest[:n], indirect); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

func inspectMessage(b []byte, indirect func() bool) error {
	if len(b) == 0 {
		return fmt.Errorf("%w: an empty message", errPacket)
	}
	switch b[0] {
	case msgPing, msgAck, msgSuspect, msgAlive, msgDead, msgNack:
		return nil
	case msgIndirectPing:
		if !indirect() {
			return fmt.Errorf("%w: too many pings to be passed on", errPacket)
		}
		return nil
	}
	return fmt.Errorf("%w: message type %d", errPacket, b[0])
}
