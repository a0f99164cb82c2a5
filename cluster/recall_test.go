package cluster

import (
	"slices"
	"strings"
	"testing"
)

// TestAVoterWithoutALeaderSaysWhyItCannotAsk: it was away while its vote was taken, and while the others went on to a level that it does not know. It said nothing
// and waited for a leader for ever.
func TestAVoterWithoutALeaderSaysWhyItCannotAsk(t *testing.T) {
	w := grown(t, 3, 0, Options{})
	n := w.answering(w.await())
	for _, other := range w.nodes {
		if other != n {
			other.stop(true)
		}
	}
	var out Out
	for range 300 {
		if n.c.Tick(w.now, &out); out.Ask != nil {
			break
		}
		out.Reset()
		w.now.Mono += 100 * millisecond
	}
	if out.Ask == nil {
		t.Fatal("it never asks whether it still has its vote")
	}
	newer := Entry{Index: out.Ask.Pull.From, Term: n.c.image.term, Data: append([]byte{0}, raw(func(w *writer) { w.open(codeEnd, 0) })...)}
	pulled := &Pulled{Pull: out.Ask.ID, Reply: Reply{Body: &PullReply{Entries: []Entry{newer}}}}
	out.Reset()
	n.c.Step(w.now, pulled, &out)
	if !slices.ContainsFunc(out.Note, func(n Note) bool { return n.Kind == NoteDropped && strings.Contains(n.Text, "newer version") }) {
		t.Errorf("it does not say that it meets a newer version: %+v", out.Note)
	}
	if n.c.failed != "" {
		t.Errorf("others may still need its vote, and it has stopped: %s", n.c.failed)
	}
}
