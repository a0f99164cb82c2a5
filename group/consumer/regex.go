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

// compile compiles a pattern in RE2's syntax, which is Go's, and estimates the instructions of the program. A topic matches as a whole.
func compile(pattern string) (program *regexp.Regexp, instructions int64, why string) {
	if len(pattern) > patternBytesMax {
		return nil, 0, "the pattern is too long"
	}
	// By itself first: what the brackets around it would repair is no pattern.
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, 0, err.Error()
	}
	n := size(parsed)
	if n > programMax {
		return nil, 0, "the pattern is too large"
	}
	whole, err := regexp.Compile(`\A(?:` + pattern + `)\z`)
	if err != nil {
		return nil, 0, err.Error()
	}
	return whole, n, ""
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

// checkRegex refuses a pattern that cannot be used. Its program is not kept: that may be a hundred times as large as the pattern, which says no more.
func (g *Group) checkRegex(pattern *string) refusal {
	if text(pattern) == "" || g.regexes[*pattern] != nil {
		return refusal{}
	}
	if program, _, why := compile(*pattern); program == nil {
		return refuse(wire.InvalidRegularExpression, "SubscribedTopicRegex `%s` is not a valid regular expression: %s.", clip(*pattern), clip(why))
	}
	return refusal{}
}

// clip bounds what of a request comes back in an answer.
func clip(s string) string { return strings.ToValidUTF8(s[:min(len(s), 200)], "") }

// patterns lists what the members subscribe to, ascending.
func (g *Group) patterns() []string {
	return slices.Sorted(maps.Keys(g.tally.regexes))
}

// resolution is how far the group has come with finding the topics of its patterns, when that is too much for one step.
type resolution struct {
	patterns []string // still to be resolved, the first one from topic on
	topic    string   // the last one that was looked at; "": none
	found    []string // by the first pattern
}

// resolveWork bounds what one step does for all groups, in instructions of programs times bytes of names: some ten milliseconds. A group that has a turn looks
// at one topic at least.
const resolveWork = 1 << 20

// resolve finds the topics that patterns match, and writes what changed: at once, or in several steps (TimerRegex) when there is much to look at. Patterns that
// are being resolved already are, once more, behind the others. It tells whether something changed.
func (g *Group) resolve(now coord.Now, topics coord.Topics, patterns []string, out *coord.Out) bool {
	g.refreshed = now.Wall
	begun := g.under.patterns[:min(1, len(g.under.patterns))]
	if g.under.topic == "" {
		begun = nil
	}
	rest := g.under.patterns[len(begun):]
	waiting := make(map[string]struct{}, len(rest))
	for _, pattern := range rest {
		waiting[pattern] = struct{}{}
	}
	g.under.patterns = slices.Concat(begun, rest)
	for _, pattern := range patterns {
		if _, ok := waiting[pattern]; !ok {
			g.under.patterns = append(g.under.patterns, pattern)
		}
	}
	return g.resolveOn(now, topics, out)
}

// resolveOn goes on with what is being resolved.
func (g *Group) resolveOn(now coord.Now, topics coord.Topics, out *coord.Out) bool {
	changed := false
	for len(g.under.patterns) > 0 {
		if out.Worked >= resolveWork {
			g.soonRegexes(now, 1, out)
			break
		}
		pattern := g.under.patterns[0]
		if g.tally.regexes[pattern] > 0 && !g.match(topics, pattern, out) {
			continue
		}
		changed = g.resolved(now, pattern, g.under.found, out) || changed
		g.under = resolution{patterns: g.under.patterns[1:]}
	}
	if changed {
		for _, id := range g.ids {
			g.members[id].recheck = g.members[id].recheck || g.members[id].sub.Regex != nil
		}
	}
	return changed
}

// match looks for the topics of the first pattern as long as work is left, and tells whether it has looked at all. A pattern that another broker took, and this
// one does not, matches nothing. Internal topics are topics like others, as for Kafka (TopicRegexResolver.java).
func (g *Group) match(topics coord.Topics, pattern string, out *coord.Out) bool {
	u := &g.under
	program, size, _ := compile(pattern)
	out.Worked += compileWork * max(size, 1)
	if program == nil {
		return true
	}
	done, looked := true, false
	topics.Each(func(t coord.Topic) bool {
		if u.topic != "" && t.Name <= u.topic {
			return true
		}
		if out.Worked >= resolveWork && looked {
			done = false
			return false
		}
		looked = true
		out.Worked += size * int64(len(t.Name)+1)
		if program.MatchString(t.Name) {
			u.found = append(u.found, t.Name)
		}
		u.topic = t.Name
		return true
	})
	return done
}

// compileWork is what it costs to make one instruction of a program, as resolveWork counts.
const compileWork = 100

// resolved takes what a pattern matches, unless nobody subscribes to it any more. It tells whether something changed.
func (g *Group) resolved(now coord.Now, pattern string, found []string, out *coord.Out) bool {
	if old := g.regexes[pattern]; g.tally.regexes[pattern] == 0 || old != nil && slices.Equal(old.Topics, found) {
		return false
	}
	g.propose(&records.Regex{Group: g.id, Pattern: pattern, Value: &records.Resolved{Topics: found, At: now.Wall}}, out)
	return true
}

// releaseRegex forgets what a pattern matches when nobody subscribes to it any more.
func (g *Group) releaseRegex(pattern *string, out *coord.Out) {
	if pattern == nil || g.tally.regexes[*pattern] > 0 {
		return
	}
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
