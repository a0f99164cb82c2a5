package broker

import (
	"encoding/binary"
	"io"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// novelty is a message that came with the version after this build's.
type novelty struct{}

const codeNovelty = peer.Code(60)

func (novelty) Code() peer.Code { return codeNovelty }
func (novelty) AppendTo(dst []byte) []byte {
	return append(binary.BigEndian.AppendUint32(dst, 2), 0x91, byte(codeNovelty))
}
func (novelty) Decode(peer.Body) error { return nil }

// code reads the code of the next frame.
func (g *guest) code() peer.Code {
	g.t.Helper()
	if err := g.SetReadDeadline(time.Now().Add(15 * time.Second)); err != nil {
		g.t.Fatal(err)
	}
	var head [peer.LengthSize]byte
	if _, err := io.ReadFull(g, head[:]); err != nil {
		g.t.Fatal(err)
	}
	f := make([]byte, len(head)+int(binary.BigEndian.Uint32(head[:])))
	copy(f, head[:])
	if _, err := io.ReadFull(g, f[len(head):]); err != nil {
		g.t.Fatal(err)
	}
	b, err := peer.Open(f)
	if err != nil {
		g.t.Fatal(err)
	}
	return b.Code()
}

// finalise has the metadata of a broker say a level of troupe.peer.version.
func (s *side) finalise(level int16) {
	s.t.Helper()
	image := s.shared.image.Load()
	if image == nil {
		image = cluster.NewImage()
	}
	image, _, err := image.Apply(image.Index()+1, 1, []cluster.Record{&cluster.FeatureLevelRecord{Name: cluster.PeerVersion, Level: level}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.shared.image.Store(image)
}

// A build that speaks the next version sends what is new in it when the cluster has finalised that, and not before; and never to a broker that speaks only the
// version before.
func TestWhatIsNewIsSentWhenTheClusterHasFinalisedIt(t *testing.T) {
	noLeaks(t)
	next := peer.Versions{Min: 1, Max: peer.VersionMax + 1}
	b := newSide(t, sideOptions{self: identityOf(2, 20), versions: next})
	for _, c := range []struct {
		level  int16 // 0: the cluster was founded before there was the feature
		theirs uint8
		sent   bool
	}{{0, next.Max, false}, {peer.VersionMax, next.Max, false}, {int16(next.Max), peer.VersionMax, false}, {int16(next.Max), next.Max, true}} {
		if c.level > 0 {
			b.finalise(c.level)
		}
		g := b.guest()
		hello := helloOf(identityOf(1, 10), peer.Control, 2)
		hello.VersionMax = c.theirs
		g.write(greeting(hello))
		g.preface()
		m, err := g.frame()
		if w, ok := m.(*peer.Welcome); err != nil || !ok || w.Version != min(c.theirs, next.Max) {
			t.Fatalf("welcomed with %+v, %v", m, err)
		}
		l := b.await("opened", nil).link
		for _, m := range []peer.Message{novelty{}, &peer.Progress{Epoch: 20}} {
			if err := l.ref.Post(&linkMessage{m}); err != nil {
				t.Fatal(err)
			}
		}
		want := peer.CodeProgress
		if c.sent {
			want = codeNovelty
		}
		if got := g.code(); got != want {
			t.Errorf("level %d, the other speaks up to %d: it is sent %v first, want %v", c.level, c.theirs, got, want)
		}
		_ = g.Close()
		b.await("closed", nil)
	}
}

// Brokers of this version and of the next are one cluster, whoever dials; what the older one does not know it skips.
func TestBrokersOfTwoVersionsAreOneCluster(t *testing.T) {
	noLeaks(t)
	a := newSide(t, sideOptions{self: identityOf(1, 10)})
	b := newSide(t, sideOptions{self: identityOf(2, 20), versions: peer.Versions{Min: peer.VersionMax, Max: peer.VersionMax + 1}})
	b.finalise(peer.VersionMax + 1)
	meet(a, b)
	for _, x := range [][2]*side{{a, b}, {b, a}} {
		for range 2 {
			m := &linkMessage{&peer.Progress{Epoch: x[0].self.Epoch}}
			if !x[0].send(post{}, x[1].self.Broker, peer.Control, &linkMessage{novelty{}}) || !x[0].send(post{}, x[1].self.Broker, peer.Control, m) {
				t.Fatal("there is no link")
			}
			x[1].await("Progress", nil)
		}
	}
	// One that has given up this version is not, and is told which to upgrade.
	c := newSide(t, sideOptions{self: identityOf(3, 30), versions: peer.Versions{Min: peer.VersionMax + 1, Max: peer.VersionMax + 1}, pace: shortFarewell})
	g := c.guest()
	g.write(greeting(helloOf(identityOf(1, 10), peer.Control, ident.NoBroker)))
	g.preface()
	g.refusedWith("a broker of the version before", codeLinkVersion)
}
