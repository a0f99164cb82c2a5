package broker

import (
	"golang.org/x/sys/unix"

	"github.com/troupe-broker/troupe/actors/runtime"
)

// unacked is how many bytes the kernel has from this side that the peer's has not acknowledged. It does not wait.
func (s *socket) unacked() int {
	n := 0
	err := s.raw.Control(func(fd uintptr) {
		if v, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ); err == nil {
			n = v
		}
	})
	if err != nil {
		return 0 // closed: nothing is under way
	}
	return n
}

// done is closed when this side has closed the connection.
func (s *socket) done() <-chan struct{} { return s.closed }

func (s *socket) adopt(link *runtime.Ref) { s.self = link }
