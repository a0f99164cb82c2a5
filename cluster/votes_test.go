package cluster

import (
	"testing"
	"testing/cryptotest"
)

// TestVotesAreKept: whoever has voted for the leader of a term knows it after a loss of power, and votes for nobody else in that term.
func TestVotesAreKept(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 5)
	w := newWorld(t, 3, Options{}, nil)
	for _, n := range w.nodes {
		n.start()
	}
	leader := w.await()
	elected, kept := leader.c.term, 0
	for _, n := range w.nodes {
		n.stop(true)
		term, vote, _, err := HardStateOf(n.disk.durable().HardState)
		if err != nil {
			t.Fatal(err)
		}
		if term == elected && vote == uint64(leader.options.Node) {
			kept++
		}
	}
	if kept < 2 {
		t.Errorf("%d of 3 voters know whom they have made the leader of term %d", kept, elected)
	}
}
