package broker

import (
	"fmt"
	"testing"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// benchHandler answers each ask at once, and asks again for each answer: what replication costs without its machines.
type benchHandler struct {
	sideHandler
	file   *logFile
	answer chan int
}

func (h *benchHandler) heard(t *runtime.Turn, l *linkInfo, m peer.Message) {
	asks, ok := m.(*peer.Asks)
	if !ok {
		return
	}
	for i := range asks.List {
		a := linkAnswers.Get().(*linkAnswer)
		a.head = peer.Answer{Topic: asks.List[i].Topic, From: asks.List[i].From}
		a.region, _ = h.file.log.Read(0, h.file.log.End(), len(h.file.bytes)+1, true)
		_ = t.Send(l.ref, a) // Reject lets go of it
	}
}

func (h *benchHandler) answered(_ *runtime.Turn, _ *linkInfo, a *peer.Answer, _ *chunk) {
	h.answer <- len(a.Payload)
}

// BenchmarkAnswers is the bytes of records that one data connection carries, with eight asks under way.
func BenchmarkAnswers(b *testing.B) {
	for _, size := range []int{1 << 10, 16 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("batch=%dKiB", size>>10), func(b *testing.B) {
			leader, follower := newSide(b, sideOptions{self: identityOf(1, 10)}), newSide(b, sideOptions{self: identityOf(2, 20)})
			at := &benchHandler{sideHandler: sideHandler{leader}, file: newLogFile(b, size)}
			of := &benchHandler{sideHandler: sideHandler{follower}, answer: make(chan int, 64)}
			leader.handler, of.handler = at, of
			follower.know(1, leader.address)
			follower.follow(1, true)
			follower.await("opened", on(peer.Data, true))
			ask := func() {
				if !follower.send(post{}, 1, peer.Data, newLinkEntry(peer.Ask{Topic: ident.TopicID{1}})) {
					b.Fatal("the link has ended")
				}
			}
			const window = 8
			for range window {
				ask()
			}
			b.ReportAllocs()
			b.SetBytes(int64(len(at.file.bytes)))
			for b.Loop() {
				<-of.answer
				ask()
			}
			b.StopTimer()
			for range window {
				<-of.answer
			}
		})
	}
}
