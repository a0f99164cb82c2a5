package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-broker/troupe/bench/peer"
)

// toolbox runs Kafka's command line tools against the target, in the one JVM of the Java driver.
type toolbox struct {
	*suite
	driver *driver
}

// tools is the section in which the tools that operators type work as they do against Kafka. They share topics and
// run in order, from creation to deletion.
func (s *suite) tools(ctx context.Context) {
	s.report.section("Kafka's command line tools")
	java := javaOf(s.actors)
	if java == nil {
		s.report.skip(who{client: "kafka-tools", version: peer.KafkaVersion}, "all", "the Java driver is not there")
		return
	}
	t := &toolbox{suite: s, driver: java.client.(*driver)}
	t.topics(ctx)
	t.configs(ctx)
	t.console(ctx)
	t.offsets(ctx)
	t.groups(ctx)
	t.cluster(ctx)
	t.dumpLog(ctx)
	t.retired(ctx)
}

// expect is one thing that a tool's run must show.
type expect struct {
	code  int // the exit code; a run is expected to end with the greatest of its expectations', mostly 0
	holds func(toolResult) error
}

// run is one check: the tool ends with code 0 and everything expected holds. Script is the tool's name as operators
// type it, main its class below org.apache.kafka.tools.
func (t *toolbox) run(ctx context.Context, script, main, name string, args []string, expected ...expect) {
	t.pipe(ctx, script, main, name, "", args, expected...)
}

// pipe is run with something on standard input. Every online tool is told where the broker is.
func (t *toolbox) pipe(ctx context.Context, script, main, name, stdin string, args []string, expected ...expect) {
	t.report.check(ctx, who{script, peer.KafkaVersion}, name, func(ctx context.Context) error {
		try := func() error {
			_, err := t.want(ctx, main, stdin, args, expected...)
			return err
		}
		if slices.Contains(args, "--describe") {
			// What describes may follow a change that Kafka's controller has answered and its broker not yet applied.
			return eventually(ctx, try)
		}
		return try()
	})
}

// want runs a tool inside a check that needs its output.
func (t *toolbox) want(ctx context.Context, main, stdin string, args []string, expected ...expect) (toolResult, error) {
	broker := []string{"--bootstrap-server", t.target.addr}
	switch main {
	case dumpLogSegments: // reads files
	case clusterTool: // its options belong to the subcommand
		args = slices.Concat(args, broker)
	default:
		args = slices.Concat(broker, args)
	}
	r, err := t.driver.tool(ctx, "org.apache.kafka.tools."+main, stdin, args...)
	if err != nil {
		return r, err
	}
	var errs []error
	code := 0
	for _, e := range expected {
		code = max(code, e.code)
		errs = append(errs, e.holds(r))
	}
	if r.Exit != code {
		errs = append(errs, fmt.Errorf("exit code %d, want %d", r.Exit, code))
	}
	if err := errors.Join(errs...); err != nil {
		return r, fmt.Errorf("%w\n%s %s\nprinted:\n%s%s", err, main, strings.Join(args, " "), clip(r.Out), clip(r.Err))
	}
	return r, nil
}

// clip keeps a report readable when a tool prints much.
func clip(s string) string {
	const most = 4000
	if len(s) > most {
		return s[:most] + "…\n"
	}
	return s
}

// fails wants exit code 1.
func fails() expect {
	return expect{code: 1, holds: func(toolResult) error { return nil }}
}

// prints wants exactly these lines on standard output, blanks at their ends aside.
func prints(lines ...string) expect {
	return expect{holds: func(r toolResult) error {
		if got := linesOf(r.Out); !slices.Equal(got, lines) {
			return fmt.Errorf("it printed %q, want %q", got, lines)
		}
		return nil
	}}
}

// linesOf are the lines of a text without blanks at their ends and without empty ones.
func linesOf(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, " \t\r\n"); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// matches wants each pattern somewhere in what it printed, on either stream; ^ and $ mean lines.
func matches(patterns ...string) expect {
	return expect{holds: func(r toolResult) error {
		var errs []error
		for _, p := range patterns {
			if !regexp.MustCompile(`(?m)` + p).MatchString(r.Out + "\n" + r.Err) {
				errs = append(errs, fmt.Errorf("nothing printed matches %q", p))
			}
		}
		return errors.Join(errs...)
	}}
}

// lacking wants that no pattern matches what it printed.
func lacking(patterns ...string) expect {
	return expect{holds: func(r toolResult) error {
		var errs []error
		for _, p := range patterns {
			if found := regexp.MustCompile(`(?m)` + p).FindString(r.Out + "\n" + r.Err); found != "" {
				errs = append(errs, fmt.Errorf("it printed %q", found))
			}
		}
		return errors.Join(errs...)
	}}
}

// args is a shorthand for a command line whose words hold no blanks.
func args(line string) []string { return strings.Fields(line) }
