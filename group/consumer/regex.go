package consumer

import (
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

const (
	// patternBytesMax bounds a regular expression as it comes.
	patternBytesMax = 4 << 10
	// programMax bounds what it becomes: repetitions multiply.
	programMax = 10_000
	// regexRefreshMin is the least time between two resolutions that nobody asked for, in ms (REGEX_BATCH_REFRESH_MIN_INTERVAL_MS).
	regexRefreshMin = 10_000
)

// compile compiles a pattern in RE2's syntax, which is Go's. A topic matches as a whole.
func compile(pattern string) (*regexp.Regexp, string) {
	if len(pattern) > patternBytesMax {
		return nil, "the pattern is too long"
	}
	// By itself first: what the brackets around it would repair is no pattern.
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err.Error()
	}
	if size(parsed) > programMax {
		return nil, "the pattern is too large"
	}
	whole, err := regexp.Compile(`\A(?:` + pattern + `)\z`)
	if err != nil {
		return nil, err.Error()
	}
	return whole, ""
}

// size estimates the instructions of a program, without making it.
func size(re *syntax.Regexp) int64 {
	n := int64(1 + len(re.Rune))
	for _, sub := range re.Sub {
		n += size(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= int64(max(re.Min, re.Max, 1))
	}
	return min(n, programMax+1)
}

// checkRegex refuses a pattern that cannot be used, and remembers the program of one that can.
func (g *Group) checkRegex(pattern *string) refusal {
	if text(pattern) == "" || g.compiled[*pattern] != nil {
		return refusal{}
	}
	program, why := compile(*pattern)
	if program == nil {
		return refuse(wire.InvalidRegularExpression, "SubscribedTopicRegex `%s` is not a valid regular expression: %s.", clip(*pattern), clip(why))
	}
	g.compiled[*pattern] = program
	return refusal{}
}

// clip bounds what of a request comes back in an answer.
func clip(s string) string { return strings.ToValidUTF8(s[:min(len(s), 200)], "") }

// patterns lists what the members subscribe to, ascending.
func (g *Group) patterns() []string {
	return slices.Sorted(maps.Keys(g.tally.regexes))
}

// resolve finds the topics that patterns match, internal ones left out, and writes what changed. It tells whether something did.
func (g *Group) resolve(now coord.Now, topics coord.Topics, patterns []string, out *coord.Out) bool {
	g.refreshed = now.Wall
	programs := make([]*regexp.Regexp, len(patterns))
	for i, pattern := range patterns {
		programs[i] = g.program(pattern)
	}
	found := make([][]string, len(patterns))
	topics.Each(func(t coord.Topic) bool {
		if t.Internal {
			return true
		}
		for i, program := range programs {
			if program != nil && program.MatchString(t.Name) {
				found[i] = append(found[i], t.Name)
			}
		}
		return true
	})
	changed := false
	for i, pattern := range patterns {
		if old := g.regexes[pattern]; old != nil && slices.Equal(old.Topics, found[i]) {
			continue
		}
		changed = true
		g.propose(&records.Regex{Group: g.id, Pattern: pattern, Value: &records.Resolved{Topics: found[i], At: now.Wall}}, out)
	}
	if changed {
		for _, id := range g.ids {
			g.members[id].recheck = g.members[id].recheck || g.members[id].sub.Regex != nil
		}
	}
	return changed
}

// program is the compiled pattern; nil for one that another broker took and this one does not: it matches nothing.
func (g *Group) program(pattern string) *regexp.Regexp {
	if g.compiled[pattern] == nil {
		if program, _ := compile(pattern); program != nil {
			g.compiled[pattern] = program
		}
	}
	return g.compiled[pattern]
}

// releaseRegex forgets what a pattern matches when nobody subscribes to it any more.
func (g *Group) releaseRegex(pattern *string, out *coord.Out) {
	if pattern == nil || g.tally.regexes[*pattern] > 0 {
		return
	}
	delete(g.compiled, *pattern)
	if g.regexes[*pattern] != nil {
		g.propose(&records.Regex{Group: g.id, Pattern: *pattern}, out)
	}
}

// watchRegexes sets the timer that resolves patterns again while there are any.
func (g *Group) watchRegexes(now coord.Now, cfg *coord.Config, out *coord.Out) {
	if g.resolving || len(g.regexes) == 0 {
		return
	}
	g.resolving = true
	g.start(now, coord.TimerRegex, int64(cfg.RegexRefreshInterval), out)
}

// soonRegexes has the patterns resolved in wait ms at the latest.
func (g *Group) soonRegexes(now coord.Now, wait int64, out *coord.Out) {
	if due, ok := out.Timers.Due(g.key(coord.TimerRegex, "")); ok && due <= now.Mono+ident.Instant(wait)*millisecond {
		return
	}
	g.resolving = true
	g.start(now, coord.TimerRegex, wait, out)
}
