package broker

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire/peer"
)

// LoadPeerTLS makes the TLS of links from PEM files: the certificate and the key of this broker, and the certificates of those who may issue certificates for
// brokers. Both sides must show one that chains to them, whatever name is in it: who a broker is, its handshake says. TLS 1.3 and nothing older.
func LoadPeerTLS(certificate, key, ca string) (*tls.Config, error) {
	own, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("%s: the certificate or key for links between brokers: %w", codeLinkTLS, err)
	}
	text, err := os.ReadFile(ca)
	if err != nil {
		return nil, fmt.Errorf("%s: the issuers of brokers' certificates: %w", codeLinkTLS, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: %s has no certificate in PEM form", codeLinkTLS, ca)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAnyClientCert,
		InsecureSkipVerify: true, // of the name; VerifyConnection looks at the chain
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return errors.New("the other broker showed no certificate")
			}
			o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
			for _, c := range s.PeerCertificates[1:] {
				o.Intermediates.AddCert(c)
			}
			_, err := s.PeerCertificates[0].Verify(o)
			return err
		},
	}, nil
}

// tlsError says in words that TLS between brokers did not come about; an error of the network stays one.
func tlsError(err error) error {
	if quiet(err) || codeOf(err) != "" {
		return err
	}
	if other, ok := errors.AsType[tls.RecordHeaderError](err); ok && other.RecordHeader[0] == peer.Preface[0] {
		return &limitError{codeLinkTLS, "the other broker has no certificate and speaks no TLS; give it peer.tls.certificate, peer.tls.key and peer.tls.ca, or give none to this one"}
	}
	return &limitError{codeLinkTLS, "TLS with another broker failed: " + err.Error()}
}

// tlsBufferMax is how many bytes wait for the goroutine that encrypts.
const tlsBufferMax = 256 << 10

// tlsSocket is the Transport of an encrypted connection, and its reader. What is written is copied, and encrypted and sent by a goroutine of its own, because
// crypto/tls waits.
type tlsSocket struct {
	conn  *tls.Conn
	clock runtime.Clock
	self  *runtime.Ref
	once  sync.Once
	ended chan struct{} // closed by Close
	kick  chan struct{} // holds a token when there is something to write

	mu      sync.Mutex
	queue   []byte
	sending int  // bytes that the goroutine is writing
	wanted  bool // tell when there is room
	err     error
}

func newTLSSocket(c *tls.Conn, clock runtime.Clock, wait func(func())) *tlsSocket {
	s := &tlsSocket{conn: c, clock: clock, ended: make(chan struct{}), kick: make(chan struct{}, 1)}
	wait(s.write)
	return s
}

func (s *tlsSocket) adopt(link *runtime.Ref) {
	s.mu.Lock()
	s.self = link
	s.mu.Unlock()
}

// Write implements Transport.
func (s *tlsSocket) Write(vec [][]byte, _ bool) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	n := 0
	for _, b := range vec {
		k := min(len(b), tlsBufferMax-len(s.queue))
		s.queue = append(s.queue, b[:k]...)
		n += k
		if k < len(b) {
			break
		}
	}
	select {
	case s.kick <- struct{}{}:
	default:
	}
	return n, nil
}

// write is the goroutine that encrypts and sends.
func (s *tlsSocket) write() {
	var buf []byte
	for {
		select {
		case <-s.kick:
		case <-s.ended:
			return
		}
		s.mu.Lock()
		buf, s.queue = s.queue, buf[:0]
		s.sending = len(buf)
		s.tellRoom()
		s.mu.Unlock()
		_, wall := s.clock.Now()
		err := s.conn.SetWriteDeadline(time.UnixMilli(int64(wall)).Add(stalledWriteMax))
		if err == nil {
			_, err = s.conn.Write(buf)
		}
		s.mu.Lock()
		s.sending = 0
		if err != nil && s.err == nil {
			s.err = err
			if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
				s.err = errStalled
			}
			s.tell(&hangup{reason: s.err, broken: true})
		}
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// tellRoom tells the link, if it waits, that more can be written. Called with the lock.
func (s *tlsSocket) tellRoom() {
	if s.wanted {
		s.wanted = false
		s.tell(signalWritable)
	}
}

// tell posts to the link, if there is one; when that is gone, so is the reason to tell. Called with the lock.
func (s *tlsSocket) tell(m runtime.Message) {
	if s.self != nil {
		_ = s.self.Post(m)
	}
}

// SendFile implements Transport: bytes that are encrypted pass through memory.
func (*tlsSocket) SendFile(uintptr, int64, int) (int, error) { return 0, errors.ErrUnsupported }

// ZeroCopy implements Transport.
func (*tlsSocket) ZeroCopy() bool { return false }

// WhenWritable implements Transport.
func (s *tlsSocket) WhenWritable() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = true
	if len(s.queue) < tlsBufferMax {
		s.tellRoom()
	}
}

// Close implements Transport. It says no goodbye, for which crypto/tls would wait.
func (s *tlsSocket) Close() {
	s.once.Do(func() {
		close(s.ended)
		_ = s.conn.NetConn().Close() // whoever reads it hears of it
	})
}

func (s *tlsSocket) unacked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue) + s.sending
}

func (s *tlsSocket) done() <-chan struct{} { return s.ended }

// receive reads what comes next into the space. It keeps the space while it waits.
func (s *tlsSocket) receive(space func() []byte, _ func()) (int, error) {
	b := space()
	if len(b) == 0 {
		return 0, nil
	}
	return s.conn.Read(b)
}
