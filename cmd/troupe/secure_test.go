package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// issuer makes certificates for brokers.
type issuer struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	made int64
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{t: t, dir: t.TempDir()}
	i.cert, i.key = i.sign("issuer", true)
	return i
}

// sign makes a certificate and writes it and its key into files of that name.
func (i *issuer) sign(name string, ca bool) (*x509.Certificate, *ecdsa.PrivateKey) {
	i.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	i.made++
	form := &x509.Certificate{
		SerialNumber: big.NewInt(i.made), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: ca, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	parent, signer := form, key
	if !ca {
		parent, signer = i.cert, i.key
	}
	der, err := x509.CreateCertificate(rand.Reader, form, parent, &key.PublicKey, signer)
	if err != nil {
		i.t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		i.t.Fatal(err)
	}
	writeOver(i.t, i.file(name, "crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	writeOver(i.t, i.file(name, "key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}))
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		i.t.Fatal(err)
	}
	return cert, key
}

func (i *issuer) file(name, kind string) string { return filepath.Join(i.dir, name+"."+kind) }

// flags are those of a broker with a certificate of this issuer.
func (i *issuer) flags(name string) []string {
	i.t.Helper()
	i.sign(name, false)
	return []string{"-X", "peer.tls.certificate=" + i.file(name, "crt"), "-X", "peer.tls.key=" + i.file(name, "key"), "-X", "peer.tls.ca=" + i.file("issuer", "crt")}
}

// sealing is the flag of gossip keys, one for each letter.
func sealing(letters string) []string {
	var keys []string
	for _, l := range letters {
		keys = append(keys, base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(l), 32))))
	}
	return []string{"-X", "gossip.keys=" + strings.Join(keys, ",")}
}

// says waits until a broker's log has some words.
func (p *process) says(t *testing.T, words string) {
	t.Helper()
	for late := time.Now().Add(30 * time.Second); !strings.Contains(p.log(t), words); {
		select {
		case <-p.exited:
			t.Fatalf("it exited and did not say %q", words)
		default:
		}
		if time.Now().After(late) {
			t.Fatalf("it does not say %q", words)
		}
	}
}

// TestACoveredClusterLetsNobodyElseIn: three brokers with keys and certificates replicate; whoever lacks one of them is told so and stays outside.
func TestACoveredClusterLetsNobodyElseIn(t *testing.T) {
	c, ca := newTrio(t), newIssuer(t)
	for i := range c.alive {
		c.launch(i, append(ca.flags(fmt.Sprint("broker-", i+1)), sealing("a")...)...)
	}
	for i := range c.alive {
		c.ready(i)
	}
	c.alive[0].cli(t, "", "topic", "create", "orders", "--replication-factor", "3", "--config", "min.insync.replicas=3")
	c.alive[1].cli(t, "k:v\n", "produce", "orders", "--key-separator", ":")
	if got := c.alive[2].cli(t, "", "consume", "orders", "--format", "%k %v\n"); got != "k v\n" {
		t.Errorf("%q is consumed", got)
	}
	other := newIssuer(t)
	for name, s := range map[string]struct {
		flags []string
		says  string // by itself
	}{
		"no key":                          {ca.flags("no-key"), "TRP-4205"},
		"another key":                     {append(ca.flags("another-key"), sealing("z")...), "TRP-4205"},
		"no certificate":                  {sealing("a"), "TRP-4305: this broker demands TLS"},
		"a certificate of another issuer": {append(other.flags("foreign"), sealing("a")...), "TRP-4206"},
	} {
		t.Run(name, func(t *testing.T) {
			p, out := launch(t, append([]string{
				"--broker-id", "4", "--listen", "127.0.0.1:0", "--peer-listen", "127.0.0.1:0", "--join", strings.Join(c.peers[:], ","), "--data-dir", filepath.Join(t.TempDir(), "data"), "-X", "metrics.listen=",
			}, s.flags...)...)
			p.says(t, s.says)
			p.says(t, "to join") // it waits
			p.stop(t)
			if line, err := out.ReadString('\n'); err == nil {
				t.Errorf("it said %q", line)
			}
		})
	}
	if got := c.alive[0].cli(t, "", "cluster", "status"); strings.Count(got, "serving") != 3 {
		t.Errorf("in the end:\n%s", got)
	}
	for i := range c.alive {
		c.alive[i].stop(t)
	}
}

// TestGossipKeysAreChangedByRestarts: first all open with the new key, then all seal with it, then the old one is forgotten. One broker is restarted at a time, and
// the others hear it.
func TestGossipKeysAreChangedByRestarts(t *testing.T) {
	c := newTrio(t)
	c.launchAll(sealing("a")...)
	for _, keys := range []string{"ab", "ba", "b"} {
		for i := range c.alive {
			c.alive[i].kill(t)
			c.launch(i, sealing(keys)...)
			c.ready(i)
			for j, p := range c.alive {
				if log := p.log(t); strings.Contains(log, "TRP-4205") {
					t.Fatalf("broker %d cannot read another, when broker %d has the keys %s:\n%s", j+1, i+1, keys, log)
				}
			}
		}
	}
	for i := range c.alive {
		c.alive[i].stop(t)
	}
}
