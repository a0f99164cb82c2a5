package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// journals parses what members would have written, one text a member.
func journals(t *testing.T, texts map[string]string) *history {
	t.Helper()
	all := map[string][]event{}
	for member, text := range texts {
		path := filepath.Join(t.TempDir(), member)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		events, err := readJournal(path)
		if err != nil {
			t.Fatal(err)
		}
		all[member] = events
	}
	return newHistory(all)
}

func TestAJournalIsReadWhileItIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	if events, err := readJournal(path); err != nil || events != nil {
		t.Errorf("a member that has written nothing yet: %v, %v", events, err)
	}
	text := "assigned 5 t 3 -1\ngot 6 t 3 0\nrefused 7 \"Rebalance in progress\"\ncommitted 8 t 3 1\ngot 9 t 3"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	events, err := readJournal(path)
	want := event{kind: "committed", at: 8, tp: topicPartition{"t", 3}, offset: 1}
	if err != nil || len(events) != 4 || events[3] != want || events[2].words != `"Rebalance in progress"` {
		t.Errorf("readJournal = %+v, %v", events, err)
	}
	for _, bad := range []string{"got t 3 0", "got 6 t three 0", "took 6 t 3 0", "refused soon"} {
		if _, err := parseEvent(bad); err == nil {
			t.Errorf("%q was taken for an event", bad)
		}
	}
}

func TestWhatNobodyGotIsLost(t *testing.T) {
	tp := topicPartition{"t", 0}
	for _, c := range []struct {
		name  string
		texts map[string]string
		end   int64
		lost  string // offset, empty: none
	}{
		{"everything, by two", map[string]string{"a": "got 1 t 0 0\ngot 1 t 0 1\n", "b": "got 2 t 0 2\n"}, 3, ""},
		{"in another order", map[string]string{"a": "got 5 t 0 1\ngot 5 t 0 2\n", "b": "got 2 t 0 0\n"}, 3, ""},
		{"with repeats", map[string]string{"a": "got 1 t 0 0\ngot 1 t 0 1\n", "b": "got 2 t 0 1\ngot 2 t 0 2\n"}, 3, ""},
		{"none in the middle", map[string]string{"a": "got 1 t 0 0\n", "b": "got 2 t 0 2\n"}, 3, "offset 1"},
		{"not the first", map[string]string{"a": "got 1 t 0 1\ngot 1 t 0 2\n"}, 3, "offset 0"},
		{"not the last", map[string]string{"a": "got 1 t 0 0\ngot 1 t 0 1\n"}, 3, "offset 2"},
		{"nothing at all", nil, 1, "offset 0"},
		{"of another partition", map[string]string{"a": "got 1 t 1 0\n"}, 1, "offset 0"},
	} {
		err := journals(t, c.texts).lost(map[topicPartition]int64{tp: c.end})
		if (err == nil) != (c.lost == "") || err != nil && !strings.Contains(err.Error(), c.lost+" of") {
			t.Errorf("%s: %v, want lost %q", c.name, err, c.lost)
		}
	}
}

func TestOnlyWhatIsCommittedMayNotComeAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		texts map[string]string
		bad   bool
	}{
		{"the next one begins at the commit", map[string]string{"a": "got 1 t 0 0\ncommitted 2 t 0 1\ngot 3 t 0 1\n", "b": "got 9 t 0 1\n"}, false},
		{"the next one begins beyond it", map[string]string{"a": "got 1 t 0 0\ncommitted 2 t 0 1\n", "b": "got 9 t 0 5\n"}, false},
		{"the next one begins below it", map[string]string{"a": "got 1 t 0 0\ngot 1 t 0 1\ncommitted 2 t 0 2\n", "b": "got 9 t 0 1\n"}, true},
		{"a commit that came later", map[string]string{"a": "got 1 t 0 0\ncommitted 10 t 0 1\n", "b": "got 9 t 0 0\n"}, false},
		{"the same member once more", map[string]string{"a": "got 1 t 0 0\ncommitted 2 t 0 1\nassigned 3 t 0 -1\ngot 4 t 0 0\n"}, true},
		{"a commit of another partition", map[string]string{"a": "committed 2 t 1 9\n", "b": "got 9 t 0 0\n"}, false},
		{"going on needs no new beginning", map[string]string{"a": "got 1 t 0 0\ngot 9 t 0 1\n", "b": "committed 5 t 0 7\n"}, false},
	} {
		if err := journals(t, c.texts).repeated(); (err != nil) != c.bad {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	h := journals(t, map[string]string{"a": "got 1 t 0 0\ngot 1 t 0 1\n", "b": "got 2 t 0 1\ngot 2 t 0 2\n"})
	if n := h.repeats(); n != 1 {
		t.Errorf("%d repeats, want 1", n)
	}
}

func TestEachClientTakesPartInItsOwnWays(t *testing.T) {
	java := &actor{hello: hello{Client: "java", Groups: []string{"classic/range", "classic/sticky", "classic/cooperative-sticky", "consumer/uniform", "consumer/regex"}}}
	other := &actor{hello: hello{Client: "another", Groups: []string{"classic/roundrobin", "classic/range"}}}
	none := &actor{hello: hello{Client: "groupless"}}
	for _, c := range []struct {
		actor *actor
		full  bool
		want  string
	}{
		{java, false, "[classic range classic cooperative-sticky consumer uniform consumer by pattern]"},
		{java, true, "[classic range classic sticky classic cooperative-sticky consumer uniform consumer by pattern]"},
		{other, false, "[classic roundrobin]"},
		{other, true, "[classic roundrobin classic range]"},
		{none, true, "[]"},
	} {
		var names []string
		for _, w := range waysOf(c.actor, c.full) {
			names = append(names, w.String())
		}
		if got := "[" + strings.Join(names, " ") + "]"; got != c.want {
			t.Errorf("%s, full %v: %s, want %s", c.actor.hello.Client, c.full, got, c.want)
		}
	}
}
