package settings

import (
	"maps"
	"slices"
	"strings"

	"github.com/troupe-broker/troupe/cluster/config"
)

// Problem is one thing wrong with the configuration, with the source around it when it is in a file.
type Problem struct {
	*config.Error
	Excerpt string

	rank int
}

// Unwrap gives the error of the tables.
func (p *Problem) Unwrap() error { return p.Error }

// Problems is all that is wrong; a start reports them together, so that a file is not repaired one start at a time.
type Problems []*Problem

// Error prints one line for each.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error.Error()
	}
	return strings.Join(lines, "\n")
}

func problem(s Setting, code config.Code, text string) *Problem {
	return &Problem{
		Error:   &config.Error{Code: code, Where: s.Where, Key: s.Name, Value: s.Text, Problem: text},
		Excerpt: s.Excerpt,
		rank:    s.rank,
	}
}

func unknown(s Setting, near string) *Problem {
	p := problem(s, config.UnknownKey, "")
	p.Nearest = near
	return p
}

func mapKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

func contains(list []string, word string) bool { return slices.Contains(list, word) }

// nearest finds the known name that a person most likely meant, or "" when none is close: at most a third of the name,
// and no more than four letters, may differ.
func nearest(name string, known []string) string {
	best, bestDistance := "", min(len(name)/3, 4)+1
	for _, candidate := range known {
		if d := distance(name, candidate, bestDistance); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// distance counts the letters to insert, delete, replace or swap with their neighbour to make b out of a; it gives up at
// limit.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
