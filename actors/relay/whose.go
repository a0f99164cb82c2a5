package relay

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sender tells which broker sends packets from an address; 0: none.
func (n *Net) sender(addr netip.AddrPort) int {
	return n.backs[netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())]
}

// whose finds the broker whose connection it is, by its addresses as its own end sees them.
func (n *Net) whose(local, remote netip.AddrPort) (broker int, err error) {
	socket, err := socketOf(local, remote)
	if err != nil {
		return 0, err
	}
	n.mu.Lock()
	pids := slices.Clone(n.pid)
	n.mu.Unlock()
	for broker, pid := range pids {
		if pid != 0 && hasOpen(pid, socket) {
			return broker, nil
		}
	}
	return 0, fmt.Errorf("the connection from %v is no broker's", local)
}

// socketOf finds the inode of a socket of this machine by the addresses of its connection, in /proc/net/tcp.
func socketOf(local, remote netip.AddrPort) (string, error) {
	table, err := os.Open("/proc/net/tcp")
	if err != nil {
		return "", fmt.Errorf("whose connection is it: %w", err)
	}
	defer func() { _ = table.Close() }() // it was only read
	const localColumn, remoteColumn, inodeColumn = 1, 2, 9
	want := [2]string{column(local), column(remote)}
	for lines := bufio.NewScanner(table); lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) > inodeColumn && f[localColumn] == want[0] && f[remoteColumn] == want[1] {
			return "socket:[" + f[inodeColumn] + "]", nil
		}
	}
	return "", fmt.Errorf("nobody has the connection from %v to %v", local, remote)
}

// column is an address as that table has it: the bytes of IPv4 as one number of the machine, and the port, in hexadecimal digits.
func column(a netip.AddrPort) string {
	ip := a.Addr().As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(ip[:]), a.Port())
}

// hasOpen tells whether a process has a descriptor of a file with such a name.
func hasOpen(pid int, name string) bool {
	dir := filepath.Join("/proc", fmt.Sprint(pid), "fd")
	descriptors, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(descriptors, func(e os.DirEntry) bool {
		to, err := os.Readlink(filepath.Join(dir, e.Name()))
		return err == nil && to == name
	})
}
