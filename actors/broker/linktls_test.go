package broker

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// issuer makes certificates for brokers.
type issuer struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	ca   string // the file of its own
}

// issue makes a certificate and writes it and its key to files.
func issue(t *testing.T, name string, by *issuer) (i *issuer, certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: by == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	parent, signer := form, private
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, form, parent, &private.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &issuer{key: private, cert: cert, ca: certificate}, certificate, key
}

// brokerTLS is the configuration of a broker with a certificate of this issuer.
func brokerTLS(t *testing.T, by *issuer) *tls.Config {
	t.Helper()
	_, certificate, key := issue(t, "broker", by)
	c, err := LoadPeerTLS(certificate, key, by.ca)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLinksByTLSCarryEverything(t *testing.T) {
	noLeaks(t)
	ca, _, _ := issue(t, "ca", nil)
	a := newSide(t, sideOptions{self: identityOf(1, 10), tls: brokerTLS(t, ca)})
	b := newSide(t, sideOptions{self: identityOf(2, 20), tls: brokerTLS(t, ca)})
	meet(a, b)
	large := bytes.Repeat([]byte("0123456789abcdef"), 5<<16)
	for range 3 {
		a.send(post{}, 2, peer.Control, &letter{from: 1, to: 2, data: large})
	}
	for range 3 {
		if x := b.await("letter from 1 to 2", nil); !bytes.Equal(x.data, large) {
			t.Errorf("a letter of %d bytes is another", len(x.data))
		}
	}
	link := b.table.find(1, peer.Data, false)
	file := newLogFile(t, 300<<10)
	for range 20 {
		if err := link.ref.Post(&linkAnswer{head: peer.Answer{Topic: ident.TopicID{1}}, region: file.region(t)}); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		if x := a.await("answer", nil); !bytes.Equal(x.data, file.bytes) {
			t.Fatalf("records of %d bytes are others", len(x.data))
		}
	}
	// Gossip may come by TLS, too, and by itself.
	for _, plain := range []bool{false, true} {
		g := a.guest()
		write := g.Write
		if !plain {
			write = tls.Client(g.Conn, brokerTLS(t, ca)).Write
		}
		if _, err := write([]byte{244, 1, 2, 3}); err != nil {
			t.Fatal(err)
		}
		c := <-a.streams
		var got [4]byte
		if n, err := c.Read(got[:]); n == 0 || err != nil || got[0] != 244 {
			t.Errorf("gossip reads %v, %v", got[:n], err)
		}
		_ = c.Close()
	}
	b.stop()
	a.await("down", nil)
}

func TestWhoHasNoCertificateOfTheClusterIsRefused(t *testing.T) {
	noLeaks(t)
	ca, _, _ := issue(t, "ca", nil)
	foreign, _, _ := issue(t, "another ca", nil)
	b := newSide(t, sideOptions{self: identityOf(2, 20), tls: brokerTLS(t, ca), pace: shortFarewell})
	g := b.guest()
	g.write(greeting(helloOf(identityOf(1, 10), peer.Control, 2)))
	g.preface()
	g.refusedWith("who comes without TLS", codeLinkTLS)

	stranger := brokerTLS(t, foreign)
	stranger.VerifyConnection = nil // it trusts anybody
	nameless := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
	old := brokerTLS(t, ca)
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	for name, c := range map[string]*tls.Config{"a stranger": stranger, "nobody": nameless, "an old one": old} {
		g := b.guest()
		conn := tls.Client(g.Conn, c)
		_, err := conn.Write(greeting(helloOf(identityOf(1, 10), peer.Control, 2)))
		if err == nil {
			err = conn.SetReadDeadline(time.Now().Add(15 * time.Second))
		}
		var one [1]byte
		if err == nil {
			_, err = conn.Read(one[:])
		}
		if err == nil || strings.Contains(err.Error(), "timeout") {
			t.Errorf("%s is not refused: %v", name, err)
		}
	}
	// Nor is one that answers with such a certificate believed.
	far := newSide(t, sideOptions{self: identityOf(3, 30), tls: stranger})
	dialler := newTCPPeers(far.shared.system.Clock(), brokerTLS(t, ca))
	defer dialler.Close()
	if _, err := dialler.connect(t.Context(), far.address, &PeerWire{}); codeOf(err) != codeLinkTLS {
		t.Errorf("a stranger is believed: %v", err)
	}
}

// A broker with TLS that dialled one without was reset, in no words, and neither said what is wrong.
func TestBothSidesSayThatOneHasNoTLS(t *testing.T) {
	noLeaks(t)
	ca, _, _ := issue(t, "ca", nil)
	var log lines
	plain := newSide(t, sideOptions{self: identityOf(2, 20), log: &log})
	dialler := newTCPPeers(plain.shared.system.Clock(), brokerTLS(t, ca))
	defer dialler.Close()
	_, err := dialler.connect(t.Context(), plain.address, &PeerWire{})
	if codeOf(err) != codeLinkTLS || !strings.Contains(err.Error(), "the other broker has no certificate") {
		t.Errorf("who dials says %v", err)
	}
	until(t, "the other one to say it", func() bool { return strings.Contains(log.loud(), codeLinkTLS+": another broker speaks TLS") })
}

func TestTLSFilesAreLoadedWithWords(t *testing.T) {
	ca, certificate, key := issue(t, "ca", nil)
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, files := range [][3]string{{"missing", key, ca.ca}, {certificate, empty, ca.ca}, {certificate, key, "missing"}, {certificate, key, empty}} {
		if _, err := LoadPeerTLS(files[0], files[1], files[2]); err == nil || !strings.Contains(err.Error(), codeLinkTLS) {
			t.Errorf("%v: %v", files, err)
		}
	}
}
