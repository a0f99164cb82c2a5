package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// devVerb is something that `troupe dev` does when it is told to.
type devVerb struct {
	name  string
	takes string // what follows it
	help  string
	do    func(d *dev, ctx context.Context, brokers []*devBroker) error
}

// devHelp explains the verbs. It is made once: the verbs refer to it.
var devHelp = func() string {
	var b strings.Builder
	for _, v := range devVerbs() {
		_, _ = fmt.Fprintf(&b, "  %-16s %s\n", strings.TrimSpace(v.name+" "+v.takes), v.help)
	}
	return b.String()
}()

// devVerbs are all verbs. N stands for one broker or several, "all" for each.
func devVerbs() []devVerb {
	return []devVerb{
		{"kill", "N…", "kill -9", func(d *dev, _ context.Context, brokers []*devBroker) error {
			return d.endEach(brokers, syscall.SIGKILL, "killed")
		}},
		{"stop", "N…", "stop in order, as by SIGTERM", func(d *dev, _ context.Context, brokers []*devBroker) error {
			return d.endEach(brokers, syscall.SIGTERM, "stopped")
		}},
		{"start", "N…", "start again what was killed or stopped", (*dev).startEach},
		{"pause", "N…", "SIGSTOP: it freezes, and its connections stay open", (*dev).pause},
		{"resume", "N…", "SIGCONT", (*dev).resume},
		{"partition", "N…", "cut them off from the other brokers, together; clients still reach them", (*dev).partition},
		{"heal", "", "undo each partition", (*dev).heal},
		{"wait", "", "wait until all brokers that run serve, and all replicas on them are in sync", (*dev).settle},
		{"status", "", "processes, and what `troupe cluster status` shows", (*dev).status},
		{"logs", "N [LINES]", "the last lines of a broker's log, 20 unless told", nil},
		{"help", "", "this list", nil},
		{"quit", "", "stop all brokers in order, and end", nil},
	}
}

func devVerbNames() []string {
	var names []string
	for _, v := range devVerbs() {
		names = append(names, v.name)
	}
	return names
}

var errQuit = errors.New("quit")

// obey does what stdin says until it ends, says quit, or ctx ends.
func (d *dev) obey(ctx context.Context) error {
	given := make(chan string)
	go func() { // a read of a terminal cannot be interrupted: where one hangs, the goroutine ends with the process
		defer close(given)
		lines := bufio.NewScanner(d.session.in)
		for lines.Scan() {
			select {
			case given <- lines.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	told := false
	for {
		if d.session.asks {
			_, _ = io.WriteString(d.session.err, "> ")
		}
		select {
		case line, more := <-given:
			if !more && !told {
				given = nil // nobody ever tells anything: until a signal
				continue
			}
			if !more {
				return d.verdict()
			}
			told = true
			switch err := d.verb(ctx, line); {
			case ctx.Err() != nil: // a signal has ended what it did
			case errors.Is(err, errQuit):
				return d.verdict()
			case err != nil:
				d.complain(err)
			}
		case e := <-d.events:
			if err := d.happened(e); err != nil {
				d.complain(err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// complain tells what went wrong; the others go on.
func (d *dev) complain(err error) {
	d.failed = true
	asFailure(err).report(d.session.err, d.session.format)
}

// verdict is how a script has ended; a person has seen what failed.
func (d *dev) verdict() error {
	if d.failed && !d.session.asks {
		return fail(codeFailed, "", "not everything was done; the lines above say what")
	}
	return nil
}

// verb does what one line says.
func (d *dev) verb(ctx context.Context, line string) error {
	words := strings.Fields(line)
	if len(words) == 0 || strings.HasPrefix(words[0], "#") {
		return nil
	}
	verbs := devVerbs()
	i := slices.IndexFunc(verbs, func(v devVerb) bool { return v.name == words[0] })
	if i < 0 {
		return usage("one of: "+strings.Join(devVerbNames(), ", "), "there is no verb %q", words[0])
	}
	v, args := &verbs[i], words[1:]
	if v.takes == "" && len(args) > 0 {
		return usage("type "+v.name+" alone", "%s takes nothing", v.name)
	}
	var err error
	switch v.name {
	case "quit":
		return errQuit
	case "help":
		_, err = io.WriteString(d.session.out, devHelp)
	case "logs":
		err = d.logs(args)
	default:
		var brokers []*devBroker
		if v.takes != "" {
			if brokers, err = d.named(v, args); err != nil {
				return err
			}
		}
		err = v.do(d, ctx, brokers)
	}
	if err != nil {
		return err
	}
	return wrapStdout(d.session.flush())
}

// named finds the brokers that a verb is about.
func (d *dev) named(v *devVerb, words []string) ([]*devBroker, error) {
	hint := fmt.Sprintf("%s %s, N from 1 to %d, or all", v.name, v.takes, len(d.brokers))
	if len(words) == 1 && words[0] == "all" {
		return d.brokers, nil
	}
	var out []*devBroker
	for _, w := range words {
		n, err := strconv.Atoi(w)
		if err != nil || n < 1 || n > len(d.brokers) {
			return nil, usage(hint, "there is no broker %q", w)
		}
		if !slices.Contains(out, d.brokers[n-1]) {
			out = append(out, d.brokers[n-1])
		}
	}
	if len(out) == 0 {
		return nil, usage(hint, "%s needs the number of a broker", v.name)
	}
	return out, nil
}

func (d *dev) endEach(brokers []*devBroker, by syscall.Signal, done string) error {
	for _, b := range brokers {
		if b.cmd == nil {
			return fail(codeRefused, fmt.Sprintf("start %d", b.id), "broker %d does not run", b.id)
		}
	}
	if by == syscall.SIGKILL {
		for _, b := range brokers { // all at once
			b.asked = true
			b.signal(by)
		}
	}
	for _, b := range brokers {
		if err := d.end(b, by); err != nil {
			return err
		}
		d.say("broker %d is %s", b.id, done)
	}
	return nil
}

func (d *dev) startEach(_ context.Context, brokers []*devBroker) error {
	for _, b := range brokers {
		if b.cmd != nil {
			return fail(codeRefused, "status shows what runs", "broker %d runs", b.id)
		}
	}
	for _, b := range brokers {
		if err := d.start(b); err != nil {
			return err
		}
		d.say("broker %d is started; it says when it serves", b.id)
	}
	return nil
}

func (d *dev) pause(_ context.Context, brokers []*devBroker) error {
	for _, b := range brokers {
		if b.cmd == nil || b.state == devPaused {
			return fail(codeRefused, "status shows what runs", "broker %d is %s", b.id, b.state)
		}
	}
	for _, b := range brokers {
		b.signal(syscall.SIGSTOP)
		b.state = devPaused
		d.say("broker %d is paused", b.id)
	}
	return nil
}

func (d *dev) resume(_ context.Context, brokers []*devBroker) error {
	for _, b := range brokers {
		if b.state != devPaused {
			return fail(codeRefused, "status shows what is paused", "broker %d is %s", b.id, b.state)
		}
	}
	for _, b := range brokers {
		b.signal(syscall.SIGCONT)
		if b.state = devServing; b.served.Broker == 0 {
			b.state = devStarting
		}
		d.say("broker %d goes on", b.id)
	}
	return nil
}

func (d *dev) partition(_ context.Context, brokers []*devBroker) error {
	var ids []int
	for _, b := range brokers {
		ids = append(ids, b.id)
	}
	d.network.split(ids...)
	for _, b := range brokers {
		d.say("broker %d reaches no more: %s", b.id, numbers(d.network.cutOff(b.id)))
	}
	return nil
}

func (d *dev) heal(context.Context, []*devBroker) error {
	d.network.heal()
	d.say("every broker reaches every other one")
	return nil
}

func (d *dev) logs(words []string) error {
	lines := 20
	hint := fmt.Sprintf("logs N [LINES], N from 1 to %d", len(d.brokers))
	if len(words) == 2 {
		n, err := strconv.Atoi(words[1])
		if err != nil || n < 1 {
			return usage(hint, "%q lines", words[1])
		}
		lines, words = n, words[:1]
	}
	if len(words) != 1 {
		return usage(hint, "logs needs the number of one broker")
	}
	n, err := strconv.Atoi(words[0])
	if err != nil || n < 1 || n > len(d.brokers) {
		return usage(hint, "there is no broker %q", words[0])
	}
	last, err := d.brokers[n-1].lastLines(lines)
	if err != nil {
		return fail(codeLocalFile, "", "read the log of broker %d: %w", n, err)
	}
	for _, line := range last {
		if _, err := fmt.Fprintln(d.session.out, line); err != nil {
			return wrapStdout(err)
		}
	}
	return nil
}

func numbers(list []int) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ", ")
}
