package relay

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
)

// Free finds n ports of 127.0.0.1 that nobody has, for TCP and UDP. They lie below those that the kernel gives to connections, so that nobody gets one by
// chance while its owner is down.
func Free(n int) ([]netip.AddrPort, error) {
	const first, last, tries = 12_000, 32_000, 1000
	taken := map[netip.AddrPort]bool{}
	var ports []netip.AddrPort
	var why error
	for range tries {
		at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(first+rand.IntN(last-first)))
		if taken[at] {
			continue
		}
		tcp, udp, err := bind(at, true)
		if err != nil {
			why = err
			continue
		}
		_, _ = tcp.Close(), udp.Close() // nobody came
		taken[at] = true
		if ports = append(ports, at); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("only %d of %d ports of 127.0.0.1 are free: %w", len(ports), n, why)
}
