package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
)

// AwaitReady returns when the broker at addr answers an ApiVersions request, when its process ends, or when the
// timeout or ctx does. A port that accepts is not enough: Kafka listens before it serves.
func AwaitReady(ctx context.Context, p *Process, addr string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer from %s after %v", addr, timeout))
	defer cancel()
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	var last error
	for {
		if last = probe(ctx, addr); last == nil {
			return nil
		}
		select {
		case <-p.Exited():
			return p.Err()
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), last)
		case <-retry.C:
		}
	}
}

// probe asks for ApiVersions version 0, whose request is the same in every broker there is, and wants error code 0.
func probe(ctx context.Context, addr string) (err error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	deadline := time.Now().Add(5 * time.Second)
	if limit, ok := ctx.Deadline(); ok && limit.Before(deadline) {
		deadline = limit
	}
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	const apiVersions, correlation, client = 18, 0x7e57, "probe"
	request := binary.BigEndian.AppendUint32(nil, 2+2+4+2+uint32(len(client)))
	request = binary.BigEndian.AppendUint16(request, apiVersions)
	request = binary.BigEndian.AppendUint16(request, 0)
	request = binary.BigEndian.AppendUint32(request, correlation)
	request = binary.BigEndian.AppendUint16(request, uint16(len(client)))
	request = append(request, client...)
	if _, err := conn.Write(request); err != nil {
		return err
	}
	var head [4 + 4 + 2]byte // size, correlation id, error code
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return err
	}
	if got := binary.BigEndian.Uint32(head[4:]); got != correlation {
		return fmt.Errorf("the answer's correlation id is %#x, not %#x: is this a Kafka port?", got, correlation)
	}
	if code := int16(binary.BigEndian.Uint16(head[8:])); code != 0 {
		return fmt.Errorf("ApiVersions answers error code %d", code)
	}
	return nil
}

// FreePorts names n TCP ports of 127.0.0.1 that nobody listens on now. Another process may take one before the caller
// does; that is rare, and StartKafka then tries others.
func FreePorts(n int) ([]int, error) { return freePorts(net.IPv4(127, 0, 0, 1), n) }

func freePorts(ip net.IP, n int) ([]int, error) {
	ports := make([]int, 0, n)
	var held []io.Closer
	for range n {
		// All are held until the last is found, so that no two are equal.
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: ip})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("looking for a free port: %w", err), closeAll(held))
		}
		held = append(held, l)
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, closeAll(held)
}

func closeAll(held []io.Closer) error {
	var errs []error
	for _, c := range held {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// Tail is the last lines of a file, for an error message: when it cannot be read, it says so instead.
func Tail(path string, lines int) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return strings.Join(all, "\n")
}
