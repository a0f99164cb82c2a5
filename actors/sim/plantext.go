package sim

import (
	"bufio"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A plan as text: one thing a line, which is a word, perhaps a second one, and name=value pairs; a value with spaces is
// quoted as in Go. What is left out is zero. Lines that begin with # are comments.
//
//	seed 7
//	promise synced
//	work for=3s
//	broker log.segment.bytes=4000
//	topic t0 partitions=2 write.caching=true
//	client idempotent number=1 pause=15ms patience=1s acks=-1 inflight=5 size=600
//	fault kill number=0 at=500ms before="sync *.log" n=3 pause=5ms
//	expect logged="torn tail" times=1

// pairs are the name=value pairs of a line.
type pairs []namedValue

type namedValue struct{ name, value string }

// add adds a pair, unless it says nothing.
func (p *pairs) add(name string, value any) {
	if reflect.ValueOf(value).IsZero() {
		return
	}
	*p = append(*p, namedValue{name, fmt.Sprint(value)})
}

// String writes the pairs.
func (p *pairs) String() string {
	var b strings.Builder
	for _, e := range *p {
		v := e.value
		if v == "" || strings.ContainsAny(v, " \"=#") {
			v = strconv.Quote(v)
		}
		fmt.Fprintf(&b, " %s=%s", e.name, v)
	}
	return b.String()
}

// String is the plan as text, which ParsePlan reads.
func (p *Plan) String() string {
	var b strings.Builder
	line := func(words string, list pairs) { b.WriteString(words + list.String() + "\n") }
	line(fmt.Sprint("seed ", p.Seed), nil)
	line(fmt.Sprint("promise ", p.Promise), nil)
	line("work", p.workPairs())
	line("weather", p.Weather.pairs())
	line("disk", p.Disk.pairs())
	for _, e := range p.Settings {
		line("broker", pairs{{e.Name, e.Value}})
	}
	for _, t := range p.Topics {
		var list pairs
		list.add("partitions", t.Partitions)
		list.add("factor", t.Factor)
		for _, e := range t.Configs {
			list = append(list, namedValue{e.Name, e.Value})
		}
		line("topic "+t.Name, list)
	}
	for i := range p.Clients {
		line("client "+p.Clients[i].Kind.String(), p.Clients[i].pairs())
	}
	for i := range p.Faults {
		line("fault "+p.Faults[i].Kind.String(), p.Faults[i].pairs())
	}
	for _, e := range p.Expect {
		line("expect", e.pairs())
	}
	return b.String()
}

// String tells the fault as a plan does.
func (f *FaultPlan) String() string {
	list := f.pairs()
	return f.Kind.String() + list.String()
}

func (p *Plan) workPairs() (list pairs) {
	list.add("brokers", p.Brokers)
	list.add("voters", p.Voters)
	list.add("early", p.Early)
	list.add("for", p.Duration)
	list.add("segment", p.Segment)
	list.add("zstd", p.Zstd)
	list.add("last", p.Last)
	return list
}

func (w Weather) pairs() (list pairs) {
	list.add("delay-min", w.DelayMin)
	list.add("delay-max", w.DelayMax)
	list.add("segment", w.SegmentMax)
	list.add("buffer", w.BufferMax)
	list.add("notice", w.NoticeMax)
	return list
}

func (d DiskPlan) pairs() (list pairs) {
	list.add("writeback", d.Writeback)
	list.add("whole-sync", d.WholeSync)
	list.add("sync-max", d.SyncMax)
	list.add("late", d.Late)
	list.add("later", d.Later)
	list.add("cold", d.Cold)
	list.add("checkpoint", d.Checkpoint)
	return list
}

func (c *ClientPlan) pairs() (list pairs) {
	list.add("number", c.Number)
	list.add("pause", c.Pause)
	list.add("patience", c.Patience)
	list.add("acks", c.Acks)
	list.add("inflight", c.InFlight)
	list.add("retry", c.Retry)
	list.add("size", c.Size)
	list.add("codec", c.Codec)
	list.add("sessions", c.Sessions)
	list.add("near", c.Near)
	list.add("first", c.First)
	list.add("ahead", c.Ahead)
	list.add("group", c.Group)
	list.add("instance", c.Instance)
	list.add("topics", c.Topics)
	list.add("regex", c.Regex)
	list.add("gradual", c.Gradual)
	list.add("adjusts", c.Adjusts)
	list.add("session", c.Session)
	list.add("rebalance", c.Rebalance)
	return list
}

func (f *FaultPlan) pairs() (list pairs) {
	list.add("number", f.Number)
	list.add("at", f.At)
	list.add("for", f.For)
	list.add("n", f.N)
	list.add("before", f.Before)
	list.add("rule", f.Rule)
	list.add("room", f.Room)
	list.add("jump", f.Jump)
	list.add("pause", f.Pause)
	list.add("seed", f.Seed)
	list.add("who", f.Who)
	return list
}

func (e Expect) pairs() (list pairs) {
	list.add("reached", e.Reached)
	list.add("logged", e.Logged)
	list.add("times", e.Times)
	list.add("never", e.Never)
	return list
}

// ParsePlan reads a plan from text.
func ParsePlan(text string) (*Plan, error) {
	p := &Plan{Weather: FairWeather}
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if err := p.parse(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return p, lines.Err()
}

// parse takes in one line.
func (p *Plan) parse(line string) error {
	what, rest, _ := strings.Cut(line, " ")
	word := ""
	if !slices.Contains([]string{"work", "weather", "disk", "broker", "expect"}, what) {
		word, rest, _ = strings.Cut(strings.TrimSpace(rest), " ")
	}
	list, err := parsePairs(rest)
	if err != nil {
		return err
	}
	v := values{list: list}
	switch what {
	case "seed":
		p.Seed, err = strconv.ParseUint(word, 10, 64)
	case "promise":
		p.Promise, err = wordIn[Promise](promiseWords, word)
	case "work":
		v.read(map[string]any{"brokers": &p.Brokers, "voters": &p.Voters, "early": &p.Early, "for": &p.Duration, "segment": &p.Segment, "zstd": &p.Zstd, "last": &p.Last})
	case "weather":
		p.Weather = Weather{}
		v.read(map[string]any{
			"delay-min": &p.Weather.DelayMin, "delay-max": &p.Weather.DelayMax, "segment": &p.Weather.SegmentMax, "buffer": &p.Weather.BufferMax,
			"notice": &p.Weather.NoticeMax,
		})
	case "disk":
		v.read(map[string]any{"writeback": &p.Disk.Writeback, "whole-sync": &p.Disk.WholeSync, "sync-max": &p.Disk.SyncMax, "late": &p.Disk.Late, "later": &p.Disk.Later, "cold": &p.Disk.Cold, "checkpoint": &p.Disk.Checkpoint})
	case "broker":
		for _, e := range list {
			p.Settings = p.Settings.With(e.name, e.value)
		}
	case "topic":
		err = p.parseTopic(word, list)
	case "client":
		c := ClientPlan{}
		c.Kind, err = wordIn[ClientKind](clientWords, word)
		v.read(map[string]any{
			"number": &c.Number, "pause": &c.Pause, "patience": &c.Patience, "acks": &c.Acks, "inflight": &c.InFlight, "retry": &c.Retry, "size": &c.Size,
			"codec": &c.Codec, "sessions": &c.Sessions, "near": &c.Near, "first": &c.First, "ahead": &c.Ahead, "group": &c.Group, "instance": &c.Instance, "topics": &c.Topics,
			"regex": &c.Regex, "gradual": &c.Gradual, "adjusts": &c.Adjusts, "session": &c.Session, "rebalance": &c.Rebalance,
		})
		p.Clients = append(p.Clients, c)
	case "fault":
		f := FaultPlan{}
		f.Kind, err = wordIn[FaultKind](faultWords, word)
		v.read(map[string]any{
			"number": &f.Number, "at": &f.At, "for": &f.For, "n": &f.N, "before": &f.Before, "rule": &f.Rule, "room": &f.Room, "jump": &f.Jump, "pause": &f.Pause,
			"seed": &f.Seed, "who": &f.Who,
		})
		p.Faults = append(p.Faults, f)
	case "expect":
		e := Expect{}
		v.read(map[string]any{"reached": &e.Reached, "logged": &e.Logged, "times": &e.Times, "never": &e.Never})
		p.Expect = append(p.Expect, e)
	default:
		err = fmt.Errorf("nobody knows %q", what)
	}
	return errors.Join(err, v.err)
}

func (p *Plan) parseTopic(name string, list pairs) error {
	t := TopicPlan{Name: name, Partitions: 1}
	for _, e := range list {
		if e.name != "partitions" && e.name != "factor" {
			t.Configs = t.Configs.With(e.name, e.value)
			continue
		}
		n, err := strconv.ParseInt(e.value, 10, 16)
		if err != nil {
			return err
		}
		if e.name == "factor" {
			t.Factor = int16(n)
		} else {
			t.Partitions = int32(n)
		}
	}
	p.Topics = append(p.Topics, t)
	return nil
}

// wordIn finds the number of a word.
func wordIn[T ~uint8](words []string, word string) (T, error) {
	i := slices.Index(words, word)
	if i < 0 {
		return 0, fmt.Errorf("%q is none of %v", word, words)
	}
	return T(i), nil
}

// values reads pairs into variables.
type values struct {
	list pairs
	err  error
}

func (v *values) read(into map[string]any) {
	for _, e := range v.list {
		to, ok := into[e.name]
		if !ok {
			v.err = errors.Join(v.err, fmt.Errorf("nobody knows %q", e.name))
			continue
		}
		if err := set(to, e.value); err != nil {
			v.err = errors.Join(v.err, fmt.Errorf("%s: %w", e.name, err))
		}
	}
}

func set(to any, text string) error {
	field := reflect.ValueOf(to).Elem()
	if field.Type() == reflect.TypeFor[time.Duration]() {
		d, err := time.ParseDuration(text)
		field.SetInt(int64(d))
		return err
	}
	switch field.Kind() {
	case reflect.String:
		field.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		field.SetBool(b)
		return err
	case reflect.Uint64:
		n, err := strconv.ParseUint(text, 10, 64)
		field.SetUint(n)
		return err
	default:
		n, err := strconv.ParseInt(text, 10, field.Type().Bits())
		field.SetInt(n)
		return err
	}
	return nil
}

// parsePairs cuts a line into its pairs.
func parsePairs(s string) (pairs, error) {
	var list pairs
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		name, rest, ok := strings.Cut(s, "=")
		if !ok || strings.ContainsAny(name, " \"") {
			return nil, fmt.Errorf("%q is no name=value", s)
		}
		var value string
		if strings.HasPrefix(rest, `"`) {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if value, err = strconv.Unquote(quoted); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			s = rest[len(quoted):]
		} else {
			value, s, _ = strings.Cut(rest, " ")
		}
		list = append(list, namedValue{name, value})
	}
	return list, nil
}
