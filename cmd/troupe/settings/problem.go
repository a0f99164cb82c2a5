package settings

import (
	"strings"

	"github.com/troupe-broker/troupe/cluster/config"
)

// Problem is one thing wrong with the configuration, with the source around it when it is in a file.
type Problem struct {
	*config.Error
	Excerpt string

	Rank int
}

// Unwrap gives the error of the tables.
func (p *Problem) Unwrap() error { return p.Error }

// ProblemsError is all that is wrong; a start reports them together, so that a file is not repaired one start at a time.
type ProblemsError []*Problem

// Error prints one line for each.
func (ps ProblemsError) Error() string {
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
		Rank:    s.Rank,
	}
}

func unknown(s Setting, near string) *Problem {
	p := problem(s, config.UnknownKey, "")
	p.Nearest = near
	return p
}
