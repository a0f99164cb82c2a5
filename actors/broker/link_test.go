package broker

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

func TestBrokersMeetAndTalk(t *testing.T) {
	noLeaks(t)
	a, b := newSide(t, sideOptions{self: identityOf(1, 10)}), newSide(t, sideOptions{self: identityOf(2, 20)})
	meet(a, b)
	large := bytes.Repeat([]byte("0123456789abcdef"), 5<<16)
	a.send(post{}, 2, peer.Control, &letter{from: 1, to: 2, data: large})
	a.send(post{}, 2, peer.Control, &letter{from: 1, to: 2, data: []byte("small")})
	got := map[int]bool{}
	for range 2 {
		x := b.await("letter from 1 to 2", nil)
		if !bytes.Equal(x.data, large) && string(x.data) != "small" {
			t.Errorf("a letter of %d bytes is another", len(x.data))
		}
		got[len(x.data)] = true
	}
	if len(got) != 2 {
		t.Errorf("got letters of %v bytes", got)
	}

	// A request, its answer, and one whose answer does not come.
	answers := make(chan linkResponse, 4)
	ask := func(body string, wait time.Duration) {
		a.send(post{}, 2, peer.Control, &linkRequest{body: []byte(body), wait: wait, answer: func(r linkResponse) { answers <- r }})
	}
	runner := runtime.NewRunner(a.shared.system)
	a.send(runner, 2, peer.Control, &linkMessage{&peer.Announcement{}})
	runner.Run()
	b.await("Announcement", nil)
	ask("register", time.Minute)
	ask("late", 20*time.Millisecond)
	for range 2 {
		x := b.await("Request", nil)
		var r peer.Request
		decode(t, x.frame, &r)
		if string(r.Body) == "register" {
			answer := &peer.Response{ID: r.ID, Result: wire.NotController, Text: "not me", Body: []byte("body")}
			if err := x.link.ref.Post(&linkMessage{answer}); err != nil {
				t.Error(err)
			}
		}
	}
	for range 2 {
		r := <-answers
		if r.err == nil && (r.code != wire.NotController || r.text != "not me" || string(r.body) != "body") || r.err != nil && !errors.Is(r.err, errLinkLate) {
			t.Errorf("answered %+v", r)
		}
	}

	// One that is too large is refused in words, and ends no connection.
	ask(strings.Repeat("x", peer.RequestMax+1), time.Minute)
	if r := <-answers; r.err != nil || r.code != wire.InvalidRequest || !strings.Contains(r.text, "broker 2") {
		t.Errorf("a request that is too large is answered with %+v", r)
	}
	// Large ones come in pieces, one request after the other.
	first, second := strings.Repeat("x", peer.RequestMax), strings.Repeat("y", peer.PieceMax+1)
	ask(first, time.Minute)
	ask(second, time.Minute)
	for _, want := range []string{first, second} {
		b.await("Request", func(x told) bool {
			var r peer.Request
			decode(t, x.frame, &r)
			return string(r.Body) == want
		})
	}

	// What the follower wants, and what it gets.
	topic := ident.TopicID{1}
	for i := range int32(3) {
		a.send(post{}, 2, peer.Data, newLinkEntry(peer.Ask{Topic: topic, Partition: i, From: 7}))
	}
	var asks []peer.Ask
	var link *linkInfo
	for len(asks) < 3 {
		x := b.await("Asks", nil)
		var m peer.Asks
		decode(t, x.frame, &m)
		asks, link = append(asks, m.List...), x.link
	}
	if asks[2].Partition != 2 || link.dialled {
		t.Errorf("asked %+v", asks)
	}
	if err := link.ref.Post(&linkAnswer{head: peer.Answer{Topic: topic, From: 7, Result: wire.FencedLeaderEpoch}}); err != nil {
		t.Error(err)
	}
	if x := a.await("answer", nil); len(x.data) != 0 || !x.link.dialled {
		t.Errorf("answered %+v", x)
	}
	a.send(post{}, 2, peer.Data, newLinkEntry(peer.Withdrawn{Topic: topic}))
	b.await("Withdraw", nil)
	a.send(post{}, 2, peer.Control, newLinkEntry(peer.Position{Topic: topic, End: 8}))
	b.await("Progress", nil)

	// Of several watermarks of a partition the newest arrives, at last.
	for i := range ident.Offset(100) {
		b.send(post{}, 1, peer.Control, newLinkEntry(peer.Watermark{Topic: topic, High: i}))
	}
	frames := 0
	a.await("Watermarks", func(x told) bool {
		var m peer.Watermarks
		decode(t, x.frame, &m)
		frames++
		return m.List[0].High == 99
	})
	if frames > 50 {
		t.Errorf("100 watermarks at once take %d frames", frames)
	}

	// Everything that is open is answered when the connection ends.
	ask("lost", time.Minute)
	b.await("Request", nil)
	b.stop()
	if r := <-answers; !errors.Is(r.err, errLinkSkips) {
		t.Errorf("a request of a link that ended is answered with %+v", r)
	}
	if a.send(post{}, 3, peer.Control, &letter{}) {
		t.Error("a letter goes to a broker that nobody knows")
	}
}

func decode(t *testing.T, frame []byte, into peer.Message) {
	t.Helper()
	b, err := peer.Open(frame)
	if err == nil {
		err = into.Decode(b)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestARunThatIsOverIsNotHeard(t *testing.T) {
	noLeaks(t)
	b := newSide(t, sideOptions{self: identityOf(2, 20), pace: shortFarewell})
	old := b.guest().welcomed(identityOf(1, 10), peer.Control)
	data := b.guest().welcomed(identityOf(1, 10), peer.Data)
	for range 2 {
		b.await("opened", nil)
	}

	// A second connection of the same run takes the place of the first.
	again := b.guest().welcomed(identityOf(1, 10), peer.Control)
	old.closed("the first connection")
	if x := b.await("closed", nil); !errors.Is(x.reason, errLinkVoid) {
		t.Errorf("closed because %v", x.reason)
	}
	again.write((&peer.Progress{Epoch: 10}).AppendTo(nil))
	b.await("Progress", nil)

	// A report that names another epoch is none of this connection.
	again.write((&peer.Progress{Epoch: 9}).AppendTo(nil))
	again.write((&peer.Request{ID: 1}).AppendTo(nil))
	if x := b.await("", nil); x.what != "Request" {
		t.Errorf("heard %s of another epoch", x.what)
	}

	// A newer run ends all connections of the older one, which does not come back.
	newer := b.guest().welcomed(identityOf(1, 11), peer.Control)
	again.closed("control of the older run")
	data.closed("data of the older run")
	for _, self := range []peer.Identity{identityOf(1, 10), {Cluster: "cluster", Broker: 1, Epoch: 11, Incarnation: [16]byte{99}}} {
		g := b.guest()
		g.write(greeting(helloOf(self, peer.Control, 2)))
		g.preface()
		g.refusedWith("an older run", codeLinkRun)
	}
	// Who has not registered yet is let in, and takes nobody's place.
	stranger := identityOf(1, ident.NoBrokerEpoch)
	b.guest().welcomed(stranger, peer.Control)
	newer.write((&peer.Ping{Number: 5}).AppendTo(nil))
	for {
		m, err := newer.frame()
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := m.(*peer.Pong); ok && p.Number == 5 {
			break
		}
	}
	if l := b.table.find(1, peer.Control, false); l == nil || l.peer.Epoch != 11 {
		t.Errorf("found %+v", l)
	}
}

func TestABrokerThatRegistersConnectsAgain(t *testing.T) {
	noLeaks(t)
	a, b := newSide(t, sideOptions{self: identityOf(1, ident.NoBrokerEpoch)}), newSide(t, sideOptions{self: identityOf(2, 20)})
	a.know(2, b.address)
	b.know(1, a.address)
	a.await("opened", on(peer.Control, true))
	b.await("opened", on(peer.Control, true))
	self := a.self
	self.Epoch = 30
	a.become(self)
	of := func(dialled bool) func(told) bool {
		return func(x told) bool { return x.link.dialled == dialled && x.who.Epoch == 30 }
	}
	b.await("opened", func(x told) bool { return of(true)(x) })
	a.become(self) // says nothing new
	if l := b.table.find(1, peer.Control, true); l == nil || l.peer.Epoch != 30 {
		t.Errorf("found %+v", l)
	}
}

func TestABrokerThatIsGoneIsSaidToBe(t *testing.T) {
	noLeaks(t)
	a, b := newSide(t, sideOptions{self: identityOf(1, 10)}), newSide(t, sideOptions{self: identityOf(2, 20)})
	meet(a, b)
	b.stop()
	if x := a.await("down", nil); x.who != b.self {
		t.Errorf("down is %+v", x.who)
	}
	if n := a.table.open(2); n != 0 {
		t.Errorf("%d links are open to a broker that is gone", n)
	}
	// It comes back at its address, as another run.
	again := newSide(t, sideOptions{self: identityOf(2, 21), address: b.address})
	of := func(x told) bool { return x.who.Epoch == 21 }
	for range 2 {
		again.await("opened", nil)
		a.await("opened", of)
	}
	// With nothing to follow there is no data connection; forgotten, it is left alone.
	a.follow(2, false)
	again.await("closed", on(peer.Data, false))
	a.await("closed", on(peer.Data, true))
	a.know(2, "")
	again.await("closed", on(peer.Control, false))
	a.await("closed", of)
}

func TestFoundersSayOnlyWhatFounds(t *testing.T) {
	noLeaks(t)
	founder := identityOf(1, ident.NoBrokerEpoch)
	founder.Cluster = ""
	a, b := newSide(t, sideOptions{self: founder}), newSide(t, sideOptions{self: identityOf(2, 20), pace: shortFarewell})
	a.know(2, b.address)
	if x := a.await("opened", nil); !x.link.founding || x.who.Cluster != "cluster" {
		t.Errorf("opened %+v, %+v", x.link, x.who)
	}
	a.send(post{}, 2, peer.Control, &linkMessage{&peer.Announcement{Body: []byte("expect 3")}})
	a.send(post{}, 2, peer.Control, &letter{from: 1, to: 2, data: []byte("vote")})
	b.await("Announcement", nil)
	b.await("letter from 1 to 2", nil)

	g := b.guest().welcomed(identityOfFounder(3), peer.Control)
	g.write((&peer.Request{ID: 1}).AppendTo(nil))
	g.refusedWith("a request of a founder", peer.CodeMisplaced)
	g = b.guest()
	g.write(greeting(helloOf(identityOfFounder(3), peer.Data, 2)))
	g.preface()
	g.refusedWith("data of a founder", codeLinkCluster)
}

func identityOfFounder(b ident.BrokerID) peer.Identity {
	i := identityOf(b, ident.NoBrokerEpoch)
	i.Cluster = ""
	return i
}

func TestAsksAndWithdrawalsArriveInTheirOrder(t *testing.T) {
	noLeaks(t)
	a, b := newSide(t, sideOptions{self: identityOf(1, 10)}), newSide(t, sideOptions{self: identityOf(2, 20)})
	meet(a, b)
	runner := runtime.NewRunner(a.shared.system)
	const rounds = 200
	for g := range ident.Generation(rounds) { // all that a Runner has sent to one actor is one batch, or a few
		a.send(runner, 2, peer.Data, newLinkEntry(peer.Ask{Topic: ident.TopicID{1}, Generation: g}))
		a.send(runner, 2, peer.Data, newLinkEntry(peer.Ask{Topic: ident.TopicID{2}, Generation: g}))
		a.send(runner, 2, peer.Data, newLinkEntry(peer.Withdrawn{Topic: ident.TopicID{1}, Generation: g}))
	}
	runner.Run()
	asked := ident.Generation(0)
	for withdrawn := ident.Generation(0); withdrawn < rounds; {
		x := b.await("", nil)
		switch x.what {
		case "Asks":
			var m peer.Asks
			decode(t, x.frame, &m)
			for _, ask := range m.List {
				if ask.Generation != withdrawn {
					t.Fatalf("an ask of generation %d, when %d are withdrawn", ask.Generation, withdrawn)
				}
				asked++
			}
		case "Withdraw":
			var m peer.Withdraw
			decode(t, x.frame, &m)
			for _, w := range m.List {
				if w.Generation != withdrawn || asked != 2*(withdrawn+1) {
					t.Fatalf("withdrawn is generation %d after %d asks", w.Generation, asked)
				}
				withdrawn++
			}
		}
	}
}
