package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
)

// membership is as what a member consumes. The drivers read it from a request.
type membership struct {
	Member    string   `json:"member"` // the suite's name for it; the broker never hears of it
	Group     string   `json:"group"`
	Topics    []string `json:"topics,omitempty"`
	Pattern   string   `json:"pattern,omitempty"`
	Protocol  string   `json:"protocol,omitempty"` // classic or consumer
	Assignor  string   `json:"assignor,omitempty"`
	Reset     string   `json:"reset,omitempty"`
	Instance  string   `json:"instance,omitempty"` // of a static member: group.instance.id
	SessionMs int      `json:"sessionMs,omitempty"`
	Seek      *seekTo  `json:"seek,omitempty"`
	Log       string   `json:"log,omitempty"` // its journal
}

// seekTo moves one partition of the first topic when it is first assigned.
type seekTo struct {
	Partition int   `json:"partition"`
	Offset    int64 `json:"offset"`
}

// committedOffset is what a group has committed for a partition.
type committedOffset struct {
	Offset   int64  `json:"offset"`
	Metadata string `json:"metadata"`
}

// topicPartition names a partition.
type topicPartition struct {
	topic     string
	partition int32
}

func (tp topicPartition) String() string { return fmt.Sprintf("%s-%d", tp.topic, tp.partition) }

func compareTopicPartitions(a, b topicPartition) int {
	return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
}

// event is a line of a member's journal. The kinds: assigned, revoked, got, committed; refused and failed have words only.
type event struct {
	kind   string
	at     int64 // ms; all members run on one machine
	tp     topicPartition
	offset int64
	words  string
}

// readJournal gives the events of a member so far, in order. A line whose end is missing is still being written, or was when
// its process was killed: it is left out.
func readJournal(path string) ([]event, error) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	events := make([]event, 0, bytes.Count(text, []byte("\n")))
	for line := range strings.Lines(string(text)) {
		e, err := parseEvent(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		events = append(events, e)
	}
	return events, nil
}

func parseEvent(line string) (event, error) {
	var e event
	kind, rest, _ := strings.Cut(line, " ")
	e.kind = kind
	switch kind {
	case "refused", "failed":
		at, words, _ := strings.Cut(rest, " ")
		if _, err := fmt.Sscan(at, &e.at); err != nil {
			return e, fmt.Errorf("journal line %q: %w", line, err)
		}
		e.words = words
		return e, nil
	case "assigned", "revoked", "got", "committed":
		if _, err := fmt.Sscan(rest, &e.at, &e.tp.topic, &e.tp.partition, &e.offset); err != nil {
			return e, fmt.Errorf("journal line %q: %w", line, err)
		}
		return e, nil
	}
	return e, fmt.Errorf("journal line %q is of no known kind", line)
}

// stretch is what a member got of a partition without a break: offsets from first to last. Between two stretches it lost the
// partition, or moved in it.
type stretch struct {
	member      string
	at          int64 // of the first record
	first, last int64
}

// stretches gives, for each partition, what a member got.
func stretches(member string, events []event) map[topicPartition][]stretch {
	all := map[topicPartition][]stretch{}
	fresh := map[topicPartition]bool{}
	for _, e := range events {
		switch e.kind {
		case "assigned", "revoked":
			fresh[e.tp] = true
		case "got":
			list := all[e.tp]
			if n := len(list); n > 0 && !fresh[e.tp] && list[n-1].last+1 == e.offset {
				list[n-1].last = e.offset
				continue
			}
			all[e.tp] = append(list, stretch{member: member, at: e.at, first: e.offset, last: e.offset})
			fresh[e.tp] = false
		}
	}
	return all
}

// history is what all members of a group, past ones too, got of each partition, and what was committed.
type history struct {
	got map[topicPartition][]stretch // by time
	// commits are those that somebody knows of: the member that was answered, or an observer that asked. At is when it knew.
	commits map[topicPartition][]event
	refused []string
	failed  []string
}

func newHistory(journals map[string][]event) *history {
	h := &history{got: map[topicPartition][]stretch{}, commits: map[topicPartition][]event{}}
	for member, events := range journals {
		for tp, list := range stretches(member, events) {
			h.got[tp] = append(h.got[tp], list...)
		}
		for _, e := range events {
			switch e.kind {
			case "committed":
				h.commits[e.tp] = append(h.commits[e.tp], e)
			case "refused":
				h.refused = append(h.refused, member+": "+e.words)
			case "failed":
				h.failed = append(h.failed, member+": "+e.words)
			}
		}
	}
	for _, list := range h.got {
		slices.SortFunc(list, func(a, b stretch) int { return int(a.at - b.at) })
	}
	return h
}

// lost lists the partitions below whose end a record was never got.
func (h *history) lost(ends map[topicPartition]int64) error {
	for _, tp := range partitionsOf(ends) {
		list := slices.SortedFunc(slices.Values(h.got[tp]), func(a, b stretch) int { return int(a.first - b.first) })
		next := int64(0)
		for _, s := range list {
			if s.first > next {
				break
			}
			next = max(next, s.last+1)
		}
		if next < ends[tp] {
			return fmt.Errorf("nobody got offset %d of %v, which ends at %d: %s", next, tp, ends[tp], describeStretches(h.got[tp]))
		}
	}
	return nil
}

// repeated looks for records that came again although they were committed: a member that begins with a partition begins at
// what is committed, so never below a commit that was known before. What was got above the last commit of a member that is
// gone comes again, and may.
func (h *history) repeated() error {
	tps := map[topicPartition]int64{}
	for tp := range h.got {
		tps[tp] = 0
	}
	for _, tp := range partitionsOf(tps) {
		for _, s := range h.got[tp] {
			for _, c := range h.commits[tp] {
				if c.at < s.at && c.offset > s.first {
					return fmt.Errorf("%s began with %v at offset %d, %d ms after %d was committed: %s", s.member, tp, s.first, s.at-c.at, c.offset, describeStretches(h.got[tp]))
				}
			}
		}
	}
	return nil
}

// repeats counts the records that came more than once.
func (h *history) repeats() int64 {
	var n int64
	for _, list := range h.got {
		seen := map[int64]bool{}
		for _, s := range list {
			for o := s.first; o <= s.last; o++ {
				if seen[o] {
					n++
				}
				seen[o] = true
			}
		}
	}
	return n
}

// partitionsOf are the keys of a map in order.
func partitionsOf(m map[topicPartition]int64) []topicPartition {
	tps := make([]topicPartition, 0, len(m))
	for tp := range m {
		tps = append(tps, tp)
	}
	slices.SortFunc(tps, compareTopicPartitions)
	return tps
}

func describeStretches(list []stretch) string {
	if len(list) == 0 {
		return "nobody got anything"
	}
	parts := make([]string, len(list))
	for i, s := range list {
		parts[i] = fmt.Sprintf("%s got %d..%d from +%d ms", s.member, s.first, s.last, s.at-list[0].at)
	}
	return strings.Join(parts, ", ")
}
